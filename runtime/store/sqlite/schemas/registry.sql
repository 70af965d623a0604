CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);

CREATE TABLE threads (
    thread_id              TEXT    NOT NULL PRIMARY KEY CHECK (thread_id <> ''),
    -- n of the candidate id that was free; null where the caller chose the id.
    id_ordinal             INTEGER CHECK (id_ordinal >= 1),
    kind                   TEXT    NOT NULL CHECK (kind IN ('directive', 'tool')),
    directive              TEXT    NOT NULL CHECK (directive <> ''),
    name                   TEXT    NOT NULL DEFAULT '',
    parent_id              TEXT    REFERENCES threads (thread_id) CHECK (parent_id <> thread_id),
    status                 TEXT    NOT NULL DEFAULT 'created'
                           CHECK (status IN ('created', 'running', 'completed', 'error', 'cancelled', 'continued')),
    pid                    INTEGER NOT NULL DEFAULT 0 CHECK (pid >= 0),
    host                   TEXT    NOT NULL DEFAULT '',
    model                  TEXT    NOT NULL DEFAULT '',
    continuation_of        TEXT    REFERENCES threads (thread_id),
    continuation_thread_id TEXT    REFERENCES threads (thread_id),
    chain_root_id          TEXT    REFERENCES threads (thread_id),
    result                 TEXT    CHECK (json_valid(result)),
    turns                  INTEGER NOT NULL DEFAULT 0 CHECK (turns >= 0),
    input_tokens           INTEGER NOT NULL DEFAULT 0 CHECK (input_tokens >= 0),
    output_tokens          INTEGER NOT NULL DEFAULT 0 CHECK (output_tokens >= 0),
    cache_read_tokens      INTEGER NOT NULL DEFAULT 0 CHECK (cache_read_tokens >= 0),
    cache_write_tokens     INTEGER NOT NULL DEFAULT 0 CHECK (cache_write_tokens >= 0),
    spend                  INTEGER NOT NULL DEFAULT 0 CHECK (spend >= 0),
    spawn_count            INTEGER NOT NULL DEFAULT 0 CHECK (spawn_count >= 0),
    token_count            INTEGER NOT NULL DEFAULT 0 CHECK (token_count >= 0),
    request_key            TEXT    CHECK (request_key <> ''),
    metadata               TEXT    NOT NULL DEFAULT '{}'
                           CHECK (json_valid(metadata) AND json_type(metadata) = 'object'),
    cancel_requested_at    INTEGER,
    created_at             INTEGER NOT NULL CHECK (created_at > 0),
    updated_at             INTEGER NOT NULL CHECK (updated_at > 0),
    completed_at           INTEGER,
    last_used              INTEGER NOT NULL CHECK (last_used > 0), queue_position INTEGER CHECK (queue_position >= 1), queued_at INTEGER, admitted_at INTEGER, yielded INTEGER NOT NULL DEFAULT 0 CHECK (yielded IN (0, 1)), boot_id TEXT NOT NULL DEFAULT '', pid_namespace TEXT NOT NULL DEFAULT '', pid_started INTEGER NOT NULL DEFAULT 0 CHECK (pid_started >= 0), request_hash TEXT, run TEXT NOT NULL DEFAULT '', writes INTEGER NOT NULL DEFAULT 0, client TEXT NOT NULL DEFAULT '', origin TEXT NOT NULL DEFAULT '', unread INTEGER NOT NULL DEFAULT 0 CHECK (unread >= 0), is_set INTEGER NOT NULL DEFAULT 0 CHECK (is_set IN (0, 1)), handoff_asked_at INTEGER, handoff_asked    TEXT
    CHECK (json_valid(handoff_asked) AND json_type(handoff_asked) = 'object'), worker TEXT NOT NULL DEFAULT '', retry_at   INTEGER CHECK (retry_at > 0), retry_note TEXT,
    CHECK ((completed_at IS NULL) = (status IN ('created', 'running'))),
    CHECK ((result IS NULL) = (completed_at IS NULL))
) STRICT;

CREATE INDEX threads_created ON threads (created_at, thread_id);

CREATE INDEX threads_status ON threads (status, created_at, thread_id);

CREATE INDEX threads_directive ON threads (directive, created_at, thread_id);

CREATE INDEX threads_parent ON threads (parent_id, created_at, thread_id) WHERE parent_id IS NOT NULL;

CREATE INDEX threads_ordinal ON threads (directive, created_at / 1000, id_ordinal);

CREATE INDEX threads_chain ON threads (chain_root_id, created_at) WHERE chain_root_id IS NOT NULL;

CREATE UNIQUE INDEX threads_request_key ON threads (request_key) WHERE request_key IS NOT NULL;

CREATE UNIQUE INDEX threads_position ON threads (queue_position) WHERE queue_position IS NOT NULL;

CREATE INDEX threads_queued ON threads (queue_position)
    WHERE status = 'created' AND queued_at IS NOT NULL AND admitted_at IS NULL AND cancel_requested_at IS NULL;

CREATE INDEX threads_slots ON threads (thread_id)
    WHERE status IN ('created', 'running') AND admitted_at IS NOT NULL AND yielded = 0;

CREATE TABLE questions (
    question_id  TEXT    NOT NULL PRIMARY KEY CHECK (question_id <> ''),
    thread_id    TEXT    NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE,
    kind         TEXT    NOT NULL CHECK (kind <> ''),
    code         TEXT    NOT NULL DEFAULT '',
    text         TEXT    NOT NULL,
    -- {"options": […], "default": …, "reached": …, "limits": {…}, "most": {…}}
    details      TEXT    NOT NULL CHECK (json_valid(details) AND json_type(details) = 'object'),
    asked_at     INTEGER NOT NULL CHECK (asked_at > 0),
    deadline_at  INTEGER NOT NULL CHECK (deadline_at >= asked_at),
    -- {"decision": …, "limits": {…}}; null while the question is open
    answer       TEXT    CHECK (json_valid(answer) AND json_type(answer) = 'object'),
    answered_by  TEXT,
    answered_at  INTEGER,
    CHECK ((answer IS NULL) = (answered_at IS NULL)),
    CHECK ((answer IS NULL) = (answered_by IS NULL))
) STRICT;

CREATE INDEX questions_thread ON questions (thread_id, asked_at);

CREATE INDEX questions_open ON questions (asked_at) WHERE answer IS NULL;

CREATE INDEX threads_continuation ON threads (continuation_of) WHERE continuation_of IS NOT NULL;

CREATE INDEX threads_queued_children ON threads (queue_position)
    WHERE status = 'created' AND queued_at IS NOT NULL AND admitted_at IS NULL AND cancel_requested_at IS NULL
        AND parent_id IS NOT NULL;

CREATE TABLE days (
    day    INTEGER NOT NULL PRIMARY KEY,
    used   INTEGER NOT NULL DEFAULT 0, -- threads last used on the day
    tokens INTEGER NOT NULL DEFAULT 0, -- token_count of those
    spend  INTEGER NOT NULL DEFAULT 0  -- of the threads created on the day
, gone INTEGER NOT NULL DEFAULT 0) STRICT;

CREATE TRIGGER threads_use_days AFTER UPDATE OF last_used, token_count ON threads
    WHEN new.token_count <> old.token_count OR new.last_used / 86400000 <> old.last_used / 86400000 BEGIN
    INSERT INTO days (day) VALUES (new.last_used / 86400000) ON CONFLICT (day) DO NOTHING;
    UPDATE days SET used = used - 1, tokens = tokens - old.token_count WHERE day = old.last_used / 86400000;
    UPDATE days SET used = used + 1, tokens = tokens + new.token_count WHERE day = new.last_used / 86400000;
END;

CREATE TRIGGER threads_spend_days AFTER UPDATE OF spend ON threads WHEN new.spend <> old.spend BEGIN
    UPDATE days SET spend = spend + new.spend - old.spend WHERE day = new.created_at / 86400000;
END;

CREATE TRIGGER threads_run_by_newer BEFORE UPDATE OF status, run, pid ON threads
	WHEN OLD.run GLOB 'r[A-Z2-7]*' AND NEW.writes = OLD.writes
		AND (NEW.status IS NOT OLD.status OR NEW.run IS NOT OLD.run OR NEW.pid IS NOT OLD.pid)
BEGIN
	SELECT RAISE(ABORT, 'a newer rye-mcp runs this thread; restart this one, which is older');
END;

CREATE INDEX threads_client ON threads (client, origin) WHERE client <> '';

CREATE TABLE news (
    seq         INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    kind        TEXT    NOT NULL CHECK (kind IN ('ended', 'asked', 'budget_80')),
    thread_id   TEXT    NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE,
    question_id TEXT    NOT NULL DEFAULT '',
    origin      TEXT    NOT NULL DEFAULT '', -- of the root above it: who is to be told
    told        INTEGER NOT NULL DEFAULT 0 CHECK (told IN (0, 1)),
    -- 0: the person has not been notified, 1: somebody is about to, 2: has been, or never will be
    notified    INTEGER NOT NULL DEFAULT 0 CHECK (notified IN (0, 1, 2)),
    at          INTEGER NOT NULL CHECK (at > 0)
) STRICT;

CREATE INDEX news_untold ON news (origin, seq) WHERE told = 0 AND origin <> '';

CREATE UNIQUE INDEX news_budget ON news (thread_id) WHERE kind = 'budget_80';

CREATE TRIGGER news_kept AFTER INSERT ON news BEGIN
    DELETE FROM news WHERE seq <= NEW.seq - 10000;
END;

CREATE TABLE messages (
    seq          INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    message_id   TEXT    NOT NULL UNIQUE CHECK (message_id <> ''),
    thread_id    TEXT    NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE, -- that is told
    kind         TEXT    NOT NULL CHECK (kind IN ('steer', 'note')),
    sender_kind  TEXT    NOT NULL CHECK (sender_kind <> ''),
    sender       TEXT    NOT NULL DEFAULT '', -- name of a client, or id of a thread
    sender_turn  INTEGER NOT NULL DEFAULT 0,  -- turns that the thread which writes a note had taken
    text         TEXT    NOT NULL,
    bytes        INTEGER NOT NULL CHECK (bytes > 0), -- of the text
    interrupt    INTEGER NOT NULL DEFAULT 0 CHECK (interrupt IN (0, 1)),
    posted_at    INTEGER NOT NULL CHECK (posted_at > 0),
    delivered_at INTEGER,
    CHECK ((delivered_at IS NOT NULL) = (text = ''))
) STRICT;

CREATE INDEX messages_unread ON messages (thread_id, seq) WHERE delivered_at IS NULL;

CREATE INDEX messages_notes ON messages (sender, sender_turn) WHERE kind = 'note';

CREATE TRIGGER messages_posted AFTER INSERT ON messages BEGIN
    UPDATE threads SET unread = unread + 1, updated_at = max(updated_at, NEW.posted_at) WHERE thread_id = NEW.thread_id;
    DELETE FROM messages WHERE seq <= NEW.seq - 10000 AND delivered_at IS NOT NULL;
END;

CREATE TRIGGER messages_delivered AFTER UPDATE OF delivered_at ON messages
    WHEN OLD.delivered_at IS NULL AND NEW.delivered_at IS NOT NULL BEGIN
    UPDATE threads SET unread = unread - 1, updated_at = max(updated_at, NEW.delivered_at) WHERE thread_id = NEW.thread_id;
END;

CREATE TRIGGER messages_passed_on AFTER UPDATE OF thread_id ON messages
    WHEN OLD.delivered_at IS NULL AND NEW.thread_id <> OLD.thread_id BEGIN
    UPDATE threads SET unread = unread - 1 WHERE thread_id = OLD.thread_id;
    UPDATE threads SET unread = unread + 1 WHERE thread_id = NEW.thread_id;
END;

CREATE INDEX threads_sets ON threads (created_at, thread_id) WHERE is_set = 1 AND status = 'running';

CREATE TABLE sets (
    set_id      TEXT    NOT NULL PRIMARY KEY REFERENCES threads (thread_id) ON DELETE CASCADE,
    scope       TEXT    NOT NULL,
    content     TEXT    NOT NULL CHECK (content <> ''),
    concurrency INTEGER NOT NULL CHECK (concurrency >= 1)
) STRICT;

CREATE INDEX sets_content ON sets (scope, content);

CREATE TABLE set_entries (
    set_id     TEXT    NOT NULL REFERENCES sets (set_id) ON DELETE CASCADE,
    position   INTEGER NOT NULL CHECK (position >= 0),
    entry_key  TEXT    NOT NULL CHECK (entry_key <> ''),
    inputs     TEXT    NOT NULL CHECK (json_valid(inputs) AND json_type(inputs) = 'object'),
    -- null before it was started, and after its thread was deleted
    thread_id  TEXT    REFERENCES threads (thread_id) ON DELETE SET NULL,
    started_at INTEGER CHECK (started_at > 0),
    reused     INTEGER NOT NULL DEFAULT 0 CHECK (reused IN (0, 1)),
    -- why it could not be started: {"code": …, "message": …}
    refused    TEXT    CHECK (json_valid(refused) AND json_type(refused) = 'object'),
    CHECK (thread_id IS NULL OR started_at IS NOT NULL),
    CHECK (refused IS NULL OR started_at IS NULL),
    PRIMARY KEY (set_id, position)
) STRICT;

CREATE INDEX set_entries_waiting ON set_entries (set_id, position) WHERE started_at IS NULL AND refused IS NULL;

CREATE INDEX set_entries_thread ON set_entries (thread_id) WHERE thread_id IS NOT NULL;

CREATE INDEX set_entries_key ON set_entries (entry_key);

CREATE INDEX threads_used ON threads (last_used, thread_id);

CREATE INDEX threads_spend ON threads (spend, thread_id);

CREATE INDEX threads_name ON threads (name COLLATE NOCASE, thread_id);

CREATE INDEX threads_tokens ON threads (token_count, thread_id);

CREATE INDEX threads_labelled ON threads (created_at, thread_id) WHERE metadata <> '{}';

CREATE INDEX threads_forks ON threads (json_extract(metadata, '$.forked_from'), created_at, thread_id)
    WHERE json_extract(metadata, '$.forked_from') IS NOT NULL;

CREATE TABLE deletions (
    seq        INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    thread_id  TEXT    NOT NULL UNIQUE CHECK (thread_id <> ''),
    kind       TEXT    NOT NULL,
    directive  TEXT    NOT NULL,
    parent_id  TEXT,
    id_ordinal INTEGER,
    created_at INTEGER NOT NULL CHECK (created_at > 0),
    deleted_at INTEGER NOT NULL CHECK (deleted_at > 0),
    record     TEXT    CHECK (json_valid(record) AND json_type(record) = 'object')
) STRICT;

CREATE INDEX deletions_open ON deletions (seq) WHERE record IS NOT NULL;

CREATE INDEX deletions_ordinal ON deletions (directive, created_at / 1000, id_ordinal);

CREATE TRIGGER deletions_kept AFTER UPDATE OF record ON deletions WHEN NEW.record IS NULL BEGIN
    DELETE FROM deletions WHERE seq <= NEW.seq - 10000 AND record IS NULL;
END;

CREATE TABLE shown_plans (
    plan_key TEXT    NOT NULL PRIMARY KEY CHECK (plan_key <> ''),
    digest   TEXT    NOT NULL,
    shown_at INTEGER NOT NULL CHECK (shown_at > 0)
) STRICT;

CREATE INDEX threads_successor ON threads (continuation_thread_id) WHERE continuation_thread_id IS NOT NULL;

CREATE INDEX messages_thread ON messages (thread_id);

CREATE INDEX news_thread ON news (thread_id);

CREATE TABLE sweeps (
    one        INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    swept_at   INTEGER NOT NULL CHECK (swept_at > 0),
    counted_at INTEGER NOT NULL CHECK (counted_at > 0)
) STRICT;

CREATE TABLE gone_costs (
    day                INTEGER NOT NULL,
    directive          TEXT    NOT NULL,
    model              TEXT    NOT NULL,
    threads            INTEGER NOT NULL DEFAULT 0,
    errors             INTEGER NOT NULL DEFAULT 0,
    cancelled          INTEGER NOT NULL DEFAULT 0,
    turns              INTEGER NOT NULL DEFAULT 0,
    input_tokens       INTEGER NOT NULL DEFAULT 0,
    output_tokens      INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens  INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    spend              INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, directive, model)
) STRICT, WITHOUT ROWID;

CREATE INDEX threads_retry ON threads (retry_at) WHERE retry_at IS NOT NULL;

CREATE TRIGGER threads_end_news AFTER UPDATE OF status ON threads
    WHEN NEW.status IN ('completed', 'error', 'cancelled') AND OLD.status IN ('created', 'running') AND NEW.retry_at IS NULL BEGIN
    INSERT INTO news (kind, thread_id, origin, at) VALUES ('ended', NEW.thread_id, NEW.origin, NEW.completed_at);
END;

CREATE TRIGGER threads_unretried_news AFTER UPDATE OF retry_at ON threads
    WHEN OLD.retry_at IS NOT NULL AND NEW.retry_at IS NULL AND NEW.continuation_thread_id IS NULL BEGIN
    INSERT INTO news (kind, thread_id, origin, at) VALUES ('ended', NEW.thread_id, NEW.origin, NEW.updated_at);
END;

CREATE TRIGGER threads_insert_days AFTER INSERT ON threads BEGIN
    INSERT INTO days (day) VALUES (new.last_used / 86400000) ON CONFLICT (day) DO NOTHING;
    INSERT INTO days (day) VALUES (new.created_at / 86400000) ON CONFLICT (day) DO NOTHING;
    UPDATE days SET used = used + 1, tokens = tokens + new.token_count WHERE day = new.last_used / 86400000;
    UPDATE days SET spend = spend + new.spend WHERE day = new.created_at / 86400000 AND json_type(new.metadata, '$.imported') IS NULL;
END;

CREATE TRIGGER threads_delete_days AFTER DELETE ON threads BEGIN
    UPDATE days SET used = used - 1, tokens = tokens - old.token_count WHERE day = old.last_used / 86400000;
    UPDATE days SET gone = gone + old.spend WHERE day = old.created_at / 86400000 AND json_type(old.metadata, '$.imported') IS NULL;
END;

CREATE TRIGGER threads_delete_costs AFTER DELETE ON threads WHEN OLD.is_set = 0 AND json_type(OLD.metadata, '$.imported') IS NULL BEGIN
    INSERT INTO gone_costs (day, directive, model) VALUES (OLD.created_at / 86400000, OLD.directive, OLD.model)
        ON CONFLICT (day, directive, model) DO NOTHING;
    UPDATE gone_costs SET threads = threads + 1, errors = errors + (OLD.status = 'error'), cancelled = cancelled + (OLD.status = 'cancelled'),
        turns = turns + OLD.turns, input_tokens = input_tokens + OLD.input_tokens, output_tokens = output_tokens + OLD.output_tokens,
        cache_read_tokens = cache_read_tokens + OLD.cache_read_tokens, cache_write_tokens = cache_write_tokens + OLD.cache_write_tokens,
        spend = spend + OLD.spend
        WHERE day = OLD.created_at / 86400000 AND directive = OLD.directive AND model = OLD.model;
END;

INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (1, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (2, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (3, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (4, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (5, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (6, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (7, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (8, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (9, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (10, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (11, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (12, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (13, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (14, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (15, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (16, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (17, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (18, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (19, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (20, 1);

INSERT INTO goose_db_version (version_id, is_applied) VALUES (21, 1);
