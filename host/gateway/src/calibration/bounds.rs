//! What a refusal or an answer of a certain size teaches of a model's window.
//!
//! No list of error texts is complete; sizes do not lie. For each provider and model this keeps
//!
//! - the smallest request that was *refused* as too large, and the largest that was answered below it. The limit
//!   of every later request lies between the two: halfway while they are far apart, so that each refusal halves
//!   what is not known, and at the answered one once they are close. A refusal by the provider's own numbers, where
//!   they are believed, only keeps requests below itself: the rest is arithmetic.
//! - the window that a refusal has *named*, in the provider's tokens. One below a prompt that was answered within
//!   the last day is not believed; nor does a quota name a window.
//! - the largest request that was *answered* today, and the day before: what is not seen again is forgotten after a
//!   day at the earliest and two at the latest.
//!
//! A message of which nothing can be left out goes by the smallest refused size itself: that halfway to it does not
//! fit is known of nobody's.
//!
//! Sizes are of whole requests, with system prompt and tools, in the host's own estimate. The provider's count
//! would carry over better from one conversation to another of a different script; but a refusal without numbers
//! gives none, a predicted one drifts with every sample of the calibration, and then the same request is sent a
//! second time because it looks smaller. The estimate of a request is the same tomorrow. Where it is too careful
//! for another conversation, it expires.
//!
//! A bound holds for an hour. Then one request at a time may go above it, by half as much again: what is answered takes
//! the bound away, what is refused doubles the time it holds, up to a week. Nothing here reads a clock.

use serde::{Deserialize, Serialize};

use crate::ids::SessionId;

/// How long a bound holds at first.
pub const FIRST_HOLD_MS: i64 = 60 * 60 * 1_000;

/// How long one holds at most, however often it was confirmed.
pub const LONGEST_HOLD_MS: i64 = 7 * 24 * FIRST_HOLD_MS;

/// After so many doublings it is longer than that.
const MOST_DOUBLINGS: u32 = 8;

/// Answers are remembered by the day.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// No call takes longer: who tries more than a bound allows has done so by then, or is gone.
const TRIAL_MS: i64 = 15 * 60 * 1_000;

/// Refused and answered sizes are close when they differ by no more than this part of the refused one.
const CLOSE: u64 = 16;

/// What is known of the sizes that a model takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    pub refused: Option<Refused>,
    pub named: Option<Named>,
    pub answered: Option<Answered>,
    /// The same of the day before that.
    pub answered_before: Option<Answered>,
    /// Whose request may go above what has expired, and since when.
    trial: Option<(SessionId, i64)>,
}

/// The smallest request that was refused as too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The host's estimate of it.
    pub size: u64,
    /// The largest request below it that was answered; 0 where none was.
    pub fits: u64,
    pub source: Source,
    pub hold: Hold,
}

/// A window that a refusal has named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// The provider's tokens.
    pub tokens: u64,
    pub hold: Hold,
}

/// The largest that was answered within a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The largest estimate of the host.
    pub size: u64,
    /// The largest count of the provider, not necessarily of the same request; the estimate where it counts nothing
    /// that makes sense.
    pub tokens: u64,
    /// When that day began.
    pub since_ms: i64,
}

impl Answered {
    /// What both know of one day, or the later day.
    fn larger(one: Option<Answered>, other: Option<Answered>) -> Option<Answered> {
        let (Some(one), Some(other)) = (one, other) else { return one.or(other) };
        if (one.since_ms - other.since_ms).abs() >= DAY_MS {
            return Some(if one.since_ms > other.since_ms { one } else { other });
        }
        let (size, tokens) = (one.size.max(other.size), one.tokens.max(other.tokens));
        Some(Answered { size, tokens, since_ms: one.since_ms.min(other.since_ms) })
    }
}

/// How long a bound holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    pub learnt_ms: i64,
    pub until_ms: i64,
    /// How often a request above it was refused.
    pub times: u32,
}

impl Hold {
    /// From now on, for the first time.
    pub(super) fn new(now_ms: i64) -> Hold {
        Hold { learnt_ms: now_ms, until_ms: now_ms.saturating_add(FIRST_HOLD_MS), times: 1 }
    }

    /// Whether a larger request may be tried. It never holds for longer than for so long and as long again, which is left to clocks
    /// that differ: it was learnt before the clock went back.
    pub fn is_over(&self, now_ms: i64) -> bool {
        let left = self.until_ms.saturating_sub(now_ms);
        left <= 0 || left > 2 * self.time_ms()
    }

    /// For how long it holds from its last refusal on.
    fn time_ms(&self) -> i64 {
        (FIRST_HOLD_MS << self.times.saturating_sub(1).min(MOST_DOUBLINGS)).min(LONGEST_HOLD_MS)
    }

    /// A request above the bound was refused, too. That is news only once the bound was over: many requests
    /// may have been under way when it was learnt.
    pub(super) fn confirm(&mut self, now_ms: i64) {
        if self.is_over(now_ms) {
            self.times = self.times.saturating_add(1);
            self.until_ms = now_ms.saturating_add(self.time_ms());
        }
    }
}

/// Where the smallest refused size is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A refusal named a window that is believed.
    Named,
    /// A refusal said that the prompt was too long.
    Refused,
    /// A refusal that nothing explained, and a smaller request passed.
    Unexplained,
    /// An answer of nothing, and a smaller request got words.
    Empty,
    /// No answer and no word of why for some turns of a [conversation](super::Sizes), and a smaller request passed.
    Failing,
}

impl Source {
    const ALL: [Source; 5] = [Source::Named, Source::Refused, Source::Unexplained, Source::Empty, Source::Failing];

    /// The name in the store, in the ledger and in `audit`.
    pub const fn name(self) -> &'static str {
        match self {
            Source::Named => "named",
            Source::Refused => "refused",
            Source::Unexplained => "unexplained",
            Source::Empty => "empty",
            Source::Failing => "failing",
        }
    }

    /// The source of that name.
    pub fn of_name(name: &str) -> Option<Source> {
        Source::ALL.into_iter().find(|source| source.name() == name)
    }
}

impl Refused {
    /// The largest request that is sent while this holds. Always less than what was refused.
    pub fn most(&self) -> u64 {
        let gap = self.size.saturating_sub(self.fits);
        match self.source {
            Source::Named => self.size.saturating_sub(1),
            _ if gap <= self.size / CLOSE => self.fits,
            _ => self.fits + gap / 2,
        }
    }
}

/// So much more is tried once a bound is over.
const fn beyond(bound: u64) -> u64 {
    bound.saturating_add(bound / 2)
}

impl Bounds {
    /// These, learnt elsewhere; who tries more than they allow here still does.
    pub(super) fn with(&self, learnt: Bounds) -> Bounds {
        Bounds { trial: self.trial, ..learnt }
    }

    /// These and what another host has stored meanwhile: of each kind the later word, but what was answered since fits.
    pub(crate) fn and_stored(&self, stored: &Bounds) -> Bounds {
        let both = || self.both_days().chain(stored.both_days());
        let (size, tokens) = (both().map(|day| day.size).max(), both().map(|day| day.tokens).max());
        let refused = [self.refused, stored.refused].into_iter().flatten();
        let named = [self.named, stored.named].into_iter().flatten();
        Bounds {
            refused: refused.filter(|of| size.is_none_or(|size| size < of.size)).max_by_key(|of| of.hold.learnt_ms),
            named: named
                .filter(|of| tokens.is_none_or(|tokens| tokens <= of.tokens))
                .max_by_key(|of| of.hold.learnt_ms),
            answered: Answered::larger(self.answered, stored.answered),
            answered_before: Answered::larger(self.answered_before, stored.answered_before),
            trial: None,
        }
    }

    /// The largest request that may be sent now, where anything is known.
    pub fn most(&self, session: SessionId, now_ms: i64) -> Option<u64> {
        let refused = self.refused?;
        let tries = refused.hold.is_over(now_ms) && self.is_tried_by(session, now_ms);
        Some(if tries { beyond(refused.size) } else { refused.most() })
    }

    /// The largest request that may be sent now where nothing of it can be left out: all below what was refused.
    pub fn most_alone(&self, session: SessionId, now_ms: i64) -> Option<u64> {
        let below_refused = self.refused?.size.saturating_sub(1);
        self.most(session, now_ms).map(|most| most.max(below_refused))
    }

    /// The window in the provider's tokens.
    pub fn window(&self, configured: u64, session: SessionId, now_ms: i64) -> u64 {
        let Some(Named { tokens, hold }) = self.named else { return configured };
        let tries = hold.is_over(now_ms) && self.is_tried_by(session, now_ms);
        configured.min(if tries { beyond(tokens) } else { tokens })
    }

    /// Asks for the right to go above what has expired. One conversation has it at a time, until its request is
    /// answered or refused.
    pub fn may_try_more(&mut self, session: SessionId, now_ms: i64) -> bool {
        let holds = [self.refused.map(|refused| refused.hold), self.named.map(|named| named.hold)];
        let is_free = self.trial.is_none_or(|(by, since)| by == session || has_passed(TRIAL_MS, since, now_ms));
        let may = is_free && holds.into_iter().flatten().any(|hold| hold.is_over(now_ms));
        if may {
            self.trial = Some((session, now_ms));
        }
        may
    }

    fn is_tried_by(&self, session: SessionId, now_ms: i64) -> bool {
        self.trial.is_some_and(|(by, since)| by == session && !has_passed(TRIAL_MS, since, now_ms))
    }

    fn end_trial(&mut self, session: SessionId) {
        self.trial = self.trial.filter(|&(by, _)| by != session);
    }

    /// A request of this size was answered in words; `tokens` is the provider's count, where it makes sense.
    pub fn answered(&mut self, session: SessionId, size: u64, tokens: Option<u64>, now_ms: i64) {
        self.end_trial(session);
        let tokens = tokens.unwrap_or(size);
        self.remember(size, tokens, now_ms);
        // What was answered fits, whatever a refusal has said.
        self.named = self.named.filter(|named| tokens <= named.tokens);
        self.refused = self.refused.filter(|refused| size < refused.size);
        if let Some(refused) = &mut self.refused {
            refused.fits = refused.fits.max(size);
        }
    }

    fn remember(&mut self, size: u64, tokens: u64, now_ms: i64) {
        let today = self.answered.filter(|known| !has_passed(DAY_MS, known.since_ms, now_ms));
        if today.is_none() {
            self.answered_before = self.answered.filter(|known| is_fresh(known, now_ms));
        }
        let known = today.unwrap_or(Answered { size, tokens, since_ms: now_ms });
        self.answered = Some(Answered { size: known.size.max(size), tokens: known.tokens.max(tokens), ..known });
    }

    fn both_days(&self) -> impl Iterator<Item = Answered> {
        [self.answered, self.answered_before].into_iter().flatten()
    }

    fn largest_answered(&self) -> u64 {
        self.both_days().map(|known| known.size).max().unwrap_or(0)
    }

    /// A request of this size was refused as too large. Says whether the window that it names is believed.
    pub fn refused(&mut self, session: SessionId, size: u64, named: Option<u64>, source: Source, now_ms: i64) -> bool {
        self.end_trial(session);
        let believed = named.is_some_and(|tokens| self.name(tokens, now_ms));
        let source = if believed { Source::Named } else { source };
        let fits = self.refused.map_or_else(|| self.largest_answered(), |known| known.fits);
        match &mut self.refused {
            Some(known) if known.size <= size => known.hold.confirm(now_ms),
            known => {
                let fits = if fits < size { fits } else { 0 };
                *known = Some(Refused { size, fits, source, hold: Hold::new(now_ms) });
            }
        }
        believed
    }

    fn name(&mut self, tokens: u64, now_ms: i64) -> bool {
        let is_refuted = |known: Answered| known.tokens > tokens && is_fresh(&known, now_ms);
        if tokens == 0 || self.both_days().any(is_refuted) {
            return false;
        }
        match &mut self.named {
            Some(known) if known.tokens <= tokens => known.hold.confirm(now_ms),
            known => *known = Some(Named { tokens, hold: Hold::new(now_ms) }),
        }
        true
    }

    /// Whether a request that got no answer, and no reason that is known, may have been too large. Of one that is much
    /// smaller than what is answered it was something else: an answer of nothing is common enough to be taken for
    /// one unless the prompt is nearly as large as any that was answered; a refusal is not, and estimates are off.
    pub fn may_be_too_large(&self, size: u64, source: Source) -> bool {
        let fits = self.refused.map_or_else(|| self.largest_answered(), |refused| refused.fits);
        let (part, of) = if source == Source::Empty { (9, 10) } else { (1, 4) };
        size.saturating_mul(of) >= fits.saturating_mul(part)
    }
}

/// Whether something of that day may be less than a day old.
fn is_fresh(answered: &Answered, now_ms: i64) -> bool {
    !has_passed(2 * DAY_MS, answered.since_ms, now_ms)
}

/// Whether so much time has passed since then. Where the clock has gone back by more it has, too: what lies ahead would hold until
/// the clock is there again.
pub(super) fn has_passed(time_ms: i64, since_ms: i64, now_ms: i64) -> bool {
    now_ms.saturating_sub(since_ms).saturating_abs() >= time_ms
}

#[cfg(test)]
mod tests;
