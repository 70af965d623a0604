-- +goose Up

-- What was deleted, in the order of that. Record is the row as JSON, without its outcome,
-- for as long as something of the thread may be left; then null. The newest 10 000 of
-- those are kept: an id that something may still name is not given out again.
CREATE TABLE deletions (
    seq        INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    thread_id  TEXT    NOT NULL UNIQUE CHECK (thread_id <> ''),
    kind       TEXT    NOT NULL,
    directive  TEXT    NOT NULL,
    parent_id  TEXT,
    id_ordinal INTEGER,
    created_at INTEGER NOT NULL CHECK (created_at > 0),
    deleted_at INTEGER NOT NULL CHECK (deleted_at > 0),
    record     TEXT    CHECK (json_valid(record) AND json_type(record) = 'object')
) STRICT;

CREATE INDEX deletions_open ON deletions (seq) WHERE record IS NOT NULL;
CREATE INDEX deletions_ordinal ON deletions (directive, created_at / 1000, id_ordinal);

-- +goose StatementBegin
CREATE TRIGGER deletions_kept AFTER UPDATE OF record ON deletions WHEN NEW.record IS NULL BEGIN
    DELETE FROM deletions WHERE seq <= NEW.seq - 10000 AND record IS NULL;
END;
-- +goose StatementEnd

-- What a dry run has told, by who has asked for what.
CREATE TABLE shown_plans (
    plan_key TEXT    NOT NULL PRIMARY KEY CHECK (plan_key <> ''),
    digest   TEXT    NOT NULL,
    shown_at INTEGER NOT NULL CHECK (shown_at > 0)
) STRICT;

-- Who names a row is looked for when it is deleted.
CREATE INDEX threads_successor ON threads (continuation_thread_id) WHERE continuation_thread_id IS NOT NULL;

CREATE INDEX messages_thread ON messages (thread_id);
CREATE INDEX news_thread ON news (thread_id);

-- What the deleted have spent stays in the spend of the day.
ALTER TABLE days ADD COLUMN gone INTEGER NOT NULL DEFAULT 0;

DROP TRIGGER threads_delete_days;

-- +goose StatementBegin
CREATE TRIGGER threads_delete_days AFTER DELETE ON threads BEGIN
    UPDATE days SET used = used - 1, tokens = tokens - old.token_count WHERE day = old.last_used / 86400000;
    UPDATE days SET gone = gone + old.spend WHERE day = old.created_at / 86400000;
END;
-- +goose StatementEnd
