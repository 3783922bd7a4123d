-- Not NULL: a direct message of several people, as one of its messages said. Nobody can be added to it.
ALTER TABLE session ADD COLUMN is_group INTEGER;
CREATE INDEX session_of_group ON session (channel) WHERE is_group IS NOT NULL;

-- The workspace of its author; NULL: the bot's.
ALTER TABLE inbox ADD COLUMN team TEXT;
