-- A hint says no more than that workers are to look at the queue. So a thread that becomes
-- startable leaves none where one waits for them that nobody takes before this transaction
-- ends: its row is locked until then, and River's clients pass over it. One that is just being
-- taken is locked by them and passed over here: who took it may look before the thread is there.

-- +goose Up
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION hint_start() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    of_project text := 'p_' || right(TG_TABLE_SCHEMA, 12);
BEGIN
    IF to_regclass('rye.river_job') IS NULL OR NOT EXISTS (
        SELECT FROM rye.workers AS w JOIN rye.projects AS p ON p.name = ANY (w.projects)
        WHERE p.schema_name = TG_TABLE_SCHEMA AND w.slots > 0 AND w.lease_until > clock_timestamp()
    ) THEN
        RETURN NULL;
    END IF;
    PERFORM FROM rye.river_job
    WHERE state = 'available' AND queue = of_project AND kind = 'start' AND scheduled_at <= clock_timestamp()
    LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        INSERT INTO rye.river_job (kind, args, max_attempts, queue)
        VALUES ('start', jsonb_build_object('thread_id', NEW.thread_id), 1, of_project);
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
