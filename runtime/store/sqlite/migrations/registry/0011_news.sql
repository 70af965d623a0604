-- +goose Up

-- For which client a thread was started, and the client's own key; empty for those that
-- no client has started. See thread.Origin.
ALTER TABLE threads ADD COLUMN client TEXT NOT NULL DEFAULT '';
ALTER TABLE threads ADD COLUMN origin TEXT NOT NULL DEFAULT '';
CREATE INDEX threads_client ON threads (client, origin) WHERE client <> '';

-- What has come to pass with threads, in its order. The newest 10 000 are kept. A
-- number is never given out twice, so that whoever has seen one has seen all before it.
CREATE TABLE news (
    seq         INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    kind        TEXT    NOT NULL CHECK (kind IN ('ended', 'asked', 'budget_80')),
    thread_id   TEXT    NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE,
    question_id TEXT    NOT NULL DEFAULT '',
    origin      TEXT    NOT NULL DEFAULT '', -- of the root above it: who is to be told
    told        INTEGER NOT NULL DEFAULT 0 CHECK (told IN (0, 1)),
    -- 0: the person has not been notified, 1: somebody is about to, 2: has been, or never will be
    notified    INTEGER NOT NULL DEFAULT 0 CHECK (notified IN (0, 1, 2)),
    at          INTEGER NOT NULL CHECK (at > 0)
) STRICT;

CREATE INDEX news_untold ON news (origin, seq) WHERE told = 0 AND origin <> '';
CREATE UNIQUE INDEX news_budget ON news (thread_id) WHERE kind = 'budget_80';

-- A thread that is continued has not come to its end.
-- +goose StatementBegin
CREATE TRIGGER threads_end_news AFTER UPDATE OF status ON threads
    WHEN NEW.status IN ('completed', 'error', 'cancelled') AND OLD.status IN ('created', 'running') BEGIN
    INSERT INTO news (kind, thread_id, origin, at) VALUES ('ended', NEW.thread_id, NEW.origin, NEW.completed_at);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER news_kept AFTER INSERT ON news BEGIN
    DELETE FROM news WHERE seq <= NEW.seq - 10000;
END;
-- +goose StatementEnd
