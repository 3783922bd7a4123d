-- Which home's host has taken a question in, where several share a database; in a file it stays empty.
ALTER TABLE inbox ADD COLUMN home TEXT;
