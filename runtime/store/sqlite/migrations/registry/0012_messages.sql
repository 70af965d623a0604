-- +goose Up

-- What threads are told while they work, in its order. Of what was read the text is not
-- kept: it stands in the transcript.
CREATE TABLE messages (
    seq          INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    message_id   TEXT    NOT NULL UNIQUE CHECK (message_id <> ''),
    thread_id    TEXT    NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE, -- that is told
    kind         TEXT    NOT NULL CHECK (kind IN ('steer', 'note')),
    sender_kind  TEXT    NOT NULL CHECK (sender_kind <> ''),
    sender       TEXT    NOT NULL DEFAULT '', -- name of a client, or id of a thread
    sender_turn  INTEGER NOT NULL DEFAULT 0,  -- turns that the thread which writes a note had taken
    text         TEXT    NOT NULL,
    bytes        INTEGER NOT NULL CHECK (bytes > 0), -- of the text
    interrupt    INTEGER NOT NULL DEFAULT 0 CHECK (interrupt IN (0, 1)),
    posted_at    INTEGER NOT NULL CHECK (posted_at > 0),
    delivered_at INTEGER,
    CHECK ((delivered_at IS NOT NULL) = (text = ''))
) STRICT;

CREATE INDEX messages_unread ON messages (thread_id, seq) WHERE delivered_at IS NULL;
CREATE INDEX messages_notes ON messages (sender, sender_turn) WHERE kind = 'note';

-- How many of them the thread has not read: it looks at its row before each turn anyway.
ALTER TABLE threads ADD COLUMN unread INTEGER NOT NULL DEFAULT 0 CHECK (unread >= 0);

-- +goose StatementBegin
CREATE TRIGGER messages_posted AFTER INSERT ON messages BEGIN
    UPDATE threads SET unread = unread + 1, updated_at = max(updated_at, NEW.posted_at) WHERE thread_id = NEW.thread_id;
    DELETE FROM messages WHERE seq <= NEW.seq - 10000 AND delivered_at IS NOT NULL;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER messages_delivered AFTER UPDATE OF delivered_at ON messages
    WHEN OLD.delivered_at IS NULL AND NEW.delivered_at IS NOT NULL BEGIN
    UPDATE threads SET unread = unread - 1, updated_at = max(updated_at, NEW.delivered_at) WHERE thread_id = NEW.thread_id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER messages_passed_on AFTER UPDATE OF thread_id ON messages
    WHEN OLD.delivered_at IS NULL AND NEW.thread_id <> OLD.thread_id BEGIN
    UPDATE threads SET unread = unread - 1 WHERE thread_id = OLD.thread_id;
    UPDATE threads SET unread = unread + 1 WHERE thread_id = NEW.thread_id;
END;
-- +goose StatementEnd
