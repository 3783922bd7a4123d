-- The arms of the experiment that is on, each as the host had it that began it first, until all hosts have ended.
CREATE TABLE sent_arms (
    id         BIGINT PRIMARY KEY CHECK (id = 1),
    experiment TEXT   COLLATE "C" NOT NULL,
    start      TEXT   COLLATE "C" NOT NULL, -- by which it is told from one of the same name
    arms       TEXT   COLLATE "C" NOT NULL  -- their names, files, and layers (names and digests, the top one last), as JSON
);
