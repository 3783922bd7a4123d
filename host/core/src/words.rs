//! The marker of a request: what a policy says of it, and what becomes of that.

use crate::{marker::Marker, transcript::Transcript};

/// What a policy says of the marker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Words {
    /// Nothing: the host's own words are used.
    #[default]
    Host,
    /// Words of its own.
    Good(String),
    /// Words that are too long or do not say the number: the host's own are used (guard rule 6).
    Bad,
}

/// The marker that takes the place of those that are stored when that many turns more are dropped;
/// `None` when what is stored stays: one that is still right, or none at all.
pub(crate) fn marker_after(transcript: &Transcript, turns_dropped: u32, words: &Words) -> Option<Marker> {
    if turns_dropped == 0 && transcript.markers().len() <= 1 {
        return None;
    }
    let turns = transcript.dropped_turns().saturating_add(turns_dropped);
    Some(match words {
        Words::Good(template) => Marker::with_template(turns, template).0,
        Words::Host | Words::Bad => Marker::new(turns),
    })
}

/// What the marker of the request costs when that many turns more are dropped.
pub(crate) fn marker_tokens(transcript: &Transcript, turns_dropped: u32, words: &Words) -> u64 {
    match marker_after(transcript, turns_dropped, words) {
        Some(marker) => u64::from(marker.tokens()),
        None => transcript.marker_tokens_in(0, transcript.len()),
    }
}
