-- What all hosts of a database go by of gateway.json. On a store of one home nobody writes here.
CREATE TABLE common_config (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    version INTEGER NOT NULL,  -- whatever was committed later has a greater one
    text    TEXT    NOT NULL   -- the part that a running gateway follows, as JSON
) STRICT;
