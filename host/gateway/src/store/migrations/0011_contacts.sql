-- Contacts who are asked in direct messages of their own, and what people's words were read as.

-- Threads whose answer is there, or is not needed any more, are known for a while: somebody may still answer.
ALTER TABLE escalation ADD COLUMN closed_at INTEGER;   -- NULL: it waits
CREATE INDEX escalation_closed ON escalation (closed_at) WHERE closed_at IS NOT NULL;

-- The messages in which contacts were asked, where they cannot see the thread.
CREATE TABLE asked_apart (
    turn_id   INTEGER NOT NULL REFERENCES turn (id),
    part      INTEGER NOT NULL,         -- which of the turn's messages; its id is known once it was posted
    contact   TEXT    NOT NULL,
    front     TEXT    NOT NULL,
    channel   TEXT    NOT NULL,         -- of the thread that waits
    thread_ts TEXT    NOT NULL,
    PRIMARY KEY (turn_id, part)
) STRICT, WITHOUT ROWID;
CREATE INDEX asked_apart_by_contact ON asked_apart (contact, front, turn_id);
CREATE INDEX asked_apart_by_thread ON asked_apart (front, channel, thread_ts, contact, turn_id, part);

-- What a message to a thread that waits was read as, JSON.
ALTER TABLE turn ADD COLUMN reading TEXT;

-- Atoms that the model was shown, and by which turn.
CREATE TABLE atom_shown (
    atom       TEXT    NOT NULL,        -- its id
    turn_id    INTEGER NOT NULL REFERENCES turn (id),
    session_id INTEGER NOT NULL REFERENCES session (id),
    at         INTEGER NOT NULL,
    PRIMARY KEY (atom, turn_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX atom_shown_by_turn ON atom_shown (turn_id);
CREATE INDEX atom_shown_by_session ON atom_shown (session_id, at);

-- Threads in which people had to be asked although an atom was shown. What people vote is in `vote`.
CREATE TABLE atom_doubt (
    atom   TEXT    NOT NULL,
    source TEXT    NOT NULL,            -- the thread
    at     INTEGER NOT NULL,
    PRIMARY KEY (atom, source)
) STRICT, WITHOUT ROWID;
