-- What is erased is looked up by its messages: without this, each of them is looked for in every live window.
CREATE INDEX live_by_message ON live (message_id);

-- Whether a person stopped the question before it arrived.
ALTER TABLE early_change ADD COLUMN is_stop BIGINT NOT NULL DEFAULT 0;
