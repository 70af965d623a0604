-- +goose Up
-- +goose StatementBegin
-- Whether a text is JSON, and whether it is an object of JSON. Documents are kept as
-- text, so that they come back byte for byte.
CREATE FUNCTION is_json(document text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN document::json IS NOT NULL;
EXCEPTION WHEN data_exception THEN
    RETURN false;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION is_object(document text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN json_typeof(document::json) = 'object';
EXCEPTION WHEN data_exception THEN
    RETURN false;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
-- The value at the top of an object as text; null where there is none, and where the
-- document holds what no text of PostgreSQL can be (\u0000, half a surrogate pair).
CREATE FUNCTION json_text(document text, name text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN document::json ->> name;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
-- The entries of an array, with their index as key, or of an object, and any other value
-- as one entry, as SQLite's function of this name gives them.
CREATE FUNCTION json_each(document text) RETURNS TABLE (key text, value text) LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE ROWS 20 AS $$
BEGIN
    CASE json_typeof(document::json)
    WHEN 'array' THEN
        RETURN QUERY SELECT (e.n - 1)::text, e.v FROM json_array_elements_text(document::json) WITH ORDINALITY AS e (v, n);
    WHEN 'object' THEN
        RETURN QUERY SELECT e.key, e.value FROM json_each_text(document::json) AS e;
    ELSE
        RETURN QUERY SELECT NULL, document::json #>> '{}';
    END CASE;
END $$;
-- +goose StatementEnd

-- The sum of numbers, and 0 of none.
CREATE AGGREGATE total (double precision) (SFUNC = float8pl, STYPE = double precision, INITCOND = '0');

-- What a writer locks that needs all others to wait.
CREATE TABLE locks (name text COLLATE "C" NOT NULL PRIMARY KEY);
INSERT INTO locks (name) VALUES ('registry'), ('ledger');

CREATE TABLE threads (
    rowid                  bigint  GENERATED ALWAYS AS IDENTITY,
    thread_id              text    COLLATE "C" NOT NULL PRIMARY KEY CHECK (thread_id <> ''),
    -- n of the candidate id that was free; null where the caller chose the id.
    id_ordinal             bigint  CHECK (id_ordinal >= 1),
    kind                   text    COLLATE "C" NOT NULL CHECK (kind IN ('directive', 'tool')),
    directive              text    COLLATE "C" NOT NULL CHECK (directive <> ''),
    name                   text    COLLATE "C" NOT NULL DEFAULT '',
    parent_id              text    COLLATE "C" REFERENCES threads (thread_id) DEFERRABLE CHECK (parent_id <> thread_id),
    status                 text    COLLATE "C" NOT NULL DEFAULT 'created'
                           CHECK (status IN ('created', 'running', 'completed', 'error', 'cancelled', 'continued')),
    pid                    bigint  NOT NULL DEFAULT 0 CHECK (pid >= 0),
    host                   text    COLLATE "C" NOT NULL DEFAULT '',
    model                  text    COLLATE "C" NOT NULL DEFAULT '',
    continuation_of        text    COLLATE "C" REFERENCES threads (thread_id) DEFERRABLE,
    continuation_thread_id text    COLLATE "C" REFERENCES threads (thread_id) DEFERRABLE,
    chain_root_id          text    COLLATE "C" REFERENCES threads (thread_id) DEFERRABLE,
    result                 text    COLLATE "C" CHECK (is_json(result)),
    turns                  bigint  NOT NULL DEFAULT 0 CHECK (turns >= 0),
    input_tokens           bigint  NOT NULL DEFAULT 0 CHECK (input_tokens >= 0),
    output_tokens          bigint  NOT NULL DEFAULT 0 CHECK (output_tokens >= 0),
    cache_read_tokens      bigint  NOT NULL DEFAULT 0 CHECK (cache_read_tokens >= 0),
    cache_write_tokens     bigint  NOT NULL DEFAULT 0 CHECK (cache_write_tokens >= 0),
    spend                  bigint  NOT NULL DEFAULT 0 CHECK (spend >= 0), -- micro-dollars
    spawn_count            bigint  NOT NULL DEFAULT 0 CHECK (spawn_count >= 0),
    token_count            bigint  NOT NULL DEFAULT 0 CHECK (token_count >= 0),
    request_key            text    COLLATE "C" CHECK (request_key <> ''),
    metadata               text    COLLATE "C" NOT NULL DEFAULT '{}' CHECK (metadata = '{}' OR is_object(metadata)),
    cancel_requested_at    bigint,
    created_at             bigint  NOT NULL CHECK (created_at > 0), -- Unix time in milliseconds, as all times
    updated_at             bigint  NOT NULL CHECK (updated_at > 0),
    completed_at           bigint,
    last_used              bigint  NOT NULL CHECK (last_used > 0),
    queue_position         bigint  CHECK (queue_position >= 1),
    queued_at              bigint,
    admitted_at            bigint,
    yielded                bigint  NOT NULL DEFAULT 0 CHECK (yielded IN (0, 1)),
    boot_id                text    COLLATE "C" NOT NULL DEFAULT '',
    pid_namespace          text    COLLATE "C" NOT NULL DEFAULT '',
    pid_started            bigint  NOT NULL DEFAULT 0 CHECK (pid_started >= 0),
    request_hash           text    COLLATE "C",
    run                    text    COLLATE "C" NOT NULL DEFAULT '',
    writes                 bigint  NOT NULL DEFAULT 0,
    client                 text    COLLATE "C" NOT NULL DEFAULT '',
    origin                 text    COLLATE "C" NOT NULL DEFAULT '',
    unread                 bigint  NOT NULL DEFAULT 0 CHECK (unread >= 0),
    is_set                 bigint  NOT NULL DEFAULT 0 CHECK (is_set IN (0, 1)),
    handoff_asked_at       bigint,
    handoff_asked          text    COLLATE "C" CHECK (is_object(handoff_asked)),
    CHECK ((completed_at IS NULL) = (status IN ('created', 'running'))),
    CHECK ((result IS NULL) = (completed_at IS NULL))
) WITH (fillfactor = 80);

CREATE INDEX threads_created ON threads (created_at, thread_id);
CREATE INDEX threads_status ON threads (status, created_at, thread_id);
CREATE INDEX threads_directive ON threads (directive, created_at, thread_id);
CREATE INDEX threads_parent ON threads (parent_id, created_at, thread_id) WHERE parent_id IS NOT NULL;
CREATE INDEX threads_ordinal ON threads (directive, (created_at / 1000), id_ordinal);
CREATE INDEX threads_chain ON threads (chain_root_id, created_at) WHERE chain_root_id IS NOT NULL;
CREATE UNIQUE INDEX threads_request_key ON threads (request_key) WHERE request_key IS NOT NULL;
CREATE UNIQUE INDEX threads_position ON threads (queue_position) WHERE queue_position IS NOT NULL;
CREATE INDEX threads_queued ON threads (queue_position)
    WHERE status = 'created' AND queued_at IS NOT NULL AND admitted_at IS NULL AND cancel_requested_at IS NULL;
CREATE INDEX threads_queued_children ON threads (queue_position)
    WHERE status = 'created' AND queued_at IS NOT NULL AND admitted_at IS NULL AND cancel_requested_at IS NULL
        AND parent_id IS NOT NULL;
CREATE INDEX threads_slots ON threads (thread_id)
    WHERE status IN ('created', 'running') AND admitted_at IS NOT NULL AND yielded = 0;
CREATE INDEX threads_continuation ON threads (continuation_of) WHERE continuation_of IS NOT NULL;
CREATE INDEX threads_successor ON threads (continuation_thread_id) WHERE continuation_thread_id IS NOT NULL;
CREATE INDEX threads_client ON threads (client, origin) WHERE client <> '';
CREATE INDEX threads_sets ON threads (created_at, thread_id) WHERE is_set = 1 AND status = 'running';
CREATE INDEX threads_used ON threads (last_used, thread_id);
CREATE INDEX threads_spend ON threads (spend, thread_id);
CREATE INDEX threads_name ON threads (lower(name COLLATE "C"), thread_id);
CREATE INDEX threads_tokens ON threads (token_count, thread_id);
CREATE INDEX threads_labelled ON threads (created_at, thread_id) WHERE metadata <> '{}';
CREATE INDEX threads_forks ON threads (json_text(metadata, 'forked_from'), created_at, thread_id)
    WHERE json_text(metadata, 'forked_from') IS NOT NULL;

CREATE TABLE questions (
    question_id  text   COLLATE "C" NOT NULL PRIMARY KEY CHECK (question_id <> ''),
    thread_id    text   COLLATE "C" NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE DEFERRABLE,
    kind         text   COLLATE "C" NOT NULL CHECK (kind <> ''),
    code         text   COLLATE "C" NOT NULL DEFAULT '',
    text         text   COLLATE "C" NOT NULL,
    -- {"options": …, "default": …, "reached": …, "limits": {…}, "most": {…}}
    details      text   COLLATE "C" NOT NULL CHECK (is_object(details)),
    asked_at     bigint NOT NULL CHECK (asked_at > 0),
    deadline_at  bigint NOT NULL CHECK (deadline_at >= asked_at),
    -- {"decision": …, "limits": {…}}; null while the question is open
    answer       text   COLLATE "C" CHECK (is_object(answer)),
    answered_by  text   COLLATE "C",
    answered_at  bigint,
    CHECK ((answer IS NULL) = (answered_at IS NULL)),
    CHECK ((answer IS NULL) = (answered_by IS NULL))
);
CREATE INDEX questions_thread ON questions (thread_id, asked_at);
CREATE INDEX questions_open ON questions (asked_at) WHERE answer IS NULL;

CREATE TABLE days (
    day    bigint NOT NULL PRIMARY KEY,
    used   bigint NOT NULL DEFAULT 0, -- threads last used on the day
    tokens bigint NOT NULL DEFAULT 0, -- token_count of those
    spend  bigint NOT NULL DEFAULT 0, -- of the threads created on the day
    gone   bigint NOT NULL DEFAULT 0  -- of that, by threads that were deleted
) WITH (fillfactor = 20);

CREATE TABLE news (
    seq         bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    kind        text   COLLATE "C" NOT NULL CHECK (kind IN ('ended', 'asked', 'budget_80')),
    thread_id   text   COLLATE "C" NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE DEFERRABLE,
    question_id text   COLLATE "C" NOT NULL DEFAULT '',
    origin      text   COLLATE "C" NOT NULL DEFAULT '', -- of the root above it: who is to be told
    told        bigint NOT NULL DEFAULT 0 CHECK (told IN (0, 1)),
    -- 0: the person has not been notified, 1: somebody is about to, 2: has been, or never will be
    notified    bigint NOT NULL DEFAULT 0 CHECK (notified IN (0, 1, 2)),
    at          bigint NOT NULL CHECK (at > 0)
);
CREATE INDEX news_untold ON news (origin, seq) WHERE told = 0 AND origin <> '';
CREATE UNIQUE INDEX news_budget ON news (thread_id) WHERE kind = 'budget_80';
CREATE INDEX news_thread ON news (thread_id);

CREATE TABLE messages (
    seq          bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    message_id   text   COLLATE "C" NOT NULL UNIQUE CHECK (message_id <> ''),
    thread_id    text   COLLATE "C" NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE DEFERRABLE, -- that is told
    kind         text   COLLATE "C" NOT NULL CHECK (kind IN ('steer', 'note')),
    sender_kind  text   COLLATE "C" NOT NULL CHECK (sender_kind <> ''),
    sender       text   COLLATE "C" NOT NULL DEFAULT '', -- name of a client, or id of a thread
    sender_turn  bigint NOT NULL DEFAULT 0, -- turns that the thread which writes a note had taken
    text         text   COLLATE "C" NOT NULL,
    bytes        bigint NOT NULL CHECK (bytes > 0), -- of the text
    interrupt    bigint NOT NULL DEFAULT 0 CHECK (interrupt IN (0, 1)),
    posted_at    bigint NOT NULL CHECK (posted_at > 0),
    delivered_at bigint,
    CHECK ((delivered_at IS NOT NULL) = (text = ''))
);
CREATE INDEX messages_unread ON messages (thread_id, seq) WHERE delivered_at IS NULL;
CREATE INDEX messages_notes ON messages (sender, sender_turn) WHERE kind = 'note';
CREATE INDEX messages_thread ON messages (thread_id);

CREATE TABLE sets (
    rowid       bigint GENERATED ALWAYS AS IDENTITY,
    set_id      text   COLLATE "C" NOT NULL PRIMARY KEY REFERENCES threads (thread_id) ON DELETE CASCADE DEFERRABLE,
    scope       text   COLLATE "C" NOT NULL,
    content     text   COLLATE "C" NOT NULL CHECK (content <> ''),
    concurrency bigint NOT NULL CHECK (concurrency >= 1)
);
CREATE INDEX sets_content ON sets (scope, content);

CREATE TABLE set_entries (
    set_id     text   COLLATE "C" NOT NULL REFERENCES sets (set_id) ON DELETE CASCADE DEFERRABLE,
    position   bigint NOT NULL CHECK (position >= 0),
    entry_key  text   COLLATE "C" NOT NULL CHECK (entry_key <> ''),
    inputs     text   COLLATE "C" NOT NULL CHECK (is_object(inputs)),
    -- null before it was started, and after its thread was deleted
    thread_id  text   COLLATE "C" REFERENCES threads (thread_id) ON DELETE SET NULL DEFERRABLE,
    started_at bigint CHECK (started_at > 0),
    reused     bigint NOT NULL DEFAULT 0 CHECK (reused IN (0, 1)),
    -- why it could not be started: {"code": …, "message": …}
    refused    text   COLLATE "C" CHECK (is_object(refused)),
    CHECK (thread_id IS NULL OR started_at IS NOT NULL),
    CHECK (refused IS NULL OR started_at IS NULL),
    PRIMARY KEY (set_id, position)
);
CREATE INDEX set_entries_waiting ON set_entries (set_id, position) WHERE started_at IS NULL AND refused IS NULL;
CREATE INDEX set_entries_thread ON set_entries (thread_id) WHERE thread_id IS NOT NULL;
CREATE INDEX set_entries_key ON set_entries (entry_key);

CREATE TABLE deletions (
    seq        bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    thread_id  text   COLLATE "C" NOT NULL UNIQUE CHECK (thread_id <> ''),
    kind       text   COLLATE "C" NOT NULL,
    directive  text   COLLATE "C" NOT NULL,
    parent_id  text   COLLATE "C",
    id_ordinal bigint,
    created_at bigint NOT NULL CHECK (created_at > 0),
    deleted_at bigint NOT NULL CHECK (deleted_at > 0),
    record     text   COLLATE "C" CHECK (is_object(record))
);
CREATE INDEX deletions_open ON deletions (seq) WHERE record IS NOT NULL;
CREATE INDEX deletions_ordinal ON deletions (directive, (created_at / 1000), id_ordinal);

CREATE TABLE shown_plans (
    plan_key text   COLLATE "C" NOT NULL PRIMARY KEY CHECK (plan_key <> ''),
    digest   text   COLLATE "C" NOT NULL,
    shown_at bigint NOT NULL CHECK (shown_at > 0)
);

CREATE TABLE sweeps (
    one        bigint NOT NULL PRIMARY KEY CHECK (one = 1),
    swept_at   bigint NOT NULL CHECK (swept_at > 0),
    counted_at bigint NOT NULL CHECK (counted_at > 0)
);

-- What threads that were deleted have cost.
CREATE TABLE gone_costs (
    day                bigint NOT NULL,
    directive          text   COLLATE "C" NOT NULL,
    model              text   COLLATE "C" NOT NULL,
    threads            bigint NOT NULL DEFAULT 0,
    errors             bigint NOT NULL DEFAULT 0,
    cancelled          bigint NOT NULL DEFAULT 0,
    turns              bigint NOT NULL DEFAULT 0,
    input_tokens       bigint NOT NULL DEFAULT 0,
    output_tokens      bigint NOT NULL DEFAULT 0,
    cache_read_tokens  bigint NOT NULL DEFAULT 0,
    cache_write_tokens bigint NOT NULL DEFAULT 0,
    spend              bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (day, directive, model)
);

CREATE TABLE budgets (
    thread_id      text   COLLATE "C" NOT NULL PRIMARY KEY CHECK (thread_id <> ''),
    -- whose budget this one was taken from; null for a root
    parent_id      text   COLLATE "C" REFERENCES budgets (thread_id) DEFERRABLE CHECK (parent_id <> thread_id),
    max_spend      bigint NOT NULL CHECK (max_spend >= 0), -- micro-dollars, as all amounts
    -- running total over the rows with this parent: max_spend of an active one,
    -- reserved_spend of a settled one, whose own children still hold that much
    reserved_spend bigint NOT NULL DEFAULT 0 CHECK (reserved_spend >= 0),
    -- own_spend and the actual_spend of every settled row with this parent.
    -- It may exceed max_spend: what a provider billed is recorded as it is.
    actual_spend   bigint NOT NULL DEFAULT 0 CHECK (actual_spend >= own_spend),
    own_spend      bigint NOT NULL DEFAULT 0 CHECK (own_spend >= 0),
    status         text   COLLATE "C" NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'settled')),
    created_at     bigint NOT NULL CHECK (created_at > 0),
    updated_at     bigint NOT NULL CHECK (updated_at > 0),
    pledged_spend  bigint NOT NULL DEFAULT 0 CHECK (pledged_spend >= 0),
    successor_id   text   COLLATE "C" CHECK (successor_id <> thread_id),
    run            text   COLLATE "C" NOT NULL DEFAULT '',
    gone_spend     bigint NOT NULL DEFAULT 0 CHECK (gone_spend >= 0)
) WITH (fillfactor = 80);
CREATE INDEX budgets_parent ON budgets (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX budgets_successor ON budgets (successor_id) WHERE successor_id IS NOT NULL;
CREATE INDEX budgets_active ON budgets (thread_id) WHERE status = 'active';

-- +goose StatementBegin
CREATE FUNCTION threads_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO days AS d (day, used, tokens) VALUES (NEW.last_used / 86400000, 1, NEW.token_count)
        ON CONFLICT (day) DO UPDATE SET used = d.used + 1, tokens = d.tokens + excluded.tokens;
    INSERT INTO days AS d (day, spend) VALUES (NEW.created_at / 86400000, NEW.spend)
        ON CONFLICT (day) DO UPDATE SET spend = d.spend + excluded.spend
        WHERE excluded.spend <> 0;
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- Rows of days are changed when a transaction commits, behind all rows of threads: were they
-- taken in between, two that change several threads could wait for each other.
CREATE CONSTRAINT TRIGGER threads_insert_days AFTER INSERT ON threads DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION threads_inserted();

-- +goose StatementBegin
CREATE FUNCTION threads_were_used() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.last_used / 86400000 = OLD.last_used / 86400000 THEN
        UPDATE days SET tokens = tokens + NEW.token_count - OLD.token_count WHERE day = NEW.last_used / 86400000;
        RETURN NULL;
    END IF;
    UPDATE days SET used = used - 1, tokens = tokens - OLD.token_count WHERE day = OLD.last_used / 86400000;
    INSERT INTO days AS d (day, used, tokens) VALUES (NEW.last_used / 86400000, 1, NEW.token_count)
        ON CONFLICT (day) DO UPDATE SET used = d.used + 1, tokens = d.tokens + excluded.tokens;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER threads_use_days AFTER UPDATE OF last_used, token_count ON threads DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.token_count <> OLD.token_count OR NEW.last_used / 86400000 <> OLD.last_used / 86400000)
    EXECUTE FUNCTION threads_were_used();

-- +goose StatementBegin
CREATE FUNCTION threads_spent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE days SET spend = spend + NEW.spend - OLD.spend WHERE day = NEW.created_at / 86400000;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER threads_spend_days AFTER UPDATE OF spend ON threads DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.spend <> OLD.spend) EXECUTE FUNCTION threads_spent();

-- +goose StatementBegin
CREATE FUNCTION threads_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE days SET used = used - 1, tokens = tokens - OLD.token_count WHERE day = OLD.last_used / 86400000;
    UPDATE days SET gone = gone + OLD.spend WHERE day = OLD.created_at / 86400000;
    IF OLD.is_set = 0 THEN
        INSERT INTO gone_costs AS g (day, directive, model, threads, errors, cancelled, turns, input_tokens, output_tokens,
                cache_read_tokens, cache_write_tokens, spend)
            VALUES (OLD.created_at / 86400000, OLD.directive, OLD.model, 1, (OLD.status = 'error')::int, (OLD.status = 'cancelled')::int,
                OLD.turns, OLD.input_tokens, OLD.output_tokens, OLD.cache_read_tokens, OLD.cache_write_tokens, OLD.spend)
            ON CONFLICT (day, directive, model) DO UPDATE SET threads = g.threads + 1, errors = g.errors + excluded.errors,
                cancelled = g.cancelled + excluded.cancelled, turns = g.turns + excluded.turns,
                input_tokens = g.input_tokens + excluded.input_tokens, output_tokens = g.output_tokens + excluded.output_tokens,
                cache_read_tokens = g.cache_read_tokens + excluded.cache_read_tokens,
                cache_write_tokens = g.cache_write_tokens + excluded.cache_write_tokens, spend = g.spend + excluded.spend;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER threads_delete_days AFTER DELETE ON threads DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION threads_deleted();

-- +goose StatementBegin
CREATE FUNCTION threads_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO news (kind, thread_id, origin, at) VALUES ('ended', NEW.thread_id, NEW.origin, NEW.completed_at);
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER threads_end_news AFTER UPDATE OF status ON threads FOR EACH ROW
    WHEN (NEW.status IN ('completed', 'error', 'cancelled') AND OLD.status IN ('created', 'running'))
    EXECUTE FUNCTION threads_ended();

-- +goose StatementBegin
CREATE FUNCTION news_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM news WHERE seq <= NEW.seq - 10000;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER news_kept AFTER INSERT ON news FOR EACH ROW WHEN (NEW.seq > 10000) EXECUTE FUNCTION news_inserted();

-- +goose StatementBegin
CREATE FUNCTION messages_were_posted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE threads SET unread = unread + 1, updated_at = greatest(updated_at, NEW.posted_at) WHERE thread_id = NEW.thread_id;
    DELETE FROM messages WHERE seq <= NEW.seq - 10000 AND delivered_at IS NOT NULL;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER messages_posted AFTER INSERT ON messages FOR EACH ROW EXECUTE FUNCTION messages_were_posted();

-- +goose StatementBegin
CREATE FUNCTION messages_were_delivered() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE threads SET unread = unread - 1, updated_at = greatest(updated_at, NEW.delivered_at) WHERE thread_id = NEW.thread_id;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER messages_delivered AFTER UPDATE OF delivered_at ON messages FOR EACH ROW
    WHEN (OLD.delivered_at IS NULL AND NEW.delivered_at IS NOT NULL) EXECUTE FUNCTION messages_were_delivered();

-- +goose StatementBegin
CREATE FUNCTION messages_were_passed_on() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE threads SET unread = unread - 1 WHERE thread_id = OLD.thread_id;
    UPDATE threads SET unread = unread + 1 WHERE thread_id = NEW.thread_id;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER messages_passed_on AFTER UPDATE OF thread_id ON messages FOR EACH ROW
    WHEN (OLD.delivered_at IS NULL AND NEW.thread_id <> OLD.thread_id) EXECUTE FUNCTION messages_were_passed_on();

-- +goose StatementBegin
CREATE FUNCTION deletions_were_done() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM deletions WHERE seq <= NEW.seq - 10000 AND record IS NULL;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER deletions_kept AFTER UPDATE OF record ON deletions FOR EACH ROW
    WHEN (NEW.record IS NULL) EXECUTE FUNCTION deletions_were_done();
