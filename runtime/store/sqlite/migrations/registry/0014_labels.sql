-- +goose Up

-- One index for each order of lists, so that a page is read from its place. A turn of a
-- thread writes to three of them.
CREATE INDEX threads_used ON threads (last_used, thread_id);
CREATE INDEX threads_spend ON threads (spend, thread_id);
CREATE INDEX threads_name ON threads (name COLLATE NOCASE, thread_id);
DROP INDEX threads_tokens;
CREATE INDEX threads_tokens ON threads (token_count, thread_id);

-- Threads with metadata, and the forks of a thread.
CREATE INDEX threads_labelled ON threads (created_at, thread_id) WHERE metadata <> '{}';
CREATE INDEX threads_forks ON threads (json_extract(metadata, '$.forked_from'), created_at, thread_id)
    WHERE json_extract(metadata, '$.forked_from') IS NOT NULL;
