-- +goose Up

-- The worker of a fleet that runs the thread, or ran it last; empty: none.
ALTER TABLE threads ADD COLUMN worker TEXT NOT NULL DEFAULT '';
