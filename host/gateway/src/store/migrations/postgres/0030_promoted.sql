-- The settings of a promoted arm, which its policies have on all hosts, as JSON; NULL: each home has its own.
ALTER TABLE chosen_policies ADD COLUMN settings TEXT COLLATE "C";
-- The choice that they belong to: an older program that makes another leaves them as they are.
ALTER TABLE chosen_policies ADD COLUMN settings_of BIGINT;
