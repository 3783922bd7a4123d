//! The console front: a terminal chat, or JSON lines when piped, so that a script can drive the
//! gateway.
//!
//! In: `{"type":"message","user":"U1","channel":"D1","thread_ts":null,"text":"…","event_id":"Ev1"}`.
//! Everything but `text` is optional. Channels that begin with D are direct messages, with C
//! channels.
//!
//! Out, one object per line: `accepted` (after the inbox commit; a message seen before has
//! `"duplicate":true` and is not answered again), `reply`, `turn`, `notice`, `error`.

use std::sync::atomic::{AtomicU64, Ordering};

use pmk_core::{FrontName, Place, SessionKey};
use pmk_system::clock;

use crate::chat::{Attachments, Inbound, ReplyTo};
mod chat;
mod input;
mod lines;
mod output;
mod parse;

pub use chat::{Chat, Opening};
pub use lines::Lines;

/// The user if a line or a terminal does not specify one.
const DEFAULT_USER: &str = "U1";
/// The default channel.
const DEFAULT_CHANNEL: &str = "D1";

/// A message as the console receives it.
struct Typed {
    event_id: Option<String>,
    user: String,
    channel: String,
    thread_ts: Option<String>,
    text: String,
}

impl Typed {
    /// Returns the message as the gateway stores it; `None` if the channel is neither a direct message
    /// nor a channel.
    fn inbound(self) -> Option<Inbound> {
        let place = match self.channel.as_bytes().first() {
            Some(b'D') => Place::Dm(self.user.clone()),
            Some(b'C') => Place::Channel(self.channel.clone()),
            _ => return None,
        };
        Some(Inbound {
            event_id: self.event_id.unwrap_or_else(|| fresh_id("console")),
            aliases: vec![],
            key: SessionKey { front: FrontName::Console, place, thread: self.thread_ts.clone() },
            user: self.user,
            reply_to: ReplyTo { channel: self.channel, thread_ts: self.thread_ts },
            text: self.text,
            attached: Attachments::default(),
            if_awaited: false,
            by_app: false,
            team: None,
            in_group: false,
            asked_at: None,
            ts: String::new(),
        })
    }
}

/// Returns an id that begins like this, for a message that has none.
fn fresh_id(kind: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{kind}-{}-{}", clock::now_ms(), NEXT.fetch_add(1, Ordering::Relaxed))
}
