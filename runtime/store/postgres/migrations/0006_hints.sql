-- +goose Up

-- A thread that becomes startable leaves a hint for the workers of the project in the
-- transaction that makes it so: a job of River, where River's tables are there and a worker
-- takes threads of the project. River delivers it; the order of threads stays in their rows.
-- +goose StatementBegin
CREATE FUNCTION hint_start() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF to_regclass('rye.river_job') IS NOT NULL AND EXISTS (
        SELECT FROM rye.workers AS w JOIN rye.projects AS p ON p.name = ANY (w.projects)
        WHERE p.schema_name = TG_TABLE_SCHEMA AND w.slots > 0 AND w.lease_until > clock_timestamp()
    ) THEN
        INSERT INTO rye.river_job (kind, args, max_attempts, queue)
        VALUES ('start', jsonb_build_object('thread_id', NEW.thread_id), 1, 'p_' || right(TG_TABLE_SCHEMA, 12));
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER threads_startable AFTER UPDATE OF queue_position, admitted_at ON threads FOR EACH ROW
    WHEN (NEW.status = 'created' AND NEW.queue_position IS NOT NULL AND NEW.admitted_at IS NULL
        AND (OLD.queue_position IS NULL OR OLD.admitted_at IS NOT NULL))
    EXECUTE FUNCTION hint_start();
