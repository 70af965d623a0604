CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);

CREATE TABLE budgets (
    thread_id      TEXT    NOT NULL PRIMARY KEY CHECK (thread_id <> ''),
    -- whose budget this one was taken from; null for a root
    parent_id      TEXT    REFERENCES budgets (thread_id) CHECK (parent_id <> thread_id),
    max_spend      INTEGER NOT NULL CHECK (max_spend >= 0),
    -- running total over the rows with this parent: max_spend of an active one,
    -- reserved_spend of a settled one, whose own children still hold that much
    reserved_spend INTEGER NOT NULL DEFAULT 0 CHECK (reserved_spend >= 0),
    -- own_spend and the actual_spend of every settled row with this parent.
    -- It may exceed max_spend: what a provider billed is recorded as it is.
    actual_spend   INTEGER NOT NULL DEFAULT 0 CHECK (actual_spend >= own_spend),
    own_spend      INTEGER NOT NULL DEFAULT 0 CHECK (own_spend >= 0),
    status         TEXT    NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'settled')),
    created_at     INTEGER NOT NULL CHECK (created_at > 0),
    updated_at     INTEGER NOT NULL CHECK (updated_at > 0)
, pledged_spend INTEGER NOT NULL DEFAULT 0 CHECK (pledged_spend >= 0), successor_id TEXT CHECK (successor_id <> thread_id), run TEXT NOT NULL DEFAULT '', gone_spend INTEGER NOT NULL DEFAULT 0 CHECK (gone_spend >= 0)) STRICT;

CREATE INDEX budgets_parent ON budgets (parent_id) WHERE parent_id IS NOT NULL;

CREATE INDEX budgets_successor ON budgets (successor_id) WHERE successor_id IS NOT NULL;

CREATE INDEX budgets_active ON budgets (thread_id) WHERE status = 'active';

INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (1, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (2, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (3, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (4, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (5, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (6, 1);
