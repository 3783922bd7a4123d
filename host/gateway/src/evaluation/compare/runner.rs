//! All conversations, several at a time. Each is read when its turn comes and forgotten when it is done.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SendError, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use pmk_system::panics;
use thiserror::Error;

use super::{
    histories::{self, Conversation, Source},
    metrics::{ArmOutcome, Totals},
    questions::{self, Questions, Score},
    recording::Recording,
    replay::{Arm, Replay, Setup},
};
/// What is replayed, and how.
pub struct Comparison<'a> {
    pub arms: &'a [Arm],
    pub setup: &'a Setup,
    pub questions: Option<&'a Questions>,
    /// Conversations at a time.
    pub jobs: usize,
}

/// A conversation that was replayed.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Its place among all.
    pub number: usize,
    pub name: String,
    pub turns: usize,
    /// One of each policy.
    pub outcomes: Vec<ArmOutcome>,
    /// In which turns each policy dropped how many, the turns counted from 0.
    pub drops: Vec<BTreeMap<usize, u64>>,
}

/// What came of all.
#[derive(Debug, Default)]
pub struct Results {
    pub conversations: Vec<Replayed>,
    /// One of each policy.
    pub totals: Vec<Totals>,
    /// Questions that were asked.
    pub asked: u64,
    /// What could not be read or asked, one line each.
    pub problems: Vec<String>,
}

/// A replay panicked, which is a bug. What the others came to is worth nothing without it: each policy is to be
/// measured on the same conversations.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("a replay failed because of a bug in this program: {0}")]
pub struct Panicked(String);

/// What happens meanwhile.
pub trait Watch: Sync {
    /// A conversation is done.
    fn done(&self);
    /// There are more conversations than files.
    fn more(&self);
}

/// A conversation and its place among all.
type Job = (usize, Conversation);

/// Where workers find what is to be done. They alone own it: when the last of them is gone, nothing more can be
/// sent, so whoever sends never waits for nobody.
type Waiting = Arc<Mutex<Receiver<Job>>>;

impl Comparison<'_> {
    /// Replays every conversation with every policy.
    ///
    /// # Errors
    /// A replay panicked.
    pub fn run(&self, found: Vec<Source>, watch: &dyn Watch) -> Result<Results, Panicked> {
        let (jobs, waiting) = sync_channel::<Job>(2 * self.jobs);
        let waiting = Arc::new(Mutex::new(waiting));
        let (parts, mut unread) = thread::scope(|scope| {
            let start = |_| {
                let waiting = Arc::clone(&waiting);
                scope.spawn(move || self.work(&waiting, watch))
            };
            let workers: Vec<_> = (0..self.jobs).map(start).collect();
            drop(waiting);
            let mut unread = Vec::new();
            // It only fails where no worker is left, and why is known once they are joined.
            let _ = hand_out(found, &jobs, &mut unread, watch);
            drop(jobs);
            // All of them, so that the scope does not panic for one that was not asked.
            let parts: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
            (parts, unread)
        });
        let mut parts: Vec<Part> =
            parts.into_iter().collect::<Result<_, _>>().map_err(|panic| Panicked(panics::words(&*panic)))?;
        let mut results = Results { totals: vec![Totals::default(); self.arms.len()], ..Results::default() };
        for part in &mut parts {
            results.conversations.append(&mut part.conversations);
            results.asked += part.asked;
            unread.append(&mut part.problems);
            for (totals, other) in results.totals.iter_mut().zip(std::mem::take(&mut part.totals)) {
                totals.merge(other);
            }
        }
        // In the order of the files, whoever was first.
        results.conversations.sort_by_key(|replayed| replayed.number);
        unread.sort();
        results.problems = unread.into_iter().map(|(_, problem)| problem).collect();
        Ok(results)
    }

    fn work(&self, waiting: &Waiting, watch: &dyn Watch) -> Part {
        let mut part = Part { totals: vec![Totals::default(); self.arms.len()], ..Part::default() };
        loop {
            // Another worker's panic leaves nothing half taken.
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok((number, conversation)) = next else { return part };
            match conversation.open() {
                Ok((names, recording)) if recording.turns.is_empty() => {
                    part.problems.push((number, format!("`{}`: it contains no user message", names[0])));
                }
                Ok((names, recording)) => self.replay(&mut part, number, names, &recording),
                Err(error) => part.problems.push((number, error.to_string())),
            }
            watch.done();
        }
    }

    fn replay(&self, part: &mut Part, number: usize, names: Vec<String>, recording: &Recording) {
        let about = self.questions.map(|questions| questions.about(&names)).unwrap_or_default();
        let (placed, problems) = questions::place(about, recording);
        part.asked += placed.len() as u64;
        let name = names.into_iter().next().unwrap_or_default();
        let told = recording.repairs.iter().cloned().chain(problems);
        part.problems.extend(told.map(|problem| (number, format!("`{name}`: {problem}"))));
        let mut drops = Vec::with_capacity(self.arms.len());
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
            ArmOutcome { tally: seen.tally, score }
        });
        let outcomes = outcomes.collect();
        part.conversations.push(Replayed { number, name, turns: recording.turns.len(), outcomes, drops });
    }
}

/// Gives every conversation to the workers, and notes which cannot be read.
///
/// # Errors
/// There are no workers any more.
fn hand_out(
    found: Vec<Source>,
    jobs: &SyncSender<Job>,
    unread: &mut Vec<(usize, String)>,
    watch: &dyn Watch,
) -> Result<(), SendError<Job>> {
    let mut number = 0;
    for source in found {
        for (at, conversation) in histories::of_source(source).enumerate() {
            if at > 0 {
                watch.more();
            }
            match conversation {
                Ok(conversation) => jobs.send((number, conversation))?,
                Err(error) => {
                    unread.push((number, error.to_string()));
                    watch.done();
                }
            }
            number += 1;
        }
    }
    Ok(())
}

/// One worker's part.
#[derive(Default)]
struct Part {
    conversations: Vec<Replayed>,
    totals: Vec<Totals>,
    asked: u64,
    problems: Vec<(usize, String)>,
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::evaluation::compare::histories::HistoryFile;
    use pmk_models::sim::{Sim, SimConfig};

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
        // On a thread of its own, so that a comparison that hangs fails and does not hang the test.
        thread::spawn(move || {
            let setup = Setup {
                window: 8_000,
                budget: None,
                sim: Sim::new(SimConfig::default()),
                seed_may_go: false,
                history_turns: None,
                by_receipts: false,
            };
            let comparison = Comparison { arms: &[], setup: &setup, questions: None, jobs: 2 };
            let found = |n| {
                Source::File(HistoryFile { name: format!("{n}"), path: format!("/nowhere/{n}.json").into(), key: None })
            };
            // More than the workers take before they are gone, and more than can wait for them.
            ended.send(comparison.run((0..100).map(found).collect(), &Panics).map(drop))
        });
        let outcome = outcome.recv_timeout(Duration::from_secs(30)).expect("it hangs");
        assert_eq!(outcome, Err(Panicked("nobody looks at this".into())));
    }
}
