//! The environment of a replay: the model is simulated, which counts and refuses but does not write, the store is in
//! memory, no time passes, and everything is counted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use pmk_core::{Block, CapVerdict, Entry, Transcript, tokens};
use pmk_models::{Answer, ErrorClass, Model, ModelError, Request, Stop, Usage};
use pmk_policy::{
    DecidedBy, IncomingInput, Outcome as Asked, OverflowInput, PruneDecision, PruneInput, Record, Rung, Stack,
};

use super::{Arm, Call, Seen, Setup};
use crate::{
    calibration::{Calibration, TokenBudget},
    evaluation::compare::given::Given,
    exchange::{
        AdminAlert, Draft, Ports, SummaryInput,
        budget::DecidedPlan,
        material::{question, system},
        window::{Fold, Window},
    },
    ids::SessionId,
    ledger::Event,
    store::{LiveEntry, StoreError, WindowEdit},
};

/// No time passes in a replay, so what was learned in it does not expire.
const NOW_MS: i64 = 0;

/// Stands for the recorded answer, which is added separately.
const ANSWERED: &str = "(recorded)";

/// The environment of one replay.
pub(super) struct World<'a> {
    pub arm: &'a Arm,
    pub setup: &'a Setup,
    /// The inputs of the current turn, if known.
    pub given: Option<&'a Given>,
    calibration: Mutex<Calibration>,
    seen: Mutex<Seen>,
}

impl<'a> World<'a> {
    pub fn new(arm: &'a Arm, setup: &'a Setup, calibration: Calibration, given: Option<&'a Given>) -> World<'a> {
        World { arm, setup, given, calibration: Mutex::new(calibration), seen: Mutex::default() }
    }

    /// Creates an environment with the same calibration and its own counts.
    pub fn aside(&self) -> World<'a> {
        World::new(self.arm, self.setup, self.calibration().clone(), self.given)
    }

    /// Returns the receipt, if its window and limit apply.
    fn by_receipt(&self) -> Option<&'a Given> {
        self.given.filter(|_| self.setup.by_receipts)
    }

    /// The model's window, as the gateway knows it.
    fn window(&self) -> u64 {
        self.by_receipt().map_or(self.setup.window, |given| given.window)
    }

    /// The most that the model accepts.
    fn takes(&self) -> u64 {
        self.by_receipt().map_or_else(|| self.setup.sim.window(), |given| given.window)
    }

    /// Returns the counts.
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        // There is no contention: a replay runs on one thread.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the final counts.
    pub fn into_seen(self) -> Seen {
        self.seen.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks how much of a content to keep.
    pub fn cap(&self, incoming: IncomingInput) -> CapVerdict {
        let decision = self.arm.stack.cap(incoming);
        self.seen().decided(&self.arm.stack, &decision.records, &decision.decided_by);
        decision.verdict
    }
}

#[async_trait]
impl Ports for World<'_> {
    fn now_ms(&self) -> i64 {
        NOW_MS
    }

    fn calibration(&self) -> MutexGuard<'_, Calibration> {
        self.calibration.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn token_budget(&self, session: SessionId, preamble_tokens: u64) -> TokenBudget {
        let known = self.calibration();
        let budget = TokenBudget::calibrated(self.window(), preamble_tokens, session, &known, NOW_MS);
        match (self.setup.budget, self.by_receipt()) {
            (Some(limit), _) => TokenBudget { limit, alone: limit, ..budget },
            (None, Some(given)) => TokenBudget { limit: given.limit, ..budget },
            (None, None) => budget,
        }
    }

    fn seed_may_go(&self) -> bool {
        self.arm.stack.seed_may_go()
    }

    async fn prune(&self, transcript: &Arc<Transcript>, input: PruneInput, _is_first: bool) -> PruneDecision {
        let decision = self.arm.stack.prune(transcript, input);
        let mut seen = self.seen();
        seen.decided(&self.arm.stack, &decision.records, &decision.decided_by);
        seen.tally.overflows_predicted += u64::from(decision.applied.tokens_before > input.limit);
        decision
    }

    async fn choose_rung(&self, input: OverflowInput) -> Rung {
        let decision = self.arm.stack.recover(input);
        self.seen().decided(&self.arm.stack, &decision.records, &decision.decided_by);
        decision.rung
    }

    async fn summarize(&self, transcript: &Arc<Transcript>, most_tokens: u32) -> String {
        let decision = self.arm.stack.summarize(transcript, most_tokens);
        self.seen().decided(&self.arm.stack, &decision.records, &decision.decided_by);
        decision.text
    }

    async fn ask(&self, _request: &Request, estimate: u64, spent: &mut Usage) -> Result<Answer, ModelError> {
        let counted = self.setup.sim.counts(estimate);
        let mut seen = self.seen();
        seen.sent(estimate, true);
        if counted > self.takes() {
            seen.tally.overflows_met += 1;
            seen.tally.tokens_refused += estimate;
            let (observed_tokens, allowed_tokens) = (Some(counted), Some(self.takes()));
            let class = ErrorClass::Overflow { observed_tokens, allowed_tokens, is_of_request: false };
            return Err(ModelError::new(class, ""));
        }
        let usage = Usage { input_tokens: counted, ..Usage::default() };
        spent.add(usage);
        Ok(Answer { blocks: vec![Block::Text { text: ANSWERED.into() }], usage, stop: Stop::End })
    }

    /// The policies' own summary takes the place of the model's.
    async fn write_summary(&self, input: SummaryInput<'_>, _spent: &mut Usage) -> Result<String, ModelError> {
        let SummaryInput { part, material, language, .. } = input;
        let system = u64::from(tokens::estimate(system(language)));
        for piece in &material.pieces {
            let tokens = system + u64::from(tokens::message(&question(piece)));
            let mut seen = self.seen();
            seen.sent(tokens, false);
            seen.tally.tokens_summarised += tokens;
        }
        let part = Arc::new(Transcript::new(part.to_vec(), part.len(), ""));
        let most = u32::try_from(material.allowed()).unwrap_or(u32::MAX);
        let decision = self.arm.stack.summarize(&part, most);
        self.seen().decided(&self.arm.stack, &decision.records, &decision.decided_by);
        match decision.text.trim() {
            "" => Err(ModelError::new(ErrorClass::Other, "the policies summarize nothing")),
            text => {
                self.seen().tally.tokens_answered += u64::from(tokens::estimate(text));
                Ok(text.to_owned())
            }
        }
    }

    /// What leaves the window is counted when the turn is over: some of it may be taken back.
    fn planned(&self, _window: &Window, _plan: Option<&DecidedPlan>) {}

    async fn edit_window(&self, _session: SessionId, _edit: WindowEdit, _told: Vec<Event>) -> Result<(), StoreError> {
        // Only the window itself is stored.
        Ok(())
    }

    async fn fold(
        &self,
        _session: SessionId,
        _window: &Window,
        fold: &Fold,
        _told: Vec<Event>,
    ) -> Result<Option<LiveEntry>, StoreError> {
        let position = i64::try_from(fold.range.start).unwrap_or(i64::MAX);
        Ok(fold.summary.clone().map(|message| LiveEntry { position, entry: Entry::new(0, message) }))
    }

    fn note(&self, _event: Event) {}

    fn alarm(&self, _alarm: AdminAlert) {}
}

impl Seen {
    /// Counts turns that leave the window.
    pub(super) fn dropped(&mut self, turns: u32) {
        self.tally.turns_dropped += u64::from(turns);
        if turns > 0 {
            *self.drops.entry(self.turn).or_default() += u64::from(turns);
        }
    }

    /// Counts what a turn has left of the window.
    pub(super) fn drafted(&mut self, draft: &Draft) {
        self.dropped(draft.turns_dropped);
        self.summarised.extend(&draft.summarised);
        let tally = &mut self.tally;
        tally.results_dropped += draft.results_dropped as u64;
        tally.messages_replaced += draft.messages_replaced as u64;
        tally.messages_recalled += draft.messages_recalled as u64;
        tally.turns_summarised += u64::from(draft.turns_summarised);
    }

    /// Counts a request.
    fn sent(&mut self, tokens: u64, is_question: bool) {
        let is_first = is_question && self.calls_of_turn == 0;
        self.calls_of_turn += u32::from(is_question);
        self.tally.calls += 1;
        self.tally.tokens_sent += tokens;
        self.calls.push(Call { turn: self.turn, is_first, tokens });
    }

    /// Counts a decision and its outcomes.
    fn decided(&mut self, stack: &Stack, records: &[Record], decided_by: &DecidedBy) {
        self.faults.note(stack, records, decided_by, self.turn);
        let Seen { tally, times, .. } = self;
        tally.decisions += 1;
        tally.fuel += records.iter().map(|record| record.fuel).sum::<u64>();
        times.push(records.iter().map(|record| record.us).sum());
        for record in records {
            match record.outcome {
                // In a replay, nothing is suspended.
                Asked::Accepted | Asked::Skipped { .. } => {}
                Asked::Corrected { .. } => tally.corrections += 1,
                Asked::Rejected { .. } => tally.rejections += 1,
                Asked::Failed { .. } => tally.failures += 1,
            }
        }
    }

    /// Counts the rungs of recovery that were used, by name.
    pub(super) fn climbed(&mut self, rungs: &[&str]) {
        for name in rungs {
            match Rung::ALL.into_iter().find(|rung| rung.name() == *name) {
                Some(rung) => *self.tally.rung(rung) += 1,
                None => self.tally.replans += 1,
            }
        }
    }
}
