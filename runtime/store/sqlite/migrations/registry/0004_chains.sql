-- +goose Up

-- Those who carry on a thread.
CREATE INDEX threads_continuation ON threads (continuation_of) WHERE continuation_of IS NOT NULL;
