-- +goose Up

-- Running totals, one row a day (UTC, in days since 1970), so that nobody reads all
-- threads to count them. Triggers keep them, whatever the version of who writes.
CREATE TABLE days (
    day    INTEGER NOT NULL PRIMARY KEY,
    used   INTEGER NOT NULL DEFAULT 0, -- threads last used on the day
    tokens INTEGER NOT NULL DEFAULT 0, -- token_count of those
    spend  INTEGER NOT NULL DEFAULT 0  -- of the threads created on the day
) STRICT;

INSERT INTO days (day, used, tokens)
    SELECT last_used / 86400000, count(*), sum(token_count) FROM threads GROUP BY 1;
INSERT INTO days (day, spend)
    SELECT created_at / 86400000, sum(spend) FROM threads WHERE true GROUP BY 1
    ON CONFLICT (day) DO UPDATE SET spend = excluded.spend;

-- The most tokens.
CREATE INDEX threads_tokens ON threads (token_count);

-- +goose StatementBegin
CREATE TRIGGER threads_insert_days AFTER INSERT ON threads BEGIN
    INSERT INTO days (day) VALUES (new.last_used / 86400000) ON CONFLICT (day) DO NOTHING;
    INSERT INTO days (day) VALUES (new.created_at / 86400000) ON CONFLICT (day) DO NOTHING;
    UPDATE days SET used = used + 1, tokens = tokens + new.token_count WHERE day = new.last_used / 86400000;
    UPDATE days SET spend = spend + new.spend WHERE day = new.created_at / 86400000;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER threads_use_days AFTER UPDATE OF last_used, token_count ON threads
    WHEN new.token_count <> old.token_count OR new.last_used / 86400000 <> old.last_used / 86400000 BEGIN
    INSERT INTO days (day) VALUES (new.last_used / 86400000) ON CONFLICT (day) DO NOTHING;
    UPDATE days SET used = used - 1, tokens = tokens - old.token_count WHERE day = old.last_used / 86400000;
    UPDATE days SET used = used + 1, tokens = tokens + new.token_count WHERE day = new.last_used / 86400000;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER threads_spend_days AFTER UPDATE OF spend ON threads WHEN new.spend <> old.spend BEGIN
    UPDATE days SET spend = spend + new.spend - old.spend WHERE day = new.created_at / 86400000;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER threads_delete_days AFTER DELETE ON threads BEGIN
    UPDATE days SET used = used - 1, tokens = tokens - old.token_count WHERE day = old.last_used / 86400000;
    UPDATE days SET spend = spend - old.spend WHERE day = old.created_at / 86400000;
END;
-- +goose StatementEnd
