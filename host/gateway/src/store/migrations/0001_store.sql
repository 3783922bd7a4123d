-- Inbox, sessions, turns, outbox: what must survive a crash. Times are milliseconds since the epoch (UTC).

-- Names under which a message has been taken in: its event id and its aliases. Kept for 24 hours.
CREATE TABLE seen (
    front TEXT    NOT NULL,             -- `slack` or `console`: their ids have nothing to do with each other
    key   TEXT    NOT NULL,
    at    INTEGER NOT NULL,
    PRIMARY KEY (front, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX seen_by_age ON seen (at);

-- One row a conversation.
CREATE TABLE session (
    id            INTEGER PRIMARY KEY,
    key           TEXT    NOT NULL UNIQUE,
    created_at    INTEGER NOT NULL,
    active_at     INTEGER NOT NULL,     -- when a message last came in
    turns         INTEGER NOT NULL DEFAULT 0, -- questions answered
    dropped_turns INTEGER NOT NULL DEFAULT 0, -- turns that the live window's marker stands for
    marker        TEXT,                 -- a policy's own template for that marker
    lease_owner   TEXT,                 -- who works on the conversation
    lease_until   INTEGER               -- NULL: as long as the `run` that owns the lease is alive
) STRICT;

-- Questions in the order they arrived.
CREATE TABLE inbox (
    id          INTEGER PRIMARY KEY,
    session_id  INTEGER NOT NULL REFERENCES session (id),
    event_id    TEXT    NOT NULL,
    received_at INTEGER NOT NULL,
    ts          TEXT    NOT NULL,       -- the order within a conversation, '' where arrival decides
    message     TEXT                    -- what came in, JSON; NULL once it is done with
) STRICT;
CREATE INDEX inbox_open ON inbox (session_id, ts) WHERE message IS NOT NULL;

-- One row a question that was begun, under the question's id.
CREATE TABLE turn (
    id                    INTEGER PRIMARY KEY REFERENCES inbox (id),
    session_id            INTEGER NOT NULL REFERENCES session (id),
    placeholder           TEXT,         -- the front's id of the message that the answer takes the place of
    started_at            INTEGER NOT NULL,
    answered_at           INTEGER,      -- NULL: no answer is stored yet
    delivered_at          INTEGER,      -- NULL: not everything is delivered yet
    input_tokens          INTEGER NOT NULL DEFAULT 0,
    output_tokens         INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens     INTEGER NOT NULL DEFAULT 0,
    cache_creation_tokens INTEGER NOT NULL DEFAULT 0,
    report                TEXT          -- what the front is told after delivery, JSON; NULL once it was told
) STRICT;

-- Everything ever said, stored once.
CREATE TABLE message (
    id         INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES session (id),
    turn_id    INTEGER REFERENCES turn (id), -- NULL: part of no turn
    role       TEXT    NOT NULL,
    origin     TEXT    NOT NULL,
    blocks     TEXT    NOT NULL,        -- JSON
    tokens     INTEGER NOT NULL,        -- the estimate, counted once
    chars      INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX message_by_session ON message (session_id);
CREATE TRIGGER message_is_never_rewritten BEFORE UPDATE ON message
BEGIN
    SELECT raise(ABORT, 'a stored message is never rewritten');
END;

-- What the next request would hold: references into `message`. A prune edits this table and no other.
CREATE TABLE live (
    session_id  INTEGER NOT NULL REFERENCES session (id),
    position    INTEGER NOT NULL,
    message_id  INTEGER NOT NULL REFERENCES message (id),
    replacement TEXT,                   -- the message that stands in place of the original, JSON
    tokens      INTEGER NOT NULL,       -- of what stands
    chars       INTEGER NOT NULL,
    PRIMARY KEY (session_id, position)
) STRICT, WITHOUT ROWID;

-- Answers on their way, cut into parts. A part without `sent_at` still has to go out.
CREATE TABLE outbox (
    turn_id INTEGER NOT NULL REFERENCES turn (id),
    part    INTEGER NOT NULL,
    body    TEXT,                       -- NULL once the turn is delivered: the archive holds the answer
    sent_id TEXT,                       -- the front's id of the posted part, where it has ids
    sent_at INTEGER,
    PRIMARY KEY (turn_id, part)
) STRICT, WITHOUT ROWID;
