//! How an outgoing message is stored: its text, which goes once it is sent, and all the rest.

use serde::{Deserialize, Serialize};

use super::{Offers, Outgoing, Purpose, codec};
use crate::chat::MessageBody;

/// What an outgoing message consists of beside its text.
#[derive(Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct How {
    pings: Vec<String>,
    thread_ts: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    pub(super) purpose: Purpose,
    #[serde(default, skip_serializing_if = "Offers::is_nothing")]
    offers: Offers,
}

impl How {
    /// Returns the message with this text.
    pub(super) fn with_text(self, text: String) -> Outgoing {
        let How { pings, thread_ts, to, purpose, offers } = self;
        Outgoing { speech: MessageBody { text, pings }, thread_ts, to, purpose, offers }
    }
}

/// Returns the text and the rest, as they are stored.
pub(super) fn encode(outgoing: &Outgoing) -> (String, Option<String>) {
    let Outgoing { speech: MessageBody { text, pings }, thread_ts, to, purpose, offers } = outgoing.clone();
    let how = How { pings, thread_ts, to, purpose, offers };
    (text, (how != How::default()).then(|| codec::to_json(&how)))
}
