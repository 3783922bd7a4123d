-- What is asked of others on people's behalf: how often, and what waits for somebody's word first.

-- Questions of the last hour, which are bounded.
CREATE TABLE asked (
    id         INTEGER PRIMARY KEY,
    kind       TEXT    NOT NULL,        -- the tag of the directive
    front      TEXT    NOT NULL,
    user       TEXT    NOT NULL,        -- on whose behalf
    session_id INTEGER NOT NULL REFERENCES session (id),
    at         INTEGER NOT NULL
) STRICT;
CREATE INDEX asked_by_user ON asked (kind, front, user, at);
CREATE INDEX asked_by_session ON asked (kind, session_id, at);
CREATE INDEX asked_by_age ON asked (at);

-- Questions to people that their asker has not confirmed yet, one row a turn.
CREATE TABLE proposal (
    turn_id      INTEGER PRIMARY KEY REFERENCES turn (id),
    part         INTEGER NOT NULL,      -- which of the turn's messages shows it
    marker       TEXT    NOT NULL,      -- what is to be asked, JSON as in `escalation`
    confirmation TEXT    NOT NULL,      -- the message that a yes becomes, JSON
    proposed_at  INTEGER NOT NULL,
    confirmed_by TEXT                   -- the event id of that message, once there was a yes
) STRICT;
CREATE INDEX proposal_by_age ON proposal (proposed_at);
CREATE INDEX proposal_by_confirmation ON proposal (confirmed_by) WHERE confirmed_by IS NOT NULL;

-- Who wrote a turn's question, where that was one person alone.
ALTER TABLE turn ADD COLUMN asked_by TEXT;
