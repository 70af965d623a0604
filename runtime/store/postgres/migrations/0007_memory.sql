-- Entries of memory, signed; each machine has an index of them that follows by seq.

-- +goose Up
CREATE SEQUENCE memory_changes;

CREATE TABLE memory_rows (
    namespace  text     COLLATE "C" NOT NULL CHECK (namespace <> ''),
    key        text     COLLATE "C" NOT NULL CHECK (key <> ''),
    -- Of the last change. Changes are made one after the other, so that none comes behind a later one.
    seq        bigint   NOT NULL DEFAULT nextval('memory_changes') UNIQUE,
    gone       smallint NOT NULL DEFAULT 0 CHECK (gone IN (0, 1)),
    thread_id  text     COLLATE "C" NOT NULL DEFAULT '',
    chain_root text     COLLATE "C" NOT NULL DEFAULT '',
    text       text     NOT NULL DEFAULT '' CHECK (octet_length(text) <= 1048576),
    metadata   text     NOT NULL DEFAULT '{}' CHECK (octet_length(metadata) <= 1048576),
    model      text     NOT NULL DEFAULT '',
    vector     bytea    CHECK (octet_length(vector) <= 262144), -- of float32, little-endian
    created_at bigint   NOT NULL,
    PRIMARY KEY (namespace, key)
);
