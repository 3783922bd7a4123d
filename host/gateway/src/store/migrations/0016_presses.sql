-- Buttons that were pressed, until what they ask for is done and their message shows it.
CREATE TABLE press (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,  -- the order in which they came; none is given twice
    id        TEXT    NOT NULL UNIQUE,            -- the front's name of it
    user      TEXT    NOT NULL,
    channel   TEXT    NOT NULL,
    thread_ts TEXT,
    ts        TEXT    NOT NULL,                   -- the message
    choice    TEXT    NOT NULL,                   -- like, dislike, yes or no
    shows     TEXT                                -- what the message is to say; NULL: nothing is done yet
) STRICT;
