-- +goose Up

-- A set has no process; to versions that know of none it is a run of a tool, which
-- they leave alone, see threads_run_by_newer.
ALTER TABLE threads ADD COLUMN is_set INTEGER NOT NULL DEFAULT 0 CHECK (is_set IN (0, 1));
CREATE INDEX threads_sets ON threads (created_at, thread_id) WHERE is_set = 1 AND status = 'running';

CREATE TABLE sets (
    set_id      TEXT    NOT NULL PRIMARY KEY REFERENCES threads (thread_id) ON DELETE CASCADE,
    scope       TEXT    NOT NULL,
    content     TEXT    NOT NULL CHECK (content <> ''),
    concurrency INTEGER NOT NULL CHECK (concurrency >= 1)
) STRICT;

CREATE INDEX sets_content ON sets (scope, content);

CREATE TABLE set_entries (
    set_id     TEXT    NOT NULL REFERENCES sets (set_id) ON DELETE CASCADE,
    position   INTEGER NOT NULL CHECK (position >= 0),
    entry_key  TEXT    NOT NULL CHECK (entry_key <> ''),
    inputs     TEXT    NOT NULL CHECK (json_valid(inputs) AND json_type(inputs) = 'object'),
    -- null before it was started, and after its thread was deleted
    thread_id  TEXT    REFERENCES threads (thread_id) ON DELETE SET NULL,
    started_at INTEGER CHECK (started_at > 0),
    reused     INTEGER NOT NULL DEFAULT 0 CHECK (reused IN (0, 1)),
    -- why it could not be started: {"code": …, "message": …}
    refused    TEXT    CHECK (json_valid(refused) AND json_type(refused) = 'object'),
    CHECK (thread_id IS NULL OR started_at IS NOT NULL),
    CHECK (refused IS NULL OR started_at IS NULL),
    PRIMARY KEY (set_id, position)
) STRICT;

CREATE INDEX set_entries_waiting ON set_entries (set_id, position) WHERE started_at IS NULL AND refused IS NULL;
CREATE INDEX set_entries_thread ON set_entries (thread_id) WHERE thread_id IS NOT NULL;
CREATE INDEX set_entries_key ON set_entries (entry_key);
