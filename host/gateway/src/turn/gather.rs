//! Step 2: the request as it would be if nothing were done, and how much room there is for it.

use std::sync::Arc;

use pmk_core::{Entry, Marker, Message, Origin, Transcript, tokens};

use crate::{
    gateway::Gateway,
    store::{Live, OpenTurn},
};

/// What the model is told about itself.
pub(crate) const SYSTEM_PROMPT: &str = "You are pmk, an assistant that answers a team's questions in Slack. Answer in the language \
    of the question, the answer first, and briefly. Say so when you do not know. A note in parentheses that turns \
    were left out (此處省略 … 輪) stands for older parts of this conversation that you cannot see.";

/// Room for the answer, in tokens; never more than a quarter of the window.
const ANSWER_TOKENS: u64 = 8_192;

/// The conversation and the new message, ready to be budgeted.
pub(super) struct Gathered {
    pub turn: OpenTurn,
    pub system: String,
    pub transcript: Arc<Transcript>,
    /// For each message of the transcript its place in the live window; none for the marker and the new
    /// message.
    pub positions: Vec<Option<i64>>,
    /// The words of the marker that stands in the window, where a policy gave its own.
    pub marker_template: Option<String>,
    pub room: Room,
}

/// How the model's window is shared out, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub window: u64,
    pub answer: u32,
    /// What is left for messages: the hard limit of guard rule 9.
    pub limit: u64,
}

impl Room {
    /// The room that a model of this window leaves beside a system prompt.
    pub(crate) fn of(window: u64, system: &str) -> Room {
        let answer = ANSWER_TOKENS.min(window / 4);
        let limit = window.saturating_sub(answer).saturating_sub(u64::from(tokens::estimate(system)));
        Room { window, answer: u32::try_from(answer).unwrap_or(u32::MAX), limit }
    }
}

pub(super) fn gather(gateway: &Gateway, mut turn: OpenTurn) -> Gathered {
    let live = std::mem::take(&mut turn.live);
    let marker_template = live.marker_template.clone();
    let (transcript, positions) = view(live, &turn);
    Gathered {
        system: SYSTEM_PROMPT.to_owned(),
        transcript: Arc::new(transcript),
        positions,
        marker_template,
        room: Room::of(gateway.model.window(), SYSTEM_PROMPT),
        turn,
    }
}

/// The live window, with the marker after the seed, and the new message at the end.
fn view(live: Live, turn: &OpenTurn) -> (Transcript, Vec<Option<i64>>) {
    let mut entries = Vec::with_capacity(live.entries.len() + 2);
    let mut positions = Vec::with_capacity(live.entries.len() + 2);
    let mut marker = (live.dropped_turns > 0).then(|| match &live.marker_template {
        Some(words) => Marker::with_template(live.dropped_turns, words).0,
        None => Marker::new(live.dropped_turns),
    });
    let mut put_marker = |entries: &mut Vec<Entry>, positions: &mut Vec<Option<i64>>| {
        if let Some(marker) = marker.take() {
            entries.push(Entry::new(0, marker.message()));
            positions.push(None);
        }
    };
    for kept in live.entries {
        if !matches!(kept.entry.message.origin, Origin::Seed | Origin::SeedAck) {
            put_marker(&mut entries, &mut positions);
        }
        entries.push(kept.entry);
        positions.push(Some(kept.position));
    }
    put_marker(&mut entries, &mut positions);
    let current = entries.len();
    entries.push(Entry::new(0, Message::user(turn.inbound.text.clone())));
    positions.push(None);
    let transcript =
        Transcript::new(entries, current, turn.inbound.reply_to.channel.clone()).with_dropped_turns(live.dropped_turns);
    (transcript, positions)
}
