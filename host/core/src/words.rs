//! The marker of a request: the policy's template, and the marker that results from it.

use crate::{marker::Marker, transcript::Transcript};

/// A policy's template for the marker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Words {
    /// None: the host's own text is used.
    #[default]
    Host,
    /// A valid template.
    Good(String),
    /// A template that is too long or does not state the number: the host's own text is used (guard rule 6).
    Bad,
}

/// The marker that replaces the stored ones when that many more turns are dropped; `None` when what is stored stays: a
/// marker that is still correct, or none at all.
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

/// The cost of the request's marker when that many more turns are dropped.
pub(crate) fn marker_tokens(transcript: &Transcript, turns_dropped: u32, words: &Words) -> u64 {
    match marker_after(transcript, turns_dropped, words) {
        Some(marker) => u64::from(marker.tokens()),
        None => transcript.marker_tokens_in(0, transcript.len()),
    }
}
