//! Checks that what people want of an answer is done, and not only at most once.

use std::{collections::BTreeSet, path::Path};

use pmk_host::chat::{Choice, Press, Reaction};
use rusqlite::Connection;
use serde_json::Value;

use super::Verdict;
use crate::{
    database::WorldsDatabase,
    scenario::{Harm, Trouble, What},
    slack::{Done, News, Question},
};

/// The channel and the timestamp of a question, and who voted on its answer.
pub(super) type Vote = [String; 3];

const VOTES: &str = "SELECT i.channel, i.ts, v.\"user\" FROM vote v JOIN inbox i ON i.id = v.turn_id";

/// The votes that are stored.
pub(super) fn votes(store: &Path, database: Option<&WorldsDatabase>) -> BTreeSet<Vote> {
    if let Some(database) = database {
        return database.rows(VOTES).into_iter().filter_map(|row| row.try_into().ok()).collect();
    }
    let store = Connection::open(store).expect("the store opens");
    let mut statement = store.prepare(VOTES).expect("readable");
    let rows = statement.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?])).expect("readable");
    rows.map(|row| row.expect("a vote")).collect()
}

impl Verdict<'_> {
    /// A wish to ask again must be taken up, and a vote must be stored, where the gateway knew the answer that it was about.
    pub(super) fn judge_heeded(&self, lines: &[Value], breaches: &mut Vec<String>) {
        for done in self.done.iter().filter(|done| done.is_to_known && !self.is_disturbed(done)) {
            let about = || self.questions.iter().filter(|question| done.about.contains(&question.number));
            match &done.news {
                News::Again(Reaction { user, .. }) if !about().any(|question| self.was_changed(question, done)) => {
                    let is_its = |line: &&Value| {
                        let is_here = about().any(|question| line["session"] == question.inbound.key.to_string());
                        line["type"] == "turn.again" && line["actor"] == **user && is_here
                    };
                    let between = done.first_sent_at.unwrap_or_default()..=done.accepted_at.unwrap_or_default();
                    let mut all = lines.iter().filter(is_its);
                    if !all.any(|line| self.times_of(line).any(|at| between.contains(&at))) {
                        breaches.push(format!("{:?} were to be asked again, and nobody did", done.about));
                    }
                }
                News::Thumb(Reaction { user, message, .. })
                | News::Press(Press { user, message, choice: Choice::Like | Choice::Dislike, .. }) => {
                    // Of questions that are answered together, one has the vote.
                    let Some(post) = self.posts.iter().find(|post| post.ts == message.ts) else { continue };
                    let all = || self.questions.iter().filter(|question| post.shows.is_about(question)).chain(about());
                    let is_stored = all().any(|Question { inbound, .. }| {
                        let (channel, ts) = (inbound.reply_to.channel.clone(), inbound.ts.clone());
                        self.kept.votes.contains(&[channel, ts, user.clone()])
                    });
                    if !is_stored {
                        breaches.push(format!(
                            "{user} has voted on the answer to {:?}, and that is not stored",
                            done.about
                        ));
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether the store may not have been writable when the gateway was to do it: a vote is then not counted.
    fn is_disturbed(&self, done: &Done) -> bool {
        let told_at = done.told_at.unwrap_or_default();
        self.world.scenario.events.iter().any(|event| match event.what {
            What::Trouble { kind, lasts, .. } => {
                let is_disk = matches!(kind, Trouble::DiskFull | Trouble::DiskBroken | Trouble::DiskUnread);
                is_disk && event.at + lasts > told_at
            }
            What::Harm { harm, .. } => harm == Harm::OffDatabase,
            What::Statement { .. } => true,
            _ => false,
        })
    }

    /// Whether it was deleted, erased, or was to be asked again already, when the gateway was told this.
    fn was_changed(&self, question: &Question, told: &Done) -> bool {
        let is_changed = self.done.iter().filter(|other| !std::ptr::eq(*other, told)).any(|other| {
            let is_before = other.first_sent_at.zip(told.accepted_at).is_some_and(|(sent, by)| sent <= by);
            let changes = matches!(other.news, News::Deleted { .. } | News::AnswerDeleted { .. })
                || super::changed::asks_again(&other.news);
            is_before && changes && other.about.contains(&question.number)
        });
        is_changed || told.accepted_at.is_some_and(|by| self.may_be_erased(question, by))
    }
}
