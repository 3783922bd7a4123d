-- How experiments were written down when they last began: gateway.json has one at a time.
CREATE TABLE experiment (
    name   TEXT COLLATE "C" PRIMARY KEY,
    design TEXT COLLATE "C" NOT NULL -- its control; of each arm its name, its weight and whether it only watches, as JSON
);
