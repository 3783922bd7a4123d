-- What people change about messages that they have sent: edited, deleted, stopped, asked again.

-- Counts changes that concern what is under way: a turn is recorded, and the window edited, only under the count that its
-- attempt was begun with.
ALTER TABLE session ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;

ALTER TABLE inbox ADD COLUMN channel TEXT;    -- where it was written; with `ts` the front's name of the message
ALTER TABLE inbox ADD COLUMN user TEXT;       -- who wrote it; NULL: not known
ALTER TABLE inbox ADD COLUMN edited_at TEXT;  -- the front's time of the last edit; NULL: none
ALTER TABLE inbox ADD COLUMN edited TEXT;     -- what it says by now, where it was edited after it was answered
ALTER TABLE inbox ADD COLUMN called_off TEXT; -- `stopped` or `deleted`: no model is asked about it any more
UPDATE inbox SET channel = (SELECT s.channel FROM session s WHERE s.id = inbox.session_id),
                 user = coalesce((SELECT t.asked_by FROM turn t WHERE t.id = inbox.id),
                                 CASE WHEN json_valid(message) THEN message ->> '$.user' END);
CREATE INDEX inbox_by_message ON inbox (channel, ts) WHERE ts <> '';

-- Questions that were answered together: with whose answer, and which bytes of that question's text are theirs; NULL where
-- it is a message of its own.
ALTER TABLE turn ADD COLUMN answered_with INTEGER REFERENCES turn (id);
ALTER TABLE turn ADD COLUMN piece_start INTEGER;
ALTER TABLE turn ADD COLUMN piece_bytes INTEGER;
CREATE INDEX turn_answered_with ON turn (answered_with) WHERE answered_with IS NOT NULL;

-- A stored message is never rewritten, only erased: then a few fixed words stand in its place.
ALTER TABLE message ADD COLUMN erased_at INTEGER;
DROP TRIGGER message_is_never_rewritten;
CREATE TRIGGER message_is_never_rewritten BEFORE UPDATE ON message WHEN new.erased_at IS NULL
BEGIN
    SELECT raise(ABORT, 'a stored message is never rewritten');
END;

-- Changes of messages that have not come in: sockets keep no order. Kept for a day.
CREATE TABLE early_change (
    channel   TEXT    NOT NULL,
    ts        TEXT    NOT NULL,
    edited_at TEXT,                     -- NULL: it was deleted
    text      TEXT,                     -- what it says by now; NULL: it was deleted
    at        INTEGER NOT NULL,
    PRIMARY KEY (channel, ts)
) STRICT, WITHOUT ROWID;
CREATE INDEX early_change_by_age ON early_change (at);
