-- Cases: what a channel is looking into, with what was said and found out about it.

-- One row a case; a channel has one open case at most.
CREATE TABLE case_file (
    id        INTEGER PRIMARY KEY,
    front     TEXT    NOT NULL,
    channel   TEXT    NOT NULL,
    title     TEXT    NOT NULL,
    opened_by TEXT,                     -- NULL: pmk did not say
    opened_at INTEGER NOT NULL,
    opened_on TEXT,                     -- the event id of the order, which may come twice
    closed_by TEXT,
    closed_at INTEGER,                  -- NULL: open
    closed_on TEXT
) STRICT;
CREATE UNIQUE INDEX case_open ON case_file (front, channel) WHERE closed_at IS NULL;
CREATE INDEX case_by_channel ON case_file (front, channel);

-- The case that a question belongs to: the one that was open in its channel when its turn was begun.
ALTER TABLE turn ADD COLUMN case_id INTEGER REFERENCES case_file (id);

-- Questions and answers of cases.
CREATE TABLE case_message (
    message_id INTEGER PRIMARY KEY REFERENCES message (id),
    case_id    INTEGER NOT NULL REFERENCES case_file (id),
    user       TEXT,                    -- who wrote it; NULL: the model, or several people, whom it names
    at         INTEGER NOT NULL
) STRICT;
CREATE INDEX case_message_by_case ON case_message (case_id, at, message_id);

-- Hypotheses and open questions of cases, each once.
CREATE TABLE case_note (
    id         INTEGER PRIMARY KEY,
    case_id    INTEGER NOT NULL REFERENCES case_file (id),
    kind       TEXT    NOT NULL,        -- `hypothesis` or `question`
    spelling   TEXT    NOT NULL,        -- by which it is the same again
    text       TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    message_id INTEGER REFERENCES message (id), -- the answer that it comes from; NULL: it was imported
    UNIQUE (case_id, kind, spelling)
) STRICT;
CREATE INDEX case_note_by_message ON case_note (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX case_note_by_case ON case_note (case_id);
