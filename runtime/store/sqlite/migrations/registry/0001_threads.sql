-- +goose Up

-- One row a thread. Times are Unix milliseconds, spend is micro-dollars.
CREATE TABLE threads (
    thread_id              TEXT    NOT NULL PRIMARY KEY CHECK (thread_id <> ''),
    -- n of the candidate id that was free; null where the caller chose the id.
    id_ordinal             INTEGER CHECK (id_ordinal >= 1),
    kind                   TEXT    NOT NULL CHECK (kind IN ('directive', 'tool')),
    directive              TEXT    NOT NULL CHECK (directive <> ''),
    name                   TEXT    NOT NULL DEFAULT '',
    parent_id              TEXT    REFERENCES threads (thread_id) CHECK (parent_id <> thread_id),
    status                 TEXT    NOT NULL DEFAULT 'created'
                           CHECK (status IN ('created', 'running', 'completed', 'error', 'cancelled', 'continued')),
    pid                    INTEGER NOT NULL DEFAULT 0 CHECK (pid >= 0),
    host                   TEXT    NOT NULL DEFAULT '',
    model                  TEXT    NOT NULL DEFAULT '',
    continuation_of        TEXT    REFERENCES threads (thread_id),
    continuation_thread_id TEXT    REFERENCES threads (thread_id),
    chain_root_id          TEXT    REFERENCES threads (thread_id),
    result                 TEXT    CHECK (json_valid(result)),
    turns                  INTEGER NOT NULL DEFAULT 0 CHECK (turns >= 0),
    input_tokens           INTEGER NOT NULL DEFAULT 0 CHECK (input_tokens >= 0),
    output_tokens          INTEGER NOT NULL DEFAULT 0 CHECK (output_tokens >= 0),
    cache_read_tokens      INTEGER NOT NULL DEFAULT 0 CHECK (cache_read_tokens >= 0),
    cache_write_tokens     INTEGER NOT NULL DEFAULT 0 CHECK (cache_write_tokens >= 0),
    spend                  INTEGER NOT NULL DEFAULT 0 CHECK (spend >= 0),
    spawn_count            INTEGER NOT NULL DEFAULT 0 CHECK (spawn_count >= 0),
    token_count            INTEGER NOT NULL DEFAULT 0 CHECK (token_count >= 0),
    request_key            TEXT    CHECK (request_key <> ''),
    metadata               TEXT    NOT NULL DEFAULT '{}'
                           CHECK (json_valid(metadata) AND json_type(metadata) = 'object'),
    cancel_requested_at    INTEGER,
    created_at             INTEGER NOT NULL CHECK (created_at > 0),
    updated_at             INTEGER NOT NULL CHECK (updated_at > 0),
    completed_at           INTEGER,
    last_used              INTEGER NOT NULL CHECK (last_used > 0),
    CHECK ((completed_at IS NULL) = (status IN ('created', 'running'))),
    CHECK ((result IS NULL) = (completed_at IS NULL))
) STRICT;

-- The pages of List: newest first, whole or by one of its filters.
CREATE INDEX threads_created ON threads (created_at, thread_id);
CREATE INDEX threads_status ON threads (status, created_at, thread_id);
CREATE INDEX threads_directive ON threads (directive, created_at, thread_id);
CREATE INDEX threads_parent ON threads (parent_id, created_at, thread_id) WHERE parent_id IS NOT NULL;
-- The highest ordinal of a directive and second, whose successor is the next free id.
CREATE INDEX threads_ordinal ON threads (directive, created_at / 1000, id_ordinal);
CREATE INDEX threads_chain ON threads (chain_root_id, created_at) WHERE chain_root_id IS NOT NULL;
CREATE UNIQUE INDEX threads_request_key ON threads (request_key) WHERE request_key IS NOT NULL;
