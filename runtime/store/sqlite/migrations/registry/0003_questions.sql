-- +goose Up

-- What threads wait to be told. Times are Unix milliseconds.
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
