//! Checks the effects of people's changes and wishes.

use std::{collections::BTreeMap, path::Path};

use pmk_host::chat::{Choice, Press};
use rusqlite::{Connection, types::ValueRef};
use serde_json::Value;

use super::{Verdict, is_answer};
use crate::{
    database::WorldsDatabase,
    slack::{Done, FIRST_OF_CONTACTS, News, Question},
    witness::Witness,
};

/// An action within this many milliseconds of a stop may be the reason why a request was cancelled.
const AROUND: u64 = 10_000;

impl Verdict<'_> {
    /// The news that it was deleted, if the gateway was told. It may know although it could not say so.
    fn deletion(&self, question: &Question) -> Option<&Done> {
        let deletes = |done: &&Done| matches!(done.news, News::Deleted { .. }) && done.first_sent_at.is_some();
        self.done.iter().filter(deletes).find(|done| done.about.contains(&question.number))
    }

    /// Whether the gateway may know that it was deleted.
    pub(super) fn is_called_off(&self, question: &Question) -> bool {
        self.deletion(question).is_some()
    }

    /// A deletion excuses only a question that still waited when it came: the ledger says of how many that is so.
    pub(super) fn judge_deletions(&self, lines: &[Value], breaches: &mut Vec<String>) {
        let mut unanswered: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        // What contacts say need not be answered.
        let asked = self.questions.iter().filter(|question| question.number < FIRST_OF_CONTACTS);
        for question in asked.filter(|question| self.replies(question).is_empty()) {
            let (Some(came), Some(deletion)) = (question.accepted_at, self.deletion(question)) else { continue };
            let is_set_aside = self.parked(question).is_some() || self.went_parked(question);
            // One that is deleted before it comes is never asked, even if nobody heard that the deletion was stored.
            if deletion.first_sent_at.is_none_or(|sent| sent > came) && !is_set_aside {
                unanswered.entry(question.inbound.key.to_string()).or_default().push(question.number);
            }
        }
        for (key, unanswered) in unanswered {
            let is_of_waiting =
                |line: &&Value| line["type"] == "message.deleted" && line["session"] == *key && line["waiting"] == true;
            let waited = lines.iter().filter(is_of_waiting).count();
            if waited < unanswered.len() {
                breaches
                    .push(format!("{unanswered:?} have no answer, and {waited} of them waited when they were deleted"));
            }
        }
    }

    /// Whether somebody wants its answer to stop.
    pub(super) fn is_to_stop(&self, number: usize) -> bool {
        let stops = |news: &News| matches!(news, News::Stop(_));
        self.done.iter().any(|done| stops(&done.news) && done.about.contains(&number))
    }

    /// How often a question of this conversation was to be asked again: what was answered together is asked again
    /// together.
    pub(super) fn wishes_in(&self, question: &Question) -> usize {
        let is_here = |number: &usize| {
            let mut questions = self.questions.iter();
            questions.any(|other| other.number == *number && other.inbound.key == question.inbound.key)
        };
        self.wishes().filter(|about| about.iter().any(is_here)).count()
    }

    /// Whether the gateway had been told by then that it is to be asked again.
    pub(super) fn was_wanted_again(&self, number: usize, by: u64) -> bool {
        let told = |done: &Done| asks_again(&done.news) && done.told_at.is_some_and(|at| at <= by);
        self.done.iter().any(|done| told(done) && done.about.contains(&number))
    }

    /// Whether somebody wished it to be asked again.
    pub(super) fn is_wished_again(&self, question: &Question) -> bool {
        self.wishes().any(|about| about.contains(&question.number))
    }

    /// The questions that are to be asked again, by wish.
    fn wishes(&self) -> impl Iterator<Item = &[usize]> {
        self.done.iter().filter(|done| asks_again(&done.news)).map(|done| done.about.as_slice())
    }

    /// Each wish must be fulfilled once, and each press be processed.
    pub(super) fn judge_wishes(&self, lines: &[Value], breaches: &mut Vec<String>) {
        let mut answers: BTreeMap<&str, usize> = BTreeMap::new();
        let again = self.posts.iter().filter(|post| post.is_there() && is_answer(post));
        for post in again.filter(|post| post.shows.event_id.starts_with(":again:")) {
            *answers.entry(&post.shows.event_id).or_default() += 1;
        }
        for (wish, answers) in answers.into_iter().filter(|(_, answers)| *answers > 1) {
            breaches.push(format!("{wish} was answered {answers} times"));
        }
        // A button's message causes at most one repetition.
        let mut wishes: Vec<String> = self
            .done
            .iter()
            .filter_map(|done| match &done.news {
                News::Again(reaction) => reaction.event_id.clone(),
                News::Press(press) if press.choice == Choice::Again => {
                    Some(format!("{}:{}", press.message.channel, press.message.ts))
                }
                _ => None,
            })
            .collect();
        wishes.sort();
        wishes.dedup();
        let taken_up = lines.iter().filter(|line| line["type"] == "turn.again").count();
        if taken_up > wishes.len() {
            breaches.push(format!("questions were taken up again {taken_up} times by {} wishes", wishes.len()));
        }
        let open = self.kept.presses.iter().filter(|pressed| !self.is_fixed(&pressed.press.message.ts)).count();
        if open > 0 {
            breaches.push(format!("{open} buttons were pressed, and what they say is not done"));
        }
    }
}

impl Verdict<'_> {
    /// Where questions are answered one after the other, stopping a waiting one must not cancel the one in progress.
    /// This is checked only where there is no other possible reason for a cancellation: the process was never
    /// restarted, and nobody did anything else at that time.
    pub(super) fn judge_stops(&self, breaches: &mut Vec<String>) {
        if self.world.scenario.setting.queue != "sequential" {
            return;
        }
        for (place, done) in self.done.iter().enumerate() {
            let (News::Stop(reaction), Some(told), Some(accepted)) = (&done.news, done.told_at, done.accepted_at)
            else {
                continue;
            };
            let is_alone = self.done.iter().enumerate().all(|(other, one)| {
                let is_apart = |at: u64| at + AROUND < told || at > accepted + AROUND;
                other == place || one.told_at.zip(one.accepted_at).is_none_or(|(_, at)| is_apart(at))
            });
            let says_stop = |question: &&Question| question.is_stop && question.accepted_at.is_some();
            if !is_alone || self.questions.iter().any(|question| says_stop(&question)) {
                continue;
            }
            let stopped = self.questions.iter().filter(|question| question.inbound.ts == reaction.message.ts);
            for question in stopped {
                for asked in self.world.witness.all_given_up(told..=accepted) {
                    let is_here = |number: &usize| {
                        let mut all = self.questions.iter().filter(|other| other.number == *number);
                        all.any(|other| other.inbound.key == question.inbound.key)
                    };
                    if !asked.contains(&question.number) && asked.iter().any(is_here) {
                        let number = question.number;
                        breaches.push(format!("{asked:?} was given up while q{number}, which waits, was stopped"));
                    }
                }
            }
        }
    }
}

pub(super) fn asks_again(news: &News) -> bool {
    match news {
        News::Again(_) => true,
        News::Press(Press { choice, .. }) => *choice == Choice::Again,
        _ => false,
    }
}

/// The texts that were deleted, erased or edited away and are still in a database, in any table, including the columns of
/// search terms.
pub(super) fn left_in_database(witness: &Witness, database: &WorldsDatabase) -> Vec<String> {
    if !witness.has_changed() {
        return vec![];
    }
    let mut left = Vec::new();
    database.all_values(|table, value, is_of_summary| {
        left.extend(erased(witness, value, table));
        let mut terms = value.split(|c: char| c == ',' || c == '{' || c == '}' || c == '"' || c.is_whitespace());
        if let Some(name) = terms.clone().find_map(|term| witness.erased_term(term)) {
            left.push(format!("{name} was erased, and is found by `{table}`"));
        }
        // Summaries are exempt, unless their whole conversation was erased.
        if is_of_summary {
            return;
        }
        if let Some(what) = witness.gone_in(value) {
            left.push(format!("{what} in the table `{table}`"));
        }
        if let Some(what) = terms.find_map(|term| witness.gone_term(term)) {
            left.push(format!("{what} was deleted, and is found by `{table}`"));
        }
    });
    left.sort();
    left.dedup();
    left
}

/// What a value of a table holds although it was erased with its conversation, if anything.
fn erased(witness: &Witness, value: &str, table: &str) -> Option<String> {
    witness.erased_in(value).map(|name| format!("{name} was erased, and is in the table `{table}`"))
}

/// The same for a store in a file, in any table or index.
pub(super) fn left_in_file(witness: &Witness, store: &Path) -> Vec<String> {
    if !witness.has_changed() {
        return vec![];
    }
    let store = Connection::open(store).expect("the store opens");
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'said%'";
    let mut statement = store.prepare(tables).expect("readable");
    let tables: Vec<String> =
        statement.query_map([], |row| row.get(0)).expect("readable").map(|name| name.expect("a name")).collect();
    let mut left = Vec::new();
    for table in tables {
        // Summaries are exempt,
        let kept = if table == "message" { "WHERE origin <> 'summary'" } else { "" };
        each_value(&store, &format!("SELECT * FROM {table} {kept}"), |value| {
            left.extend(witness.gone_in(value).map(|what| format!("{what} in the table `{table}`")));
            left.extend(erased(witness, value, &table));
        });
    }
    // unless their whole conversation was erased.
    each_value(&store, "SELECT * FROM message WHERE origin = 'summary'", |value| {
        left.extend(erased(witness, value, "message"));
    });
    store.execute_batch("CREATE VIRTUAL TABLE temp.words USING fts5vocab('main', 'said', 'row')").expect("an index");
    let mut statement = store.prepare("SELECT term FROM temp.words").expect("readable");
    let mut rows = statement.query([]).expect("readable");
    while let Some(row) = rows.next().expect("readable") {
        let term: String = row.get(0).expect("a term");
        if let Some(what) = witness.gone_term(&term) {
            left.push(format!("{what} was deleted, and is found by the index"));
        }
        left.extend(witness.erased_term(&term).map(|name| format!("{name} was erased, and is found by the index")));
    }
    left.sort();
    left.dedup();
    left
}

/// Looks at each text that a query yields.
fn each_value(store: &Connection, query: &str, mut look: impl FnMut(&str)) {
    let mut statement = store.prepare(query).expect("readable");
    let columns = statement.column_count();
    let mut rows = statement.query([]).expect("readable");
    while let Some(row) = rows.next().expect("readable") {
        for column in 0..columns {
            if let ValueRef::Text(text) | ValueRef::Blob(text) = row.get_ref(column).expect("readable") {
                look(&String::from_utf8_lossy(text));
            }
        }
    }
}
