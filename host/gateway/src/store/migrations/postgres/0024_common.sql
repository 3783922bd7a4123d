-- What all hosts of a database go by of gateway.json.
CREATE TABLE common_config (
    id      BIGINT PRIMARY KEY CHECK (id = 1),
    version BIGINT NOT NULL,            -- whatever was committed later has a greater one
    text    TEXT   COLLATE "C" NOT NULL -- the part that a running gateway follows, as JSON
);

-- What the file of each home said when it was last compared with that.
CREATE TABLE home_config (
    home  TEXT COLLATE "C" PRIMARY KEY,  -- machine and home, as in `host`
    token TEXT COLLATE "C" NOT NULL,     -- by which the home knows that it is meant
    says  TEXT COLLATE "C" NOT NULL,     -- JSON
    next  TEXT COLLATE "C"               -- what was about to be written into it; NULL: nothing
);

-- Policies that somebody has chosen for all hosts, until all of them have ended.
CREATE TABLE chosen_policies (
    id      BIGINT PRIMARY KEY CHECK (id = 1),
    version BIGINT NOT NULL,             -- whatever was committed later has a greater one
    host    TEXT   COLLATE "C" NOT NULL, -- where: machine and home
    layers  TEXT   COLLATE "C" NOT NULL  -- names and digests, the top one last, as JSON
);

-- Their components.
CREATE TABLE component (
    sha256 TEXT  COLLATE "C" PRIMARY KEY,
    bytes  BYTEA NOT NULL
);
ALTER TABLE component ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- The policies that decide there, and whether those that were chosen for all are among them, as JSON. NULL: it has not said.
ALTER TABLE host ADD COLUMN deciding TEXT COLLATE "C";

-- Whether it hears nothing from where people talk, as before it is connected.
ALTER TABLE host ADD COLUMN deaf BOOLEAN NOT NULL DEFAULT true;

-- Which programs may work on it: those that know this schema or a later one.
ALTER TABLE pmk_schema ADD COLUMN oldest BIGINT;
ALTER TABLE host ADD COLUMN schema BIGINT NOT NULL DEFAULT 23; -- that its program knows
