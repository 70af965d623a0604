-- +goose Up
-- The projects of the database. Each has the tables of its threads in a schema of its own.
CREATE TABLE projects (
    name        text   COLLATE "C" NOT NULL PRIMARY KEY CHECK (name <> ''),
    schema_name text   COLLATE "C" NOT NULL UNIQUE CHECK (schema_name <> ''),
    created_at  bigint NOT NULL CHECK (created_at > 0) -- Unix time in milliseconds
);
