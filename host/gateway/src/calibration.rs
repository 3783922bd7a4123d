//! Calibration: relates the host's token estimates to the provider's counts.
//!
//! The host estimates tokens by script class; a provider counts with its tokenizer, and adds what it sends itself
//! (specification 000 §cause-2). Both effects are measured. Every answer reports the size of its prompt, and a line
//! is fitted through estimates and counts, in which the newest samples weigh most. Its slope is the *factor*, its
//! intercept the *overhead*. Within one conversation, the last count is the anchor: only what came since is
//! estimated.
//!
//! Counts and settings of policies stay in the host's unit; only the hard limit is calibrated. What the sizes of
//! refused and answered requests show in addition is in [`bounds`].

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

pub mod bounds;
mod sizes;
mod token_budget;

use crate::ids::SessionId;
pub use bounds::{Bounds, Source};
pub use sizes::Sizes;
pub(crate) use token_budget::{LEAST_LIMIT, TokenBudget};

/// What is known of the model in use, shared by all that call it.
#[derive(Debug)]
pub struct Calibrator {
    /// The model's window, in its tokens.
    window: u64,
    known: Mutex<Calibration>,
}

impl Calibrator {
    /// Returns the calibrator of a model with this window.
    pub fn new(window: u64, known: Calibration) -> Calibrator {
        Calibrator { window, known: Mutex::new(known) }
    }

    /// Returns what is known now.
    pub(crate) fn known(&self) -> MutexGuard<'_, Calibration> {
        // Each of its methods leaves sums and anchors consistent.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how the window is divided for a conversation now, beside a preamble of this many
    /// tokens.
    pub(crate) fn token_budget(&self, session: SessionId, preamble_tokens: u64, now_ms: i64) -> TokenBudget {
        TokenBudget::calibrated(self.window, preamble_tokens, session, &self.known(), now_ms)
    }
}

/// The weight of a sample, relative to the next one.
const DECAY: f64 = 0.8;

/// A factor outside of these limits is an error of measurement.
const FACTORS: (f64, f64) = (0.4, 4.0);

/// Estimates must differ by at least this share for a slope to be derived from them.
const LEAST_SPREAD: f64 = 0.02;

/// The largest overhead that is believed, in the provider's tokens.
const MOST_OVERHEAD: u64 = 100_000;

/// How many times a count may be larger or smaller than what a well-known line predicts. Beyond that it counts once a
/// second one of the same conversation agrees with it, up to the same factor.
const ODD: f64 = 3.0;

/// The weight from which on a line is well known: that of three samples.
const WELL_KNOWN: f64 = 1.0 + DECAY + DECAY * DECAY;

/// The most conversations that have an anchor; one without an anchor uses the line.
const MAX_ANCHORS: usize = 4_096;

/// How long a conversation in which smaller requests did not help is not suspected again.
const IN_PEACE_MS: i64 = 60 * 60 * 1_000;

/// The line through estimates and counts of one model, as decaying sums.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fit {
    pub weight: f64,
    pub x: f64,
    pub y: f64,
    pub xx: f64,
    pub xy: f64,
}

impl Fit {
    /// Adds a sample: the host's estimate of a whole prompt, and the provider's count.
    pub fn add(&mut self, estimate: u64, counted: u64) {
        if estimate == 0 || counted == 0 {
            return;
        }
        let (x, y) = (estimate as f64, counted as f64);
        for (sum, sample) in
            [(&mut self.weight, 1.0), (&mut self.x, x), (&mut self.y, y), (&mut self.xx, x * x), (&mut self.xy, x * y)]
        {
            *sum = *sum * DECAY + sample;
        }
    }

    /// Returns the provider's tokens per estimated token, within 0.4 and 4.
    pub fn factor(&self) -> f64 {
        let (mean_x, mean_y) = self.means();
        if mean_x == 0.0 {
            return 1.0;
        }
        let variance = self.xx / self.weight - mean_x * mean_x;
        let slope = if variance.max(0.0).sqrt() > LEAST_SPREAD * mean_x {
            (self.xy / self.weight - mean_x * mean_y) / variance
        } else {
            1.0
        };
        // If the line's intercept would be negative, there is no overhead, and the factor explains
        // everything.
        let slope = if slope * mean_x > mean_y { mean_y / mean_x } else { slope };
        slope.clamp(FACTORS.0, FACTORS.1)
    }

    /// Returns what the provider counts in addition to what is sent, in its tokens.
    pub fn overhead(&self) -> f64 {
        let (mean_x, mean_y) = self.means();
        (mean_y - self.factor() * mean_x).max(0.0)
    }

    fn means(&self) -> (f64, f64) {
        if self.weight == 0.0 { (0.0, 0.0) } else { (self.x / self.weight, self.y / self.weight) }
    }
}

/// What a refusal says about the size of a request.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// The tokens that the provider has counted.
    pub observed: Option<u64>,
    /// The window that it names.
    pub window: Option<u64>,
    /// How it is known to be about the size, if it names no window that is believed.
    pub source: Source,
}

/// The calibration of the model in use.
#[derive(Clone, Debug, Default)]
pub struct Calibration {
    fit: Fit,
    /// How many samples were added to the line, and how many of them turns have stored.
    samples: u64,
    stored_samples: u64,
    bounds: Bounds,
    /// The last sample of each conversation.
    anchors: HashMap<SessionId, (u64, u64)>,
    /// Conversations whose last count was far from what was predicted, and how many times as large it was.
    odd: HashMap<SessionId, f64>,
    /// When smaller requests of a conversation were last tried without success.
    in_vain: HashMap<SessionId, i64>,
}

impl Calibration {
    /// Continues from what was learnt before.
    pub fn new(fit: Fit, bounds: Bounds) -> Self {
        Calibration { fit, bounds, ..Calibration::default() }
    }

    /// Adopts what is stored, also by other hosts. What is learnt in a turn is stored at its end, and known until then,
    /// too.
    pub fn adopt(&mut self, fit: Fit, bounds: &Bounds) {
        if self.stored_samples == self.samples {
            self.fit = fit;
        }
        self.bounds = self.bounds.with_stored(bounds);
    }

    /// Returns how many samples were added to the line.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Notes that a turn has stored the line as it was after this many samples.
    pub fn note_stored(&mut self, samples: u64) {
        self.stored_samples = self.stored_samples.max(samples);
    }

    /// Returns what was learnt of how the model counts.
    pub fn fit(&self) -> Fit {
        self.fit
    }

    /// Returns what was learnt of the sizes that the model accepts.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Notes an answer: the host's estimate of its whole prompt, and the provider's count. An
    /// implausible count (proxies leave out what was cached, or invent numbers) is not used as a
    /// sample, nor is a single one that contradicts all others: a wrong one would shorten the conversation for good.
    pub fn answered(&mut self, session: SessionId, estimate: u64, counted: u64, now_ms: i64) {
        if is_plausible(estimate, counted) && !self.is_odd(session, estimate, counted) {
            self.bounds.answered(session, estimate, Some(counted), now_ms);
            self.sample(session, estimate, counted);
            return;
        }
        self.bounds.answered(session, estimate, None, now_ms);
        if counted > 0 {
            tracing::warn!(estimate, counted, "ignoring an implausible token count of the provider");
        }
    }

    /// Returns whether this count is far from what is predicted and the one before it was not.
    fn is_odd(&mut self, session: SessionId, estimate: u64, counted: u64) -> bool {
        let agree = |ratio: f64| (ODD.recip()..=ODD).contains(&ratio);
        let ratio = counted as f64 / self.predict(session, estimate).max(1) as f64;
        let before = self.odd.remove(&session);
        // One too small costs nothing but a refusal, so that another conversation may agree with it.
        let is_of_all = || ratio < 1.0 && self.odd.values().any(|&other| agree(ratio / other));
        let is_second = before.is_some_and(|before| agree(ratio / before)) || is_of_all();
        if self.fit.weight < WELL_KNOWN || agree(ratio) || is_second {
            return false;
        }
        if self.odd.len() >= MAX_ANCHORS {
            self.odd.clear();
        }
        self.odd.insert(session, ratio);
        true
    }

    /// Notes the answer to a request outside of the conversation, such as one for a summary. It shows which size fits,
    /// but not what the conversation costs.
    pub fn took(&mut self, session: SessionId, estimate: u64, counted: u64, now_ms: i64) {
        let counted = is_plausible(estimate, counted).then_some(counted);
        self.bounds.answered(session, estimate, counted, now_ms);
    }

    fn sample(&mut self, session: SessionId, estimate: u64, counted: u64) {
        self.fit.add(estimate, counted);
        self.samples += 1;
        if self.anchors.len() >= MAX_ANCHORS && !self.anchors.contains_key(&session) {
            self.anchors.clear();
        }
        self.anchors.insert(session, (estimate, counted));
    }

    /// Notes that a prompt was refused as too long. The provider's count is a sample, too, if it is
    /// plausible. A count that includes the room for the answer errs on the safe side. What is only said of a small
    /// request limits nobody: believing it would keep every conversation below its size.
    pub fn refused(&mut self, session: SessionId, estimate: u64, refusal: Refusal, now_ms: i64) {
        let Refusal { observed, window, source } = refusal;
        if let Some(observed) = observed.filter(|&observed| is_plausible(estimate, observed)) {
            self.sample(session, estimate, observed);
        }
        let size = estimate.max(observed.unwrap_or(0));
        // A server whose window became smaller counts, and names both.
        let is_named = |window| self.bounds.believes(window, now_ms) || observed.is_some_and(|count| count > window);
        if source == Source::Refused
            && !window.is_some_and(is_named)
            && !self.may_be_too_large(size, Source::Unexplained)
        {
            tracing::warn!(size, "a refusal of a small prompt as too long limits nobody");
            self.bounds.end_trial(session);
            return;
        }
        let believed = self.bounds.refused(session, estimate, window, source, now_ms);
        if let (Some(window), false) = (window, believed) {
            tracing::warn!(window, "ignoring a refusal that names a window smaller than a prompt that was answered");
        }
    }

    /// Returns whether a request of this size that got no answer may exceed what the model accepts.
    pub fn may_be_too_large(&self, size: u64, source: Source) -> bool {
        size > LEAST_LIMIT && self.bounds.may_be_too_large(size, source)
    }

    /// Returns whether smaller requests of a conversation are worth trying although nobody has said that they are
    /// too large.
    pub fn may_suspect(&self, session: SessionId, now_ms: i64) -> bool {
        self.in_vain.get(&session).is_none_or(|&at| bounds::has_passed(IN_PEACE_MS, at, now_ms))
    }

    /// Notes that smaller requests did not help.
    pub fn suspected_in_vain(&mut self, session: SessionId, now_ms: i64) {
        if self.in_vain.len() >= MAX_ANCHORS {
            self.in_vain.clear();
        }
        self.in_vain.insert(session, now_ms);
    }

    /// Requests permission to exceed an expired bound.
    pub fn may_try_more(&mut self, session: SessionId, now_ms: i64) -> bool {
        self.bounds.may_try_more(session, now_ms)
    }

    /// Returns what the provider will count for a prompt of this estimate.
    pub fn predict(&self, session: SessionId, estimate: u64) -> u64 {
        let factor = self.fit.factor();
        let counted = match self.anchors.get(&session) {
            Some(&(x, y)) => y as f64 + factor * (estimate as f64 - x as f64),
            None => self.fit.overhead() + factor * estimate as f64,
        };
        counted.max(0.0).round() as u64
    }

    /// Returns the largest estimate of a whole prompt for which the provider will count at most
    /// `tokens`.
    pub fn estimate_for(&self, session: SessionId, tokens: u64) -> u64 {
        let factor = self.fit.factor();
        let estimate = match self.anchors.get(&session) {
            Some(&(x, y)) => x as f64 + (tokens as f64 - y as f64) / factor,
            None => (tokens as f64 - self.fit.overhead()) / factor,
        };
        estimate.max(0.0).floor() as u64
    }
}

/// Returns whether a provider may count this many tokens for a prompt of this estimate.
fn is_plausible(estimate: u64, counted: u64) -> bool {
    let (least, most) = (estimate as f64 * FACTORS.0 / 2.0, estimate as f64 * FACTORS.1 + MOST_OVERHEAD as f64);
    counted > 0 && (least..=most).contains(&(counted as f64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::SessionId;

    fn said(observed: Option<u64>, window: Option<u64>) -> Refusal {
        Refusal { observed, window, source: Source::Refused }
    }

    fn within(estimate: u64, truth: u64, share: f64) -> bool {
        (estimate as f64 - truth as f64).abs() <= truth as f64 * share
    }

    /// Regression: a conversation in which smaller requests had not helped was not suspected again until the clock had
    /// caught up.
    #[test]
    fn a_clock_that_goes_back_makes_nothing_hold_for_longer() {
        const BACK: i64 = 40 * 24 * IN_PEACE_MS;
        let (session, other, now) = (SessionId::of(1), SessionId::of(2), 2 * BACK);
        let mut calibration = Calibration::default();
        calibration.suspected_in_vain(session, now);
        assert!(!calibration.may_suspect(session, now + 1) && !calibration.may_suspect(session, now - 1));
        assert!(calibration.may_suspect(session, now - BACK));
        calibration.refused(session, 5_000, said(None, None), now);
        assert!(!calibration.may_try_more(other, now + 1) && !calibration.may_try_more(other, now - 1));
        assert!(calibration.may_try_more(other, now - BACK), "a bound is over");
        assert!(calibration.may_try_more(session, now - 2 * BACK), "and so is the time in which another tries more");
    }

    #[test]
    fn nothing_known_is_taken_at_its_word() {
        let calibration = Calibration::default();
        assert_eq!(calibration.predict(SessionId::of(1), 1_000), 1_000);
        assert_eq!(calibration.estimate_for(SessionId::of(1), 1_000), 1_000);
    }

    #[test]
    fn the_first_count_is_overhead_or_factor() {
        let mut more = Fit::default();
        more.add(1_000, 9_000);
        assert_eq!((more.factor(), more.overhead()), (1.0, 8_000.0));
        let mut less = Fit::default();
        less.add(1_000, 500);
        assert_eq!((less.factor(), less.overhead()), (0.5, 0.0));
    }

    #[test]
    fn counts_that_make_no_sense_are_left_aside() {
        let mut calibration = Calibration::default();
        for counted in [1, 1_000_000_000_000] {
            calibration.answered(SessionId::of(1), 5_000, counted, 0);
        }
        calibration.refused(SessionId::of(1), 5_000, said(Some(10_000_000), None), 0);
        assert_eq!(calibration.fit(), Fit::default());
    }

    /// Once, only the first refusal of a turn's answer was compared with what the model had answered.
    #[test]
    fn one_odd_refusal_of_a_small_prompt_limited_everybody() {
        let (session, now) = (SessionId::of(1), 0);
        let mut calibration = Calibration::default();
        calibration.answered(session, 60_000, 60_000, now);
        let answered = *calibration.bounds();
        // A summary, as too long for a window that is refuted as well.
        for window in [None, Some(3_000)] {
            calibration.refused(session, 4_000, said(None, window), now);
            assert_eq!(*calibration.bounds(), answered);
        }
        let mut smaller = calibration.clone();
        smaller.refused(session, 4_000, said(Some(4_000), Some(3_000)), now);
        assert!(smaller.bounds().most(session, now).is_some_and(|most| most < 4_000));
        // A request that may have been too large, and the rungs below it.
        for size in [20_000, 1_500, 1_200] {
            calibration.refused(session, size, said(None, None), now);
        }
        assert_eq!(calibration.bounds().most(session, now), Some(10_000));
        // Once one was answered, the model may well have become so small.
        calibration.answered(session, 1_100, 1_100, now);
        calibration.refused(session, 1_500, said(None, None), now);
        assert_eq!(calibration.bounds().most(session, now), Some(1_300));
    }

    /// Regression: what a turn had learnt was gone before the turn stored it, and the next request was refused as well.
    #[test]
    fn what_a_refusal_teaches_was_forgotten_where_another_host_had_stored_something() {
        let session = SessionId::of(1);
        let mut theirs = Calibration::default();
        theirs.answered(session, 10_000, 11_000, 0);
        let stored = (theirs.fit(), *theirs.bounds());
        let mut mine = Calibration::default();
        mine.answered(session, 9_000, 20_000, 1);
        mine.refused(session, 30_000, said(None, Some(40_000)), 2);
        let fit = mine.fit();
        mine.adopt(stored.0, &stored.1);
        assert_eq!(mine.fit(), fit, "of a sample that is not stored yet");
        assert_eq!(mine.bounds().most(session, 2), Some(29_999));
        assert_eq!(mine.bounds().window(200_000, session, 2), 40_000);
        assert_eq!(mine.bounds().answered.map(|answered| answered.size), Some(10_000), "and theirs is known");
        mine.note_stored(mine.samples());
        mine.adopt(stored.0, &stored.1);
        assert_eq!(mine.fit(), stored.0);
    }

    /// Regression: it counted as stored before it was, also if it then could not be.
    #[test]
    fn what_a_turn_had_learnt_was_forgotten_while_it_was_being_stored() {
        let (session, theirs) = (SessionId::of(1), Fit::default());
        let mut mine = Calibration::default();
        mine.answered(session, 9_000, 20_000, 1);
        let of_the_turn = mine.samples();
        let before = mine.fit();
        mine.adopt(theirs, &Bounds::default());
        assert_eq!(mine.fit(), before, "it is not stored yet");
        // Meanwhile another turn learns something.
        mine.answered(session, 9_500, 21_000, 2);
        mine.note_stored(of_the_turn);
        let since = mine.fit();
        mine.adopt(theirs, &Bounds::default());
        assert_eq!(mine.fit(), since);
        mine.note_stored(mine.samples());
        mine.adopt(theirs, &Bounds::default());
        assert_eq!(mine.fit(), theirs);
    }

    /// Once, a single wrong count took the whole history out of a conversation's window.
    #[test]
    fn one_count_that_contradicts_all_others_changed_what_a_conversation_may_send() {
        let mut calibration = Calibration::default();
        let (session, other) = (SessionId::of(1), SessionId::of(2));
        for estimate in [9_000, 10_000, 11_000] {
            calibration.answered(session, estimate, estimate + 2_000, 0);
        }
        let before = calibration.clone();
        for wrong in [90_000, 2_500] {
            calibration.answered(session, 12_000, wrong, 0);
            for asked in [session, other] {
                let (now, then) = (calibration.estimate_for(asked, 20_000), before.estimate_for(asked, 20_000));
                assert!(now.abs_diff(then) <= 1, "{now} instead of {then} after {wrong}");
            }
            calibration.answered(session, 12_000, 14_000, 0);
        }
        for session in [session, other] {
            calibration.answered(session, 12_000, 2_500, 0);
        }
        assert_eq!(calibration.predict(other, 12_000), 2_500);
        // Perhaps the model behind the name is another one now.
        for _ in 0..2 {
            calibration.answered(session, 12_000, 60_000, 0);
        }
        assert_eq!(calibration.predict(session, 12_000), 60_000);
    }

    #[test]
    fn what_was_answered_fits_whatever_a_refusal_has_said() {
        let (mut calibration, session) = (Calibration::default(), SessionId::of(1));
        let window = |calibration: &Calibration| calibration.bounds().window(8_000, session, 0);
        calibration.refused(session, 1_000, said(None, Some(900)), 0);
        assert_eq!(window(&calibration), 900);
        calibration.answered(session, 1_000, 1_100, 0);
        assert_eq!(window(&calibration), 8_000);
    }

    /// Once, every later request asked for the room that had been refused, and was refused as well.
    #[test]
    fn a_learnt_window_left_the_answer_the_room_of_the_stated_one() {
        let (mut calibration, session) = (Calibration::default(), SessionId::of(1));
        // Prompt and answer together.
        calibration.refused(session, 500, said(Some(8_692), Some(6_000)), 0);
        let budget = TokenBudget::calibrated(200_000, 300, session, &calibration, 0);
        assert_eq!((budget.answer, budget.limit), (1_500, LEAST_LIMIT));
        // What can hardly be a window leaves room for a few sentences.
        calibration.refused(session, 400, said(Some(8_592), Some(20)), 0);
        let budget = TokenBudget::calibrated(200_000, 300, session, &calibration, 0);
        assert_eq!((budget.answer, budget.limit), (256, LEAST_LIMIT));
    }

    #[test]
    fn a_refusal_is_a_sample_and_names_the_window() {
        let mut calibration = Calibration::default();
        let session = SessionId::of(1);
        calibration.refused(session, 100_000, said(Some(213_462), Some(200_000)), 0);
        assert_eq!(calibration.bounds().window(1_000_000, session, 0), 200_000);
        assert_eq!(calibration.predict(session, 100_000), 213_462);
        assert!(calibration.estimate_for(session, 190_000) < 100_000);
    }

    #[test]
    fn the_conversations_of_one_gateway_share_the_line_and_not_the_anchor() {
        let mut calibration = Calibration::default();
        for (session, estimate) in [(1, 1_000), (1, 3_000), (2, 8_000)] {
            calibration.answered(SessionId::of(session), estimate, 2 * estimate + 500, 0);
        }
        // A prompt that costs more than other prompts of its size.
        calibration.answered(SessionId::of(3), 2_000, 4_700, 0);
        assert!(calibration.predict(SessionId::of(3), 2_100) > calibration.predict(SessionId::of(9), 2_100));
    }

    proptest! {
        #[test]
        fn five_turns_of_different_sizes_are_enough(
            factor in 0.5f64..3.0, overhead in 0u64..40_000, sizes in prop::collection::vec(200u64..60_000, 5),
            next in 200u64..60_000,
        ) {
            let (least, most) = (sizes.iter().min().copied().unwrap_or(0), sizes.iter().max().copied().unwrap_or(0));
            prop_assume!(most > least + least / 4);
            let truth = |estimate: u64| (estimate as f64 * factor).ceil() as u64 + overhead;
            let mut calibration = Calibration::default();
            for &size in &sizes {
                calibration.answered(SessionId::of(1), size, truth(size), 0);
            }
            for session in [1, 2] {
                let predicted = calibration.predict(SessionId::of(session), next);
                prop_assert!(within(predicted, truth(next), 0.05), "{predicted} for {}", truth(next));
            }
        }

        #[test]
        fn what_is_allowed_is_predicted_to_fit(
            samples in prop::collection::vec((1u64..100_000, 1u64..400_000), 0..8), tokens in 0u64..400_000,
        ) {
            let mut calibration = Calibration::default();
            for (estimate, counted) in samples {
                calibration.answered(SessionId::of(1), estimate, counted, 0);
            }
            for session in [1, 2] {
                let estimate = calibration.estimate_for(SessionId::of(session), tokens);
                let fits = calibration.predict(SessionId::of(session), estimate) <= tokens + 4;
                prop_assert!(fits || estimate == 0);
            }
        }
    }
}
