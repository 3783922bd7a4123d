//! Records which changes the gateway has acknowledged, and checks that the model then sees nothing that it should not.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pmk_core::{Block, Message, Origin, Role};

use crate::{
    model::{CLOSE, OPEN},
    slack::FIRST_OF_CONTACTS,
};

/// The name of a question's text, in its original or an edited version.
pub fn version(number: usize, version: u32) -> String {
    format!("{OPEN}k{number}v{version}{CLOSE}")
}

/// The name of the files that came with such a version.
pub fn files(number: usize, version: u32) -> String {
    format!("{OPEN}f{number}v{version}{CLOSE}")
}

/// The name of the answer of a model call.
pub fn answer(call: u64) -> String {
    format!("{OPEN}a{call}{CLOSE}")
}

/// What a long answer of a model call ends with.
pub fn end(call: u64) -> String {
    format!("{OPEN}e{call}{CLOSE}")
}

/// The versions of questions in a text.
fn versions(text: &str) -> impl Iterator<Item = (usize, u32)> {
    called(text).filter_map(|name| numbered(name.strip_prefix('k')?))
}

/// The versions whose files are in a text.
fn versions_of_files(text: &str) -> impl Iterator<Item = (usize, u32)> {
    called(text).filter_map(|name| numbered(name.strip_prefix('f')?))
}

fn numbered(name: &str) -> Option<(usize, u32)> {
    let (number, version) = name.split_once('v')?;
    Some((number.parse().ok()?, version.parse().ok()?))
}

/// The answers in a text.
pub fn answers(text: &str) -> impl Iterator<Item = u64> {
    called(text).filter_map(|name| name.strip_prefix('a')?.parse().ok())
}

/// All names in a text, as they stand there.
fn names(text: &str) -> impl Iterator<Item = String> {
    called(text).map(|name| format!("{OPEN}{name}{CLOSE}"))
}

fn called(text: &str) -> impl Iterator<Item = &str> {
    text.split(OPEN).skip(1).filter_map(|piece| Some(piece.split_once(CLOSE)?.0))
}

/// A text without what may be between its words.
fn solid(text: &str) -> String {
    text.split_whitespace().collect()
}

/// The record of acknowledged changes.
#[derive(Default)]
pub struct Witness(Mutex<Known>);

/// Something was acknowledged at these times first.
type Since<K> = BTreeMap<K, u64>;

#[derive(Default)]
struct Known {
    /// The acknowledged versions of each edited question.
    edited: BTreeMap<usize, Since<u32>>,
    /// The same for edits before any answer can have been made: no earlier version may be seen anywhere.
    edited_in_time: BTreeMap<usize, Since<u32>>,
    /// Those of them that came after their questions: no earlier file may be seen either. One that comes before is known by
    /// its text alone.
    files_edited_in_time: BTreeMap<usize, Since<u32>>,
    deleted: Since<usize>,
    deleted_in_time: BTreeSet<usize>,
    stopped_in_time: Since<usize>,
    answers_deleted: Since<u64>,
    /// The questions that each answer of the model is for.
    answered: BTreeMap<u64, Vec<usize>>,
    /// The names of what was erased with its conversation: no request may show it.
    erased: Since<String>,
    /// Those of them whose receipts are erased, too: nothing may hold them.
    erased_whole: BTreeSet<String>,
    /// Questions that are the first of their conversations, because everything before them was erased.
    first: BTreeSet<usize>,
    /// What it said, by the call.
    answers: BTreeMap<u64, String>,
    /// Questions that may have been answered.
    settled: BTreeSet<usize>,
    /// Questions that may have been stopped, by what is not acknowledged yet.
    stopping: BTreeSet<usize>,
    /// Requests that were cancelled while the model processed them: when, and what they asked.
    given_up: Vec<(u64, Vec<usize>)>,
    /// Requests that the model did not answer: when, and what they asked.
    hindered: Vec<(u64, Vec<usize>)>,
    /// The input and the output tokens of what the model has answered.
    spent: [u64; 2],
    /// The requests that it has refused as too long: those that were to answer people, and all.
    refused: [u64; 2],
}

impl Witness {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The model or the gateway may have answered it: later changes come too late.
    pub fn settle(&self, number: usize) {
        self.known().settled.insert(number);
    }

    /// From now on a question may be stopped.
    pub fn may_stop(&self, number: usize) {
        self.known().stopping.insert(number);
    }

    /// The model may have said what the contacts' messages in this text are.
    pub fn settle_replies(&self, text: &str) {
        let numbers = versions(text).map(|(number, _)| number).filter(|&number| number >= FIRST_OF_CONTACTS);
        numbers.for_each(|number| self.settle(number));
    }

    /// The model has said this.
    pub fn answered_with(&self, call: u64, text: &str) {
        self.known().answers.insert(call, solid(text));
    }

    /// Whether a text holds all that the model said in this call.
    pub fn is_whole(&self, call: u64, text: &str) -> bool {
        self.known().answers.get(&call).is_none_or(|said| solid(text).contains(said))
    }

    /// The gateway has acknowledged an edit of a question, which it knew or not when the edit came.
    pub fn edited(&self, at: u64, number: usize, version: u32, is_known: bool) {
        let mut known = self.known();
        let in_time = !known.settled.contains(&number) && !known.stopping.contains(&number);
        known.edited.entry(number).or_default().entry(version).or_insert(at);
        if in_time {
            known.edited_in_time.entry(number).or_default().entry(version).or_insert(at);
            if is_known {
                known.files_edited_in_time.entry(number).or_default().entry(version).or_insert(at);
            }
        }
    }

    /// The gateway has acknowledged the deletion of a question. With `everything`, its answer is deleted as well.
    pub fn deleted(&self, at: u64, number: usize, everything: bool) {
        let mut known = self.known();
        let in_time = !known.settled.contains(&number) && !known.stopping.contains(&number);
        if in_time {
            known.deleted_in_time.insert(number);
        }
        if in_time || everything {
            known.deleted.entry(number).or_insert(at);
        }
    }

    /// The gateway has acknowledged that the answer to a question is not wanted.
    pub fn stopped(&self, at: u64, number: usize) {
        let mut known = self.known();
        if known.settled.insert(number) {
            known.stopped_in_time.insert(number, at);
        }
    }

    /// The model has answered, declined or broken off, for so many input and output tokens.
    pub fn spent(&self, input: u64, output: u64) {
        let spent = &mut self.known().spent;
        *spent = [spent[0] + input, spent[1] + output];
    }

    /// The input and the output tokens of all that the model has answered.
    pub fn all_spent(&self) -> [u64; 2] {
        self.known().spent
    }

    /// The model has refused a request as too long, in words that everybody understands.
    pub fn refused(&self, answers_people: bool) {
        let [of_people, all] = &mut self.known().refused;
        *of_people += u64::from(answers_people);
        *all += 1;
    }

    /// How many requests it has refused so: those that were to answer people, and all.
    pub fn all_refused(&self) -> [u64; 2] {
        self.known().refused
    }

    /// A request that asks these questions was cancelled.
    pub fn given_up(&self, at: u64, asked: &[usize]) {
        self.known().given_up.push((at, asked.to_vec()));
    }

    /// All requests that were cancelled in this period.
    pub fn all_given_up(&self, between: RangeInclusive<u64>) -> Vec<Vec<usize>> {
        let known = self.known();
        known.given_up.iter().filter(|(at, _)| between.contains(at)).map(|(_, asked)| asked.clone()).collect()
    }

    /// The model gave no answer to a request that asks these questions.
    pub fn hindered(&self, at: u64, asked: &[usize]) {
        self.known().hindered.push((at, asked.to_vec()));
    }

    /// Whether it gave none to a request that asks this question, or in this period to one that asks none: a turn may need
    /// a summary.
    pub fn is_hindered(&self, number: usize, between: &RangeInclusive<u64>) -> bool {
        let is_about = |asked: &[usize], at| asked.contains(&number) || asked.is_empty() && between.contains(at);
        self.known().hindered.iter().any(|(at, asked)| is_about(asked, at))
    }

    /// It is asked again on request.
    pub fn wanted_again(&self, number: usize) {
        self.known().stopped_in_time.remove(&number);
    }

    /// The gateway has acknowledged the deletion of these answers.
    pub fn answers_deleted(&self, at: u64, calls: impl Iterator<Item = u64>) {
        let mut known = self.known();
        calls.for_each(|call| _ = known.answers_deleted.entry(call).or_insert(at));
    }

    /// The model answers these questions with this call.
    pub fn answered(&self, call: u64, asked: &[usize]) {
        self.known().answered.insert(call, asked.to_vec());
    }

    /// The names of what these questions say in all versions that are acknowledged, and of what has answered them.
    pub fn said(&self, questions: &BTreeSet<usize>) -> Vec<String> {
        let known = self.known();
        let mut said = Vec::new();
        for &number in questions {
            let edited = known.edited.get(&number).into_iter().flat_map(BTreeMap::keys).copied();
            let versions = edited.chain([0]);
            said.extend(versions.flat_map(|it| [version(number, it), files(number, it)]));
        }
        let of_them = known.answered.iter().filter(|(_, asked)| asked.iter().all(|number| questions.contains(number)));
        said.extend(of_them.flat_map(|(call, _)| [answer(*call), end(*call)]));
        said
    }

    /// What has these names was erased with its conversation, up to receipts.
    pub fn erased(&self, at: u64, names: &[String]) {
        let mut known = self.known();
        names.iter().for_each(|name| _ = known.erased.entry(name.clone()).or_insert(at));
    }

    /// And so were the receipts.
    pub fn erased_whole(&self, names: Vec<String>) {
        self.known().erased_whole.extend(names);
    }

    /// These questions were erased, and what answered them was not: as if they were deleted once they were answered.
    pub fn erased_messages(&self, at: u64, numbers: impl Iterator<Item = usize>) {
        let mut known = self.known();
        numbers.for_each(|number| _ = known.deleted.entry(number).or_insert(at));
    }

    /// A question will be the first one in its conversation, in which everything was erased.
    pub fn begins_anew(&self, number: usize) {
        self.known().first.insert(number);
    }

    /// Whether anything was changed that must not be kept as it was.
    pub fn has_changed(&self) -> bool {
        let known = self.known();
        let nothing_deleted = known.deleted.is_empty() && known.answers_deleted.is_empty();
        !nothing_deleted || !known.edited_in_time.is_empty() || !known.erased_whole.is_empty()
    }

    /// What occurs in this text although it was erased with its conversation, if anything.
    pub fn erased_in(&self, text: &str) -> Option<String> {
        let known = self.known();
        names(text).find(|name| known.erased_whole.contains(name))
    }

    /// The same of a term of the index, which begins with its conversation.
    pub fn erased_term(&self, term: &str) -> Option<String> {
        let (_, term) = term.split_once('=')?;
        self.erased_in(&format!("{OPEN}{term}{CLOSE}"))
    }

    /// The deleted question or answer that a term of the index belongs to, if any; the term begins with its
    /// conversation.
    pub fn gone_term(&self, term: &str) -> Option<String> {
        let term = term.split_once('=')?.1;
        let known = self.known();
        if let Some((number, _)) = term.strip_prefix(['k', 'f']).and_then(numbered) {
            return known.deleted.contains_key(&number).then(|| format!("q{number}"));
        }
        let call = answers(&format!("{OPEN}{term}{CLOSE}")).find(|call| known.answers_deleted.contains_key(call));
        call.map(|call| format!("the answer {call}"))
    }

    /// Whether it was deleted while it waited, so that it has no answer.
    pub fn went_in_time(&self, number: usize) -> bool {
        self.known().deleted_in_time.contains(&number)
    }

    /// A deleted question or answer whose text occurs in this text, or a question that was edited before any answer can
    /// have been made, as it was before; if any.
    pub fn gone_in(&self, text: &str) -> Option<String> {
        let known = self.known();
        let is_left = |(number, version): (usize, u32), edited: &BTreeMap<usize, Since<u32>>| {
            if known.deleted.contains_key(&number) {
                return Some(format!("q{number} was deleted, and is"));
            }
            is_old((number, version), edited, u64::MAX).then(|| format!("q{number} was edited, and is as it was"))
        };
        let answer = || answers(text).find(|call| known.answers_deleted.contains_key(call));
        let said = versions(text).find_map(|version| is_left(version, &known.edited_in_time));
        said.or_else(|| versions_of_files(text).find_map(|version| is_left(version, &known.files_edited_in_time)))
            .or_else(|| answer().map(|call| format!("the answer {call} was deleted, and is")))
    }

    /// What a request that asks these questions should not contain, if anything, where all changes are known that were
    /// acknowledged by then.
    pub fn object_to(&self, messages: &[Arc<Message>], asked: &[usize], by: u64) -> Option<String> {
        let known = self.known();
        if !known.erased.is_empty() {
            let mut shown = messages.iter().flat_map(|message| texts(message)).flat_map(names);
            if let Some(name) = shown.find(|name| is_known(&known.erased, name, by)) {
                return Some(format!("shows {name}, which was erased with its conversation"));
            }
        }
        let is_summary = |message: &Arc<Message>| message.origin == Origin::Summary;
        if asked.iter().any(|number| known.first.contains(number)) && messages.iter().any(is_summary) {
            return Some("shows a summary of a conversation that was erased".to_owned());
        }
        let nothing_changed = known.edited.is_empty() && known.deleted.is_empty() && known.stopped_in_time.is_empty();
        if nothing_changed && known.answers_deleted.is_empty() {
            return None;
        }
        for message in messages {
            // Nothing can be removed from a summary.
            if message.origin == Origin::Summary {
                continue;
            }
            for text in texts(message) {
                if message.role == Role::Assistant {
                    if let Some(call) = answers(text).find(|call| is_known(&known.answers_deleted, call, by)) {
                        return Some(format!("shows the answer {call}, which was deleted"));
                    }
                    continue;
                }
                for (number, version) in versions(text) {
                    if is_known(&known.deleted, &number, by) {
                        return Some(format!("shows q{number}, which was deleted"));
                    }
                    if is_old((number, version), &known.edited_in_time, by) {
                        return Some(format!("shows q{number} as it was before it was edited"));
                    }
                }
                for (number, version) in versions_of_files(text) {
                    if is_known(&known.deleted, &number, by) {
                        return Some(format!("shows the files of q{number}, which was deleted"));
                    }
                    if is_old((number, version), &known.files_edited_in_time, by) {
                        return Some(format!("shows files that q{number} had before it was edited"));
                    }
                }
            }
        }
        let last = messages.last().and_then(|message| texts(message).last())?;
        if asked.is_empty() {
            return None;
        }
        // What a contact says is heard once, and stays in what is told of their exchange.
        let is_asked_again = |number: usize| number < FIRST_OF_CONTACTS;
        let is_old = |asks: &(usize, u32)| is_asked_again(asks.0) && is_old(*asks, &known.edited, by);
        if let Some((number, _)) = versions(last).find(is_old) {
            return Some(format!("asks q{number} as it was before it was edited"));
        }
        let stopped = asked.iter().find(|number| is_known(&known.stopped_in_time, number, by))?;
        Some(format!("asks q{stopped}, which was stopped"))
    }
}

/// Whether a newer version was acknowledged by then.
fn is_old((number, version): (usize, u32), edited: &BTreeMap<usize, Since<u32>>, by: u64) -> bool {
    let mut newer = edited.get(&number).into_iter().flat_map(|versions| versions.range(version + 1..));
    newer.any(|(_, since)| *since <= by)
}

/// Whether it was acknowledged by then.
fn is_known<K: Ord>(all: &Since<K>, what: &K, by: u64) -> bool {
    all.get(what).is_some_and(|since| *since <= by)
}

fn texts(message: &Message) -> impl DoubleEndedIterator<Item = &str> {
    message.blocks.iter().filter_map(|block| if let Block::Text { text } = block { Some(text.as_str()) } else { None })
}
