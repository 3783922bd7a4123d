//! Chooses as many matches as there is room for, each with the messages around it.

use std::collections::BTreeMap;

use pmk_policy_sdk::{Budget, Plan, Transcript};

use crate::settings;

/// The maximum number of characters that the host quotes of one message.
const WHOLE: u32 = 4_000;

/// The host refuses a plan that recalls more messages.
const MOST: usize = 500;

/// A match takes at most this part of the room, so that one long result does not displace all others; a neighbouring
/// message takes less.
const MATCH_PARTS: u64 = 4;
const NEIGHBOUR_PARTS: u64 = 10;

/// For this many of the best matches, the messages around them are quoted as well: their subject is the likeliest.
const BEST: usize = 5;

/// The cost of the line that says that a quote was cut.
const CUT_TOKENS: u64 = 20;

/// The minimum size of a quote.
const LEAST_TOKENS: u64 = 16;
const LEAST_CHARS: u64 = 20;

/// Plans to recall the best matches, in `percent` of the room that is left; returns whether the request still fits.
pub fn show(transcript: &Transcript, budget: &Budget, plan: &Plan, matches: &[u32], percent: u64) -> bool {
    let free = budget.limit().saturating_sub(plan.tokens());
    let room = free.min(most()).saturating_sub(u64::from(budget.recall_tokens())) * percent / 100;
    for (number, chars) in Quotes::choose(transcript, room, matches).chosen {
        plan.recall(number, chars);
    }
    plan.tokens() <= budget.limit()
}

/// The maximum cost of a block, as set by the operator.
pub fn most() -> u64 {
    u64::from(settings::RECALL_MOST.count())
}

/// The messages that are quoted, with the number of characters.
struct Quotes<'t> {
    transcript: &'t Transcript,
    chosen: BTreeMap<u32, u32>,
    left: u64,
}

impl<'t> Quotes<'t> {
    /// Chooses quotes. A match that does not fit is left out; a smaller one further down may still fit.
    fn choose(transcript: &'t Transcript, room: u64, matches: &[u32]) -> Self {
        let neighbours = settings::NEIGHBOURS.count();
        let mut quotes = Quotes { transcript, chosen: BTreeMap::new(), left: room };
        for (rank, &found) in matches.iter().enumerate() {
            let neighbours = if rank < BEST { neighbours } else { neighbours.div_ceil(2) };
            if quotes.is_full() {
                break;
            }
            let start = found.saturating_sub(neighbours);
            let tokens = transcript.archived_tokens(start, found.saturating_add(neighbours + 1));
            let cost = |number: u32| tokens.get((number - start) as usize).copied().unwrap_or(0);
            if !quotes.take(found, cost(found), room / MATCH_PARTS) {
                continue;
            }
            // The nearest messages first, and later before earlier ones: answers come later.
            for distance in 1..=neighbours {
                let before = found.checked_sub(distance);
                for number in [Some(found + distance), before].into_iter().flatten() {
                    quotes.take(number, cost(number), room / NEIGHBOUR_PARTS);
                }
            }
        }
        quotes
    }

    /// Whether nothing more can be quoted.
    fn is_full(&self) -> bool {
        self.left < LEAST_TOKENS || self.chosen.len() == MOST
    }

    /// Adds a message, cut if it costs more than `most`; returns whether it is included now.
    fn take(&mut self, number: u32, tokens: u32, most: u64) -> bool {
        if self.chosen.contains_key(&number) {
            return true;
        }
        let tokens = u64::from(tokens);
        if tokens == 0 || most < LEAST_TOKENS || self.is_full() {
            return false;
        }
        if tokens <= most.min(self.left) {
            self.left -= tokens;
            self.chosen.insert(number, WHOLE);
            return true;
        }
        // If the rest of the room is less than a part, it is left for something short.
        let Some(shown) = most.checked_sub(CUT_TOKENS).filter(|_| most <= self.left) else { return false };
        let chars = self.transcript.archived_text(number, 0, WHOLE).chars().count() as u64 * shown / tokens;
        let worth_it = chars >= LEAST_CHARS;
        if worth_it {
            self.left -= most;
            self.chosen.insert(number, u32::try_from(chars).unwrap_or(WHOLE));
        }
        worth_it
    }
}
