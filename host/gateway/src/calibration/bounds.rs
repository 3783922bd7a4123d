//! What a refusal or an answer of a certain size shows about a model's window.
//!
//! No list of error texts is complete, but sizes are reliable. For each provider and model this keeps
//!
//! - the smallest request that was *refused* as too large, and the largest smaller one that was answered. The limit of
//!   every later request is between the two: halfway while they are far apart, so that each refusal halves the
//!   uncertainty, and equal to the answered one once they are close. A refusal with provider's numbers that are
//!   believed only limits requests to less than itself: the rest is arithmetic.
//! - the window that a refusal has *named*, in the provider's tokens. It is not believed if a larger prompt was
//!   answered within the last day, or if the refusal is about a quota.
//! - the largest request that was *answered* today, and the day before. A size that is not seen again is forgotten
//!   after one to two days.
//!
//! A message from which nothing can be removed is limited only by the smallest refused size: no message is known not to
//! fit halfway below it.
//!
//! Sizes are of whole requests, with system prompt and tools, in the host's own estimate. The provider's count would
//! carry over better between conversations of different scripts. But a refusal without numbers has no count, and a
//! predicted count changes with every sample of the calibration; the same request would then be sent a second time
//! because it looks smaller. The estimate of a request never changes. Where it is too cautious for another
//! conversation, it expires.
//!
//! A bound holds for an hour. Then one request at a time may exceed it, by half of it: an answer removes the bound, a
//! refusal doubles the time it holds, up to a week. Nothing here reads a clock.

use serde::{Deserialize, Serialize};

use crate::ids::SessionId;

/// How long a bound holds at first.
pub const FIRST_HOLD_MS: i64 = 60 * 60 * 1_000;

/// The longest time that a bound holds, however often it was confirmed.
pub const LONGEST_HOLD_MS: i64 = 7 * 24 * FIRST_HOLD_MS;

/// After this many doublings, the time exceeds the maximum.
const MOST_DOUBLINGS: u32 = 8;

/// Answers are remembered by the day.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// No call takes longer: a conversation that may exceed a bound has done so by then, or is gone.
const TRIAL_MS: i64 = 15 * 60 * 1_000;

/// Refused and answered sizes are close if they differ by at most this fraction of the refused one.
const CLOSE: u64 = 16;

/// What is known of the sizes that a model accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    pub refused: Option<Refused>,
    pub named: Option<Named>,
    pub answered: Option<Answered>,
    /// The same for the day before.
    pub answered_before: Option<Answered>,
    /// The conversation that may exceed an expired bound, and since when.
    trial: Option<(SessionId, i64)>,
}

/// The smallest request that was refused as too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The host's estimate of it.
    pub size: u64,
    /// The largest answered request below it; 0 if there was none.
    pub fits: u64,
    pub source: Source,
    pub hold: Hold,
}

/// A window that a refusal has named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// In the provider's tokens.
    pub tokens: u64,
    pub hold: Hold,
}

/// The largest request answered within a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The host's largest estimate.
    pub size: u64,
    /// The provider's largest count, not necessarily of the same request; the estimate if the provider's count is
    /// implausible.
    pub tokens: u64,
    /// When that day began.
    pub since_ms: i64,
    /// When an answer last reached the largest size, or a size that had been refused.
    pub at_ms: i64,
}

impl Answered {
    /// Merges two records: the larger values of the same day, or the record of the later day.
    fn larger(one: Option<Answered>, other: Option<Answered>) -> Option<Answered> {
        let (Some(one), Some(other)) = (one, other) else { return one.or(other) };
        if (one.since_ms - other.since_ms).abs() >= DAY_MS {
            return Some(if one.since_ms > other.since_ms { one } else { other });
        }
        // The time is about the size: a small answer on one host does not make the large one of another more recent.
        let (size, at_ms) = (one.size, one.at_ms).max((other.size, other.at_ms));
        let tokens = one.tokens.max(other.tokens);
        Some(Answered { size, tokens, since_ms: one.since_ms.min(other.since_ms), at_ms })
    }

    /// Returns whether it shows that requests of a refused size fit by now: one as large was answered since.
    fn refutes(&self, refused: &Refused) -> bool {
        self.size >= refused.size && self.at_ms >= refused.hold.learnt_ms
    }

    /// Returns whether it shows that a named window is too small: a larger prompt was answered since, or so shortly
    /// before that the window would not have been believed.
    fn refutes_window(&self, named: &Named) -> bool {
        let before_ms = named.hold.learnt_ms.saturating_sub(self.since_ms);
        self.tokens > named.tokens && before_ms < 2 * DAY_MS
    }
}

/// How long a bound holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    pub learnt_ms: i64,
    pub until_ms: i64,
    /// How often a request above the bound was refused.
    pub times: u32,
}

impl Hold {
    /// Returns a hold that begins now, for the first time.
    pub(super) fn new(now_ms: i64) -> Hold {
        Hold { learnt_ms: now_ms, until_ms: now_ms.saturating_add(FIRST_HOLD_MS), times: 1 }
    }

    /// Returns whether a larger request may be tried. A hold whose end is further ahead than twice its duration also
    /// counts as over: the clock was set back since it was learnt. (Up to twice is allowed for differences between the
    /// hosts' clocks.)
    pub fn is_over(&self, now_ms: i64) -> bool {
        let left = self.until_ms.saturating_sub(now_ms);
        left <= 0 || left > 2 * self.time_ms()
    }

    /// Returns how long it holds after its last refusal.
    fn time_ms(&self) -> i64 {
        (FIRST_HOLD_MS << self.times.saturating_sub(1).min(MOST_DOUBLINGS)).min(LONGEST_HOLD_MS)
    }

    /// Returns which of two records of the same bound is the newer one.
    fn newer(self, other: Hold) -> Hold {
        if (other.times, other.until_ms) > (self.times, self.until_ms) { other } else { self }
    }

    /// Notes that a request above the bound was refused, too. That counts only if the bound was over: many
    /// requests may have been in progress when it was learnt.
    pub(super) fn confirm(&mut self, now_ms: i64) {
        if self.is_over(now_ms) {
            self.times = self.times.saturating_add(1);
            self.until_ms = now_ms.saturating_add(self.time_ms());
        }
    }
}

/// How the smallest refused size is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A refusal named a window that is believed.
    Named,
    /// A refusal said that the prompt was too long.
    Refused,
    /// A refusal was unexplained, and a smaller request was answered.
    Unexplained,
    /// An answer was empty, and a smaller request got text.
    Empty,
    /// Several turns of a [conversation](super::Sizes) failed without an explanation, and a smaller request was
    /// answered.
    Failing,
}

impl Source {
    const ALL: [Source; 5] = [Source::Named, Source::Refused, Source::Unexplained, Source::Empty, Source::Failing];

    /// Returns the name used in the store, in the ledger and by `audit`.
    pub const fn name(self) -> &'static str {
        match self {
            Source::Named => "named",
            Source::Refused => "refused",
            Source::Unexplained => "unexplained",
            Source::Empty => "empty",
            Source::Failing => "failing",
        }
    }

    /// Returns the source with that name.
    pub fn of_name(name: &str) -> Option<Source> {
        Source::ALL.into_iter().find(|source| source.name() == name)
    }
}

impl Refused {
    /// Returns the largest request that is sent while this holds. Always less than what was
    /// refused.
    pub fn most(&self) -> u64 {
        let gap = self.size.saturating_sub(self.fits);
        match self.source {
            Source::Named => self.size.saturating_sub(1),
            _ if gap <= self.size / CLOSE => self.fits,
            _ => self.fits + gap / 2,
        }
    }

    /// Merges it with what another host knows: of the same bound what both do, or else the bound that was learnt later.
    fn and(self, other: Refused) -> Refused {
        if (self.size, self.hold.learnt_ms) == (other.size, other.hold.learnt_ms) {
            return Refused { fits: self.fits.max(other.fits), hold: self.hold.newer(other.hold), ..self };
        }
        if other.hold.learnt_ms > self.hold.learnt_ms { other } else { self }
    }
}

impl Named {
    /// Merges it with what another host knows, as for a refused size.
    fn and(self, other: Named) -> Named {
        if (self.tokens, self.hold.learnt_ms) == (other.tokens, other.hold.learnt_ms) {
            return Named { hold: self.hold.newer(other.hold), ..self };
        }
        if other.hold.learnt_ms > self.hold.learnt_ms { other } else { self }
    }
}

/// Returns the size to try once a bound has expired.
const fn beyond(bound: u64) -> u64 {
    bound.saturating_add(bound / 2)
}

impl Bounds {
    /// Merges these with what is stored; a conversation that may exceed them here still may.
    pub(super) fn with_stored(&self, stored: &Bounds) -> Bounds {
        Bounds { trial: self.trial, ..self.and_stored(stored) }
    }

    /// Merges these with what another host has stored meanwhile: the later of each kind, without those that an answer
    /// refutes.
    pub(crate) fn and_stored(&self, stored: &Bounds) -> Bounds {
        let days = || self.both_days().chain(stored.both_days());
        let refused = [self.refused, stored.refused].into_iter().flatten();
        let named = [self.named, stored.named].into_iter().flatten();
        Bounds {
            refused: refused.filter(|of| !days().any(|day| day.refutes(of))).reduce(Refused::and),
            named: named.filter(|of| !days().any(|day| day.refutes_window(of))).reduce(Named::and),
            answered: Answered::larger(self.answered, stored.answered),
            answered_before: Answered::larger(self.answered_before, stored.answered_before),
            trial: None,
        }
    }

    /// Returns the largest request that may be sent now, if anything is known.
    pub fn most(&self, session: SessionId, now_ms: i64) -> Option<u64> {
        let refused = self.refused?;
        let tries = refused.hold.is_over(now_ms) && self.is_tried_by(session, now_ms);
        Some(if tries { beyond(refused.size) } else { refused.most() })
    }

    /// Returns the largest request that may be sent now if nothing can be removed from it: anything below what
    /// was refused.
    pub fn most_alone(&self, session: SessionId, now_ms: i64) -> Option<u64> {
        let below_refused = self.refused?.size.saturating_sub(1);
        self.most(session, now_ms).map(|most| most.max(below_refused))
    }

    /// Returns the window in the provider's tokens.
    pub fn window(&self, configured: u64, session: SessionId, now_ms: i64) -> u64 {
        let Some(Named { tokens, hold }) = self.named else { return configured };
        let tries = hold.is_over(now_ms) && self.is_tried_by(session, now_ms);
        configured.min(if tries { beyond(tokens) } else { tokens })
    }

    /// Requests permission to exceed an expired bound. One conversation has it at a time, until its request is
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

    pub(super) fn end_trial(&mut self, session: SessionId) {
        self.trial = self.trial.filter(|&(by, _)| by != session);
    }

    /// Notes that a request of this size was answered with text; `tokens` is the provider's count, if
    /// plausible.
    pub fn answered(&mut self, session: SessionId, size: u64, tokens: Option<u64>, now_ms: i64) {
        self.end_trial(session);
        let tokens = tokens.unwrap_or(size);
        // What was answered fits, whatever a refusal has said.
        let refused = self.refused;
        self.named = self.named.filter(|named| tokens <= named.tokens);
        self.refused = refused.filter(|refused| size < refused.size);
        self.remember(size, tokens, refused != self.refused, now_ms);
        if let Some(refused) = &mut self.refused {
            refused.fits = refused.fits.max(size);
        }
    }

    /// Remembers an answer. One of a refused size counts as the latest of its day, even below the largest: otherwise other
    /// hosts would know the bound as before. A smaller one does not, however many tokens the provider counts for it.
    fn remember(&mut self, size: u64, tokens: u64, refutes: bool, now_ms: i64) {
        let today = self.answered.filter(|known| !has_passed(DAY_MS, known.since_ms, now_ms));
        if today.is_none() {
            self.answered_before = self.answered.filter(|known| is_fresh(known, now_ms));
        }
        let known = today.unwrap_or(Answered { size, tokens, since_ms: now_ms, at_ms: now_ms });
        let is_latest = refutes || size >= known.size;
        self.answered = Some(Answered {
            size: known.size.max(size),
            tokens: known.tokens.max(tokens),
            at_ms: if is_latest { now_ms } else { known.at_ms },
            ..known
        });
    }

    fn both_days(&self) -> impl Iterator<Item = Answered> {
        [self.answered, self.answered_before].into_iter().flatten()
    }

    fn largest_answered(&self) -> u64 {
        self.both_days().map(|known| known.size).max().unwrap_or(0)
    }

    /// Notes that a request of this size was refused as too large. Returns whether the window that it
    /// names is believed.
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

    /// Returns whether a window of this size is believed.
    pub(super) fn believes(&self, tokens: u64, now_ms: i64) -> bool {
        let is_refuted = |known: Answered| known.tokens > tokens && is_fresh(&known, now_ms);
        tokens > 0 && !self.both_days().any(is_refuted)
    }

    fn name(&mut self, tokens: u64, now_ms: i64) -> bool {
        if !self.believes(tokens, now_ms) {
            return false;
        }
        match &mut self.named {
            Some(known) if known.tokens <= tokens => known.hold.confirm(now_ms),
            known => *known = Some(Named { tokens, hold: Hold::new(now_ms) }),
        }
        true
    }

    /// Returns whether a request that got no answer, for an unknown reason, may have been too large. If it is much
    /// smaller than requests that were answered, the reason was something else. Empty answers are common, so one is
    /// considered only if the prompt was nearly as large as the largest answered one; refusals are rare, and since
    /// estimates are inexact, a wider range is considered. A refusal that contradicts what was answered counts once
    /// something smaller was answered since.
    pub fn may_be_too_large(&self, size: u64, source: Source) -> bool {
        let fits = self.refused.map(|refused| refused.fits).filter(|&fits| fits > 0);
        let fits = fits.unwrap_or_else(|| self.largest_answered());
        let (part, of) = if source == Source::Empty { (9, 10) } else { (1, 4) };
        size.saturating_mul(of) >= fits.saturating_mul(part)
    }
}

/// Returns whether any answer of that day may be less than a day old.
fn is_fresh(answered: &Answered, now_ms: i64) -> bool {
    !has_passed(2 * DAY_MS, answered.since_ms, now_ms)
}

/// Returns whether this much time has passed. A clock set back by more than that counts, too; otherwise a time in the
/// future would hold until the clock has caught up.
pub(crate) fn has_passed(time_ms: i64, since_ms: i64, now_ms: i64) -> bool {
    now_ms.saturating_sub(since_ms).saturating_abs() >= time_ms
}

#[cfg(test)]
mod tests;
