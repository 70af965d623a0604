CREATE TABLE items (
    doc         INTEGER PRIMARY KEY, -- the rowid in words
    kind        TEXT    NOT NULL,
    id          TEXT    NOT NULL,
    space       TEXT    NOT NULL,
    path        TEXT    NOT NULL,
    space_rank  INTEGER NOT NULL,    -- among items of one kind and id the lowest wins,
    ext_rank    INTEGER NOT NULL,    -- and within a space the lowest of these
    stamp       TEXT    NOT NULL,    -- changes when the content does
    changed     INTEGER NOT NULL,    -- when the file did, in microseconds; 0 in the system space
    name        TEXT    NOT NULL,
    facts       TEXT    NOT NULL,    -- what filters ask for: a JSON list of pairs of key and value
    UNIQUE (kind, space, path)
) STRICT;

CREATE INDEX items_by_id ON items (kind, id, space_rank, ext_rank);

-- Every document has the word of package query that stands for everything, in the
-- column every. The texts themselves are not kept: what is shown is read from the
-- files.
CREATE VIRTUAL TABLE words USING fts5 (
    title, name, description, category, body, every,
    content = '', contentless_delete = 1,
    tokenize = "unicode61 remove_diacritics 2"
);

CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, 'row');
