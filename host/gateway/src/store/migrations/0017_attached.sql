-- What came with a question stays with it once it is answered: it may be asked again, or deleted.
ALTER TABLE inbox ADD COLUMN attached TEXT;  -- as in the message; NULL where nothing came
