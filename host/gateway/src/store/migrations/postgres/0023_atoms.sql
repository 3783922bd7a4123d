-- Atoms that several homes share, each of which has them as files.
CREATE TABLE atom_file (
    path    TEXT   COLLATE "C" PRIMARY KEY,  -- below the folder of atoms: SCOPE/NAME.md
    version BIGINT NOT NULL UNIQUE,          -- whatever was committed later has a greater one
    sha256  TEXT   COLLATE "C" NOT NULL,     -- of the text, hexadecimal; of one that was deleted, what it was last
    body    TEXT   COLLATE "C"               -- NULL: it was deleted
);
