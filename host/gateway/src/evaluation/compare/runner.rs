//! Replays all conversations, several at a time. Each is read when it is needed and dropped when it is done.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use pmk_system::panics;
use thiserror::Error;

use super::{
    faults::Faults,
    histories::{self, Conversation, LeftOut, Met, Position, Source},
    metrics::{ArmOutcome, Totals},
    questions::{self, Questions, Score},
    recording::Recording,
    replay::{Arm, Replay, Setup},
};
use crate::{evaluation::authoring::stage::quietly, store::transfer::TransferError};

/// What is replayed, and how.
pub struct Comparison<'a> {
    pub arms: &'a [Arm],
    pub setup: &'a Setup,
    pub questions: Option<&'a Questions>,
    /// The number of conversations replayed at a time.
    pub jobs: usize,
}

/// A replayed conversation.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Its place among all.
    pub position: Position,
    pub name: String,
    pub turns: usize,
    /// One for each policy.
    pub outcomes: Vec<ArmOutcome>,
    /// For each policy the number of dropped turns, by the turn in which they were dropped, counted from 0.
    pub drops: Vec<BTreeMap<usize, u64>>,
    /// For each policy why it did not decide.
    pub faults: Vec<Faults>,
}

/// The results of all conversations.
#[derive(Debug, Default)]
pub struct Results {
    pub conversations: Vec<Replayed>,
    /// How many of them have no receipts.
    pub without_receipts: usize,
    /// One for each policy.
    pub totals: Vec<Totals>,
    /// The number of questions asked.
    pub asked: u64,
    /// What could not be read or asked, one line each.
    pub problems: Vec<String>,
    /// The number of conversations that could not be read; each is one of the problems.
    pub left_out: usize,
    /// The files that were cut off: nobody knows how many conversations are missing.
    pub cut_off: Vec<CutOff>,
}

/// A file that was cut off.
#[derive(Debug)]
pub struct CutOff {
    pub path: PathBuf,
    /// Whether that was within a conversation, which is left out. Otherwise, none is known to be missing.
    pub leaves_out: bool,
    /// What to do about it.
    pub hint: Cow<'static, str>,
}

/// A replay panicked, which is a bug. The other results are discarded: all policies must be measured on the same
/// conversations.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("a replay failed because of a bug in this program: {0}")]
pub struct Panicked(String);

/// Receives progress.
pub trait Watch: Sync {
    /// A conversation is done.
    fn done(&self);
    /// A file contained one more conversation.
    fn more(&self);
}

/// A conversation and its place among all.
type Job = (Position, Conversation);

/// The queue that the workers take conversations from. Only the workers own it: when the last of them is gone, sending
/// fails instead of blocking forever.
type Waiting = Arc<Mutex<Receiver<Job>>>;

impl Comparison<'_> {
    /// Replays every conversation with every policy.
    ///
    /// # Errors
    /// A replay panicked.
    pub fn run(&self, found: Vec<Source>, watch: &dyn Watch) -> Result<Results, Panicked> {
        let (jobs, waiting) = sync_channel::<Job>(2 * self.jobs);
        let waiting = Arc::new(Mutex::new(waiting));
        let (parts, unread) = thread::scope(|scope| {
            let start = |_| {
                let waiting = Arc::clone(&waiting);
                scope.spawn(move || quietly(|| self.work(&waiting, watch)))
            };
            let workers: Vec<_> = (0..self.jobs).map(start).collect();
            drop(waiting);
            let mut unread = Part::default();
            hand_out(found, &jobs, &mut unread, watch);
            drop(jobs);
            // All workers are joined, because the scope panics for a panicked one that is not.
            let parts: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
            (parts, unread)
        });
        let mut parts: Vec<Part> =
            parts.into_iter().collect::<Result<_, _>>().map_err(|panic| Panicked(panics::words(&*panic)))?;
        parts.push(unread);
        let mut results = Results { totals: vec![Totals::default(); self.arms.len()], ..Results::default() };
        let (mut problems, mut replayed) = (Vec::new(), BTreeSet::new());
        for part in &mut parts {
            results.left_out += part.left_out;
            results.cut_off.append(&mut part.cut_off);
            replayed.append(&mut part.names);
            results.conversations.append(&mut part.conversations);
            results.without_receipts += part.without_receipts;
            results.asked += part.asked;
            problems.append(&mut part.problems);
            for (totals, other) in results.totals.iter_mut().zip(std::mem::take(&mut part.totals)) {
                totals.merge(other);
            }
        }
        // Sorted by file, independently of which finished first.
        results.conversations.sort_by_key(|replayed| replayed.position);
        problems.sort();
        results.problems = problems.into_iter().map(|(_, problem)| problem).collect();
        results.problems.extend(self.questions.map(|questions| questions.astray(&replayed)).unwrap_or_default());
        Ok(results)
    }

    fn work(&self, waiting: &Waiting, watch: &dyn Watch) -> Part {
        let mut part = Part { totals: vec![Totals::default(); self.arms.len()], ..Part::default() };
        loop {
            // Another worker's panic cannot leave a job half taken.
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok((position, conversation)) = next else { return part };
            match conversation.open() {
                Ok((names, recording)) if recording.turns.is_empty() => {
                    part.leave_out(position, format!("`{}`: {}", names[0], refusal(&recording)));
                }
                Ok((names, recording)) => self.replay(&mut part, position, names, &recording),
                Err(error) => part.leave_out(position, error.to_string()),
            }
            watch.done();
        }
    }

    fn replay(&self, part: &mut Part, position: Position, names: Vec<String>, recording: &Recording) {
        let about = self.questions.map(|questions| questions.about(&names)).unwrap_or_default();
        let (placed, problems) = questions::place(about, recording);
        part.asked += placed.len() as u64;
        part.without_receipts += usize::from(recording.given.is_empty());
        part.names.extend(names.iter().cloned());
        let name = names.into_iter().next().unwrap_or_default();
        let mut repairs = recording.repairs.clone();
        if recording.lacks_receipts {
            let window = self.setup.window;
            repairs.push(format!(
                "it has no receipts: it is replayed without its system prompt, in a window of {window} tokens"
            ));
        }
        let told = repairs.into_iter().chain(problems);
        part.problems.extend(told.map(|problem| (position, format!("`{name}`: {problem}"))));
        let mut drops = Vec::with_capacity(self.arms.len());
        let mut faults = Vec::with_capacity(self.arms.len());
        let outcomes = self.arms.iter().zip(&mut part.totals).map(|(arm, totals)| {
            let mut replay = Replay::new(arm, self.setup, recording);
            let mut score = Score::default();
            replay.run(&placed, |category, one| {
                score += one;
                *totals.scores.entry(category.to_owned()).or_default() += one;
            });
            let seen = replay.seen();
            for call in &seen.calls {
                totals.sizes.add(call.tokens);
                if call.is_first {
                    totals.add_turn(call.turn, call.tokens);
                }
            }
            for &us in &seen.times {
                totals.times.add(us);
                totals.time += Duration::from_micros(us);
            }
            drops.push(seen.drops);
            faults.push(seen.faults);
            ArmOutcome { tally: seen.tally, score }
        });
        let outcomes = outcomes.collect();
        part.conversations.push(Replayed { position, name, turns: recording.turns.len(), outcomes, drops, faults });
    }
}

/// Why a recording without turns cannot be replayed.
pub fn refusal(recording: &Recording) -> &'static str {
    if recording.has_parked {
        "all user messages in it are parked; `pmk-host sessions parked` lists them"
    } else if recording.entries.is_empty() {
        "it has no messages"
    } else {
        "it contains no user message"
    }
}

/// Sends every conversation to the workers, and records those that cannot be read. Ends early if no worker is left; the
/// cause is known once they are joined.
fn hand_out(found: Vec<Source>, jobs: &SyncSender<Job>, unread: &mut Part, watch: &dyn Watch) {
    let mut met = Met::default();
    for (position, conversation) in histories::each_once(found, &mut met) {
        if position.1 > 0 {
            watch.more();
        }
        match conversation {
            Ok(conversation) => {
                if jobs.send((position, conversation)).is_err() {
                    return;
                }
            }
            Err(left) => {
                unread.take_in(position, *left);
                watch.done();
            }
        }
    }
}

/// The results of one worker, or what could not be handed out.
#[derive(Default)]
struct Part {
    conversations: Vec<Replayed>,
    without_receipts: usize,
    totals: Vec<Totals>,
    asked: u64,
    problems: Vec<(Position, String)>,
    left_out: usize,
    cut_off: Vec<CutOff>,
    /// The names by which questions may know what was replayed.
    names: BTreeSet<String>,
}

impl Part {
    /// Records what is not handed out.
    fn take_in(&mut self, position: Position, left: LeftOut) {
        let problem = left.to_string();
        match left {
            // It is replayed from another file.
            LeftOut::Again { .. } => self.problems.push((position, problem)),
            LeftOut::Unread { key, error } => {
                let (hint, leaves_out) = (error.hint(), key.is_some());
                if let TransferError::EndsEarly { path, .. } | TransferError::CutShort { path, .. } = error {
                    self.cut_off.push(CutOff { path, leaves_out, hint });
                    if !leaves_out {
                        self.problems.push((position, problem));
                        return;
                    }
                }
                self.leave_out(position, problem);
            }
        }
    }

    fn leave_out(&mut self, position: Position, problem: String) {
        self.problems.push((position, problem));
        self.left_out += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::{
        chat::{Attachments, Inbound, ReplyTo},
        evaluation::compare::histories::HistoryFile,
        store::{Store, transfer::full},
    };
    use pmk_models::sim::{Sim, SimConfig};

    fn setup() -> Setup {
        Setup {
            window: 8_000,
            budget: None,
            sim: Sim::new(SimConfig::default()),
            history_turns: None,
            by_receipts: false,
        }
    }

    struct LooksAway;

    impl Watch for LooksAway {
        fn done(&self) {}

        fn more(&self) {}
    }

    /// Regression: it was said to contain no user message.
    #[test]
    fn a_conversation_of_which_all_is_parked_was_said_to_contain_no_message_of_a_person() {
        let home = tempfile::tempdir().expect("a home");
        let store = Store::open(home.path()).expect("a store");
        let inbound = Inbound {
            event_id: "Ev1".into(),
            aliases: vec![],
            key: "slack:dm:U1".parse().expect("a key"),
            user: "U1".into(),
            reply_to: ReplyTo { channel: "D1".into(), thread_ts: None },
            text: "a question".into(),
            attached: Attachments::default(),
            if_awaited: false,
            by_app: false,
            team: None,
            in_group: false,
            asked_at: None,
            ts: String::new(),
        };
        tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
            let inbox = store.accept(&inbound, 1).await.expect("the store").expect("a new message");
            store.park(inbox, "the disk is full", vec![], 2).await.expect("the store").expect("it is parked");
        });
        let comparison = Comparison { arms: &[], setup: &setup(), questions: None, jobs: 1 };
        let results = comparison.run(vec![Source::Kept(store, inbound.key)], &LooksAway).expect("results");
        let told = "`slack:dm:U1`: all user messages in it are parked; `pmk-host sessions parked` lists them";
        assert_eq!((results.problems, results.left_out), (vec![told.to_owned()], 1));
    }

    /// Regression: it counted as one conversation, and the advice was about the format of files.
    #[test]
    fn an_export_that_was_cut_off_counted_as_a_conversation_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("all.jsonl");
        let mut export: Vec<u8> = vec![];
        full::write_header(&mut export).expect("the first line");
        std::fs::write(&path, export).expect("a file");
        let results = of_file(path.clone());
        assert!(matches!(&results.problems[..], [told] if told.contains("` ends early, at line ")), "{results:?}");
        assert_eq!(results.left_out, 0);
        let hint = "export it again, or copy the whole file";
        assert!(matches!(&results.cut_off[..], [cut] if cut.path == path && cut.hint == hint), "{results:?}");
    }

    /// Regression: the conversation in which a file was cut off was not counted, and no notice named the file.
    #[test]
    fn a_conversation_in_which_an_export_was_cut_off_did_not_count_as_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("all.jsonl");
        let mut export: Vec<u8> = vec![];
        full::write_header(&mut export).expect("the first line");
        let session = serde_json::json!({"session": {
            "key": "slack:dm:U1", "created_at_ms": 1, "active_at_ms": 2, "turns": 1, "dropped_turns": 0,
            "marker": null, "messages": 2, "live": 0,
        }});
        std::fs::write(&path, [export, format!("{session}\n").into_bytes()].concat()).expect("a file");
        let results = of_file(path.clone());
        assert!(matches!(&results.problems[..], [told] if told.contains("` ends early, at line ")), "{results:?}");
        assert_eq!(results.left_out, 1);
        assert!(matches!(&results.cut_off[..], [cut] if cut.path == path && cut.leaves_out), "{results:?}");
    }

    fn of_file(path: PathBuf) -> Results {
        let found = Source::File(HistoryFile { name: "all.jsonl".into(), short: vec![], path, key: None });
        let comparison = Comparison { arms: &[], setup: &setup(), questions: None, jobs: 1 };
        comparison.run(vec![found], &LooksAway).expect("results")
    }

    struct Panics;

    impl Watch for Panics {
        fn done(&self) {
            panic!("nobody looks at {}", "this");
        }

        fn more(&self) {}
    }

    #[test]
    fn a_comparison_whose_workers_all_panic_ends_and_says_so() {
        let (ended, outcome) = channel();
        // Runs on a thread of its own, so that a comparison that hangs fails the test instead of hanging it.
        thread::spawn(move || {
            let comparison = Comparison { arms: &[], setup: &setup(), questions: None, jobs: 2 };
            let found = |n| {
                let (name, path) = (format!("{n}"), format!("/nowhere/{n}.json").into());
                Source::File(HistoryFile { name, short: vec![], path, key: None })
            };
            // More than the workers take before they are gone, and more than the queue holds.
            ended.send(comparison.run((0..100).map(found).collect(), &Panics).map(drop))
        });
        let outcome = outcome.recv_timeout(Duration::from_secs(30)).expect("it hangs");
        assert_eq!(outcome, Err(Panicked("nobody looks at this".into())));
    }
}
