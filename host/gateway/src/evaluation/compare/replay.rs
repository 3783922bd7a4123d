//! Replays one recorded conversation with one policy, turn by turn, as in the gateway: caps when something is stored, a
//! plan before every call that stays with the conversation, and recovery where the model refuses. All of that is [the
//! gateway's own code](crate::exchange); this module provides [the environment](world) and the recorded messages.
//!
//! Two things differ from the gateway. The model is the simulated one, which counts and refuses but does not write; so
//! where the model would write a summary, the policies' own summary is used, and the tokens that would have been sent
//! to the model are counted. And calibration starts anew with every conversation, so that none depends on the others.

mod keep;
mod world;

use std::{
    collections::{BTreeMap, HashSet},
    num::NonZeroU32,
    sync::Arc,
};

use futures_util::FutureExt;
use pmk_core::{Archive, Entry, Message, Origin, Place, Role, request};
use pmk_models::{Request, sim::Sim};
use pmk_policy::Stack;
use pmk_search::MemoryArchive;

use super::{
    faults::Faults,
    metrics::Tally,
    questions::{Placed, Score, contains_whole, says},
    recording::Recording,
};
use crate::{
    calibration::{Calibration, Sizes},
    exchange::{
        self, Exchange, Ports,
        budget::budget,
        call::{self, CallOutcome},
        window::Window,
    },
    ids::SessionId,
    preambles::Preamble,
    store::Live,
};

use world::World;

/// A policy of the comparison, with the layers under it.
#[derive(Clone, Debug)]
pub struct Arm {
    /// Its name in the report.
    pub label: String,
    pub stack: Stack,
}

/// The settings that all policies share.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The model's window, as the gateway knows it.
    pub window: u64,
    /// The hard limit, if it does not follow from the window.
    pub budget: Option<u64>,
    /// The simulated model, which counts tokens, refuses what exceeds its window, and answers questions.
    pub sim: Sim,
    /// The most turns of a direct message that stay in the window.
    pub history_turns: Option<NonZeroU32>,
    /// Whether window and limit are those of the receipts, if a conversation has any.
    pub by_receipts: bool,
}

/// The result of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The largest request, refused or not, and the one that was sent last, in tokens.
    pub tokens_largest: u64,
    pub tokens_sent: u64,
    /// The number of refusals, and the names of the rungs that were used.
    pub refusals: u64,
    pub rungs: Vec<&'static str>,
    /// Turns that have left the window since the beginning.
    pub turns_out_of_view: u32,
    /// Archived messages that the model was shown again.
    pub recalled: usize,
    pub answered: bool,
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

/// The results of a conversation so far.
#[derive(Default)]
pub struct Seen {
    pub tally: Tally,
    pub calls: Vec<Call>,
    /// The number of dropped turns, by the turn in which they were dropped.
    pub drops: BTreeMap<usize, u64>,
    /// Why policies did not decide.
    pub faults: Faults,
    /// The time of every decision, in microseconds.
    pub times: Vec<u64>,
    /// The last request that was answered.
    pub last: Vec<Entry>,
    /// What it began with, before its messages.
    last_preamble: Option<Arc<Preamble>>,
    /// Messages that were replaced by a summary.
    pub summarised: HashSet<i64>,
    /// The current turn, and the number of requests in it.
    turn: usize,
    calls_of_turn: u32,
}

/// A replay in progress.
pub struct Replay<'a> {
    world: World<'a>,
    recording: &'a Recording,
    preamble: Arc<Preamble>,
    live: Live,
    /// What was said before this turn, in the window or not.
    archive: Arc<MemoryArchive>,
}

/// The id of the only session of its calibration.
fn only() -> SessionId {
    SessionId::of(0)
}

/// Polls a future once: nothing in a replay ever waits.
fn at_once<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never().expect("the world of a replay answers at once")
}

/// Unwraps a store result: the store of a replay cannot fail.
fn stored<T>(kept: Result<T, crate::store::StoreError>) -> T {
    kept.expect("the world of a replay has no disk")
}

impl<'a> Replay<'a> {
    /// Creates the replay before the first turn.
    pub fn new(arm: &'a Arm, setup: &'a Setup, recording: &'a Recording) -> Replay<'a> {
        let live = Live { dropped_turns: recording.dropped_turns, ..Live::default() };
        let given = recording.given.first();
        let (system, tokens) = (recording.system.clone(), recording.system_tokens);
        let preamble = given.map(|given| Arc::clone(&given.preamble));
        let preamble = preamble.unwrap_or_else(|| Arc::new(Preamble { system, tokens, ..Preamble::default() }));
        let world = World::new(arm, setup, Calibration::default(), given);
        let archive = Arc::new(MemoryArchive::of(recording.opening()));
        let mut replay = Replay { world, recording, preamble, live, archive };
        replay.open();
        replay
    }

    /// Replays all turns, and asks the questions at their positions.
    pub fn run(&mut self, questions: &[Placed<'_>], mut scored: impl FnMut(&str, Score)) {
        let mut questions = questions.iter().peekable();
        for number in 0..self.recording.turns.len() {
            self.take(number);
            while let Some(placed) = questions.next_if(|placed| placed.turn <= number) {
                scored(&placed.question.category, self.ask(placed));
            }
        }
    }

    /// Returns the results.
    pub fn seen(self) -> Seen {
        self.world.into_seen()
    }

    /// Replays one turn: its message, and what was recorded after it.
    pub fn take(&mut self, number: usize) -> Step {
        let recording = self.recording;
        self.world.seen().turn = number;
        let given = recording.given.get(number);
        if let Some(given) = given {
            self.preamble = Arc::clone(&given.preamble);
            self.world.given = Some(given);
        }
        let entries = &recording.entries[recording.turns[number].clone()];
        let (attached, entries_of_turn) = match entries {
            [attached, rest @ ..] if attached.message.origin == Origin::Attachment && !rest.is_empty() => {
                (Some(attached), rest)
            }
            all => (None, all),
        };
        let Some((message, rest)) = entries_of_turn.split_first() else { return Step::default() };
        let refused = self.world.seen().tally.overflows_met;
        let shown = given.map_or(&[][..], |given| &given.shown);
        let mut exchange = self.begin(message, shown, attached);
        let answered = self.converse(&mut exchange, rest);
        // A turn that was given up leaves nothing in the window.
        let is_given_up = given.is_some_and(|given| given.is_own) && rest.is_empty();
        let step = self.step(&exchange, answered, refused);
        let draft = exchange.tally.draft;
        self.live = exchange.window.into_live(answered && !is_given_up);
        entries.iter().for_each(|entry| self.archive.record(entry.clone()));
        let mut seen = self.world.seen();
        seen.drafted(&draft);
        seen.tally.turns += 1;
        seen.tally.unanswered += u64::from(!answered);
        step
    }

    /// The result of an exchange; `refused` is the number of refusals before it.
    fn step(&self, exchange: &Exchange, answered: bool, refused: u64) -> Step {
        let seen = self.world.seen();
        let calls = seen.calls.iter().rev().take_while(|call| call.turn == seen.turn);
        Step {
            tokens_largest: calls.map(|call| call.tokens).max().unwrap_or(0),
            tokens_sent: exchange.estimate(),
            refusals: seen.tally.overflows_met - refused,
            rungs: exchange.tally.rungs.clone(),
            turns_out_of_view: exchange.window.dropped_turns(),
            recalled: exchange.tally.draft.recalled.len(),
            answered,
        }
    }

    /// Creates the window with the new message, as the policy leaves it.
    fn begin(&mut self, message: &Entry, shown: &[Message], attached: Option<&Entry>) -> Exchange {
        let live = std::mem::take(&mut self.live);
        let archive: Arc<dyn Archive> = self.archive.clone();
        let new_message = (*message.message).clone();
        let mut window = Window::new(live, shown.iter().cloned(), new_message, String::new()).with_archive(archive);
        window.new_message_archived(message.id);
        let is_dm = self.recording.key.as_ref().is_some_and(|key| matches!(key.place, Place::Dm(_)));
        if let Some(most) = self.world.setup.history_turns.filter(|_| is_dm)
            && let Some((_, turns)) = window.keep_turns(most.get())
        {
            self.world.seen().dropped(turns);
        }
        if let Some(attached) = attached {
            window = window.with_attached(attached.clone());
        }
        let mut exchange = Exchange {
            session: only(),
            key: self.recording.key.as_ref().map(ToString::to_string).unwrap_or_default(),
            asker: String::new(),
            preamble: Arc::clone(&self.preamble),
            budget: self.world.token_budget(only(), self.preamble.tokens),
            below: None,
            is_collected: false,
            sizes: Sizes::default(),
            trial: None,
            window,
            atoms: 0,
            tally: exchange::Tally::default(),
        };
        self.world.seen().calls_of_turn = 0;
        stored(at_once(budget(&self.world, &mut exchange)));
        exchange
    }

    /// Makes the calls of a turn, with the recorded answers and their results. Returns `false` if a call is not
    /// answered.
    fn converse(&mut self, exchange: &mut Exchange, rest: &[Entry]) -> bool {
        let mut rest = rest.iter().peekable();
        loop {
            if !self.call(exchange) {
                return false;
            }
            let mut said = Vec::new();
            while let Some(answer) = rest.next_if(|entry| entry.message.role == Role::Assistant) {
                self.world.seen().tally.tokens_answered += u64::from(answer.tokens);
                exchange.window.push(answer.clone());
                said.push(answer);
            }
            let mut has_results = false;
            while let Some(result) = rest.next_if(|entry| entry.message.role == Role::User) {
                let kept = self.keep(result, &said, exchange.budget.limit);
                exchange.window.push(kept);
                has_results = true;
            }
            if !has_results {
                return true;
            }
            exchange.tally.phase = pmk_policy::Phase::Synthesise;
            stored(at_once(budget(&self.world, exchange)));
        }
    }

    /// Asks the model until it accepts the request. Returns `false` if it never does.
    fn call(&self, exchange: &mut Exchange) -> bool {
        let before = exchange.tally.rungs.len();
        let outcome = stored(at_once(call::call(&self.world, exchange)));
        self.world.seen().climbed(&exchange.tally.rungs[before..]);
        let is_answered = matches!(outcome, CallOutcome::Answer(_));
        if is_answered {
            self.answered(exchange);
        }
        is_answered
    }

    /// Counts the tokens that the request shares with the beginning of the last answered one, as a provider's cache
    /// would.
    fn answered(&self, exchange: &Exchange) {
        let mut seen = self.world.seen();
        let same = |(a, b): &(&Entry, &Entry)| Arc::ptr_eq(&a.message, &b.message) || a.message == b.message;
        let last = std::mem::replace(&mut seen.last, exchange.window.entries().cloned().collect());
        let last_preamble = seen.last_preamble.replace(Arc::clone(&exchange.preamble));
        // After another preamble, nothing is kept of what follows it.
        if last_preamble.is_some_and(|preamble| preamble.sends_the_same(&exchange.preamble)) {
            let kept = exchange.window.entries().zip(&last).take_while(same);
            let kept: u64 = kept.map(|(entry, _)| u64::from(entry.tokens)).sum();
            seen.tally.tokens_reused += kept + exchange.preamble.tokens;
        }
    }

    /// A copy of the conversation, for a question that it does not remember.
    fn aside(&self) -> Replay<'a> {
        Replay {
            world: self.world.aside(),
            recording: self.recording,
            preamble: Arc::clone(&self.preamble),
            live: self.live.clone(),
            archive: Arc::clone(&self.archive),
        }
    }

    /// Returns the simulated model's answer to a question now, if it accepts the request, and the result of the turn.
    pub fn question(&self, text: &str) -> (Option<String>, Step) {
        let mut aside = self.aside();
        // No message of the recording has this number.
        let mut exchange = aside.begin(&Entry::new(0, Message::user(text)), &[], None);
        let takes = aside.call(&mut exchange);
        let said = if takes { self.said(&exchange) } else { None };
        (said, aside.step(&exchange, takes, 0))
    }

    /// Asks a question of the comparison.
    fn ask(&self, placed: &Placed<'_>) -> Score {
        let question = placed.question;
        let mut aside = self.aside();
        let mut exchange = aside.begin(&Entry::new(0, Message::user(question.text.clone())), &[], None);
        let takes = aside.call(&mut exchange);
        let mut score = Score::default();
        if !placed.evidence.is_empty() {
            score.with_evidence = 1;
            let is_visible = |&at: &usize| self.is_visible(at, &exchange.window);
            score.visible = u64::from(takes && placed.evidence.iter().all(is_visible));
        }
        if let Some(answer) = &question.answer {
            score.with_answer = 1;
            let said = if takes { self.said(&exchange) } else { None };
            score.answered = u64::from(said.is_some_and(|said| says(&said, answer)));
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
            // Messages inserted by the host may quote it.
            let is_inserted = matches!(entry.message.origin, Origin::Summary | Origin::Recall | Origin::Retrieval);
            is_inserted && contains_whole(&unquoted(&entry.message.plain_text()), text.trim())
        })
    }

    /// Returns the simulated model's answer to the request.
    fn said(&self, exchange: &Exchange) -> Option<String> {
        let request = Request {
            system: exchange.preamble.system.clone(),
            messages: request::alternate(exchange.window.shared()),
            max_answer_tokens: exchange.budget.answer,
            ..Request::default()
        };
        let said = self.world.setup.sim.answer(&request).ok()?;
        Some(pmk_core::message::plain_text(&said.blocks))
    }
}

/// Removes the quotation marks at the beginning of quoted lines.
pub(super) fn unquoted(text: &str) -> String {
    text.replace("\n> ", "\n")
}
