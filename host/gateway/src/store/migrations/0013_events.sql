-- What the ledger is to tell, written together with what it tells of, and what each decision of a turn went by.

-- Lines that are not in the ledger's files for good: short-lived, for they are exported at once.
CREATE TABLE event (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,  -- the order of the lines; none is given twice
    at      INTEGER NOT NULL,
    turn_id INTEGER,                            -- the question it belongs to, as of inbox; NULL: none
    file    TEXT    NOT NULL,                   -- the name of the file it belongs in, a month's
    line    TEXT    NOT NULL                    -- as it stands there, with its end
) STRICT;

-- How far they are: at most one row.
CREATE TABLE exported (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    file   TEXT    NOT NULL,                    -- where the last line was put
    length INTEGER NOT NULL                     -- how many bytes the file had then
) STRICT;

-- Texts that are no messages, each once: system prompts, blocks of atoms, definitions of tools, settings.
CREATE TABLE text (
    sha256 TEXT PRIMARY KEY,
    body   TEXT NOT NULL
) STRICT;

-- What a request to the model was made from.
CREATE TABLE receipt (
    session_id INTEGER NOT NULL REFERENCES session (id),
    turn_id    INTEGER NOT NULL REFERENCES turn (id),
    call       INTEGER NOT NULL,                -- counted from 0, within the turn
    at         INTEGER NOT NULL,
    body       TEXT    NOT NULL,                -- JSON
    UNIQUE (session_id, turn_id, call)
) STRICT;
