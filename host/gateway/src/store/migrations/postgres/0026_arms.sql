-- The arms of the experiment that is on, as the host had them that began it first, until all hosts have ended.
CREATE TABLE sent_arms (
    id         BIGINT PRIMARY KEY CHECK (id = 1),
    experiment TEXT   COLLATE "C" NOT NULL,
    host       TEXT   COLLATE "C" NOT NULL, -- where: machine and home
    arms       TEXT   COLLATE "C" NOT NULL  -- their names, and names and digests of their layers, the top one last, as JSON
);
