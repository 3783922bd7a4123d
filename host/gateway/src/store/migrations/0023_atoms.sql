-- Atoms that several homes share, each of which has them as files. On a store of one home nobody writes here.
CREATE TABLE atom_file (
    path    TEXT    PRIMARY KEY,      -- below the folder of atoms: SCOPE/NAME.md
    version INTEGER NOT NULL UNIQUE,  -- whatever was committed later has a greater one
    sha256  TEXT    NOT NULL,         -- of the text, hexadecimal; of one that was deleted, what it was last
    body    TEXT                      -- NULL: it was deleted
) STRICT;
