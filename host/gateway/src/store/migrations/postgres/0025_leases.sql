-- A conversation is leased and given back with every turn. With an index of who has it each of those was a new entry in all
-- indexes of the table; without, and with room on its page, the row is written anew beside the old one and nothing else is.
DROP INDEX session_leased;
ALTER TABLE session SET (fillfactor = 50);
