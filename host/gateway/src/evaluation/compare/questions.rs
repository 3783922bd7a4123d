//! Questions about recorded conversations: is their evidence still visible when they are asked?

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use pmk_core::text::collapse_whitespace;
use pmk_system::files;
use serde_json::Value;
use thiserror::Error;

use super::{
    histories::short_names,
    recording::{Recording, id},
};

/// The category of a question without one.
const NO_CATEGORY: &str = "-";

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub id: String,
    pub text: String,
    /// The text that a right answer contains.
    pub answer: Option<String>,
    /// The messages that answer it.
    pub evidence: Vec<String>,
    pub category: String,
    /// The message after which it is asked; without one, at the end.
    pub after: Option<String>,
}

/// All questions, by the name of their conversation.
#[derive(Clone, Debug, Default)]
pub struct Questions {
    by_conversation: BTreeMap<String, Vec<Question>>,
    count: usize,
}

/// Why questions cannot be read.
#[derive(Debug, Error)]
pub enum QuestionsError {
    #[error("cannot read the questions `{path}`: {source}")]
    Read { path: String, source: std::io::Error },
    #[error("the questions `{path}`: line {line} is not JSON: {source}")]
    NotJson { path: String, line: usize, source: serde_json::Error },
    #[error("the questions `{path}`: the file contains no questions")]
    Empty { path: String },
    #[error("the questions `{path}`: question {number} has no `{field}`")]
    Missing { path: String, number: usize, field: &'static str },
    #[error("the questions `{path}`: `{field}` of question {number} is neither a text nor a number")]
    Wrong { path: String, number: usize, field: &'static str },
    #[error("the questions `{path}`: `evidence` of question {number} is not a list of message ids")]
    NoIds { path: String, number: usize },
}

impl Questions {
    /// Reads a JSON list of questions, or one question per line.
    ///
    /// # Errors
    /// [`QuestionsError`] names the invalid question.
    pub fn read(path: &Path) -> Result<Questions, QuestionsError> {
        let name = path.display().to_string();
        let text = files::read_text(path).map_err(|source| QuestionsError::Read { path: name.clone(), source })?;
        Questions::parse(&name, text.trim_start_matches('\u{feff}'))
    }

    fn parse(path: &str, text: &str) -> Result<Questions, QuestionsError> {
        let values = match serde_json::from_str(text) {
            Ok(Value::Array(values)) => values,
            Ok(one) => vec![one],
            Err(_) => (1..)
                .zip(text.lines())
                .filter(|(_, line)| !line.trim().is_empty())
                .map(|(line, text)| {
                    let not_json = |source| QuestionsError::NotJson { path: path.to_owned(), line, source };
                    serde_json::from_str(text).map_err(not_json)
                })
                .collect::<Result<_, _>>()?,
        };
        let mut questions = Questions::default();
        for (number, value) in (1..).zip(&values) {
            let optional = |field: &'static str| match value.get(field) {
                None | Some(Value::Null) => Ok(None),
                Some(one) => {
                    let wrong = || QuestionsError::Wrong { path: path.to_owned(), number, field };
                    id(one).map(Some).ok_or_else(wrong)
                }
            };
            let need = |field: &'static str| {
                let missing = || QuestionsError::Missing { path: path.to_owned(), number, field };
                optional(field).and_then(|found| found.ok_or_else(missing))
            };
            let no_ids = || QuestionsError::NoIds { path: path.to_owned(), number };
            let evidence = match value.get("evidence") {
                Some(Value::Array(ids)) => ids.iter().map(id).collect::<Option<Vec<_>>>().ok_or_else(no_ids)?,
                None | Some(Value::Null) => vec![],
                Some(one) => vec![id(one).ok_or_else(no_ids)?],
            };
            let question = Question {
                id: optional("id")?.unwrap_or_else(|| number.to_string()),
                text: need("question")?,
                answer: optional("answer")?,
                evidence,
                category: optional("category")?.unwrap_or_else(|| NO_CATEGORY.to_owned()),
                after: optional("after")?,
            };
            questions.by_conversation.entry(need("conversation")?).or_default().push(question);
            questions.count += 1;
        }
        if questions.count == 0 {
            return Err(QuestionsError::Empty { path: path.to_owned() });
        }
        Ok(questions)
    }

    /// Returns the questions about the conversation with these names.
    pub fn about(&self, names: &[String]) -> Vec<&Question> {
        let mut names: Vec<&String> = names.iter().collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().filter_map(|name| self.by_conversation.get(name)).flatten().collect()
    }

    /// Returns the problems of the questions about conversations with none of these names.
    pub fn astray(&self, replayed: &BTreeSet<String>) -> Vec<String> {
        let mut problems = Vec::new();
        for (conversation, questions) in self.by_conversation.iter().filter(|(name, _)| !replayed.contains(*name)) {
            // A short name that several files have is none of theirs.
            let longer = replayed.iter().find(|name| short_names(name).contains(conversation));
            for Question { id, .. } in questions {
                problems.push(match longer {
                    Some(longer) => format!(
                        "question `{id}`: `{conversation}` names several conversations, such as `{longer}`; skipping the question"
                    ),
                    None => format!(
                        "question `{id}`: conversation `{conversation}` is not among those replayed; skipping the question"
                    ),
                });
            }
        }
        problems
    }
}

/// A question with its position in a recording.
#[derive(Clone, Debug)]
pub struct Placed<'a> {
    pub question: &'a Question,
    /// The turn after which it is asked.
    pub turn: usize,
    /// The messages that answer it.
    pub evidence: Vec<usize>,
}

/// Returns the questions in the order in which they are asked, and the problems with the others.
pub fn place<'a>(questions: Vec<&'a Question>, recording: &Recording) -> (Vec<Placed<'a>>, Vec<String>) {
    let mut placed = Vec::with_capacity(questions.len());
    let mut problems = Vec::new();
    let Some(last) = recording.turns.len().checked_sub(1) else { return (placed, problems) };
    for question in questions {
        let mut find = |id: &String| {
            let found = recording.find(id);
            if found.is_none() {
                problems
                    .push(format!("question `{}`: message `{id}` does not exist; skipping the question", question.id));
            }
            found
        };
        let turn = match &question.after {
            Some(after) => find(after).map(|index| recording.turn_of(index)),
            None => Some(last),
        };
        let evidence: Option<Vec<usize>> = question.evidence.iter().map(find).collect();
        let (Some(turn), Some(evidence)) = (turn, evidence) else { continue };
        // What has not been said yet is in view of no policy.
        let early = question.evidence.iter().zip(&evidence).find(|&(_, &at)| recording.turn_of(at) > turn);
        match early {
            Some((id, _)) => problems.push(format!(
                "question `{}`: message `{id}` comes after the question is asked; skipping the question",
                question.id
            )),
            None => placed.push(Placed { question, turn, evidence }),
        }
    }
    placed.sort_by_key(|placed| placed.turn);
    (placed, problems)
}

/// The results of questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Questions with known evidence.
    pub with_evidence: u64,
    /// Those of which all evidence was visible.
    pub visible: u64,
    /// Questions with a known answer.
    pub with_answer: u64,
    /// Those that the reader answered.
    pub answered: u64,
}

impl std::ops::AddAssign for Score {
    fn add_assign(&mut self, other: Score) {
        self.with_evidence += other.with_evidence;
        self.visible += other.visible;
        self.with_answer += other.with_answer;
        self.answered += other.answered;
    }
}

/// The results of questions, by category.
pub type Scores = BTreeMap<String, Score>;

/// Whether a reader's text contains the answer. Case and white space are ignored.
pub fn says(words: &str, answer: &str) -> bool {
    let plain = |text: &str| collapse_whitespace(text).to_lowercase();
    contains_whole(&plain(words), &plain(answer.trim_end_matches(['.', '。', '!', '！'])))
}

/// Whether a text contains these words, and not only as a part of a longer word or number.
pub(super) fn contains_whole(text: &str, words: &str) -> bool {
    // Other scripts write words without spaces between them.
    let goes_on = |one: Option<char>, other: Option<char>| {
        one.is_some_and(|one| one.is_ascii_alphanumeric()) && other.is_some_and(|other| other.is_ascii_alphanumeric())
    };
    let stands_alone = |(at, found): (usize, &str)| {
        let (before, after) = (&text[..at], &text[at + found.len()..]);
        !goes_on(before.chars().next_back(), found.chars().next())
            && !goes_on(found.chars().next_back(), after.chars().next())
    };
    !words.is_empty() && text.match_indices(words).any(stands_alone)
}

#[cfg(test)]
mod tests {
    use pmk_core::Message;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_and_lines_are_read_alike() {
        let one =
            r#"{"id":1,"conversation":"c","question":"q","answer":7,"evidence":["D1:1"],"category":2,"after":"x"}"#;
        for text in [format!("[{one}]"), format!("{one}\n"), format!("{one}\n\n{one}")] {
            let questions = Questions::parse("f", &text).expect("questions");
            let about = questions.about(&["c".into(), "c".into()]);
            let wanted = Question {
                id: "1".into(),
                text: "q".into(),
                answer: Some("7".into()),
                evidence: vec!["D1:1".into()],
                category: "2".into(),
                after: Some("x".into()),
            };
            assert_eq!(about.first(), Some(&&wanted));
            assert_eq!(about.len(), questions.count);
        }
        let error = Questions::parse("f", "[{\"conversation\":\"c\"}]").expect_err("no question").to_string();
        assert_eq!(error, "the questions `f`: question 1 has no `question`");
        // Regression: what was no id was passed over, and the question counted as one without evidence.
        for evidence in [json!([{"id": "x"}]), json!({"id": "x"}), json!(["x", null])] {
            let line = json!({"conversation": "c", "question": "q", "evidence": evidence}).to_string();
            let error = Questions::parse("f", &line).expect_err("no ids").to_string();
            assert_eq!(error, "the questions `f`: `evidence` of question 1 is not a list of message ids");
        }
    }

    /// Regression: what had another type was passed over: nothing was scored, or all was asked at the end.
    #[test]
    fn an_answer_that_is_no_text_was_not_scored_and_nothing_said_so() {
        for field in ["id", "conversation", "question", "answer", "category", "after"] {
            for wrong in [json!(true), json!(["Friday", "Saturday"]), json!({"id": "x"})] {
                let mut line = json!({"conversation": "c", "question": "q"});
                line[field] = wrong;
                let error = Questions::parse("f", &line.to_string()).expect_err("a wrong type").to_string();
                let told = format!("the questions `f`: `{field}` of question 1 is neither a text nor a number");
                assert_eq!(error, told);
            }
        }
        let line = json!({"conversation": "c", "question": "q", "answer": null, "after": null}).to_string();
        let questions = Questions::parse("f", &line).expect("questions");
        let about = questions.about(&["c".into()]);
        assert!(matches!(&about[..], [Question { answer: None, after: None, .. }]), "{about:?}");
    }

    /// Regression: such a question counted as a miss of every policy, and nothing said why.
    #[test]
    fn evidence_that_comes_after_its_question_was_never_in_view_and_nothing_said_so() {
        let said = ["a", "b"].map(|id| (Message::user(id), vec![id.to_owned()]));
        let answers = ["1", "2"].map(|id| (Message::assistant("yes"), vec![id.to_owned()]));
        let messages = said.into_iter().zip(answers).flat_map(|(said, answer)| [said, answer]).collect();
        let recording = Recording::of(None, String::new(), messages, vec![]);
        let line = |evidence: Value, after: &str| {
            json!({"conversation": "c", "question": "q", "evidence": evidence, "after": after}).to_string()
        };
        let lines =
            [line(json!(["a"]), "a"), line(json!(["1"]), "a"), line(json!(["a", "b"]), "a"), line(json!("b"), "2")];
        let questions = Questions::parse("f", &lines.join("\n")).expect("questions");
        let (placed, problems) = place(questions.about(&["c".into()]), &recording);
        let asked: Vec<&str> = placed.iter().map(|placed| placed.question.id.as_str()).collect();
        assert_eq!(asked, ["1", "2", "4"], "what the turn itself says is in view");
        assert_eq!(problems, ["question `3`: message `b` comes after the question is asked; skipping the question"]);
    }

    #[test]
    fn an_answer_is_recognised_in_other_clothes() {
        assert!(says("From this conversation: \"It is  on\nFRIDAY.\"", "on Friday."));
        assert!(!says("It is on Monday", "Friday") && !says("anything", " . "));
        assert!(says("17, or 7", "7") && says("預算是40萬", "40"));
        assert!(!says("There are 17 of them, since 1970", "7") && !says("the cartridge", "cart"), "a part of it");
    }
}
