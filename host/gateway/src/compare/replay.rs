//! One recorded conversation with one policy, turn by turn, as the gateway would have it: caps when something
//! is stored, a plan before every call that stays with the conversation, recovery where the model refuses.
//! The recorded answers follow, whatever a model would have said to what is left.
//!
//! Two things cannot be as they would be. The model is the stand-in, which counts and refuses but does not
//! write; so where the model would sum something up, the policies' own summary stands in its place, and what the
//! model would have been sent for it is counted. And what is known of how a model counts begins anew with every
//! conversation, so that none depends on the others.

mod keep;
mod recovery;

use std::{collections::HashSet, num::NonZeroU32, ops::Range, sync::Arc};

use pmk_core::{Applied, Archive, Entry, Message, Origin, Place, Role, request};
use pmk_models::{Request, sim::Sim};
use pmk_policy::{Outcome as Asked, Phase, PruneInput, Record, Stack};
use pmk_search::MemoryArchive;

use super::{
    metrics::Tally,
    questions::{Placed, Score, says},
    recording::Recording,
};
use crate::{
    calibration::{Calibration, Refusal, Source, TokenBudget},
    ids::SessionId,
    store::Live,
    turn::window::Window,
};

/// A policy of the comparison, with the layers under it.
#[derive(Clone, Debug)]
pub struct Arm {
    /// What the report calls it.
    pub label: String,
    pub stack: Stack,
}

/// What all policies have in common.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The model's window.
    pub window: u64,
    /// The hard limit, where it is not what the window leaves.
    pub budget: Option<u64>,
    /// What counts, refuses and reads.
    pub sim: Sim,
    pub seed_may_go: bool,
    /// The most turns of a direct message that stay in view.
    pub history_turns: Option<NonZeroU32>,
}

/// A request to the model.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The turn it belongs to.
    pub turn: usize,
    /// Whether it is the first of that turn.
    pub is_first: bool,
    pub tokens: u64,
}

/// What has come of a conversation so far.
#[derive(Default)]
pub struct Seen {
    pub tally: Tally,
    pub calls: Vec<Call>,
    /// The time of every decision, in microseconds.
    pub times: Vec<u64>,
    /// The last request that was answered.
    pub last: Vec<Entry>,
    /// Messages that a summary stands for.
    pub summarised: HashSet<i64>,
}

/// A conversation under way.
pub struct Replay<'a> {
    arm: &'a Arm,
    setup: &'a Setup,
    recording: &'a Recording,
    live: Live,
    /// What was said before this turn, whatever of it is still in view.
    archive: Arc<MemoryArchive>,
    calibration: Calibration,
    turn: usize,
    pub seen: Seen,
}

/// A turn under way.
struct Work {
    window: Window,
    room: TokenBudget,
    phase: Phase,
    tokens_after: u64,
    /// Whether a policy has had its wish to sum something up before the call.
    compacted: bool,
    calls: u32,
}

/// A summary that a policy wants before the call, and what holds without it.
struct Wanted {
    range: Range<usize>,
    otherwise: Applied,
}

/// No time passes in a replay: what was learnt in it does not expire.
const NOW_MS: i64 = 0;

/// The only conversation of its calibration.
fn only() -> SessionId {
    SessionId::of(0)
}

impl<'a> Replay<'a> {
    /// The conversation before its first turn.
    pub fn new(arm: &'a Arm, setup: &'a Setup, recording: &'a Recording) -> Replay<'a> {
        let live = Live { dropped_turns: recording.dropped_turns, ..Live::default() };
        let mut replay = Replay {
            arm,
            setup,
            recording,
            live,
            archive: Arc::new(MemoryArchive::of(recording.opening())),
            calibration: Calibration::default(),
            turn: 0,
            seen: Seen::default(),
        };
        replay.open();
        replay
    }

    /// All turns, and the questions where they belong.
    pub fn run(&mut self, questions: &[Placed<'_>], mut scored: impl FnMut(&str, Score)) {
        let mut questions = questions.iter().peekable();
        for (number, turn) in self.recording.turns.iter().enumerate() {
            self.turn = number;
            self.take(&self.recording.entries[turn.clone()]);
            while let Some(placed) = questions.next_if(|placed| placed.turn <= number) {
                scored(&placed.question.category, self.ask(placed));
            }
        }
    }

    /// A turn: the message, and what was recorded of what followed.
    fn take(&mut self, entries: &[Entry]) {
        let Some((message, rest)) = entries.split_first() else { return };
        let mut work = self.begin(message);
        let answered = self.converse(&mut work, rest);
        self.live = work.window.into_live(answered);
        entries.iter().for_each(|entry| self.archive.record(entry.clone()));
        self.seen.tally.turns += 1;
        self.seen.tally.unanswered += u64::from(!answered);
    }

    /// The window with the new message, as the policy leaves it.
    fn begin(&mut self, message: &Entry) -> Work {
        let live = std::mem::take(&mut self.live);
        let archive: Arc<dyn Archive> = self.archive.clone();
        let mut window = Window::new(live, None, (*message.message).clone(), String::new()).with_archive(archive);
        window.new_message_archived(message.id);
        let is_dm = self.recording.key.as_ref().is_some_and(|key| matches!(key.place, Place::Dm(_)));
        if let Some(most) = self.setup.history_turns.filter(|_| is_dm)
            && let Some((_, turns)) = window.keep_turns(most.get())
        {
            self.seen.tally.turns_dropped += u64::from(turns);
        }
        let room = self.room(self.recording.system_tokens);
        let mut work = Work { window, room, phase: Phase::First, tokens_after: 0, compacted: false, calls: 0 };
        self.budget(&mut work);
        work
    }

    /// How the window is shared out now, beside a system prompt.
    fn room(&self, preamble_tokens: u64) -> TokenBudget {
        let room = TokenBudget::calibrated(self.setup.window, preamble_tokens, only(), &self.calibration, NOW_MS);
        TokenBudget { limit: self.setup.budget.unwrap_or(room.limit), ..room }
    }

    /// Calls, and what was recorded of each answer and of what came of it. False: nobody answers.
    fn converse(&mut self, work: &mut Work, rest: &[Entry]) -> bool {
        if !fits_at_all(work) {
            return false;
        }
        let mut rest = rest.iter().peekable();
        loop {
            if !self.call(work) {
                return false;
            }
            let mut said = Vec::new();
            while let Some(answer) = rest.next_if(|entry| entry.message.role == Role::Assistant) {
                self.seen.tally.tokens_answered += u64::from(answer.tokens);
                work.window.push(answer.clone());
                said.push(answer);
            }
            let mut has_results = false;
            while let Some(result) = rest.next_if(|entry| entry.message.role == Role::User) {
                let kept = self.keep(result, &said, work.room.limit);
                work.window.push(kept);
                has_results = true;
            }
            if !has_results {
                return true;
            }
            work.phase = Phase::Synthesise;
            self.budget(work);
        }
    }

    /// The policy decides, and what it wants is carried out.
    fn budget(&mut self, work: &mut Work) {
        if let Some(wanted) = self.decide(work) {
            let may_compact = !std::mem::replace(&mut work.compacted, true);
            if may_compact && self.compact_ahead(work, wanted.range) {
                self.decide(work);
                return;
            }
            self.carry_out(work, &wanted.otherwise);
        }
    }

    fn decide(&mut self, work: &mut Work) -> Option<Wanted> {
        work.room = self.room(self.recording.system_tokens);
        let transcript = work.window.transcript();
        if !fits_at_all(work) {
            work.tokens_after = transcript.total_tokens();
            return None;
        }
        let input = PruneInput {
            limit: work.room.limit,
            window: work.room.window,
            phase: work.phase,
            seed_may_go: self.setup.seed_may_go,
        };
        let decision = self.arm.stack.prune(&transcript, input);
        self.note(&decision.records);
        let applied = decision.applied;
        self.seen.tally.overflows_predicted += u64::from(applied.tokens_before > work.room.limit);
        match applied.compaction.clone() {
            Some(range) if !work.compacted => Some(Wanted { range, otherwise: applied }),
            _ => {
                self.carry_out(work, &applied);
                None
            }
        }
    }

    fn carry_out(&mut self, work: &mut Work, applied: &Applied) {
        work.tokens_after = applied.tokens_after;
        if !applied.changes_anything() {
            return;
        }
        let entries: Vec<&Entry> = work.window.entries().collect();
        let results = applied.removed.iter().map(|&at| results(&entries[at as usize].message));
        self.seen.tally.results_dropped += results.sum::<u64>();
        self.seen.tally.turns_dropped += u64::from(applied.turns_dropped);
        self.seen.tally.messages_replaced += applied.replaced.len() as u64;
        self.seen.tally.messages_recalled += applied.recall.as_ref().map_or(0, |recall| recall.ids.len() as u64);
        work.window.apply(applied);
    }

    /// The model is asked until it takes the request. False: it never does.
    fn call(&mut self, work: &mut Work) -> bool {
        let mut recovery = recovery::Recovery::default();
        loop {
            let estimate = work.tokens_after + self.recording.system_tokens;
            self.send(estimate, work.calls == 0);
            work.calls += 1;
            let counted = self.setup.sim.counts(estimate);
            if counted <= self.setup.window {
                self.calibration.answered(only(), estimate, counted, NOW_MS);
                self.answered(work);
                return true;
            }
            self.seen.tally.overflows_met += 1;
            self.seen.tally.tokens_refused += estimate;
            let window = Some(self.setup.window);
            let refusal = Refusal { observed: Some(counted), window, source: Source::Refused };
            self.calibration.refused(only(), estimate, refusal, NOW_MS);
            if !self.recover(work, &mut recovery, counted) {
                return false;
            }
        }
    }

    fn send(&mut self, tokens: u64, is_first: bool) {
        self.seen.tally.calls += 1;
        self.seen.tally.tokens_sent += tokens;
        self.seen.calls.push(Call { turn: self.turn, is_first, tokens });
    }

    /// What of the request the provider has read before, for the one that was answered last.
    fn answered(&mut self, work: &Work) {
        let last = std::mem::take(&mut self.seen.last);
        let same = |(a, b): &(&Entry, &Entry)| Arc::ptr_eq(&a.message, &b.message) || a.message == b.message;
        let kept = work.window.entries().zip(&last).take_while(same);
        let kept: u64 = kept.map(|(entry, _)| u64::from(entry.tokens)).sum();
        let system = if last.is_empty() { 0 } else { self.recording.system_tokens };
        self.seen.tally.tokens_reused += kept + system;
        self.seen.last = work.window.entries().cloned().collect();
    }

    /// A question of the comparison, which the conversation does not remember.
    fn ask(&self, placed: &Placed<'_>) -> Score {
        let question = placed.question;
        let mut aside = Replay {
            live: self.live.clone(),
            archive: Arc::clone(&self.archive),
            calibration: self.calibration.clone(),
            seen: Seen::default(),
            ..*self
        };
        // No message of the recording has this number.
        let mut work = aside.begin(&Entry::new(0, Message::user(question.text.clone())));
        let takes = fits_at_all(&work) && aside.call(&mut work);
        let mut score = Score::default();
        if !placed.evidence.is_empty() {
            score.with_evidence = 1;
            score.visible = u64::from(takes && placed.evidence.iter().all(|&at| self.is_visible(at, &work.window)));
        }
        if let Some(answer) = &question.answer {
            score.with_answer = 1;
            score.answered = u64::from(takes && self.reads(&work, answer));
        }
        score
    }

    /// Whether a recorded message is in the window, whole and word for word.
    fn is_visible(&self, index: usize, window: &Window) -> bool {
        let wanted = &self.recording.entries[index];
        let text = wanted.message.plain_text();
        window.entries().any(|entry| {
            if entry.id == wanted.id && entry.original.is_none() {
                return true;
            }
            // Where the host put something in, its words may be there.
            let is_inserted = matches!(entry.message.origin, Origin::Summary | Origin::Recall | Origin::Retrieval);
            is_inserted && unquoted(&entry.message.plain_text()).contains(text.trim())
        })
    }

    /// Whether the stand-in finds the answer in the request.
    fn reads(&self, work: &Work, answer: &str) -> bool {
        let request = Request {
            system: self.recording.system.clone(),
            messages: request::alternate(work.window.shared()),
            max_answer_tokens: work.room.answer,
            tools: [].into(),
        };
        self.setup.sim.answer(&request).is_ok_and(|said| says(&pmk_core::message::plain_text(&said.blocks), answer))
    }

    /// What a decision has cost, and whether it was one.
    fn note(&mut self, records: &[Record]) {
        let Seen { tally, times, .. } = &mut self.seen;
        tally.decisions += 1;
        tally.fuel += records.iter().map(|record| record.fuel).sum::<u64>();
        times.push(records.iter().map(|record| record.us).sum());
        for record in records {
            match record.outcome {
                // Offline nothing is suspended.
                Asked::Accepted | Asked::Skipped { .. } => {}
                Asked::Corrected { .. } => tally.corrections += 1,
                Asked::Rejected { .. } => tally.rejections += 1,
                Asked::Failed { .. } => tally.failures += 1,
            }
        }
    }
}

/// A text without the signs that quoted lines begin with.
pub(super) fn unquoted(text: &str) -> String {
    text.replace("\n> ", "\n")
}

/// Whether the new message alone leaves the request within the limit.
fn fits_at_all(work: &Work) -> bool {
    u64::from(work.window.new_message().tokens) <= work.room.limit
}

/// The results of tools and of `mra` in a message.
fn results(message: &Message) -> u64 {
    let blocks = message.blocks.iter().filter(|block| matches!(block, pmk_core::Block::ToolResult { .. }));
    blocks.count() as u64 + u64::from(message.origin == Origin::MraResult)
}
