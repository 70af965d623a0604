-- +goose Up

-- The threads in line that another has started, which go before the others for as
-- long as that one may wait for them.
CREATE INDEX threads_queued_children ON threads (queue_position)
    WHERE status = 'created' AND queued_at IS NOT NULL AND admitted_at IS NULL AND cancel_requested_at IS NULL
        AND parent_id IS NOT NULL;
