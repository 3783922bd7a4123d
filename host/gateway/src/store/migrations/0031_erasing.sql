-- What is erased is looked up by its messages: without this, each of them is looked for in every live window.
CREATE INDEX live_by_message ON live (message_id);

-- Who stopped the question before it arrived; NULL: nobody.
ALTER TABLE early_change ADD COLUMN stopped_by TEXT;
