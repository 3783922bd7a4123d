-- Experiments: which conversation goes by which policies, and what came of its turns.

-- The arm of a conversation, which it keeps.
CREATE TABLE arm (
    experiment TEXT    NOT NULL,
    session_id INTEGER NOT NULL REFERENCES session (id),
    arm        TEXT    NOT NULL,        -- as it was drawn
    weights    TEXT    NOT NULL,        -- what it was drawn from, JSON
    moved_to   TEXT,                    -- the arm that has taken over since, because the drawn one was stopped
    drawn_at   INTEGER NOT NULL,
    PRIMARY KEY (experiment, session_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX arm_by_session ON arm (session_id);

-- Arms that were stopped: they get no more conversations.
CREATE TABLE stopped_arm (
    experiment TEXT    NOT NULL,
    arm        TEXT    NOT NULL,
    stopped_at INTEGER NOT NULL,
    reason     TEXT    NOT NULL,
    PRIMARY KEY (experiment, arm)
) STRICT, WITHOUT ROWID;

-- Whose decisions a turn went by, and what came of it.
ALTER TABLE turn ADD COLUMN policy TEXT;            -- the digest of the policy on top
ALTER TABLE turn ADD COLUMN experiment TEXT;        -- NULL: no experiment was on
ALTER TABLE turn ADD COLUMN arm TEXT;
ALTER TABLE turn ADD COLUMN failed INTEGER NOT NULL DEFAULT 0;     -- a policy failed
ALTER TABLE turn ADD COLUMN overflowed INTEGER NOT NULL DEFAULT 0; -- the model refused the prompt as too long
ALTER TABLE turn ADD COLUMN reasked INTEGER NOT NULL DEFAULT 0;    -- it asks nearly the same again
CREATE INDEX turn_by_experiment ON turn (experiment, session_id, arm) WHERE experiment IS NOT NULL;

-- What people think of answers: the last word of each person on each turn.
CREATE TABLE vote (
    turn_id INTEGER NOT NULL REFERENCES turn (id),
    user    TEXT    NOT NULL,
    likes   INTEGER NOT NULL,           -- 1 or 0
    PRIMARY KEY (turn_id, user)
) STRICT, WITHOUT ROWID;

-- The answer that a reaction is about is found by its posted parts.
CREATE INDEX outbox_by_sent_id ON outbox (sent_id) WHERE sent_id IS NOT NULL;
