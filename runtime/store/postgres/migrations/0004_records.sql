-- What threads leave beside their rows: files in chunks, artifacts by their content.
-- No thread's row is referenced: an import writes records before it makes rows, and a
-- deletion removes them after the row.

-- +goose Up
-- No two contents of files have the same number, and one that grows keeps its own.
CREATE SEQUENCE record_generations;

CREATE TABLE record_files (
    thread_id  text   COLLATE "C" NOT NULL CHECK (thread_id <> ''),
    name       text   COLLATE "C" NOT NULL CHECK (name <> ''),
    -- Another one when content is replaced or cut off, and not when some is appended.
    generation bigint NOT NULL DEFAULT nextval('record_generations') CHECK (generation >= 1),
    size       bigint NOT NULL DEFAULT 0 CHECK (size >= 0),
    -- Of what a compressed file contains; otherwise the same as size.
    content    bigint NOT NULL DEFAULT 0 CHECK (content >= 0),
    -- Of the whole content; null for what is appended to.
    sha256     bytea  CHECK (octet_length(sha256) = 32),
    -- Who alone appends to it.
    writer     text   COLLATE "C" NOT NULL DEFAULT '',
    changed_at bigint NOT NULL,
    PRIMARY KEY (thread_id, name)
);

CREATE TABLE record_chunks (
    thread_id text    COLLATE "C" NOT NULL,
    name      text    COLLATE "C" NOT NULL,
    at        bigint  NOT NULL CHECK (at >= 0),
    size      integer NOT NULL CHECK (size = octet_length(bytes)),
    sha256    bytea   NOT NULL CHECK (octet_length(sha256) = 32),
    bytes     bytea   NOT NULL CHECK (octet_length(bytes) BETWEEN 1 AND 262144),
    PRIMARY KEY (thread_id, name, at),
    FOREIGN KEY (thread_id, name) REFERENCES record_files ON UPDATE CASCADE ON DELETE CASCADE
);

-- Contents that are kept once for the project, by their hash.
CREATE TABLE blobs (
    sha256  bytea    PRIMARY KEY CHECK (octet_length(sha256) = 32),
    size    bigint   NOT NULL CHECK (size >= 0),
    -- 0: parts of it are still to come.
    whole   smallint NOT NULL CHECK (whole IN (0, 1)),
    made_at bigint   NOT NULL
);

CREATE TABLE blob_chunks (
    sha256 bytea  NOT NULL REFERENCES blobs ON DELETE CASCADE,
    at     bigint NOT NULL CHECK (at >= 0),
    bytes  bytea  NOT NULL CHECK (octet_length(bytes) BETWEEN 1 AND 262144),
    PRIMARY KEY (sha256, at)
);

CREATE TABLE record_artifacts (
    thread_id text   COLLATE "C" NOT NULL CHECK (thread_id <> ''),
    name      text   COLLATE "C" NOT NULL CHECK (name <> ''),
    sha256    bytea  NOT NULL REFERENCES blobs,
    size      bigint NOT NULL CHECK (size >= 0),
    place     bigint GENERATED ALWAYS AS IDENTITY,
    added_at  bigint NOT NULL,
    PRIMARY KEY (thread_id, name)
);
CREATE INDEX record_artifacts_of_blob ON record_artifacts (sha256);

-- Whose transcripts somebody follows from another machine, and until when.
CREATE TABLE record_tails (
    thread_id text   COLLATE "C" PRIMARY KEY,
    until     bigint NOT NULL
);
