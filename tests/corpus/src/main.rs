//! Writes a corpus: `DIR/histories/*.jsonl` and `DIR/questions.jsonl`, as `pmk-host compare` reads them.

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, ValueEnum};
use pmk_corpus::{Corpus, shapes};

/// Writes conversations with planted facts, and questions about them
#[derive(Debug, Parser)]
#[command(name = "corpus")]
struct Options {
    /// The folder to write to
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The same seed gives the same corpus
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many conversations
    #[arg(long, default_value_t = 28)]
    conversations: usize,
    /// What they are like
    #[arg(long, value_enum, default_value_t = Kind::Shapes)]
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// As they come in a gateway: chats, turns full of tool results, the incidents
    Shapes,
    /// Very long chats with facts that were said once, repeated, corrected
    Facts,
}

fn main() -> ExitCode {
    let Options { out, seed, conversations, kind } = Options::parse();
    let written = match kind {
        Kind::Shapes => shapes::write(&out, seed, conversations),
        Kind::Facts => Corpus::of_seed(seed, conversations as u64).write(&out),
    };
    match written {
        Ok(questions) => {
            println!("{conversations} conversations, {questions} questions in {}", out.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: cannot write `{}`: {error}", out.display());
            ExitCode::FAILURE
        }
    }
}
