-- How far a mirror is behind, for people: since when each thread is due, and what the last
-- sender met. Who notes a thread that is due already leaves its time.

-- +goose Up
ALTER TABLE mirror_due ADD COLUMN since timestamptz NOT NULL DEFAULT clock_timestamp();
ALTER TABLE mirrors
    ADD COLUMN failure   text        NOT NULL DEFAULT '' CHECK (length(failure) <= 200),
    ADD COLUMN failed_at timestamptz NOT NULL DEFAULT '-infinity';
