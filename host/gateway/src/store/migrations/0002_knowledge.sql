-- Replies that go elsewhere than to the question, and answers that people are asked for.

-- Where a part goes, whom it pings and what it is for, JSON; NULL: a plain piece of the reply.
ALTER TABLE outbox ADD COLUMN how TEXT;

-- Threads that wait for the answer of somebody who knows, one row a thread.
CREATE TABLE escalation (
    front      TEXT    NOT NULL,
    channel    TEXT    NOT NULL,
    thread_ts  TEXT    NOT NULL,
    marker     TEXT    NOT NULL,        -- what was asked and of whom, JSON as pmk writes it
    claimed_by INTEGER REFERENCES turn (id), -- the turn that is taking the answer in; gone once it is recorded
    PRIMARY KEY (front, channel, thread_ts)
) STRICT, WITHOUT ROWID;
CREATE INDEX escalation_by_claim ON escalation (claimed_by) WHERE claimed_by IS NOT NULL;

-- What an attempt that a crash ended has left behind is found by its turn.
CREATE INDEX message_by_turn ON message (turn_id) WHERE turn_id IS NOT NULL;
