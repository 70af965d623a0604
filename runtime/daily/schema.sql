-- What the roots of all projects of a user may come to, in micro-dollars. A chain of
-- threads that hand over is one root.
CREATE TABLE IF NOT EXISTS roots (
    project   TEXT    NOT NULL,
    thread_id TEXT    NOT NULL,
    -- what it may still come to while it is open, and has come to afterwards
    amount    INTEGER NOT NULL CHECK (amount >= 0),
    open      INTEGER NOT NULL CHECK (open IN (0, 1)),
    -- the local day, YYYY-MM-DD, on which it began or, when it is not open, ended
    day       TEXT    NOT NULL,
    PRIMARY KEY (project, thread_id)
) STRICT, WITHOUT ROWID;
