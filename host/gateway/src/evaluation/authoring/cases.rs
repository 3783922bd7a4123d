//! Golden files: a question to a policy and the expected answer, one JSON file each.
//!
//! ```json
//! {"history": "histories/long.json", "budget": 8000, "settings": {"keep-turns": 5},
//!  "expect": {"outcome": "accepted", "kept": "0-1, 62-82", "dropped": "2-61", "tokens": "41200 to 7312"}}
//! ```
//!
//! `decision` names the decision if it is not `prune`: `cap` with an `incoming`, `summarize` with a `history` and a
//! `budget`, `recover` with an `overflow`. `window`, `phase` and `seedMayGo` say more about the request. All fields are
//! in `docs/policies.md`.

mod answer;
mod file;

use std::path::{Path, PathBuf};

use pmk_system::error::{Failure, OrHint};
use serde::Serialize;

pub use self::{answer::Answer, file::Case};
use super::stage::{self, Stage};
/// The result of one case.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    /// The file's name.
    pub case: String,
    /// The outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The outcome of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "lowercase")]
pub enum Outcome {
    /// The answer is the expected one.
    Passed,
    /// The expected answer was written, or overwritten.
    Blessed {
        /// The differences from the previous expectation; every line if there was none.
        differences: Vec<Difference>,
    },
    /// The answer differs from the expected one.
    Failed {
        /// The differences.
        differences: Vec<Difference>,
        /// Why the answer was not taken as the expected one.
        #[serde(skip_serializing_if = "Option::is_none")]
        unfit: Option<Unfit>,
    },
}

/// Why an answer cannot be the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unfit {
    /// The policy trapped, exceeded a limit or returned something unreadable.
    Failed,
    /// Nothing of the history would be sent.
    Empty,
    /// The new message alone exceeds the limit.
    TooLarge,
}

/// One line of an answer that is not as expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The name of the line.
    pub line: String,
    /// The expected text, if any.
    pub expected: Option<String>,
    /// The actual text, if any.
    pub found: Option<String>,
}

/// Returns the cases in a folder, sorted by name.
///
/// # Errors
/// The folder cannot be read, or has none.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let shown = folder.display();
    let entries = folder
        .read_dir()
        .map_err(|error| format!("cannot read the cases in `{shown}`: {error}"))
        .or_hint("specify the folder with the cases, one JSON file per case")?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file() && path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    if files.is_empty() {
        return Err(Failure::new(format!("there are no cases in `{shown}`")).hint(
            "write one, for example `{\"history\": \"histories/long.json\", \"budget\": 8000}`, and let `--bless` add the answer",
        ));
    }
    files.sort();
    Ok(files)
}

/// Runs these cases. With `bless`, a different answer becomes the expected one, unless it is unfit for that. All are
/// asked before one is written, so nothing is if one of them is invalid.
///
/// # Errors
/// A case is invalid, or cannot be written.
pub fn run(stage: &Stage, files: &[PathBuf], bless: bool) -> Result<Vec<Tried>, Failure> {
    let ask = |path: &PathBuf| -> Result<(Case, Answer), Failure> {
        let case = Case::read(path)?;
        let answer = stage::quietly(|| case.ask(stage, path))?;
        Ok((case, answer))
    };
    let asked = files.iter().map(ask).collect::<Result<Vec<_>, _>>()?;
    files.iter().zip(asked).map(|(path, (case, answer))| judge(path, case, answer, bless)).collect()
}

fn judge(path: &Path, mut case: Case, answer: Answer, bless: bool) -> Result<Tried, Failure> {
    let differences = answer.differences(&case.expect);
    let outcome = match answer.unfit.filter(|_| bless) {
        _ if differences.is_empty() => Outcome::Passed,
        None if bless => {
            case.expect = answer.into_lines();
            case.write(path)?;
            Outcome::Blessed { differences }
        }
        unfit => Outcome::Failed { differences, unfit },
    };
    let name = path.file_name().unwrap_or(path.as_os_str());
    Ok(Tried { case: name.to_string_lossy().into_owned(), outcome })
}
