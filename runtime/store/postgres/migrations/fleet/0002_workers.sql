-- +goose Up
-- The workers of the fleet, and those that have a lease only for what they settle (slots 0).
-- lease_until goes by the clock of the database alone. The row of a worker that is gone is
-- kept a while, and taken over by the next of its name.
CREATE TABLE rye.workers (
    name        text COLLATE "C" PRIMARY KEY CHECK (name <> ''),
    incarnation text COLLATE "C" NOT NULL UNIQUE CHECK (length(incarnation) = 10),
    host        text COLLATE "C" NOT NULL,
    boot_id     text COLLATE "C" NOT NULL,
    pid         INTEGER NOT NULL,
    version     text COLLATE "C" NOT NULL,
    slots       INTEGER NOT NULL CHECK (slots >= 0),
    projects    text[] COLLATE "C" NOT NULL,
    providers   text[] COLLATE "C" NOT NULL,
    started_at  TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    lease_until TIMESTAMPTZ NOT NULL,
    draining    BOOLEAN NOT NULL DEFAULT false
);
