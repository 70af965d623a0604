-- +goose Up

-- What the deleted have used, one row for each day (UTC, in days since 1970) on which
-- they were created, directive and model. A turn of a thread writes nothing here.
CREATE TABLE gone_costs (
    day                INTEGER NOT NULL,
    directive          TEXT    NOT NULL,
    model              TEXT    NOT NULL,
    threads            INTEGER NOT NULL DEFAULT 0,
    errors             INTEGER NOT NULL DEFAULT 0,
    cancelled          INTEGER NOT NULL DEFAULT 0,
    turns              INTEGER NOT NULL DEFAULT 0,
    input_tokens       INTEGER NOT NULL DEFAULT 0,
    output_tokens      INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens  INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    spend              INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, directive, model)
) STRICT, WITHOUT ROWID;

-- +goose StatementBegin
CREATE TRIGGER threads_delete_costs AFTER DELETE ON threads WHEN OLD.is_set = 0 BEGIN
    INSERT INTO gone_costs (day, directive, model) VALUES (OLD.created_at / 86400000, OLD.directive, OLD.model)
        ON CONFLICT (day, directive, model) DO NOTHING;
    UPDATE gone_costs SET threads = threads + 1, errors = errors + (OLD.status = 'error'), cancelled = cancelled + (OLD.status = 'cancelled'),
        turns = turns + OLD.turns, input_tokens = input_tokens + OLD.input_tokens, output_tokens = output_tokens + OLD.output_tokens,
        cache_read_tokens = cache_read_tokens + OLD.cache_read_tokens, cache_write_tokens = cache_write_tokens + OLD.cache_write_tokens,
        spend = spend + OLD.spend
        WHERE day = OLD.created_at / 86400000 AND directive = OLD.directive AND model = OLD.model;
END;
-- +goose StatementEnd
