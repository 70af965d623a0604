-- +goose Up

CREATE TABLE namespaces (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE CHECK (name <> '')
) STRICT;

-- What made vectors. Those of different rows are not compared.
CREATE TABLE models (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    name      TEXT    NOT NULL CHECK (name <> ''),
    dimension INTEGER NOT NULL CHECK (dimension > 0),
    UNIQUE (name, dimension)
) STRICT;

-- An entry that is replaced gets another id, so that an id names one text for ever.
-- Times are Unix milliseconds.
CREATE TABLE entries (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace  INTEGER NOT NULL REFERENCES namespaces (id),
    project    TEXT    NOT NULL,
    key        TEXT    NOT NULL CHECK (key <> ''),
    thread_id  TEXT    NOT NULL DEFAULT '',
    chain_root TEXT    NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL CHECK (created_at > 0),
    model      INTEGER NOT NULL DEFAULT 0, -- of its vector; 0: it has none
    metadata   TEXT    NOT NULL DEFAULT '{}' CHECK (json_valid(metadata) AND json_type(metadata) = 'object'),
    text       TEXT    NOT NULL,
    UNIQUE (namespace, project, key)
) STRICT;

CREATE INDEX entries_by_thread ON entries (thread_id) WHERE thread_id <> '';
CREATE INDEX entries_by_model ON entries (namespace, model, id);

-- Vectors are of length 1, as little-endian float32. A number is given once: what was
-- written later has a higher one.
CREATE TABLE vectors (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    entry     INTEGER NOT NULL UNIQUE,
    namespace INTEGER NOT NULL,
    model     INTEGER NOT NULL,
    vector    BLOB    NOT NULL
) STRICT;

CREATE INDEX vectors_by_space ON vectors (namespace, model, seq);

-- A space is the vectors of one model in one namespace. Chapters part it by seq; those
-- above the last are open. The stamp is random and names the chapter's file of codes, so
-- that a file of another history of this database has another name.
CREATE TABLE spaces (
    namespace INTEGER NOT NULL,
    model     INTEGER NOT NULL,
    live      INTEGER NOT NULL DEFAULT 0 CHECK (live >= 0), -- vectors that are not in a chapter
    closed    INTEGER NOT NULL DEFAULT 0,                   -- the last seq that is
    PRIMARY KEY (namespace, model)
) STRICT, WITHOUT ROWID;

CREATE TABLE chapters (
    namespace INTEGER NOT NULL,
    model     INTEGER NOT NULL,
    through   INTEGER NOT NULL,                        -- its last seq
    after     INTEGER NOT NULL CHECK (after < through), -- its first comes after that
    live      INTEGER NOT NULL CHECK (live >= 0),
    stamp     TEXT    NOT NULL UNIQUE,
    PRIMARY KEY (namespace, model, through)
) STRICT, WITHOUT ROWID;

CREATE INDEX thin_chapters ON chapters (namespace, model) WHERE live < 128;

-- A row while rows of a damaged file are brought back that was in the place of this one.
CREATE TABLE salvage (
    file    TEXT    NOT NULL PRIMARY KEY, -- its name
    through INTEGER NOT NULL DEFAULT 0,   -- the last id that was looked at
    saved   INTEGER NOT NULL DEFAULT 0,
    lost    INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- How many entries there are of each kind, and the bytes of their texts.
CREATE TABLE counts (
    namespace INTEGER NOT NULL,
    project   TEXT    NOT NULL,
    model     INTEGER NOT NULL,
    entries   INTEGER NOT NULL,
    bytes     INTEGER NOT NULL,
    PRIMARY KEY (namespace, project, model)
) STRICT, WITHOUT ROWID;

-- The texts stand in entries alone. Each document has the word of its namespace in the
-- column scope.
CREATE VIRTUAL TABLE words USING fts5 (
    text, scope,
    content = '', contentless_delete = 1,
    tokenize = "unicode61 remove_diacritics 2"
);

CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, 'row');

-- +goose StatementBegin
CREATE TRIGGER entry_added AFTER INSERT ON entries BEGIN
    INSERT INTO words (rowid, text, scope) VALUES (NEW.id, NEW.text, 'n' || NEW.namespace);
    INSERT INTO counts (namespace, project, model, entries, bytes)
        VALUES (NEW.namespace, NEW.project, NEW.model, 1, octet_length(NEW.text))
        ON CONFLICT DO UPDATE SET entries = entries + 1, bytes = bytes + excluded.bytes;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER entry_removed AFTER DELETE ON entries BEGIN
    DELETE FROM words WHERE rowid = OLD.id;
    DELETE FROM vectors WHERE entry = OLD.id;
    UPDATE counts SET entries = entries - 1, bytes = bytes - octet_length(OLD.text)
        WHERE namespace = OLD.namespace AND project = OLD.project AND model = OLD.model;
    DELETE FROM counts
        WHERE namespace = OLD.namespace AND project = OLD.project AND model = OLD.model AND entries = 0;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER entry_embedded AFTER UPDATE OF model ON entries WHEN OLD.model <> NEW.model BEGIN
    UPDATE counts SET entries = entries - 1, bytes = bytes - octet_length(OLD.text)
        WHERE namespace = OLD.namespace AND project = OLD.project AND model = OLD.model;
    DELETE FROM counts
        WHERE namespace = OLD.namespace AND project = OLD.project AND model = OLD.model AND entries = 0;
    INSERT INTO counts (namespace, project, model, entries, bytes)
        VALUES (NEW.namespace, NEW.project, NEW.model, 1, octet_length(NEW.text))
        ON CONFLICT DO UPDATE SET entries = entries + 1, bytes = bytes + excluded.bytes;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER vector_added AFTER INSERT ON vectors BEGIN
    INSERT INTO spaces (namespace, model, live) VALUES (NEW.namespace, NEW.model, 1)
        ON CONFLICT DO UPDATE SET live = live + 1;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER vector_removed AFTER DELETE ON vectors BEGIN
    UPDATE spaces SET live = live - 1
        WHERE namespace = OLD.namespace AND model = OLD.model AND closed < OLD.seq;
    UPDATE chapters SET live = live - 1
        WHERE namespace = OLD.namespace AND model = OLD.model AND after < OLD.seq AND through = (
            SELECT min(c.through) FROM chapters c
            WHERE c.namespace = OLD.namespace AND c.model = OLD.model AND c.through >= OLD.seq);
END;
-- +goose StatementEnd
