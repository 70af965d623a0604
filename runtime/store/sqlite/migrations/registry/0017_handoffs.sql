-- +goose Up

-- When somebody has last asked a thread to hand over, and who, with what its successor is
-- to be given: {"by": …, "summary": …}. It holds for this thread and none that continues it.
ALTER TABLE threads ADD COLUMN handoff_asked_at INTEGER;
ALTER TABLE threads ADD COLUMN handoff_asked    TEXT
    CHECK (json_valid(handoff_asked) AND json_type(handoff_asked) = 'object');
