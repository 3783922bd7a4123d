//! Where a question is one, and where its answer goes, as far as that is the operator's to say.

use serde::Deserialize;

/// What the operator has said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    pub reply_in: ReplyIn,
    /// Whether who has mentioned the bot in a thread of a channel needs no mention there, until somebody else writes.
    pub follow_threads: bool,
}

impl Default for Places {
    fn default() -> Self {
        Places { reply_in: ReplyIn::default(), follow_threads: true }
    }
}

/// Where a mention is answered that is in no thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplyIn {
    /// In the channel, which is one conversation.
    #[default]
    Channel,
    /// In the thread that it begins, which is a conversation of its own.
    Thread,
}

impl ReplyIn {
    /// The words of gateway.json.
    pub const ALL: [ReplyIn; 2] = [ReplyIn::Channel, ReplyIn::Thread];

    /// The word.
    pub const fn name(self) -> &'static str {
        match self {
            ReplyIn::Channel => "channel",
            ReplyIn::Thread => "thread",
        }
    }
}
