//! The operator's settings for where a question is recognized, and where its answer goes.

use serde::Deserialize;

/// The operator's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    pub reply_in: ReplyIn,
    /// Whether a person who has mentioned the bot in a thread of a channel needs no further mention there until
    /// somebody else writes.
    pub follow_threads: bool,
}

impl Default for Places {
    fn default() -> Self {
        Places { reply_in: ReplyIn::default(), follow_threads: true }
    }
}

/// Where a mention outside of a thread is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplyIn {
    /// In the channel, which is one conversation.
    #[default]
    Channel,
    /// In the thread that it begins, which is a separate conversation.
    Thread,
}

impl ReplyIn {
    /// All values, as in gateway.json.
    pub const ALL: [ReplyIn; 2] = [ReplyIn::Channel, ReplyIn::Thread];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            ReplyIn::Channel => "channel",
            ReplyIn::Thread => "thread",
        }
    }
}
