//! What the gateway has said that it knows of changes, and whether the model sees anything that it should not by then.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pmk_core::{Block, Message, Origin, Role};

use crate::model::{CLOSE, OPEN};

/// What a text of a question is called, as it was written, or edited for so many times.
pub fn version(number: usize, version: u32) -> String {
    format!("{OPEN}k{number}v{version}{CLOSE}")
}

/// What the answer of a call of the model is called.
pub fn answer(call: u64) -> String {
    format!("{OPEN}a{call}{CLOSE}")
}

/// The versions of questions that stand in a text.
fn versions(text: &str) -> impl Iterator<Item = (usize, u32)> {
    called(text).filter_map(|name| {
        let (number, version) = name.strip_prefix('k')?.split_once('v')?;
        Some((number.parse().ok()?, version.parse().ok()?))
    })
}

/// The answers that stand in a text.
pub fn answers(text: &str) -> impl Iterator<Item = u64> {
    called(text).filter_map(|name| name.strip_prefix('a')?.parse().ok())
}

fn called(text: &str) -> impl Iterator<Item = &str> {
    text.split(OPEN).skip(1).filter_map(|piece| Some(piece.split_once(CLOSE)?.0))
}

/// Who remembers.
#[derive(Default)]
pub struct Witness(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The last version that was taken in, of a question that was edited.
    edited: BTreeMap<usize, u32>,
    /// The same where nobody can have answered it by then: no earlier one is to be seen anywhere.
    edited_in_time: BTreeMap<usize, u32>,
    deleted: BTreeSet<usize>,
    deleted_in_time: BTreeSet<usize>,
    stopped_in_time: BTreeSet<usize>,
    answers_deleted: BTreeSet<u64>,
    /// Questions that may have an answer.
    settled: BTreeSet<usize>,
    /// Requests that were given up while the model thought about them, when, and what they asked.
    given_up: Vec<(u64, Vec<usize>)>,
}

impl Witness {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The model, or the gateway, may have answered it: what is changed about it now comes later.
    pub fn settle(&self, number: usize) {
        self.known().settled.insert(number);
    }

    /// The gateway knows that a question says something else.
    pub fn edited(&self, number: usize, version: u32) {
        let mut known = self.known();
        let in_time = !known.settled.contains(&number);
        let newest = |all: &mut BTreeMap<usize, u32>| {
            let last = all.entry(number).or_default();
            *last = version.max(*last);
        };
        newest(&mut known.edited);
        if in_time {
            newest(&mut known.edited_in_time);
        }
    }

    /// The gateway knows that a question is there no more. `everything`: what was answered is erased, too.
    pub fn deleted(&self, number: usize, everything: bool) {
        let mut known = self.known();
        let in_time = !known.settled.contains(&number);
        if in_time {
            known.deleted_in_time.insert(number);
        }
        if in_time || everything {
            known.deleted.insert(number);
        }
    }

    /// The gateway knows that the answer to a question that it has is not wanted.
    pub fn stopped(&self, number: usize) {
        let mut known = self.known();
        if known.settled.insert(number) {
            known.stopped_in_time.insert(number);
        }
    }

    /// A request that asks these was given up.
    pub fn given_up(&self, at: u64, asked: &[usize]) {
        self.known().given_up.push((at, asked.to_vec()));
    }

    /// All that were, in that time.
    pub fn all_given_up(&self, between: RangeInclusive<u64>) -> Vec<Vec<usize>> {
        let known = self.known();
        known.given_up.iter().filter(|(at, _)| between.contains(at)).map(|(_, asked)| asked.clone()).collect()
    }

    /// It is asked once more by somebody's wish.
    pub fn wanted_again(&self, number: usize) {
        self.known().stopped_in_time.remove(&number);
    }

    /// The gateway knows that these answers are there no more.
    pub fn answers_deleted(&self, calls: impl Iterator<Item = u64>) {
        self.known().answers_deleted.extend(calls);
    }

    /// Whether anything was deleted.
    pub fn has_deleted(&self) -> bool {
        !self.known().deleted.is_empty()
    }

    /// The deleted question that a word of the index is of, which begins with its conversation, if it is.
    pub fn gone_term(&self, term: &str) -> Option<String> {
        let number = term.split_once('=')?.1.strip_prefix('k')?.split_once('v')?.0.parse().ok()?;
        self.known().deleted.contains(&number).then(|| format!("q{number}"))
    }

    /// What was deleted while it waited: it has no answer.
    pub fn went_in_time(&self, number: usize) -> bool {
        self.known().deleted_in_time.contains(&number)
    }

    /// The texts of what was deleted that are still to be found in one, as far as they are.
    pub fn gone_in(&self, text: &str) -> Option<String> {
        let known = self.known();
        let question = versions(text).find(|(number, _)| known.deleted.contains(number));
        question.map(|(number, _)| format!("q{number}"))
    }

    /// What of a request should not be there, if anything, which asks these questions.
    pub fn object_to(&self, messages: &[Arc<Message>], asked: &[usize]) -> Option<String> {
        let known = self.known();
        let nothing_changed = known.edited.is_empty() && known.deleted.is_empty() && known.stopped_in_time.is_empty();
        if nothing_changed && known.answers_deleted.is_empty() {
            return None;
        }
        for message in messages {
            // Nobody can take a message out of a summary.
            if message.origin == Origin::Summary {
                continue;
            }
            for text in texts(message) {
                if message.role == Role::Assistant {
                    if let Some(call) = answers(text).find(|call| known.answers_deleted.contains(call)) {
                        return Some(format!("shows the answer {call}, which was deleted"));
                    }
                    continue;
                }
                for (number, version) in versions(text) {
                    if known.deleted.contains(&number) {
                        return Some(format!("shows q{number}, which was deleted"));
                    }
                    if known.edited_in_time.get(&number).is_some_and(|last| version < *last) {
                        return Some(format!("shows q{number} as it was before it was edited"));
                    }
                }
            }
        }
        let last = messages.last().and_then(|message| texts(message).last())?;
        if asked.is_empty() {
            return None;
        }
        if let Some((number, _)) = versions(last).find(|(n, version)| known.edited.get(n).is_some_and(|v| version < v))
        {
            return Some(format!("asks q{number} as it was before it was edited"));
        }
        let stopped = asked.iter().find(|number| known.stopped_in_time.contains(number))?;
        Some(format!("asks q{stopped}, which was stopped"))
    }
}

fn texts(message: &Message) -> impl DoubleEndedIterator<Item = &str> {
    message.blocks.iter().filter_map(|block| if let Block::Text { text } = block { Some(text.as_str()) } else { None })
}
