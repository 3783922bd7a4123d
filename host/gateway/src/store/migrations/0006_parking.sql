-- Questions that cannot go on, set aside until somebody takes them up again.

ALTER TABLE inbox ADD COLUMN parked_at INTEGER;   -- NULL: not parked
ALTER TABLE inbox ADD COLUMN parked_why TEXT;     -- for the operator
ALTER TABLE inbox ADD COLUMN parked_told INTEGER NOT NULL DEFAULT 0; -- whether the person knows

CREATE INDEX inbox_parked ON inbox (id) WHERE parked_at IS NOT NULL;
