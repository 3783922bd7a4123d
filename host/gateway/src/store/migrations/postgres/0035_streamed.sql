-- The message as which its answer grows, or grew before it was complete; NULL: not known, or there was none.
ALTER TABLE turn ADD COLUMN streamed_ts TEXT;
