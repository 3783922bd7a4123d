//! Whether the answers of a run are those of one queue a conversation, whatever happened to the hosts that gave them. Knows the
//! log of the run and nothing of the program.
//!
//! The model:
//!
//! 1. A question belongs to one conversation and has a place in it by the time that Slack gives it, its `ts`.
//! 2. A conversation is a queue of questions that wait, in the order of their places.
//! 3. `stored` puts a question into its queue; that happens once.
//! 4. `begun` takes a question out; it is the first of its queue then, and that happens once, whoever goes on with it later.
//! 5. Both have a number in the one order in which the database did them.
//! 6. `told` is an answer that stands in Slack, in the order in which they stand there.
//! 7. Each question has one answer, and each answer one question.
//! 8. An answer stands twice only where a host's ledger says that it may, by `repeat`; then the first of them counts.
//! 9. Answers stand in the order of their questions' places; another may come first that was begun before the one was stored.
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
    /// A host's ledger says that its answer may stand there twice.
    Repeat {
        question: u64,
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
    /// The first has its place before the second, and waited when that was begun, whose answer stands before its own.
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
            Breach::ToldOutOfOrder(first, second) => write!(
                f,
                "question {first} comes before question {second} and waited when that was begun, and is answered after it"
            ),
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

/// What is known of a question.
struct Question<'a> {
    conversation: u64,
    ts: &'a str,
    stored: Option<u64>,
    begun: Option<u64>,
}

/// A question's place in its conversation: by its time, and of two of one time by its number.
type Place<'a> = (&'a str, u64);

/// Looks at a whole run.
///
/// # Errors
/// All that does not follow the model, at least one.
pub fn check(log: &[Line]) -> Result<Checked, Vec<Breach>> {
    let mut run = Run::default();
    run.hear_of_questions(log);
    run.replay(log);
    run.look_at_answers(log);
    for (number, question) in &run.questions {
        run.breaches.extend(question.stored.is_none().then_some(Breach::NeverStored(*number)));
        run.breaches.extend(question.begun.is_none().then_some(Breach::NeverBegun(*number)));
    }
    match run.breaches.is_empty() {
        true => Ok(Checked {
            conversations: run.questions.values().map(|question| question.conversation).collect::<BTreeSet<_>>().len(),
            questions: run.questions.len(),
        }),
        false => Err(run.breaches),
    }
}

#[derive(Default)]
struct Run<'a> {
    questions: BTreeMap<u64, Question<'a>>,
    breaches: Vec<Breach>,
}

impl<'a> Run<'a> {
    fn hear_of_questions(&mut self, log: &'a [Line]) {
        for line in log {
            let Line::Asked { question: number, conversation, ts } = line else { continue };
            let question = Question { conversation: *conversation, ts, stored: None, begun: None };
            if self.questions.insert(*number, question).is_some() {
                self.breaches.push(Breach::AskedTwice(*number));
            }
        }
    }

    /// Goes through what the database did, in its order.
    fn replay(&mut self, log: &'a [Line]) {
        // The workspace gives a time once.
        let numbers: HashMap<&str, u64> = self.questions.iter().map(|(number, asked)| (asked.ts, *number)).collect();
        let mut steps: Vec<(u64, &str, bool)> = Vec::new();
        for line in log {
            match line {
                Line::Stored { ts, number } => steps.push((*number, ts, false)),
                Line::Begun { ts, number } => steps.push((*number, ts, true)),
                Line::Asked { .. } | Line::Told { .. } | Line::Repeat { .. } => {}
            }
        }
        steps.sort_unstable();
        let mut queues: HashMap<u64, BTreeSet<Place<'_>>> = HashMap::new();
        for (at, ts, is_begun) in steps {
            let known = numbers.get(ts).and_then(|number| Some((*number, self.questions.get_mut(number)?)));
            let Some((number, question)) = known else {
                self.breaches.push(Breach::Unasked(ts.to_owned()));
                continue;
            };
            let queue = queues.entry(question.conversation).or_default();
            match (is_begun, question.stored, question.begun) {
                (false, None, _) => {
                    question.stored = Some(at);
                    queue.insert((ts, number));
                }
                (false, Some(_), _) => self.breaches.push(Breach::StoredTwice(number)),
                (true, _, Some(_)) => self.breaches.push(Breach::BegunTwice(number)),
                (true, None, None) => {
                    question.begun = Some(at);
                    self.breaches.push(Breach::BegunUnstored(number));
                }
                (true, Some(_), None) => {
                    question.begun = Some(at);
                    if let Some((_, first)) = queue.first().filter(|(_, first)| *first != number) {
                        self.breaches.push(Breach::OutOfTurn(number, *first));
                    }
                    queue.remove(&(ts, number));
                }
            }
        }
    }

    /// Looks at what stands in Slack.
    fn look_at_answers(&mut self, log: &[Line]) {
        let (mut told, mut said) = (BTreeMap::<u64, Vec<Option<u64>>>::new(), HashMap::<u64, usize>::new());
        for line in log {
            match line {
                Line::Told { conversation, question } => told.entry(*conversation).or_default().push(*question),
                Line::Repeat { question } => *said.entry(*question).or_default() += 1,
                Line::Asked { .. } | Line::Stored { .. } | Line::Begun { .. } => {}
            }
        }
        let mut answered = BTreeSet::new();
        for (conversation, answers) in told {
            let mut order: Vec<u64> = Vec::new();
            for answer in answers {
                let is_here =
                    |number: &u64| self.questions.get(number).is_some_and(|it| it.conversation == conversation);
                match answer.filter(is_here) {
                    None => self.breaches.push(Breach::AnswersNothing(conversation)),
                    Some(number) if answered.insert(number) => order.push(number),
                    Some(number) => match said.get_mut(&number) {
                        Some(left @ 1..) => *left -= 1,
                        _ => self.breaches.push(Breach::Repeated(number)),
                    },
                }
            }
            for (at, earlier) in order.iter().enumerate() {
                let late: Vec<u64> =
                    order[at + 1..].iter().copied().filter(|later| self.waited(*later, *earlier)).collect();
                self.breaches.extend(late.into_iter().map(|later| Breach::ToldOutOfOrder(later, *earlier)));
            }
        }
        let unanswered = self.questions.keys().filter(|number| !answered.contains(number));
        self.breaches.extend(unanswered.map(|number| Breach::NeverAnswered(*number)));
    }

    /// Whether a question that has its place before another waited when that was begun.
    fn waited(&self, number: u64, other: u64) -> bool {
        let (waited, other_one) = (&self.questions[&number], &self.questions[&other]);
        let is_before = (waited.ts, number) < (other_one.ts, other);
        is_before && waited.stored.zip(other_one.begun).is_some_and(|(stored, begun)| stored < begun)
    }
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
        // One that was begun already, and is gone on with after one that has come meanwhile.
        let mut resumed = good();
        resumed.swap(15, 16);
        assert!(check(&resumed).is_ok());
        let told = Line::Told { conversation: 2, question: Some(3) };
        assert!(check(&[good(), vec![Line::Repeat { question: 3 }, told]].concat()).is_ok());
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
            // Said once, and there three times.
            (
                [good(), vec![Line::Repeat { question: 3 }, told(2, Some(3)), told(2, Some(3))]].concat(),
                Breach::Repeated(3),
            ),
        ] {
            let breaches = check(&log).expect_err("it does not follow the model");
            assert!(breaches.contains(&breach), "{breach} is not among {breaches:?}");
            assert!(!breach.to_string().is_empty());
        }
    }
}
