-- +goose Up

-- The claim of a thread's life that whoever runs or settles the thread names with
-- each write. Empty in rows of older versions: whoever writes first takes it.
ALTER TABLE threads ADD COLUMN run TEXT NOT NULL DEFAULT '';
