-- In threads of channels: who is followed there, and needs no mention of the bot.

ALTER TABLE session ADD COLUMN followed TEXT;       -- who has mentioned it there last, alone with it; NULL: nobody
ALTER TABLE session ADD COLUMN followed_from TEXT;  -- from the message of this `ts` on
ALTER TABLE session ADD COLUMN followed_until TEXT; -- up to this one, which somebody else has written; NULL: still
