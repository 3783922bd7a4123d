//! What subcommands print.

use std::io::{self, Write};

use dialoguer::console::Term;
use pmk_core::Language;
use pmk_system::{error::Failure, json};
use textwrap::{Options, WordSplitter};

use crate::{messages::terminal, waiting};

/// A terminal that is narrower than this is not one that people read at.
const LEAST_COLUMNS: usize = 20;

/// Prints data. A reader that has seen enough is no error.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints one JSON document.
pub(super) fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    print(&format!("{}\n", json::shown_pretty(value)))
}

/// Says something that is no data. Where standard error is gone there is nobody left to tell.
pub(super) fn note(text: impl std::fmt::Display) {
    let _ = waiting::beside(|| writeln!(io::stderr(), "{text}"));
}

/// The same of numbered steps, which no terminal tears.
pub(super) fn note_steps(steps: &str) {
    note(unbroken(steps, "   ", columns(&Term::stderr())));
}

/// Says what went wrong: to people in their language, to machines in English.
pub(super) fn note_failure(failure: &Failure, language: Language, json: bool) {
    match json {
        true => note_json(&failure.document()),
        false => note(terminal::error(failure.message(), failure.advice(), language)),
    }
}

/// What is no data, on one line of JSON.
pub(super) fn note_json(document: &serde_json::Value) {
    note(json::shown(document));
}

/// How wide a terminal is; `None` where there is none.
pub(super) fn columns(term: &Term) -> Option<usize> {
    term.size_checked().map(|(_, columns)| usize::from(columns))
}

/// Lines of so many columns, in which no word is torn; what goes on is indented like this.
pub(super) fn unbroken(text: &str, indent: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    let options = Options::new(columns.max(LEAST_COLUMNS)).subsequent_indent(indent);
    textwrap::fill(text, options.word_splitter(WordSplitter::NoHyphenation))
}
