-- +goose Up

-- A thread that was taken in from a recording was paid for where it ran: neither the spend of
-- a day nor what the deleted have used counts it. What was counted before stays.
DROP TRIGGER threads_insert_days;

-- +goose StatementBegin
CREATE TRIGGER threads_insert_days AFTER INSERT ON threads BEGIN
    INSERT INTO days (day) VALUES (new.last_used / 86400000) ON CONFLICT (day) DO NOTHING;
    INSERT INTO days (day) VALUES (new.created_at / 86400000) ON CONFLICT (day) DO NOTHING;
    UPDATE days SET used = used + 1, tokens = tokens + new.token_count WHERE day = new.last_used / 86400000;
    UPDATE days SET spend = spend + new.spend WHERE day = new.created_at / 86400000 AND json_type(new.metadata, '$.imported') IS NULL;
END;
-- +goose StatementEnd

DROP TRIGGER threads_delete_days;

-- +goose StatementBegin
CREATE TRIGGER threads_delete_days AFTER DELETE ON threads BEGIN
    UPDATE days SET used = used - 1, tokens = tokens - old.token_count WHERE day = old.last_used / 86400000;
    UPDATE days SET gone = gone + old.spend WHERE day = old.created_at / 86400000 AND json_type(old.metadata, '$.imported') IS NULL;
END;
-- +goose StatementEnd

DROP TRIGGER threads_delete_costs;

-- +goose StatementBegin
CREATE TRIGGER threads_delete_costs AFTER DELETE ON threads WHEN OLD.is_set = 0 AND json_type(OLD.metadata, '$.imported') IS NULL BEGIN
    INSERT INTO gone_costs (day, directive, model) VALUES (OLD.created_at / 86400000, OLD.directive, OLD.model)
        ON CONFLICT (day, directive, model) DO NOTHING;
    UPDATE gone_costs SET threads = threads + 1, errors = errors + (OLD.status = 'error'), cancelled = cancelled + (OLD.status = 'cancelled'),
        turns = turns + OLD.turns, input_tokens = input_tokens + OLD.input_tokens, output_tokens = output_tokens + OLD.output_tokens,
        cache_read_tokens = cache_read_tokens + OLD.cache_read_tokens, cache_write_tokens = cache_write_tokens + OLD.cache_write_tokens,
        spend = spend + OLD.spend
        WHERE day = OLD.created_at / 86400000 AND directive = OLD.directive AND model = OLD.model;
END;
-- +goose StatementEnd
