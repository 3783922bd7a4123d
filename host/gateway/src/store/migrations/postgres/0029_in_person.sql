-- Parts of answers that went to people in person, because their conversation refused them: where each stands.
CREATE TABLE in_person (
    turn_id BIGINT NOT NULL REFERENCES turn (id),
    part    BIGINT NOT NULL,
    channel TEXT   COLLATE "C" NOT NULL, -- the direct message
    sent_id TEXT   COLLATE "C",          -- the front's id of it there; NULL: it may be on its way
    PRIMARY KEY (turn_id, part, channel)
);
CREATE INDEX in_person_by_sent_id ON in_person (sent_id) WHERE sent_id IS NOT NULL;

-- Of a parked message: whether somebody may have been told, so that the notice is looked for before it is posted again.
ALTER TABLE inbox ADD COLUMN parked_maybe_told BIGINT NOT NULL DEFAULT 0;
