-- Not NULL: an app has written it. What was written before is taken for people's.
ALTER TABLE inbox ADD COLUMN by_app INTEGER;
