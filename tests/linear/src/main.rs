//! `linear LOG`: whether the log of a run of several hosts, a JSON object a line, follows the model of [`pmk_linear`]. Exits with 1
//! where it does not, having said what.

use std::{fs, process::ExitCode};

use pmk_linear::{Line, check};

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: linear LOG");
        return ExitCode::from(2);
    };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("error: cannot read `{path}`: {error}");
            return ExitCode::from(2);
        }
    };
    let mut log: Vec<Line> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        match serde_json::from_str(line) {
            Ok(line) => log.push(line),
            Err(error) => {
                eprintln!("error: `{path}`, line {number}: {error}");
                return ExitCode::from(2);
            }
        }
    }
    match check(&log) {
        Ok(checked) => {
            println!(
                "{} questions in {} conversations: in order, each answered once",
                checked.questions, checked.conversations
            );
            ExitCode::SUCCESS
        }
        Err(breaches) => {
            for breach in breaches {
                println!("{breach}");
            }
            ExitCode::from(1)
        }
    }
}
