-- +goose Up
-- What of the settings of each of its projects the user of a worker has accepted, in their
-- order: a SHA-256, or empty. A worker of an older version says nothing.
ALTER TABLE rye.workers ADD COLUMN settings text[] COLLATE "C" NOT NULL DEFAULT '{}';
