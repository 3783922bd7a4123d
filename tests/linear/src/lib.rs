//! Whether the answers of a run are those of one queue a conversation, whatever happened to the hosts that gave them. Knows the
//! log of the run and nothing of the program.
//!
//! The model:
//!
//! 1. A question belongs to one conversation and has a place in it by the time that Slack gives it, its `ts`.
//! 2. A conversation is a queue of questions that wait, in the order of their places.
//! 3. `stored` puts a question into its queue; that happens once.
//! 4. `begun` takes a question out; it is the first of its queue then, and that happens once.
//! 5. Both have a number in the one order in which the database did them.
//! 6. `told` is an answer that stands in Slack, in the order in which they stand there.
//! 7. Each question has one answer, and each answer one question.
//! 8. A repeat is an answer that stands twice; none is allowed.
//! 9. The answers of a conversation stand in the order in which their questions were begun.
//! 10. Conversations have nothing to do with each other.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
};

use serde::{Deserialize, Serialize};

/// A line of a log, as JSON. The lines of each kind may be anywhere, but answers of a conversation are in their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// Somebody has asked.
    Asked {
        question: u64,
        conversation: u64,
        ts: String,
    },
    Stored {
        ts: String,
        number: u64,
    },
    Begun {
        ts: String,
        number: u64,
    },
    /// An answer stands in Slack; of no question where nobody knows which it is to.
    Told {
        conversation: u64,
        question: Option<u64>,
    },
}

/// What does not follow the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Breach {
    AskedTwice(u64),
    NeverStored(u64),
    StoredTwice(u64),
    NeverBegun(u64),
    BegunTwice(u64),
    /// It was begun before it was stored.
    BegunUnstored(u64),
    /// The second waited, and comes first.
    OutOfTurn(u64, u64),
    NeverAnswered(u64),
    Repeated(u64),
    /// In that conversation stands what answers nothing, or what was asked in another.
    AnswersNothing(u64),
    /// The first was begun before the second, whose answer stands before its own.
    ToldOutOfOrder(u64, u64),
    /// Something of this time was stored or begun that nobody has asked.
    Unasked(String),
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Breach::AskedTwice(question) => write!(f, "question {question} was asked twice"),
            Breach::NeverStored(question) => write!(f, "question {question} was never stored"),
            Breach::StoredTwice(question) => write!(f, "question {question} was stored twice"),
            Breach::NeverBegun(question) => write!(f, "question {question} was never begun"),
            Breach::BegunTwice(question) => write!(f, "question {question} was begun twice"),
            Breach::BegunUnstored(question) => write!(f, "question {question} was begun before it was stored"),
            Breach::OutOfTurn(begun, waited) => {
                write!(f, "question {begun} was begun while question {waited} waited, which comes before it")
            }
            Breach::NeverAnswered(question) => write!(f, "question {question} has no answer"),
            Breach::Repeated(question) => write!(f, "question {question} has more than one answer"),
            Breach::AnswersNothing(conversation) => {
                write!(f, "in conversation {conversation} stands what answers none of its questions")
            }
            Breach::ToldOutOfOrder(first, second) => {
                write!(f, "question {first} was begun before question {second}, and its answer stands after that one's")
            }
            Breach::Unasked(ts) => write!(f, "what was said at {ts} was stored or begun, and nobody has said it"),
        }
    }
}

/// What was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    pub conversations: usize,
    pub questions: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Stored,
    Begun,
}

/// A question's place in its conversation: by its time, and of two of one time by its number.
type Place<'a> = (&'a str, u64);

/// Looks at a whole run.
///
/// # Errors
/// All that does not follow the model, at least one.
pub fn check(log: &[Line]) -> Result<Checked, Vec<Breach>> {
    let mut breaches = Vec::new();
    // The workspace gives a time once.
    let mut asked: HashMap<&str, (u64, u64)> = HashMap::new();
    let mut questions: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut steps, mut told) = (BTreeMap::new(), BTreeMap::<u64, Vec<Option<u64>>>::new());
    for line in log {
        match line {
            Line::Asked { question, conversation, ts } => {
                if questions.insert(*question, *conversation).is_some()
                    | asked.insert(ts, (*conversation, *question)).is_some()
                {
                    breaches.push(Breach::AskedTwice(*question));
                }
            }
            Line::Stored { ts, number } => _ = steps.insert(*number, (Step::Stored, ts.as_str())),
            Line::Begun { ts, number } => _ = steps.insert(*number, (Step::Begun, ts.as_str())),
            Line::Told { conversation, question } => told.entry(*conversation).or_default().push(*question),
        }
    }
    let begun = replay(&steps, &asked, &mut breaches);
    let (mut stored_once, mut begun_once) = (BTreeSet::new(), BTreeSet::new());
    for (step, ts) in steps.values() {
        if let Some((_, question)) = asked.get(ts) {
            match step {
                Step::Stored => stored_once.insert(*question),
                Step::Begun => begun_once.insert(*question),
            };
        }
    }
    breaches
        .extend(questions.keys().filter(|question| !stored_once.contains(question)).map(|q| Breach::NeverStored(*q)));
    breaches.extend(questions.keys().filter(|question| !begun_once.contains(question)).map(|q| Breach::NeverBegun(*q)));
    stands(&questions, &told, &begun, &mut breaches);
    if breaches.is_empty() {
        let conversations = questions.values().collect::<BTreeSet<_>>().len();
        return Ok(Checked { conversations, questions: questions.len() });
    }
    Err(breaches)
}

/// Goes through what the database did, in its order; the questions of each conversation come back in the order in which they were
/// begun.
fn replay<'a>(
    steps: &BTreeMap<u64, (Step, &'a str)>,
    asked: &HashMap<&'a str, (u64, u64)>,
    breaches: &mut Vec<Breach>,
) -> HashMap<u64, Vec<u64>> {
    let (mut queues, mut begun) = (HashMap::<u64, BTreeSet<Place<'a>>>::new(), HashMap::<u64, Vec<u64>>::new());
    let mut stored = BTreeSet::new();
    for (step, ts) in steps.values() {
        let Some(&(conversation, question)) = asked.get(ts) else {
            breaches.push(Breach::Unasked((*ts).to_owned()));
            continue;
        };
        let queue = queues.entry(conversation).or_default();
        let order = begun.entry(conversation).or_default();
        match step {
            Step::Stored if stored.insert(question) => _ = queue.insert((ts, question)),
            Step::Stored => breaches.push(Breach::StoredTwice(question)),
            Step::Begun if order.contains(&question) => breaches.push(Breach::BegunTwice(question)),
            Step::Begun => {
                let first = queue.first().filter(|(_, first)| *first != question && queue.contains(&(*ts, question)));
                if let Some((_, first)) = first {
                    breaches.push(Breach::OutOfTurn(question, *first));
                }
                if !queue.remove(&(*ts, question)) {
                    breaches.push(Breach::BegunUnstored(question));
                }
                order.push(question);
            }
        }
    }
    begun
}

/// Looks at what stands in Slack.
fn stands(
    questions: &BTreeMap<u64, u64>,
    told: &BTreeMap<u64, Vec<Option<u64>>>,
    begun: &HashMap<u64, Vec<u64>>,
    breaches: &mut Vec<Breach>,
) {
    let mut answered = BTreeSet::new();
    for (conversation, answers) in told {
        let mut order = Vec::new();
        for answer in answers {
            match answer.filter(|question| questions.get(question) == Some(conversation)) {
                None => breaches.push(Breach::AnswersNothing(*conversation)),
                Some(question) if answered.insert(question) => order.push(question),
                Some(question) => breaches.push(Breach::Repeated(question)),
            }
        }
        let places: HashMap<u64, usize> =
            order.iter().enumerate().map(|(place, question)| (*question, place)).collect();
        let begun: Vec<u64> = begun.get(conversation).into_iter().flatten().copied().collect();
        let known: Vec<u64> = begun.into_iter().filter(|question| places.contains_key(question)).collect();
        let is_late = |pair: &&[u64]| places[&pair[0]] > places[&pair[1]];
        breaches.extend(known.windows(2).filter(is_late).map(|pair| Breach::ToldOutOfOrder(pair[0], pair[1])));
    }
    let unanswered = questions.keys().filter(|question| !answered.contains(question));
    breaches.extend(unanswered.map(|question| Breach::NeverAnswered(*question)));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two conversations: in the first the second question is stored before the first, and begun before that is there.
    fn good() -> Vec<Line> {
        let ts = |question: u64| format!("{question}.0");
        let asked = |question, conversation| Line::Asked { question, conversation, ts: ts(question) };
        let stored = |question, number| Line::Stored { ts: ts(question), number };
        let begun = |question, number| Line::Begun { ts: ts(question), number };
        let told = |conversation, question| Line::Told { conversation, question: Some(question) };
        vec![
            asked(1, 1),
            asked(2, 1),
            asked(3, 2),
            asked(4, 1),
            asked(5, 1),
            stored(2, 1),
            begun(2, 2),
            stored(1, 3),
            stored(3, 4),
            stored(5, 5),
            begun(1, 6),
            stored(4, 7),
            begun(4, 8),
            begun(3, 9),
            begun(5, 10),
            told(1, 2),
            told(1, 1),
            told(1, 4),
            told(1, 5),
            told(2, 3),
        ]
    }

    #[test]
    fn what_one_queue_a_conversation_would_do_follows_the_model() {
        assert_eq!(check(&good()), Ok(Checked { conversations: 2, questions: 5 }));
        assert_eq!(check(&[]), Ok(Checked::default()));
    }

    #[test]
    fn whatever_does_not_is_told() {
        let told = |conversation, question| Line::Told { conversation, question };
        let at = |question: u64| format!("{question}.0");
        let is_of = |line: &Line, question: u64, of: fn(&Line) -> Option<String>| of(line) == Some(at(question));
        let stored = |line: &Line| match line {
            Line::Stored { ts, .. } => Some(ts.clone()),
            _ => None,
        };
        let begun = |line: &Line| match line {
            Line::Begun { ts, .. } => Some(ts.clone()),
            _ => None,
        };
        let without =
            |what: &dyn Fn(&Line) -> bool| -> Vec<Line> { good().into_iter().filter(|line| !what(line)).collect() };
        let with = |more: Line| -> Vec<Line> { good().into_iter().chain([more]).collect() };
        let number = |from: u64, to: u64| -> Vec<Line> {
            let moved = |line: Line| match line {
                Line::Begun { ts, number } if number == from => Line::Begun { ts, number: to },
                line => line,
            };
            good().into_iter().map(moved).collect()
        };
        let mut swapped = good();
        swapped.swap(16, 17);
        for (log, breach) in [
            (with(Line::Asked { question: 1, conversation: 1, ts: "9.0".into() }), Breach::AskedTwice(1)),
            (without(&|line| is_of(line, 3, stored)), Breach::BegunUnstored(3)),
            (with(Line::Stored { ts: at(3), number: 20 }), Breach::StoredTwice(3)),
            (without(&|line| is_of(line, 3, begun)), Breach::NeverBegun(3)),
            (with(Line::Begun { ts: at(3), number: 20 }), Breach::BegunTwice(3)),
            (with(Line::Begun { ts: "9.0".into(), number: 20 }), Breach::Unasked("9.0".into())),
            // Of the two that wait the later one is begun.
            (number(10, 0), Breach::BegunUnstored(5)),
            (number(6, 11), Breach::OutOfTurn(4, 1)),
            (without(&|line| *line == told(2, Some(3))), Breach::NeverAnswered(3)),
            (with(told(2, Some(3))), Breach::Repeated(3)),
            (with(told(1, Some(3))), Breach::AnswersNothing(1)),
            (with(told(2, None)), Breach::AnswersNothing(2)),
            (swapped, Breach::ToldOutOfOrder(1, 4)),
        ] {
            let breaches = check(&log).expect_err("it does not follow the model");
            assert!(breaches.contains(&breach), "{breach} is not among {breaches:?}");
            assert!(!breach.to_string().is_empty());
        }
    }
}
