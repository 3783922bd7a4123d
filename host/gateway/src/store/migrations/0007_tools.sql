-- Whether the server of a model takes tools, once that was seen.
CREATE TABLE model_tools (
    provider TEXT    NOT NULL,
    model    TEXT    NOT NULL,
    takes    INTEGER NOT NULL,
    PRIMARY KEY (provider, model)
) STRICT, WITHOUT ROWID;
