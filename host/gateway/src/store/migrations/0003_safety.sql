-- How models count: the line through our estimates and their counts, as decaying sums.
CREATE TABLE calibration (
    provider TEXT    NOT NULL,
    model    TEXT    NOT NULL,
    weight   REAL    NOT NULL,
    x        REAL    NOT NULL,          -- of estimates
    y        REAL    NOT NULL,          -- of counts
    xx       REAL    NOT NULL,
    xy       REAL    NOT NULL,
    window   INTEGER,                   -- the least context window that a refusal has named
    PRIMARY KEY (provider, model)
) STRICT, WITHOUT ROWID;

-- What of tool calls is shown to the people of a conversation: `summary` or `full`; NULL: nothing.
ALTER TABLE session ADD COLUMN verbose TEXT;
