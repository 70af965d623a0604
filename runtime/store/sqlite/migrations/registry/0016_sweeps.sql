-- +goose Up

-- One row: when a server has last swept, and the time by which threads expire. That goes
-- forward by a bounded time in each sweep, whatever the clock says.
CREATE TABLE sweeps (
    one        INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    swept_at   INTEGER NOT NULL CHECK (swept_at > 0),
    counted_at INTEGER NOT NULL CHECK (counted_at > 0)
) STRICT;
