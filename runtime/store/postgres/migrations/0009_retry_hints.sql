-- A failed thread that is to be tried again leaves a hint for the workers of the project, which
-- River delivers when it is time. What is due stands in the row.

-- +goose Up
-- +goose StatementBegin
CREATE FUNCTION hint_retry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF to_regclass('rye.river_job') IS NOT NULL AND EXISTS (
        SELECT FROM rye.workers AS w JOIN rye.projects AS p ON p.name = ANY (w.projects)
        WHERE p.schema_name = TG_TABLE_SCHEMA AND w.slots > 0 AND w.lease_until > clock_timestamp()
    ) THEN
        INSERT INTO rye.river_job (kind, args, max_attempts, queue, state, scheduled_at)
        VALUES ('start', jsonb_build_object('thread_id', NEW.thread_id), 1, 'p_' || right(TG_TABLE_SCHEMA, 12),
            CASE WHEN to_timestamp(NEW.retry_at / 1000.0) > clock_timestamp() THEN 'scheduled' ELSE 'available' END::rye.river_job_state,
            to_timestamp(NEW.retry_at / 1000.0));
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER threads_retriable AFTER UPDATE OF retry_at ON threads FOR EACH ROW
    WHEN (NEW.retry_at IS NOT NULL AND OLD.retry_at IS DISTINCT FROM NEW.retry_at)
    EXECUTE FUNCTION hint_retry();
