-- What an attempt at an answer may have shown of it, written down before it does: a placeholder, the answer as a stream.
ALTER TABLE turn ADD COLUMN may_have_placed   INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turn ADD COLUMN may_have_streamed INTEGER NOT NULL DEFAULT 0;

-- Of those under way nobody knows.
UPDATE turn SET may_have_placed = 1, may_have_streamed = 1 WHERE delivered_at IS NULL;
