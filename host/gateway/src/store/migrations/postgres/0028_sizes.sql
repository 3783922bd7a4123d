-- What sizes of its requests the model has answered and has failed at, as JSON; NULL: nothing is known yet.
ALTER TABLE session ADD COLUMN "sizes" TEXT COLLATE "C";
