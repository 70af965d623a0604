-- +goose Up
-- The model providers that a worker can use for each of its projects: an object of arrays.
ALTER TABLE rye.workers ADD COLUMN able jsonb NOT NULL DEFAULT '{}';
