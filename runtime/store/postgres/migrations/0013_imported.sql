-- A thread that was taken in from a recording was paid for where it ran: neither the spend of
-- a day nor what the deleted have used counts it. What was counted before stays.

-- +goose Up
-- +goose StatementBegin
-- Operators of json refuse a document that has \u0000 anywhere. Escapes are no part of the
-- name that is looked for, so that each can stand as one other character.
CREATE FUNCTION is_imported(metadata text) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT metadata <> '{}' AND (regexp_replace(metadata, '\\.', '?', 'g')::json -> 'imported') IS NOT NULL
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION threads_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO days AS d (day, used, tokens) VALUES (NEW.last_used / 86400000, 1, NEW.token_count)
        ON CONFLICT (day) DO UPDATE SET used = d.used + 1, tokens = d.tokens + excluded.tokens;
    INSERT INTO days AS d (day, spend) VALUES (NEW.created_at / 86400000, CASE WHEN is_imported(NEW.metadata) THEN 0 ELSE NEW.spend END)
        ON CONFLICT (day) DO UPDATE SET spend = d.spend + excluded.spend
        WHERE excluded.spend <> 0;
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION threads_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE days SET used = used - 1, tokens = tokens - OLD.token_count WHERE day = OLD.last_used / 86400000;
    IF is_imported(OLD.metadata) THEN
        RETURN NULL;
    END IF;
    UPDATE days SET gone = gone + OLD.spend WHERE day = OLD.created_at / 86400000;
    IF OLD.is_set = 0 THEN
        INSERT INTO gone_costs AS g (day, directive, model, threads, errors, cancelled, turns, input_tokens, output_tokens,
                cache_read_tokens, cache_write_tokens, spend)
            VALUES (OLD.created_at / 86400000, OLD.directive, OLD.model, 1, (OLD.status = 'error')::int, (OLD.status = 'cancelled')::int,
                OLD.turns, OLD.input_tokens, OLD.output_tokens, OLD.cache_read_tokens, OLD.cache_write_tokens, OLD.spend)
            ON CONFLICT (day, directive, model) DO UPDATE SET threads = g.threads + 1, errors = g.errors + excluded.errors,
                cancelled = g.cancelled + excluded.cancelled, turns = g.turns + excluded.turns,
                input_tokens = g.input_tokens + excluded.input_tokens, output_tokens = g.output_tokens + excluded.output_tokens,
                cache_read_tokens = g.cache_read_tokens + excluded.cache_read_tokens,
                cache_write_tokens = g.cache_write_tokens + excluded.cache_write_tokens, spend = g.spend + excluded.spend;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
