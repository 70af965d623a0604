-- +goose Up

-- Threads run in slots. A prepared thread stands in line until it is admitted to
-- one; it leaves the slot when it ends, and for as long as it has yielded, which
-- it does while it only waits for other threads.
ALTER TABLE threads ADD COLUMN queue_position INTEGER CHECK (queue_position >= 1);
ALTER TABLE threads ADD COLUMN queued_at INTEGER;
ALTER TABLE threads ADD COLUMN admitted_at INTEGER;
ALTER TABLE threads ADD COLUMN yielded INTEGER NOT NULL DEFAULT 0 CHECK (yielded IN (0, 1));

-- What runs already was started without a line, and occupies a slot.
UPDATE threads SET queued_at = created_at, admitted_at = created_at
    WHERE status IN ('created', 'running') AND kind = 'directive';

CREATE UNIQUE INDEX threads_position ON threads (queue_position) WHERE queue_position IS NOT NULL;
CREATE INDEX threads_queued ON threads (queue_position)
    WHERE status = 'created' AND queued_at IS NOT NULL AND admitted_at IS NULL AND cancel_requested_at IS NULL;
CREATE INDEX threads_slots ON threads (thread_id)
    WHERE status IN ('created', 'running') AND admitted_at IS NOT NULL AND yielded = 0;
