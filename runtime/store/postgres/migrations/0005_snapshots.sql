-- Snapshots of items: contents by their hashes, and which thread works by which.

-- +goose Up
CREATE TABLE snapshot_blobs (
    hash    bytea  PRIMARY KEY CHECK (octet_length(hash) = 32),
    size    bigint NOT NULL CHECK (size = octet_length(content)),
    content bytea  NOT NULL CHECK (octet_length(content) <= 16777216),
    used_at bigint NOT NULL
);

CREATE TABLE snapshot_names (
    thread_id text   COLLATE "C" PRIMARY KEY CHECK (thread_id <> ''),
    hash      bytea  NOT NULL CHECK (octet_length(hash) = 32),
    at        bigint NOT NULL
);
