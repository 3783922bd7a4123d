-- Being away: where people talk, who was told of it, and what is to be made good afterwards.

ALTER TABLE session ADD COLUMN channel TEXT;    -- where its replies go; NULL: nobody wrote there since this was kept
ALTER TABLE session ADD COLUMN read_from TEXT;  -- what was said after this `ts` is to be read back; NULL: nothing is
CREATE INDEX session_unread ON session (active_at) WHERE read_from IS NOT NULL;
CREATE INDEX session_by_activity ON session (active_at);

-- Which messages of a conversation have come in, whatever became of them.
CREATE INDEX inbox_by_place ON inbox (session_id, ts);

-- An outage of which people are still to be told: at most one row.
CREATE TABLE outage (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    since  INTEGER,                     -- when the gateway was last there; NULL: not known
    until  INTEGER NOT NULL,
    reason TEXT    NOT NULL
) STRICT;

-- Who was told when that the gateway went or was back.
CREATE TABLE told (
    listener TEXT    PRIMARY KEY,       -- a user or a channel
    at       INTEGER NOT NULL,
    message  TEXT                       -- the front's id of it, once that is known
) STRICT, WITHOUT ROWID;

-- `off` was what nobody had chosen, and silences progress, too, from now on.
UPDATE session SET verbose = NULL WHERE verbose = 'off';
