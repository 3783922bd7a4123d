//! All conversations, several at a time. Each is read when its turn comes and forgotten when it is done.

use std::{
    sync::{
        Mutex,
        mpsc::{Receiver, sync_channel},
    },
    thread,
    time::Duration,
};

use super::{
    histories::{self, Conversation, Found},
    metrics::{Outcome, Totals},
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
    pub outcomes: Vec<Outcome>,
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

/// What happens meanwhile.
pub trait Watch: Sync {
    /// A conversation is done.
    fn done(&self);
    /// There are more conversations than files.
    fn more(&self);
}

impl Comparison<'_> {
    /// Replays every conversation with every policy.
    pub fn run(&self, found: Vec<Found>, watch: &dyn Watch) -> Results {
        let (jobs, waiting) = sync_channel::<(usize, Conversation)>(2 * self.jobs);
        let waiting = Mutex::new(waiting);
        let (mut parts, mut unread) = thread::scope(|scope| {
            let workers: Vec<_> = (0..self.jobs).map(|_| scope.spawn(|| self.work(&waiting, watch))).collect();
            let mut unread = Vec::new();
            let mut number = 0;
            for file in found {
                for (at, conversation) in histories::of_file(file).enumerate() {
                    if at > 0 {
                        watch.more();
                    }
                    match conversation {
                        // The workers take everything there is, so this only fails where one has panicked.
                        Ok(conversation) => drop(jobs.send((number, conversation))),
                        Err(error) => {
                            unread.push((number, error.to_string()));
                            watch.done();
                        }
                    }
                    number += 1;
                }
            }
            drop(jobs);
            let parts: Vec<Part> =
                workers.into_iter().map(|worker| worker.join().expect("a replay does not panic")).collect();
            (parts, unread)
        });
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
        results
    }

    fn work(&self, waiting: &Mutex<Receiver<(usize, Conversation)>>, watch: &dyn Watch) -> Part {
        let mut part = Part { totals: vec![Totals::default(); self.arms.len()], ..Part::default() };
        loop {
            // Another worker's panic leaves nothing half taken.
            let next = waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner).recv();
            let Ok((number, conversation)) = next else { return part };
            match conversation.open() {
                Ok((names, recording)) if recording.turns.is_empty() => {
                    part.problems.push((number, format!("`{}`: nobody asks anything in it", names[0])));
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
        let outcomes = self.arms.iter().zip(&mut part.totals).map(|(arm, totals)| {
            let mut replay = Replay::new(arm, self.setup, recording);
            let mut score = Score::default();
            replay.run(&placed, |category, one| {
                score += one;
                *totals.scores.entry(category.to_owned()).or_default() += one;
            });
            for call in &replay.seen.calls {
                totals.sizes.add(call.tokens);
                if call.is_first {
                    totals.add_turn(call.turn, call.tokens);
                }
            }
            for &us in &replay.seen.times {
                totals.times.add(us);
                totals.time += Duration::from_micros(us);
            }
            Outcome { tally: replay.seen.tally, score }
        });
        let outcomes = outcomes.collect();
        part.conversations.push(Replayed { number, name, turns: recording.turns.len(), outcomes });
    }
}

/// One worker's part.
#[derive(Default)]
struct Part {
    conversations: Vec<Replayed>,
    totals: Vec<Totals>,
    asked: u64,
    problems: Vec<(usize, String)>,
}
