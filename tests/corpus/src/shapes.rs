//! Conversations of every shape out of a seed, with planted facts and the questions they answer: long chats in Chinese and in
//! English, turns full of tool results, and the shapes of the incidents that the gateway was built after (specifications 000,
//! 001, 002 and 004). The same seed gives the same corpus, on every machine.
//!
//! A message is a line of a file in `histories`, with an `id`; a question names the conversation, the messages that
//! answer it and, where it is not asked at the end, the message after which it is asked.

mod chance;
mod facts;
mod talk;

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::Path,
};

use serde_json::{Value, json};

use chance::Chance;
use facts::{Fact, Language};
use talk::Talk;

/// What conversations are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A long chat in Chinese.
    Chinese,
    /// A long chat in English.
    English,
    /// Turns full of tool results.
    Tools,
    /// A large seed and large results of `mra` (specification 000).
    LargeSeed,
    /// A session that only grows (specification 001).
    OnlyGrows,
    /// Many parallel tool calls, at which a cut by count tears pairs (specification 002).
    Pairs,
    /// Many results of middling size in one turn (specification 004).
    MiddlingResults,
}

/// Every kind, in the order in which a corpus takes turns.
pub const KINDS: [Kind; 7] =
    [Kind::Chinese, Kind::English, Kind::Tools, Kind::LargeSeed, Kind::OnlyGrows, Kind::Pairs, Kind::MiddlingResults];

impl Kind {
    /// The name that conversations begin with.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Chinese => "chat-zh",
            Kind::English => "chat-en",
            Kind::Tools => "tools",
            Kind::LargeSeed => "seed-000",
            Kind::OnlyGrows => "seed-001",
            Kind::Pairs => "seed-002",
            Kind::MiddlingResults => "seed-004",
        }
    }

    fn language(self, chance: &mut Chance) -> Language {
        match self {
            Kind::Chinese | Kind::LargeSeed => Language::Chinese,
            Kind::English | Kind::Pairs => Language::English,
            Kind::Tools | Kind::OnlyGrows | Kind::MiddlingResults => {
                chance.pick(&[Language::Chinese, Language::English])
            }
        }
    }
}

/// A conversation and what is asked about it.
pub struct Conversation {
    /// The name of its file, without `.jsonl`.
    pub name: String,
    pub messages: Vec<Value>,
    pub questions: Vec<Value>,
}

/// One conversation of the corpus of this seed; none depends on the others.
pub fn conversation(seed: u64, number: usize) -> Conversation {
    let kind = KINDS[number % KINDS.len()];
    let mut chance = Chance::new(seed, number as u64);
    let language = kind.language(&mut chance);
    let mut talk = Talk::new(format!("{}-{number:04}", kind.name()), language);
    match kind {
        Kind::Chinese | Kind::English => chat(&mut talk, &mut chance, 60..=110, 60..=260),
        Kind::Tools => tools(&mut talk, &mut chance, 40..=60, 1..=3, 200..=2_500),
        Kind::LargeSeed => {
            talk.seed(&mut chance, 14_000);
            for _ in 0..chance.between(18..=26) {
                talk.turn_with_mra(&mut chance, 3_000..=18_000);
            }
        }
        Kind::OnlyGrows => chat(&mut talk, &mut chance, 140..=180, 40..=160),
        Kind::Pairs => tools(&mut talk, &mut chance, 24..=36, 4..=9, 100..=900),
        Kind::MiddlingResults => tools(&mut talk, &mut chance, 8..=12, 12..=24, 1_500..=2_500),
    }
    talk.finish(&mut chance)
}

type Range = std::ops::RangeInclusive<usize>;

fn chat(talk: &mut Talk, chance: &mut Chance, turns: Range, chars: Range) {
    for _ in 0..chance.between(turns) {
        talk.turn(chance, chars.clone());
    }
}

fn tools(talk: &mut Talk, chance: &mut Chance, turns: Range, calls: Range, chars: Range) {
    for _ in 0..chance.between(turns) {
        // People also just talk.
        if chance.one_in(3) {
            talk.turn(chance, 40..=160);
        } else {
            let count = chance.between(calls.clone());
            talk.turn_with_tools(chance, count, chars.clone());
        }
    }
}

/// Writes a corpus, one conversation after the other. Returns the number of questions.
///
/// # Errors
/// It cannot be written.
pub fn write(folder: &Path, seed: u64, conversations: usize) -> io::Result<usize> {
    let histories = folder.join("histories");
    fs::create_dir_all(&histories)?;
    let mut asked = BufWriter::new(File::create(folder.join("questions.jsonl"))?);
    let mut count = 0;
    for number in 0..conversations {
        let Conversation { name, messages, questions } = conversation(seed, number);
        let mut file = BufWriter::new(File::create(histories.join(format!("{name}.jsonl")))?);
        for message in messages {
            writeln!(file, "{message}")?;
        }
        file.flush()?;
        for question in &questions {
            writeln!(asked, "{question}")?;
        }
        count += questions.len();
    }
    asked.flush()?;
    Ok(count)
}

/// A question as a line of the file.
fn question(
    conversation: &str,
    number: usize,
    fact: &Fact,
    evidence: &[&str],
    category: &str,
    after: Option<&str>,
) -> Value {
    let mut question = json!({
        "id": format!("{conversation}-q{number}"),
        "conversation": conversation,
        "question": fact.question(),
        "answer": fact.value,
        "evidence": evidence,
        "category": category,
    });
    if let Some(after) = after {
        question["after"] = after.into();
    }
    question
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_conversation_and_another_one_does_not() {
        for number in 0..KINDS.len() {
            let of = |seed| conversation(seed, number).messages;
            assert_eq!(of(1), of(1));
            assert_ne!(of(1), of(2));
        }
    }

    #[test]
    fn every_question_is_answered_by_its_evidence() {
        for number in 0..2 * KINDS.len() {
            let Conversation { name, messages, questions } = conversation(3, number);
            assert!(questions.len() >= 3, "{name}: {}", questions.len());
            for question in questions {
                let evidence = question["evidence"].as_array().expect("ids");
                let last = evidence.last().expect("one or more");
                let at = |id: &Value| messages.iter().position(|message| message["id"] == *id).expect("a message");
                let text = messages[at(last)]["content"].to_string();
                let answer = question["answer"].as_str().expect("a text");
                assert!(text.contains(answer), "{name}: {answer} is not in {text}");
                if question.get("after").is_some() {
                    assert!(at(&question["after"]) > at(last), "{name}: asked before it was said");
                }
            }
        }
    }

    #[test]
    fn every_call_has_its_result() {
        for number in 0..KINDS.len() {
            let Conversation { name, messages, .. } = conversation(5, number);
            let ids = |kind: &str, field: &str| -> Vec<String> {
                let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
                blocks.filter(|block| block["type"] == kind).map(|block| block[field].to_string()).collect()
            };
            assert_eq!(ids("tool_use", "id"), ids("tool_result", "tool_use_id"), "{name}");
        }
    }
}
