//! The guard: enforces the rules that hold for every request, whatever a policy decides.
//!
//! A plan is judged as a whole. The guard corrects only the marker's text (rule 6); any other breach rejects the plan,
//! and the next layer decides.

use std::{collections::HashSet, mem, ops::Range};

pub use crate::applied::Applied;
use crate::{
    applied,
    message::Role,
    plan::{Edit, Excess, Plan, Replaced},
    recall::{Quote, Recall},
    transcript::Transcript,
    verdict::{Breach, Rule},
    words::{self, Words},
};

/// The conditions that a plan is checked against.
#[derive(Clone, Copy, Debug)]
pub struct Guard {
    /// The hard limit in tokens.
    pub limit: u64,
    /// Whether the operator allows the seed pair to be removed.
    pub seed_may_go: bool,
    /// Whether the request must shrink by at least a tenth, as in recovery.
    pub must_shrink: bool,
}

impl Guard {
    /// Judges a plan and, if it breaks no rule, carries it out.
    ///
    /// # Errors
    /// The first rule it breaks.
    pub fn apply(&self, transcript: &Transcript, plan: &Plan) -> Result<Applied, Breach> {
        let goes = self.going(transcript, plan)?;
        self.check_parts(transcript, &goes)?;
        let mut replaced: Vec<Replaced> = plan.edits().iter().filter_map(replacement).cloned().collect();
        replaced.sort_unstable_by_key(|replaced| replaced.index);
        let recall = recall(transcript, plan, &goes)?;
        let mut applied = applied::carry_out(transcript, goes, replaced, Some(plan.words()), recall);
        applied.compaction = compaction(transcript, plan)?;
        check_start(transcript, &applied)?;
        self.check_size(transcript, &applied)?;
        Ok(applied)
    }

    /// Whether the seed pair, the marker and the current turn, including what is shown only for it, are within the limit.
    /// If not, removing whole turns does not help, and a policy may leave the decision to the layer below.
    pub fn whole_turns_can_fit(&self, transcript: &Transcript) -> bool {
        let seed = transcript.tokens_in(0, transcript.seed_end());
        let current = transcript.tokens_in(transcript.shown_part(), transcript.len());
        let marker = words::marker_tokens(transcript, transcript.turns() as u32, &Words::Host);
        let least = seed.saturating_add(current).saturating_add(marker);
        least.min(Plan::new().tokens(transcript)) <= self.limit
    }

    /// Rules 2, 3 and 8: which messages are removed, provided that the edits are valid.
    fn going(&self, transcript: &Transcript, plan: &Plan) -> Result<Vec<bool>, Breach> {
        let len = transcript.len();
        match plan.excess() {
            Some(Excess::Edits) => {
                return Err(breach(Rule::Sane, format!("more than {} edits of {len} messages", plan.edits().len())));
            }
            Some(Excess::Recalls) => {
                return Err(breach(Rule::Sane, format!("more than {} recalls", plan.recalls().len())));
            }
            None => {}
        }
        let mut goes = vec![false; len];
        let mut edited = vec![false; len];
        for edit in plan.edits() {
            let (start, end, removes) = match *edit {
                Edit::Remove { start, end } => (start, end, true),
                Edit::Replace { index, .. } => (index, index.saturating_add(1), false),
            };
            let range = start as usize..end as usize;
            if range.is_empty() || range.end > len {
                return Err(breach(
                    Rule::Sane,
                    format!("an edit of {start}..{end} is not possible in a history of {len} messages"),
                ));
            }
            if transcript.new_message().is_some_and(|new| range.contains(&new)) {
                return Err(breach(Rule::NewMessage, format!("an edit of {start}..{end} touches the new message")));
            }
            if removes && range.start < transcript.seed_end() && !self.seed_may_go {
                return Err(breach(Rule::Seed, format!("removing {start}..{end} removes the seed pair")));
            }
            // Stops at the first overlap, so no message is visited more than twice.
            for at in range {
                if mem::replace(&mut edited[at], true) {
                    return Err(breach(Rule::Sane, format!("message {at} is edited twice")));
                }
                goes[at] = removes;
            }
        }
        // Markers are decided by the host alone.
        transcript.markers().iter().for_each(|&at| goes[at as usize] = false);
        Ok(goes)
    }

    /// Rules 1 and 3: messages are removed as whole parts, or as whole tool groups of a part that alone is too large;
    /// what stands before the new message for its sake, one by one.
    fn check_parts(&self, transcript: &Transcript, goes: &[bool]) -> Result<(), Breach> {
        let seed_end = transcript.seed_end();
        let seed = &goes[..seed_end];
        if seed.contains(&true) && seed.contains(&false) {
            return Err(breach(Rule::Seed, "only half of the seed pair would stay"));
        }
        let groups = &transcript.structure().groups;
        if let Some(at) = (0..goes.len()).find(|&at| goes[at] != goes[groups[at] as usize]) {
            return Err(breach(Rule::Pairs, format!("message {at} is separated from the rest of its tool pair")));
        }
        let seed_tokens = if self.seed_may_go { 0 } else { transcript.tokens_in(0, seed_end) };
        let current = transcript.current_part();
        let always_kept = seed_tokens + transcript.tokens_in(current, transcript.len());
        for part in transcript.parts().filter(|part| !transcript.is_beside_new_message(part)) {
            let going = goes[part.clone()].iter().filter(|&&goes| goes).count();
            if going == 0 || going == part.len() - transcript.markers_in(&part) {
                continue;
            }
            let Range { start, end } = part;
            let alone = if start == current { 0 } else { transcript.tokens_in(start, end) };
            if always_kept + alone <= self.limit {
                return Err(breach(Rule::Pairs, format!("only a part of the turn {start}..{end} would be removed")));
            }
            if let Some(at) = (start..end).find(|&at| goes[at] && !transcript.is_in_pair(at)) {
                return Err(breach(Rule::Pairs, format!("message {at} is part of a turn but of no tool pair")));
            }
        }
        Ok(())
    }

    /// Rules 5 and 9.
    fn check_size(&self, transcript: &Transcript, applied: &Applied) -> Result<(), Breach> {
        let Applied { tokens_before: before, tokens_after: after, .. } = *applied;
        // Several short markers of an imported history may cost less than the one that rule 6 allows.
        let nothing = before.max(Plan::new().tokens(transcript));
        let recalled = applied.recall.as_ref().map_or(0, |recall| u64::from(recall.tokens));
        if after - recalled > nothing {
            let after = after - recalled;
            return Err(breach(Rule::Growth, format!("{after} tokens, but doing nothing costs {nothing}")));
        }
        if recalled > 0 && after > self.limit {
            let rest = after - recalled;
            return Err(breach(
                Rule::Growth,
                format!("a recall block of {recalled} tokens plus {rest} tokens exceeds the limit of {}", self.limit),
            ));
        }
        if self.must_shrink && u128::from(after) * 10 > u128::from(before) * 9 {
            return Err(breach(Rule::Growth, format!("{after} tokens is not at least 10 % less than {before}")));
        }
        if after > self.limit {
            return Err(breach(Rule::HardLimit, format!("{after} tokens exceed the hard limit of {}", self.limit)));
        }
        Ok(())
    }
}

/// Rule 1 for a range to be summarized: whole turns, between the seed with its marker and the most recent turn. It may
/// begin behind a marker in the middle of a turn, but not between a call and its result.
fn compaction(transcript: &Transcript, plan: &Plan) -> Result<Option<Range<usize>>, Breach> {
    let Some((start, end)) = plan.compaction() else { return Ok(None) };
    let range = start as usize..end as usize;
    let starts = |at: usize| transcript.parts().any(|part| part.start == at);
    let is_legal = range.start < range.end
        && range.start >= transcript.seed_end()
        && range.end <= transcript.last_turn()
        && (starts(range.start) || range.start > 0 && transcript.is_marker(range.start - 1))
        && !transcript.structure().is_straddled(range.start)
        && starts(range.end)
        && !range.clone().any(|at| transcript.is_marker(at));
    if is_legal {
        return Ok(Some(range));
    }
    Err(breach(Rule::Pairs, format!("{start}..{end} is not a range of whole turns that can be summarized")))
}

/// Rules 5 and 8: a recalled message is older than the new message, exists, and is shown once.
fn recall(transcript: &Transcript, plan: &Plan, goes: &[bool]) -> Result<Option<Recall>, Breach> {
    if plan.recalls().is_empty() {
        return Ok(None);
    }
    if transcript.new_message().is_none() {
        return Err(breach(Rule::Sane, "a recall without a new message to place it before"));
    }
    let reduced = |at: usize| {
        plan.edits().iter().any(|edit| matches!(edit, Edit::Replace { index, .. } if *index as usize == at))
    };
    if let Some(at) = transcript.standing_recalls().find(|&at| reduced(at)) {
        return Err(breach(Rule::Sane, format!("message {at} is reduced, but a new recall replaces it")));
    }
    let mut shown = HashSet::new();
    let mut quotes: Vec<&Quote> = Vec::with_capacity(plan.recalls().len());
    for (number, quote) in plan.recalls() {
        let Some(quote) = quote else {
            return Err(breach(Rule::Sane, format!("a recall of {number}, which contains nothing to quote")));
        };
        if !shown.insert(number) {
            return Err(breach(Rule::Sane, format!("{number} is recalled twice")));
        }
        if transcript.index_of(quote.id).is_some_and(|at| !goes[at as usize]) {
            return Err(breach(Rule::Sane, format!("a recall of m{}, which is already in the request", quote.id)));
        }
        quotes.push(quote);
    }
    Ok(Recall::of(quotes, transcript.language()))
}

/// Rule 4. A marker that was written is a user message, and every removal that is allowed leaves a user message first,
/// except that of the seed pair.
fn check_start(transcript: &Transcript, applied: &Applied) -> Result<(), Breach> {
    let Some(&first) = applied.kept.first() else { return Ok(()) };
    let marker_first = applied.marker.as_ref().is_some_and(|&(_, before)| before <= first);
    if marker_first || transcript.entries()[first as usize].message.role == Role::User {
        return Ok(());
    }
    Err(breach(Rule::Roles, format!("the request would start with message {first}, which is an assistant's")))
}

fn replacement(edit: &Edit) -> Option<&Replaced> {
    match edit {
        Edit::Replace { result, .. } => result.as_ref(),
        Edit::Remove { .. } => None,
    }
}

fn breach(rule: Rule, what: impl Into<String>) -> Breach {
    Breach { rule, what: what.into() }
}
