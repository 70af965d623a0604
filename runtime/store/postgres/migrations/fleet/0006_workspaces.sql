-- +goose Up
-- The machine of a worker, by which workspaces name where they are, and the commits that its
-- checkouts lack and workspaces of queued threads build upon. A worker of an older version says
-- nothing.
ALTER TABLE rye.workers ADD COLUMN machine text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN lacks text[] COLLATE "C" NOT NULL DEFAULT '{}';
