//! Implicit feedback on an answer: the person asks nearly the same again, or reacts with a thumb up or down.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Mutex, PoisonError},
};

use pmk_search::terms;

use crate::{
    chat::Reaction,
    ids::{SessionId, TurnId},
    store::{OpenTurn, Store, Vote},
};

/// A question that comes later than this counts as new, whatever its text.
const REASKED_WITHIN_MS: i64 = 10 * 60 * 1_000;

/// The share of common words from which two questions count as nearly the same.
const LEAST_SIMILARITY: f64 = 0.6;

/// Questions with fewer words are not compared: `go on` is no question.
const LEAST_TERMS: usize = 3;

/// The most questions remembered per conversation.
const MOST_QUESTIONS: usize = 8;

/// The number of remembered conversations from which expired ones are removed.
const MANY_CONVERSATIONS: usize = 1_024;

/// A question that repeats an earlier one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reask {
    pub after_ms: u64,
    /// The share of words in common.
    pub similarity: f64,
}

/// Recent questions, by conversation. Holds digests of words, never the words.
#[derive(Debug, Default)]
pub struct Questions(Mutex<HashMap<SessionId, VecDeque<RecentQuestion>>>);

#[derive(Debug)]
struct RecentQuestion {
    turn: TurnId,
    user: String,
    at_ms: i64,
    terms: BTreeSet<u64>,
}

impl Questions {
    /// Remembers a question, and returns whether the same person asked nearly the same shortly before. Called again for
    /// the same turn, it returns the same.
    pub fn ask(&self, turn: &OpenTurn) -> Option<Reask> {
        let (inbound, at_ms) = (&turn.inbound, turn.received_at_ms);
        let question =
            RecentQuestion { turn: turn.turn, user: inbound.user.clone(), at_ms, terms: digests(&inbound.text) };
        // A deque is whole after each of its methods.
        let mut conversations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if conversations.len() >= MANY_CONVERSATIONS {
            conversations.retain(|_, asked| asked.back().is_some_and(|last| at_ms - last.at_ms < REASKED_WITHIN_MS));
        }
        let asked = conversations.entry(turn.session).or_default();
        asked.retain(|earlier| earlier.turn != question.turn && at_ms - earlier.at_ms < REASKED_WITHIN_MS);
        let reask = asked.iter().rev().filter(|earlier| earlier.user == question.user).find_map(|earlier| {
            let similarity = similarity(&earlier.terms, &question.terms);
            let after_ms = u64::try_from(at_ms - earlier.at_ms).ok()?;
            (similarity >= LEAST_SIMILARITY).then_some(Reask { after_ms, similarity })
        });
        if asked.len() == MOST_QUESTIONS {
            asked.pop_front();
        }
        asked.push_back(question);
        reask
    }
}

fn digests(text: &str) -> BTreeSet<u64> {
    let digest = |term: String| {
        let mut hasher = DefaultHasher::new();
        term.hash(&mut hasher);
        hasher.finish()
    };
    terms(text).into_iter().map(digest).collect()
}

/// The share of terms that two sets have in common, of all terms in either.
fn similarity(one: &BTreeSet<u64>, other: &BTreeSet<u64>) -> f64 {
    if one.len().min(other.len()) < LEAST_TERMS {
        return 0.0;
    }
    let (common, all) = (one.intersection(other).count(), one.union(other).count());
    (common as f64 / all as f64 * 1_000.0).round() / 1_000.0
}

/// Whether a reaction means that somebody likes an answer; `None` if it is neither a thumb up nor a thumb down.
pub fn opinion(reaction: &str) -> Option<bool> {
    let reaction = reaction.trim_matches(':');
    match reaction.split("::").next().unwrap_or_default() {
        "+1" | "thumbsup" => Some(true),
        "-1" | "thumbsdown" => Some(false),
        emoji if emoji.starts_with('👍') => Some(true),
        emoji if emoji.starts_with('👎') => Some(false),
        _ => None,
    }
}

/// Stores somebody's vote on an answer, and returns whether the message is an answer and the vote is stored. A store
/// error returns `false`: it is no reason to have Slack send the reaction again.
pub(crate) async fn react(store: &Store, reaction: &Reaction, now_ms: i64) -> bool {
    let Some(likes) = opinion(&reaction.reaction) else { return false };
    match store.vote(reaction, likes, now_ms).await {
        Ok(vote) => vote != Vote::NoAnswer,
        Err(error) => {
            tracing::warn!(%error, "a vote on an answer was not counted");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(number: i64, session: i64, user: &str, text: &str, minute: i64) -> OpenTurn {
        OpenTurn {
            turn: TurnId::of(number),
            session: SessionId::of(session),
            received_at_ms: minute * 60_000,
            ..OpenTurn::asked("slack:channel:C1", user, text)
        }
    }

    #[test]
    fn the_same_question_again_is_noticed_in_either_language() {
        for (first, again, other) in [
            ("本月各部門的廣告預算怎麼分？", "請問本月各部門的廣告預算是怎麼分的", "下個月誰負責財務報表的審核？"),
            (
                "Where is the advertising budget split computed?",
                "where exactly is the advertising budget split computed",
                "Who reviews the finance report next month?",
            ),
        ] {
            let questions = Questions::default();
            assert_eq!(questions.ask(&turn(1, 1, "U1", first, 0)), None);
            assert_eq!(questions.ask(&turn(2, 1, "U1", other, 1)), None, "{other}");
            let reask = questions.ask(&turn(3, 1, "U1", again, 2)).expect("nearly the same");
            assert_eq!(reask.after_ms, 120_000);
            assert!((LEAST_SIMILARITY..=1.0).contains(&reask.similarity), "{reask:?}");
        }
    }

    #[test]
    fn somebody_else_another_place_and_another_time_are_no_reask() {
        let text = "Where is the advertising budget split computed?";
        let questions = Questions::default();
        for (number, session, user, minute) in [(1, 1, "U1", 0), (2, 1, "U2", 1), (3, 2, "U1", 1), (4, 1, "U1", 30)] {
            assert_eq!(questions.ask(&turn(number, session, user, text, minute)), None, "{number}");
        }
        assert!(questions.ask(&turn(5, 1, "U1", text, 31)).is_some());
        let retried = questions.ask(&turn(5, 1, "U1", text, 31)).expect("the same turn once more");
        assert_eq!(retried.after_ms, 60_000, "it is no reask of itself");
    }

    #[test]
    fn a_few_words_say_nothing() {
        let questions = Questions::default();
        for (number, text) in [(1, "go on"), (2, "go on"), (3, "繼續"), (4, "繼續"), (5, ""), (6, "")] {
            assert_eq!(questions.ask(&turn(number, 1, "U1", text, 0)), None, "{text}");
        }
    }

    #[test]
    fn thumbs_of_every_colour_are_opinions() {
        for (reaction, expected) in [
            ("+1", Some(true)),
            ("thumbsup", Some(true)),
            ("+1::skin-tone-3", Some(true)),
            (":-1:", Some(false)),
            ("thumbsdown::skin-tone-6", Some(false)),
            ("👍🏽", Some(true)),
            ("👎", Some(false)),
            ("eyes", None),
            ("white_check_mark", None),
            ("", None),
        ] {
            assert_eq!(opinion(reaction), expected, "{reaction}");
        }
    }
}
