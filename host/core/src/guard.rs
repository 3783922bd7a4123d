//! The guard: what is true of every request, whatever a policy says.
//!
//! A plan is judged as a whole. The guard corrects text alone (rule 6); any other breach refuses the
//! plan and the next layer decides.

use std::fmt;

use thiserror::Error;

use crate::{
    marker::Marker,
    message::{Message, Role},
    plan::{Edit, MarkerAfter, Plan, Replaced, marker_after, marker_tokens},
    transcript::Transcript,
};

/// The nine rules, by the numbers the documentation uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// 1: tool pairs stay together; messages go only as whole turns.
    Pairs,
    /// 2: the new message is never touched.
    NewMessage,
    /// 3: the seed pair stays.
    Seed,
    /// 4: the request starts with a user message.
    Roles,
    /// 5: no plan makes the request larger; on recovery it must shrink by a tenth.
    Growth,
    /// 6: at most one marker, with the cumulative number of turns.
    Marker,
    /// 7: text is cut at grapheme boundaries.
    Graphemes,
    /// 8: a policy that fails or answers nonsense is passed over.
    Sane,
    /// 9: nothing over the hard limit is sent.
    HardLimit,
}

impl Rule {
    /// The rule's number.
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "guard rule {}", self.number())
    }
}

/// Why a plan is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{rule}: {what}")]
pub struct Breach {
    pub rule: Rule,
    pub what: String,
}

/// What the guard said of a policy's plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Accepted,
    /// Carried out with corrected text.
    Corrected(Vec<Rule>),
    Rejected(Breach),
}

impl Verdict {
    /// `accepted`, `corrected` or `rejected`.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Accepted => "accepted",
            Verdict::Corrected(_) => "corrected",
            Verdict::Rejected(_) => "rejected",
        }
    }

    /// The numbers of the rules it rests on.
    pub fn rules(&self) -> Vec<u8> {
        match self {
            Verdict::Accepted => vec![],
            Verdict::Corrected(rules) => rules.iter().map(|rule| rule.number()).collect(),
            Verdict::Rejected(breach) => vec![breach.rule.number()],
        }
    }
}

/// What a plan is held against.
#[derive(Clone, Copy, Debug)]
pub struct Guard {
    /// The hard limit in tokens.
    pub limit: u64,
    /// Whether the operator allows the seed pair to go.
    pub seed_may_go: bool,
    /// Whether the request must shrink by at least a tenth, as on recovery.
    pub must_shrink: bool,
}

/// A plan carried out: what the request consists of.
#[derive(Clone, Debug)]
pub struct Applied {
    /// Indexes that stay, ascending.
    pub kept: Vec<u32>,
    /// Indexes that go, ascending.
    pub removed: Vec<u32>,
    /// Kept messages that stand reduced, ascending.
    pub replaced: Vec<Replaced>,
    /// A marker written by this plan, and the index it stands before.
    pub marker: Option<(Marker, u32)>,
    /// Turns dropped by this plan.
    pub turns_dropped: u32,
    /// Turns dropped since the conversation began.
    pub turns_dropped_total: u32,
    /// What doing nothing would have cost.
    pub tokens_before: u64,
    /// What the request costs.
    pub tokens_after: u64,
    /// Rules whose text the guard corrected.
    pub corrected: Vec<Rule>,
}

impl Applied {
    /// Whether the request differs from doing nothing.
    pub fn changes_anything(&self) -> bool {
        !self.removed.is_empty() || !self.replaced.is_empty() || self.marker.is_some()
    }

    /// The messages of the request, in order.
    pub fn messages(&self, transcript: &Transcript) -> Vec<Message> {
        let mut out = Vec::with_capacity(self.kept.len() + 1);
        let mut replaced = self.replaced.iter().peekable();
        let mut marker = self.marker.as_ref();
        for &index in &self.kept {
            if let Some((written, _)) = marker.take_if(|(_, before)| *before <= index) {
                out.push(written.message());
            }
            match replaced.next_if(|replaced| replaced.index == index) {
                Some(replaced) => out.push((*replaced.message).clone()),
                None => out.push((*transcript.entries()[index as usize].message).clone()),
            }
        }
        if let Some((written, _)) = marker {
            out.push(written.message());
        }
        out
    }

    /// The verdict on a plan that was carried out.
    pub fn verdict(&self) -> Verdict {
        if self.corrected.is_empty() { Verdict::Accepted } else { Verdict::Corrected(self.corrected.clone()) }
    }
}

/// What happens to one message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stays,
    Goes,
    Replaced,
}

impl Guard {
    /// Judges a plan and, if it breaks no rule, carries it out.
    ///
    /// # Errors
    /// The first rule it breaks.
    pub fn apply(&self, transcript: &Transcript, plan: &Plan) -> Result<Applied, Breach> {
        let fates = self.fates(transcript, plan)?;
        self.check_whole_turns(transcript, &fates)?;
        let applied = carry_out(transcript, plan, &fates);
        self.check_roles(transcript, &applied)?;
        self.check_size(&applied)?;
        Ok(applied)
    }

    /// Rules 2, 3 and 8: what every message comes to, if the edits make sense at all.
    fn fates(&self, transcript: &Transcript, plan: &Plan) -> Result<Vec<Fate>, Breach> {
        if plan.is_overfull() {
            return Err(breach(Rule::Sane, "more edits than twice the messages"));
        }
        let len = transcript.len();
        let new_message = transcript.new_message();
        let mut fates = vec![Fate::Stays; len];
        for edit in plan.edits() {
            let (start, end, fate) = match *edit {
                Edit::Remove { start, end } => (start, end, Fate::Goes),
                Edit::Replace { index, .. } => (index, index.saturating_add(1), Fate::Replaced),
            };
            let (from, to) = (start as usize, end as usize);
            if from >= to || to > len {
                return Err(breach(Rule::Sane, format!("an edit of {start}..{end} in a history of {len} messages")));
            }
            if new_message.is_some_and(|new| from <= new && new < to) {
                return Err(breach(Rule::NewMessage, format!("an edit of {start}..{end} touches the new message")));
            }
            if fate == Fate::Goes && from < transcript.seed_end() && !self.seed_may_go {
                return Err(breach(Rule::Seed, format!("removing {start}..{end} takes the seed pair")));
            }
            for slot in &mut fates[from..to] {
                if *slot != Fate::Stays {
                    return Err(breach(Rule::Sane, format!("two edits overlap in {start}..{end}")));
                }
                *slot = fate;
            }
        }
        // A marker stays or is rewritten by the host, whatever the plan says of it.
        for &at in transcript.markers() {
            fates[at] = Fate::Stays;
        }
        Ok(fates)
    }

    /// Rule 1: messages go as whole turns, or as whole tool groups of a turn that is too large alone.
    fn check_whole_turns(&self, transcript: &Transcript, fates: &[Fate]) -> Result<(), Breach> {
        let seed_end = transcript.seed_end();
        let seed = &fates[..seed_end];
        if seed.contains(&Fate::Goes) && seed.iter().any(|&fate| fate != Fate::Goes) {
            return Err(breach(Rule::Seed, "half of the seed pair would stay"));
        }
        let always_kept =
            transcript.tokens_in(0, seed_end) + transcript.tokens_in(transcript.current(), transcript.len());
        for (start, end) in segments(transcript) {
            let mut going = (start..end).filter(|&at| fates[at] == Fate::Goes).peekable();
            if going.peek().is_none() {
                continue;
            }
            let is_current = start >= transcript.current();
            if !is_current && (start..end).filter(|&at| !transcript.is_marker(at)).all(|at| fates[at] == Fate::Goes) {
                continue;
            }
            let alone = if is_current { 0 } else { transcript.tokens_in(start, end) };
            if always_kept + alone <= self.limit {
                return Err(breach(Rule::Pairs, format!("part of the turn {start}..{end} would go")));
            }
            check_whole_groups(transcript, fates, going)?;
        }
        Ok(())
    }

    /// Rule 4.
    fn check_roles(&self, transcript: &Transcript, applied: &Applied) -> Result<(), Breach> {
        let first_kept = applied.kept.first();
        let marker_first =
            applied.marker.as_ref().is_some_and(|(_, before)| first_kept.is_none_or(|first| before <= first));
        match first_kept {
            Some(&first) if !marker_first && transcript.entries()[first as usize].message.role != Role::User => {
                Err(breach(Rule::Roles, format!("the request would start with message {first}, an assistant's")))
            }
            _ => Ok(()),
        }
    }

    /// Rules 5 and 9.
    fn check_size(&self, applied: &Applied) -> Result<(), Breach> {
        let Applied { tokens_before: before, tokens_after: after, .. } = *applied;
        if after > before {
            return Err(breach(Rule::Growth, format!("{after} tokens where doing nothing costs {before}")));
        }
        if self.must_shrink && after.saturating_mul(10) > before.saturating_mul(9) {
            return Err(breach(Rule::Growth, format!("{after} tokens is not a tenth less than {before}")));
        }
        if after > self.limit {
            return Err(breach(Rule::HardLimit, format!("{after} tokens exceed the hard limit of {}", self.limit)));
        }
        Ok(())
    }
}

/// Carries out what the floor decided: no size is refused here, and where the request would grow,
/// nothing is done.
pub(crate) fn apply_floor(transcript: &Transcript, plan: &Plan) -> Applied {
    let lenient = Guard { limit: 0, seed_may_go: true, must_shrink: false };
    let judged = lenient.fates(transcript, plan).and_then(|fates| {
        lenient.check_whole_turns(transcript, &fates)?;
        Ok(carry_out(transcript, plan, &fates))
    });
    match judged {
        Ok(applied) if applied.tokens_after <= applied.tokens_before => applied,
        _ => carry_out(transcript, &Plan::new(), &vec![Fate::Stays; transcript.len()]),
    }
}

fn breach(rule: Rule, what: impl Into<String>) -> Breach {
    Breach { rule, what: what.into() }
}

/// What lies between legal cuts: the part between seed and first turn, each turn, the current turn.
fn segments(transcript: &Transcript) -> impl Iterator<Item = (usize, usize)> + '_ {
    let current = transcript.current();
    let starts = std::iter::once(transcript.seed_end())
        .chain(transcript.structure().cuts.iter().map(|&at| at as usize))
        .filter(move |&at| at < current)
        .chain([current]);
    let ends = transcript
        .structure()
        .cuts
        .iter()
        .map(|&at| at as usize)
        .filter(move |&at| at < current)
        .chain([current, transcript.len()]);
    // A seed that is cut off from its acknowledgement by nothing leaves an empty first segment.
    starts.zip(ends).filter(|(start, end)| start < end)
}

fn check_whole_groups(
    transcript: &Transcript,
    fates: &[Fate],
    going: impl Iterator<Item = usize>,
) -> Result<(), Breach> {
    let groups = &transcript.structure().groups;
    for at in going {
        let group = groups[at];
        let members = || groups.iter().enumerate().skip(group as usize).filter(|(_, other)| **other == group);
        if members().nth(1).is_none() {
            return Err(breach(Rule::Pairs, format!("message {at} is part of a turn and of no tool pair")));
        }
        if members().any(|(member, _)| fates[member] != Fate::Goes) {
            return Err(breach(Rule::Pairs, format!("message {at} would go without the rest of its tool pair")));
        }
    }
    Ok(())
}

/// Builds the request that the fates leave.
fn carry_out(transcript: &Transcript, plan: &Plan, fates: &[Fate]) -> Applied {
    let goes = |at: usize| fates[at] == Fate::Goes;
    let turns_dropped = transcript.structure().turn_starts.iter().filter(|&&at| goes(at as usize)).count() as u32;
    let marker = match marker_after(transcript, turns_dropped, plan.marker()) {
        MarkerAfter::AsItIs => None,
        MarkerAfter::Written(marker) => Some(marker),
    };
    let rewritten = marker.is_some();
    let (removed, kept): (Vec<u32>, Vec<u32>) = (0..transcript.len() as u32)
        .partition(|&at| goes(at as usize) || (rewritten && transcript.is_marker(at as usize)));
    let mut replaced: Vec<Replaced> = plan
        .edits()
        .iter()
        .filter_map(|edit| match edit {
            Edit::Replace { result: Some(replaced), .. } => Some(replaced.clone()),
            _ => None,
        })
        .filter(|replaced| fates[replaced.index as usize] == Fate::Replaced)
        .collect();
    replaced.sort_unstable_by_key(|replaced| replaced.index);
    let corrected = match plan.marker() {
        Some(words) if rewritten && !Marker::with_template(0, words).1 => vec![Rule::Marker],
        _ => vec![],
    };
    let saved: u64 =
        replaced.iter().map(|replaced| u64::from(transcript.tokens()[replaced.index as usize] - replaced.tokens)).sum();
    let gone: u64 = (0..fates.len()).filter(|&at| goes(at)).map(|at| u64::from(transcript.tokens()[at])).sum();
    let old_markers = if rewritten { marker_tokens(transcript) } else { 0 };
    let new_marker = marker.as_ref().map_or(0, |marker| u64::from(marker.tokens()));
    let before =
        kept.iter().copied().find(|&at| at as usize >= transcript.seed_end()).unwrap_or(transcript.len() as u32);
    Applied {
        kept,
        removed,
        replaced,
        turns_dropped,
        turns_dropped_total: transcript.dropped_turns().saturating_add(turns_dropped),
        tokens_before: transcript.total_tokens(),
        tokens_after: transcript.total_tokens() - gone - saved - old_markers + new_marker,
        marker: marker.map(|marker| (marker, before)),
        corrected,
    }
}
