//! As many of the matches as there is room for, each with what was said around it.

use std::collections::BTreeMap;

use pmk_policy_sdk::{Budget, Plan, Transcript};

use crate::settings;

/// The most characters that the host quotes of one message.
const WHOLE: u32 = 4_000;

/// No match takes more than one part in so many of the room, so that one long result does not keep out all others; what
/// was said around it less.
const MATCH_PARTS: u64 = 4;
const NEIGHBOUR_PARTS: u64 = 10;

/// Of so many matches all is quoted that was said around them: what they are about is the likeliest to be asked for.
const BEST: usize = 5;

/// What the line costs that says that a quote was cut.
const CUT_TOKENS: u64 = 20;

/// Less than this is not worth a quote.
const LEAST_TOKENS: u64 = 16;
const LEAST_CHARS: u64 = 20;

/// Plans to show the best matches, in `percent` of the room that is left; whether the request still fits.
pub fn show(transcript: &Transcript, budget: &Budget, plan: &Plan, matches: &[u32], percent: u64) -> bool {
    let free = budget.limit().saturating_sub(plan.tokens());
    let room = free.min(most()).saturating_sub(u64::from(budget.recall_tokens())) * percent / 100;
    for (number, chars) in Quotes::choose(transcript, room, matches).chosen {
        plan.recall(number, chars);
    }
    plan.tokens() <= budget.limit()
}

/// What a block may cost at most, as the operator wants it.
pub fn most() -> u64 {
    u64::from(settings::RECALL_MOST.count())
}

/// What is quoted, and how much of it.
struct Quotes<'t> {
    transcript: &'t Transcript,
    chosen: BTreeMap<u32, u32>,
    left: u64,
}

impl<'t> Quotes<'t> {
    /// What does not fit is left out; a smaller one further down may still fit.
    fn choose(transcript: &'t Transcript, room: u64, matches: &[u32]) -> Self {
        let neighbours = settings::NEIGHBOURS.count();
        let mut quotes = Quotes { transcript, chosen: BTreeMap::new(), left: room };
        for (rank, &found) in matches.iter().enumerate() {
            let neighbours = if rank < BEST { neighbours } else { neighbours.div_ceil(2) };
            if quotes.left < LEAST_TOKENS {
                break;
            }
            let start = found.saturating_sub(neighbours);
            let tokens = transcript.archived_tokens(start, found.saturating_add(neighbours + 1));
            let cost = |number: u32| tokens.get((number - start) as usize).copied().unwrap_or(0);
            if !quotes.take(found, cost(found), room / MATCH_PARTS) {
                continue;
            }
            // The nearest first, and what followed before what went before: answers follow.
            for distance in 1..=neighbours {
                let before = found.checked_sub(distance);
                for number in [Some(found + distance), before].into_iter().flatten() {
                    quotes.take(number, cost(number), room / NEIGHBOUR_PARTS);
                }
            }
        }
        quotes
    }

    /// Takes a message in, cut where it costs more than `most`; whether it is in now.
    fn take(&mut self, number: u32, tokens: u32, most: u64) -> bool {
        if self.chosen.contains_key(&number) {
            return true;
        }
        let tokens = u64::from(tokens);
        let allowed = most.min(self.left);
        if tokens == 0 || allowed < LEAST_TOKENS {
            return false;
        }
        if tokens <= allowed {
            self.left -= tokens;
            self.chosen.insert(number, WHOLE);
            return true;
        }
        // The rest of the room, where that is less than a part, is for something short.
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
