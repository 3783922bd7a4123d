-- Images that came with a question: messages name them by their digest.
CREATE TABLE image (
    inbox_id INTEGER NOT NULL REFERENCES inbox (id),
    sha256   TEXT    NOT NULL,  -- of the bytes, hexadecimal
    bytes    BLOB    NOT NULL,
    PRIMARY KEY (inbox_id, sha256)
) STRICT;

CREATE INDEX image_by_sha256 ON image (sha256);
