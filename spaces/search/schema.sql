CREATE TABLE items (
    doc         INTEGER PRIMARY KEY, -- the rowid in words
    kind        TEXT    NOT NULL,
    id          TEXT    NOT NULL,
    space       TEXT    NOT NULL,
    path        TEXT    NOT NULL,
    space_rank  INTEGER NOT NULL,    -- among items of one kind and id the lowest wins,
    ext_rank    INTEGER NOT NULL,    -- and within a space the lowest of these
    stamp       TEXT    NOT NULL,    -- changes when the content does
    name        TEXT    NOT NULL,
    description TEXT    NOT NULL,
    category    TEXT    NOT NULL,
    UNIQUE (kind, space, path)
) STRICT;

CREATE INDEX items_by_id ON items (kind, id, space_rank, ext_rank);

CREATE VIRTUAL TABLE words USING fts5 (
    title, name, description, category, body,
    tokenize = "unicode61 remove_diacritics 2"
);
