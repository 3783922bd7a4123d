-- A question that is asked again: of which turn. What that has answered leaves the live window when its own turn begins.
ALTER TABLE inbox ADD COLUMN again_of INTEGER REFERENCES turn (id);

-- Of a press that is a verdict on an atom: which atom, as JSON, until that is carried out.
ALTER TABLE press ADD COLUMN atom TEXT;
