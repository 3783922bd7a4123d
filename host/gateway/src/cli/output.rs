//! What subcommands print.

use std::io::{self, Write};

use pmk_core::Language;
use pmk_system::{error::Failure, json};

use crate::{messages::terminal, waiting};

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
