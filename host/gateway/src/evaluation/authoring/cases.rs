//! Golden files: a question to a policy and the answer that is expected, one JSON file each.
//!
//! ```json
//! {"history": "histories/long.json", "budget": 8000, "settings": {"keep-turns": 5},
//!  "expect": {"outcome": "accepted", "kept": "0-1, 62-82", "dropped": "2-61", "tokens": "41200 to 7312"}}
//! ```
//!
//! `decision` says what is asked when it is not which messages stay: `cap` with an `incoming`, `summarize` with a
//! `history` and a `budget`, `recover` with an `overflow`.

mod answer;
mod file;

use std::path::{Path, PathBuf};

use pmk_system::error::{Failure, OrHint};
use serde::Serialize;

pub use self::{answer::Answer, file::Case};
use super::stage::{self, Stage};
/// What became of one case.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    /// The file's name.
    pub case: String,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What became of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "lowercase")]
pub enum Outcome {
    /// The answer is the expected one.
    Passed,
    /// The expected answer was written, or written anew.
    Blessed {
        /// What is different from before; everything is where nothing was expected.
        differences: Vec<Difference>,
    },
    /// The answer is another one.
    Failed {
        /// Where.
        differences: Vec<Difference>,
    },
}

/// One line of an answer that is not as expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Which.
    pub line: String,
    /// What is expected, if anything.
    pub expected: Option<String>,
    /// What there is, if anything.
    pub found: Option<String>,
}

/// The cases in a folder, in order of their names.
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

/// Asks what a case asks; with `bless` an answer that is not the expected one becomes it, unless it is none.
///
/// # Errors
/// The case makes no sense, or cannot be written.
pub fn run(stage: &Stage, path: &Path, bless: bool) -> Result<Tried, Failure> {
    let mut case = Case::read(path)?;
    let answer = stage::quietly(|| case.ask(stage, path))?;
    let differences = answer.differences(&case.expect);
    // Nobody expects a policy to fail.
    let outcome = match (differences.is_empty(), bless && !answer.has_failed) {
        (true, _) => Outcome::Passed,
        (false, false) => Outcome::Failed { differences },
        (false, true) => {
            case.expect = answer.into_lines();
            case.write(path)?;
            Outcome::Blessed { differences }
        }
    };
    let name = path.file_name().unwrap_or(path.as_os_str());
    Ok(Tried { case: name.to_string_lossy().into_owned(), outcome })
}
