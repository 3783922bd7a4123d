-- Whether a suspended policy was skipped in it, so that its failures would not be seen; NULL: not known.
ALTER TABLE turn ADD COLUMN skipped BIGINT;
