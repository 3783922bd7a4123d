//! `corpus --out DIR [--seed N] [--conversations N]`: writes a corpus, `DIR/histories/*.jsonl` and
//! `DIR/questions.jsonl`.

use std::{path::PathBuf, process::ExitCode};

struct Wanted {
    out: PathBuf,
    seed: u64,
    conversations: usize,
}

fn main() -> ExitCode {
    let wanted = match read(std::env::args().skip(1)) {
        Ok(wanted) => wanted,
        Err(what) => {
            eprintln!("error: {what}\n  hint: corpus --out DIR [--seed N] [--conversations N]");
            return ExitCode::from(2);
        }
    };
    match pmk_corpus::shapes::write(&wanted.out, wanted.seed, wanted.conversations) {
        Ok(questions) => {
            println!("{} conversations, {questions} questions in {}", wanted.conversations, wanted.out.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: cannot write `{}`: {error}", wanted.out.display());
            ExitCode::FAILURE
        }
    }
}

fn read(mut arguments: impl Iterator<Item = String>) -> Result<Wanted, String> {
    let (mut out, mut seed, mut conversations) = (None, 0, pmk_corpus::shapes::KINDS.len() * 4);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("`{name}` needs a value"))?;
        let bad = |_| format!("`{value}` is no value of `{name}`");
        match name.as_str() {
            "--out" => out = Some(PathBuf::from(&value)),
            "--seed" => seed = value.parse().map_err(bad)?,
            "--conversations" => conversations = value.parse().map_err(bad)?,
            _ => return Err(format!("there is no `{name}`")),
        }
    }
    Ok(Wanted { out: out.ok_or("`--out` is missing")?, seed, conversations })
}
