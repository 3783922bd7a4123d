//! Writes a corpus to two files of JSON lines: `write SEED CONVERSATIONS CONVERSATIONS.jsonl QUESTIONS.jsonl`.

use std::{error::Error, fs};

use pmk_corpus::Corpus;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [seed, conversations, messages, questions] = arguments.as_slice() else {
        return Err("usage: write SEED CONVERSATIONS CONVERSATIONS.jsonl QUESTIONS.jsonl".into());
    };
    let corpus = Corpus::of_seed(seed.parse()?, conversations.parse()?);
    fs::write(messages, corpus.conversation_lines())?;
    fs::write(questions, corpus.question_lines())?;
    Ok(())
}
