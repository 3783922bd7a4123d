//! Checks that answers of several messages are whole.

use std::collections::BTreeMap;

use pmk_host::front::Kind;

use super::Verdict;
use crate::{
    slack::{FIRST_OF_CONTACTS, Post, number},
    witness,
};

impl Verdict<'_> {
    /// Each part of an answer must be there once, in order, and the last one must hold the end of what the model said.
    pub(super) fn judge_parts(&self, breaches: &mut Vec<String>) {
        let mut answers: BTreeMap<&str, Vec<&Post>> = BTreeMap::new();
        for post in self.posts.iter().filter(|post| post.shows.kind == Kind::Reply) {
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
            let is_whole = match goes_to_several {
                true => numbers.is_sorted_by(|one, next| one < next),
                false => numbers.iter().copied().eq(0..numbers.len() as u32),
            };
            if !is_whole {
                breaches.push(format!("the answer to {event_id} consists of the parts {numbers:?}"));
            }
            let [first, last] = [parts.first(), parts.last()].map(|part| part.map_or("", |part| part.text.as_str()));
            let mut long = witness::answers(first).filter(|call| self.world.witness.is_long(*call));
            if let Some(call) = long.find(|call| !last.contains(&witness::end(*call))) {
                breaches.push(format!("the answer to {event_id} lacks the end of the model's answer {call}"));
            }
        }
    }
}
