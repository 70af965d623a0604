-- +goose Up
-- When another attempt is due for a thread that has failed; null: none is to be made, or it
-- was made. And why none was made that was to be.
ALTER TABLE threads ADD COLUMN retry_at bigint CHECK (retry_at > 0), ADD COLUMN retry_note text;
CREATE INDEX threads_retry ON threads (retry_at) WHERE retry_at IS NOT NULL;

-- A thread that is to be tried again has not come to its end.
DROP TRIGGER threads_end_news ON threads;
CREATE TRIGGER threads_end_news AFTER UPDATE OF status ON threads FOR EACH ROW
    WHEN (NEW.status IN ('completed', 'error', 'cancelled') AND OLD.status IN ('created', 'running') AND NEW.retry_at IS NULL)
    EXECUTE FUNCTION threads_ended();

-- +goose StatementBegin
CREATE FUNCTION threads_unretried() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO news (kind, thread_id, origin, at) VALUES ('ended', NEW.thread_id, NEW.origin, NEW.updated_at);
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER threads_unretried_news AFTER UPDATE OF retry_at ON threads FOR EACH ROW
    WHEN (OLD.retry_at IS NOT NULL AND NEW.retry_at IS NULL AND NEW.continuation_thread_id IS NULL)
    EXECUTE FUNCTION threads_unretried();
