//! Texts of the chat at a terminal.

use super::Messages;

impl Messages {
    /// The first line: what this chat is.
    pub fn chat_begin(&self, version: &str) -> String {
        self.text("chat-begin", [("version", version.into())])
    }

    /// The model that answers and its window; a hint if it is only the simulated one.
    pub fn chat_model(&self, model: &str, window: &str, is_stand_in: bool) -> String {
        let id = if is_stand_in { "chat-model-sim" } else { "chat-model" };
        self.text(id, [("model", model.into()), ("window", window.into())])
    }

    /// The policies that decide what the model sees.
    pub fn chat_policy(&self, policies: &str) -> String {
        self.text("chat-policy", [("policies", policies.into())])
    }

    /// The other inputs, in one line.
    pub fn chat_keys(&self) -> String {
        self.text("chat-keys", [])
    }

    /// The other inputs, one per line.
    pub fn chat_help(&self) -> String {
        self.text("chat-help", [])
    }

    /// There is no such command.
    pub fn chat_unknown(&self, word: &str) -> String {
        self.text("chat-unknown", [("word", word.into())])
    }

    /// A command takes no such word.
    pub fn chat_too_many(&self, word: &str) -> String {
        self.text("chat-too-many", [("word", word.into())])
    }

    /// Ctrl-C was pressed at an empty line, or has emptied the line.
    pub fn chat_leave(&self) -> String {
        self.text("chat-leave", [])
    }

    /// The gateway is stopping without a request from this terminal.
    pub fn chat_stopped(&self) -> String {
        self.text("chat-stopped", [])
    }

    /// An answer is taking long: seconds until now.
    pub fn chat_waits(&self, seconds: u64) -> String {
        self.text("chat-waits", [("seconds", seconds.into())])
    }

    /// No question is waiting for a decision.
    pub fn chat_no_word(&self) -> String {
        self.text("chat-no-word", [])
    }

    /// A decision on a question had no effect.
    pub fn chat_no_effect(&self, error: &str) -> String {
        self.text("chat-no-effect", [("error", error.into())])
    }

    /// A message was not stored.
    pub fn chat_not_stored(&self, error: &str) -> String {
        self.text("chat-not-stored", [("error", error.into())])
    }

    /// The decision for a turn. Numbers are passed formatted.
    pub fn chat_turn(&self, policy: Option<&str>, tokens: &str, limit: &str) -> String {
        let size = self.text("chat-turn", [("tokens", tokens.into()), ("limit", limit.into())]);
        policy.map_or_else(
            || size.clone(),
            |policy| self.text("chat-decided", [("policy", policy.into()), ("size", size.clone().into())]),
        )
    }

    /// This many turns were dropped from the window.
    pub fn chat_dropped(&self, turns: u32) -> String {
        self.text("chat-dropped", [("turns", turns.into())])
    }

    /// This many messages were shortened.
    pub fn chat_shortened(&self, messages: usize) -> String {
        self.text("chat-shortened", [("messages", messages.into())])
    }

    /// This many archived messages were shown again.
    pub fn chat_recalled(&self, messages: usize) -> String {
        self.text("chat-recalled", [("messages", messages.into())])
    }
}

#[cfg(test)]
pub(super) fn everything(messages: &Messages) -> Vec<String> {
    vec![
        messages.chat_begin("1"),
        messages.chat_model("sim", "8,000", true),
        messages.chat_model("openai:x", "8,000", false),
        messages.chat_policy("standard"),
        messages.chat_keys(),
        messages.chat_help(),
        messages.chat_unknown("/x"),
        messages.chat_too_many("x"),
        messages.chat_leave(),
        messages.chat_waits(3),
        messages.chat_no_word(),
        messages.chat_no_effect("no"),
        messages.chat_not_stored("no"),
        messages.chat_turn(Some("standard"), "5", "100"),
        messages.chat_turn(None, "5", "100"),
        messages.chat_dropped(1),
        messages.chat_dropped(2),
        messages.chat_shortened(1),
        messages.chat_shortened(2),
        messages.chat_recalled(1),
        messages.chat_recalled(2),
    ]
}
