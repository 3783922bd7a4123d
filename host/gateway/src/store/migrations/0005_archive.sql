-- Everything ever said in a conversation, numbered in the order in which it was recorded, from 0. What each message
-- is found by is in the search index `said`, under the message's id.
CREATE TABLE archive (
    session_id INTEGER NOT NULL REFERENCES session (id),
    number     INTEGER NOT NULL,
    message_id INTEGER NOT NULL REFERENCES message (id),
    terms      INTEGER NOT NULL,        -- how many it is found by
    PRIMARY KEY (session_id, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX archive_by_message ON archive (message_id);
