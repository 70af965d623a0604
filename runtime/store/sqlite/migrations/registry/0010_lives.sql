-- +goose Up

-- The lock of a life has the name of its run. Processes of older versions, which may
-- have the database open, look at a lock of another name: to them a thread that runs
-- would be dead. They cannot count their writes, and so cannot take over what runs.
ALTER TABLE threads ADD COLUMN writes INTEGER NOT NULL DEFAULT 0;

-- +goose StatementBegin
CREATE TRIGGER threads_run_by_newer BEFORE UPDATE OF status, run, pid ON threads
	WHEN OLD.run GLOB 'r[A-Z2-7]*' AND NEW.writes = OLD.writes
		AND (NEW.status IS NOT OLD.status OR NEW.run IS NOT OLD.run OR NEW.pid IS NOT OLD.pid)
BEGIN
	SELECT RAISE(ABORT, 'a newer rye-mcp runs this thread; restart this one, which is older');
END;
-- +goose StatementEnd
