//! Checks that answers of several messages are whole.

use std::collections::BTreeMap;

use pmk_host::front::Kind;

use super::Verdict;
use crate::{
    model,
    slack::{FIRST_OF_CONTACTS, Post, Question, number},
    witness,
};

impl Verdict<'_> {
    /// Whether somebody may have stopped what these parts answer.
    fn may_be_stopped(&self, parts: &[&Post]) -> bool {
        let mut about = parts.iter().flat_map(|part| part.shows.numbers());
        about.any(|number| {
            let asked = self.questions.iter().find(|question| question.number == number);
            let stopped_by_word = asked.is_some_and(|asked| {
                let is_here = |other: &&Question| other.inbound.key == asked.inbound.key;
                self.questions.iter().filter(is_here).any(|other| other.is_stop)
            });
            stopped_by_word || self.is_to_stop(number)
        })
    }

    /// Each part of an answer must be there once, in order, and together they must hold all that the model said.
    pub(super) fn judge_parts(&self, breaches: &mut Vec<String>) {
        let mut answers: BTreeMap<&str, Vec<&Post>> = BTreeMap::new();
        for post in self.posts.iter().filter(|post| matches!(post.shows.kind, Kind::Reply | Kind::Document)) {
            answers.entry(&post.shows.event_id).or_default().push(post);
        }
        // What somebody has deleted is gone, and what is parked may have been delivered in part.
        answers.retain(|event_id, parts| parts.iter().all(|part| part.is_there()) && !self.is_parked(event_id));
        // Where its conversation refuses an answer, each of those who asked gets it in person.
        let each = answers.into_iter().flat_map(|(event_id, posts)| {
            let in_person = posts.iter().filter(|post| post.is_direct()).map(|post| post.place.channel.as_str());
            let mut readers: Vec<Option<&str>> = in_person.map(Some).collect();
            readers.sort_unstable();
            readers.dedup();
            if readers.is_empty() {
                readers.push(None);
            }
            readers
                .into_iter()
                .map(move |reader| {
                    let is_shown = |post: &&Post| !post.is_direct() || reader == Some(&post.place.channel);
                    (event_id, posts.iter().copied().filter(is_shown).collect::<Vec<&Post>>())
                })
                .collect::<Vec<_>>()
        });
        for (event_id, parts) in each {
            let numbers: Vec<u32> = parts.iter().map(|part| part.shows.number).collect();
            // Of what becomes of a contact's message, some goes to the asker and some to the contact.
            let goes_to_several = number(event_id).is_some_and(|number| number >= FIRST_OF_CONTACTS);
            // Where no file could be posted, only its beginning is.
            let is_cut = parts.len() > 2 && !parts.iter().any(|part| part.shows.kind == Kind::Document);
            let is_cut = is_cut && self.ledger.contains("\"reply.cut\"");
            let is_whole = match goes_to_several || is_cut {
                true => numbers.is_sorted_by(|one, next| one < next),
                false => numbers.iter().copied().eq(0..numbers.len() as u32),
            };
            if !is_whole {
                breaches.push(format!("the answer to {event_id} consists of the parts {numbers:?}"));
            }
            if is_cut || self.may_be_stopped(&parts) {
                continue;
            }
            let text: String = parts.iter().map(|part| part.text.as_str()).collect();
            if text.contains(model::TAKEN_BACK) {
                breaches.push(format!("the answer to {event_id} holds what the model has taken back"));
            }
            let mut calls = witness::answers(&text);
            if let Some(call) = calls.find(|call| !self.world.witness.is_whole(*call, &text)) {
                breaches.push(format!("the answer to {event_id} lacks a part of the model's answer {call}"));
            }
        }
    }
}
