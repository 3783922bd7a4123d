-- How experiments were written down when they last began: gateway.json has one at a time.
CREATE TABLE experiment (
    name   TEXT NOT NULL PRIMARY KEY,
    design TEXT NOT NULL -- its control; of each arm its name, its weight and whether it only watches, as JSON
) WITHOUT ROWID;
