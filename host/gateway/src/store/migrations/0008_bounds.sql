-- What refusals and answers of a certain size have taught of a model's window.
CREATE TABLE bound (
    provider  TEXT    NOT NULL,
    model     TEXT    NOT NULL,
    kind      TEXT    NOT NULL,          -- `refused`: the smallest; `named`: a window; `answered`, `answered-before`: the largest of a day
    size      INTEGER,                   -- the host's estimate of the whole request
    tokens    INTEGER NOT NULL,          -- refused: the largest answered below it; named, answered: the provider's count
    source    TEXT,                      -- how a refused size is known to be one
    learnt_at INTEGER NOT NULL,
    until     INTEGER,                   -- then a larger request may be tried; NULL: it bounds nothing
    times     INTEGER NOT NULL,          -- how often it was confirmed
    PRIMARY KEY (provider, model, kind)
) STRICT, WITHOUT ROWID;

-- A window that was named once and for good may be tried again at once.
INSERT INTO bound (provider, model, kind, tokens, learnt_at, until, times)
    SELECT provider, model, 'named', window, unixepoch() * 1000, unixepoch() * 1000, 1 FROM calibration WHERE window IS NOT NULL;
ALTER TABLE calibration DROP COLUMN window;
