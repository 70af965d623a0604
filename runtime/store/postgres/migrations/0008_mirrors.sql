-- What is still to be sent to mirrors, which have copies of the project's threads. It is
-- noted in the transaction of each change that a copy would show, for every mirror that a
-- machine of the project has.

-- +goose Up
CREATE TABLE mirrors (
    -- A hash of its address: where it is, and its key, machines know from their users alone.
    mirror      text        COLLATE "C" PRIMARY KEY CHECK (length(mirror) = 32),
    -- The machine that sends to it, and until when no other one does.
    sender      text        COLLATE "C" NOT NULL DEFAULT '',
    sends_until timestamptz NOT NULL DEFAULT '-infinity',
    swept_at    timestamptz NOT NULL DEFAULT '-infinity',
    -- When a machine that has it was last here.
    seen_at     timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- No two notes have the same number.
CREATE SEQUENCE mirror_notes;

-- Neither the mirror's row nor the thread's is referenced: each note would lock the one, and
-- the other is gone when a deletion is due.
CREATE TABLE mirror_due (
    mirror    text   COLLATE "C" NOT NULL,
    thread_id text   COLLATE "C" NOT NULL CHECK (thread_id <> ''),
    note      bigint NOT NULL DEFAULT nextval('mirror_notes'),
    PRIMARY KEY (mirror, thread_id)
);
CREATE INDEX mirror_due_order ON mirror_due (mirror, note);

-- A thread that was not due before leaves a job of River for the workers that have the
-- mirror, unless one waits for them.
-- +goose StatementBegin
CREATE FUNCTION note_for_mirrors(id text, schema_name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    one      text;
    is_new   boolean;
    of_queue text;
BEGIN
    FOR one IN SELECT mirror FROM mirrors ORDER BY mirror LOOP
        INSERT INTO mirror_due (mirror, thread_id) VALUES (one, id)
        ON CONFLICT (mirror, thread_id) DO UPDATE SET note = excluded.note RETURNING xmax = 0 INTO is_new;
        IF is_new AND to_regclass('rye.river_job') IS NOT NULL THEN
            of_queue := 'm_' || right(schema_name, 12) || '_' || left(one, 12);
            INSERT INTO rye.river_job (kind, args, max_attempts, queue)
            SELECT 'mirror', jsonb_build_object('schema', schema_name), 1, of_queue
            WHERE NOT EXISTS (SELECT FROM rye.river_job WHERE state = 'available' AND queue = of_queue);
        END IF;
    END LOOP;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION note_thread() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM note_for_mirrors(NEW.thread_id, TG_TABLE_SCHEMA);
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER threads_begin_mirrored AFTER INSERT ON threads FOR EACH ROW
    WHEN (NEW.kind = 'directive' AND NEW.is_set = 0) EXECUTE FUNCTION note_thread();
CREATE TRIGGER threads_mirrored AFTER UPDATE ON threads FOR EACH ROW
    WHEN (NEW.kind = 'directive' AND NEW.is_set = 0 AND
        (OLD.status, OLD.name, OLD.model, OLD.continuation_of, OLD.continuation_thread_id, OLD.metadata, OLD.completed_at, OLD.turns, OLD.spend)
        IS DISTINCT FROM
        (NEW.status, NEW.name, NEW.model, NEW.continuation_of, NEW.continuation_thread_id, NEW.metadata, NEW.completed_at, NEW.turns, NEW.spend))
    EXECUTE FUNCTION note_thread();
CREATE TRIGGER deletions_mirrored AFTER INSERT ON deletions FOR EACH ROW
    WHEN (NEW.kind = 'directive') EXECUTE FUNCTION note_thread();
-- What was said is shipped when a turn ends, and while somebody follows it.
CREATE TRIGGER transcripts_mirrored AFTER UPDATE OF size ON record_files FOR EACH ROW
    WHEN (NEW.name = 'transcript.jsonl' AND NEW.size <> OLD.size) EXECUTE FUNCTION note_thread();
