-- +goose Up
-- The worker that runs the thread, or ran it last; empty: none.
ALTER TABLE threads ADD COLUMN worker text COLLATE "C" NOT NULL DEFAULT '';
