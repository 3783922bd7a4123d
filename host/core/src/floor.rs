//! What the host itself decides: the trim rung, and the floor under all policies (guard rule 8).

use std::ops::Range;

use crate::{
    applied::{self, Applied},
    plan::Plan,
    transcript::Transcript,
    words::{self, Words},
};

/// The trim rung: keeps the seed pair, the most recent stored turn and the current turn (specification 000 §2.2).
/// Idempotent.
pub fn trim(transcript: &Transcript) -> Plan {
    let mut plan = Plan::new();
    let goes = transcript.seed_end()..transcript.last_turn();
    if goes.len() > transcript.markers_in(&goes) {
        plan.remove(transcript, goes.start as u32, goes.end as u32);
    }
    plan
}

/// The floor: keeps what [`trim`] keeps. While that is over the limit it removes, in this order: the last turn, what
/// came with the new message or is shown for it, the oldest tool pairs of the current turn, the seed pair, the marker,
/// and the rest of what the current turn has produced, oldest first.
///
/// The new message always stays, so the result is within the limit unless that message alone is not; then
/// [`Applied::tokens_after`] says how much it takes. As for a plan (guard rule 5), the result is never larger than the
/// unchanged request.
pub fn decide(transcript: &Transcript, limit: u64) -> Applied {
    let (seed_end, current, len) = (transcript.seed_end(), transcript.current(), transcript.len());
    let unchanged = Request::of(transcript);
    let most = limit.min(unchanged.tokens());

    let mut request = unchanged.clone();
    request.take(seed_end..transcript.last_turn());
    if request.tokens() > most && unchanged.tokens() <= limit {
        // The marker would cost more than the turns it stands for.
        return unchanged.carry_out();
    }
    for end in [transcript.shown_part(), transcript.current_part()] {
        if request.tokens() > most {
            request.take(seed_end..end);
        }
    }
    let groups = &transcript.structure().groups;
    let paired = paired_from(transcript, transcript.current_part());
    for members in paired.chunk_by(|&a, &b| groups[a] == groups[b]) {
        if request.tokens() <= most {
            break;
        }
        members.iter().for_each(|&at| request.take_one(at));
    }
    if request.tokens() > most {
        request.take(0..current);
    }
    if request.tokens() > most {
        request.leave_out_marker();
    }
    for at in current + 1..len {
        if request.tokens() <= most {
            break;
        }
        request.take_one(at);
    }
    request.carry_out()
}

/// A request from which messages are removed one after the other.
#[derive(Clone)]
struct Request<'a> {
    transcript: &'a Transcript,
    goes: Vec<bool>,
    /// Tokens of the messages that are kept, markers excluded.
    kept_tokens: u64,
    marker: Option<u64>,
}

impl<'a> Request<'a> {
    /// The request with every message in it.
    fn of(transcript: &'a Transcript) -> Self {
        let len = transcript.len();
        let kept_tokens = transcript.tokens_in(0, len) - transcript.marker_tokens_in(0, len);
        let marker = Some(words::marker_tokens(transcript, 0, &Words::Host));
        Request { transcript, goes: vec![false; len], kept_tokens, marker }
    }

    fn tokens(&self) -> u64 {
        self.kept_tokens + self.marker.unwrap_or(0)
    }

    fn take(&mut self, range: Range<usize>) {
        range.for_each(|at| self.take_one(at));
        let turns = applied::turns_dropped(self.transcript, &self.goes);
        self.marker = Some(words::marker_tokens(self.transcript, turns, &Words::Host));
    }

    /// Removes a message that starts no stored turn.
    fn take_one(&mut self, at: usize) {
        if !self.goes[at] && !self.transcript.is_marker(at) {
            self.goes[at] = true;
            self.kept_tokens -= u64::from(self.transcript.tokens()[at]);
        }
    }

    /// Leaves the marker out. The session still stores the number of dropped turns that it states.
    fn leave_out_marker(&mut self) {
        self.marker = None;
    }

    fn carry_out(self) -> Applied {
        applied::carry_out(self.transcript, self.goes, vec![], self.marker.map(|_| &Words::Host), None)
    }
}

/// The messages from `start` on that are tied to others by a tool call, group by group, oldest first.
fn paired_from(transcript: &Transcript, start: usize) -> Vec<usize> {
    let mut paired: Vec<usize> = (start..transcript.len()).filter(|&at| transcript.is_in_pair(at)).collect();
    paired.sort_by_key(|&at| transcript.structure().groups[at]);
    paired
}
