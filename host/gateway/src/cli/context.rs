//! What every subcommand works with.

use std::{borrow::Cow, path::PathBuf};

use pmk_core::Language;
use pmk_system::error::Failure;
use serde_json::json;

use super::{
    output::{note, note_json},
    table,
    text::printable,
};
use crate::{config::Origin, messages::terminal};

/// What every subcommand gets.
pub(super) struct Context {
    pub(super) home: PathBuf,
    /// Who has said that it is this one.
    pub(super) home_by: Origin,
    pub(super) json: bool,
    /// What people at the terminal read; the log and JSON are English.
    pub(super) language: Language,
}

impl Context {
    /// Says something that is neither data nor a reason to stop, and what can be done about it.
    pub(super) fn notice(&self, text: &str, hint: Option<&str>) {
        match hint {
            _ if self.json => note_json(&json!({"type": "notice", "message": text, "hint": hint})),
            hint => note(terminal::notice(text, hint, self.language)),
        }
    }

    /// What a command tells, in the reader's language as far as it is known.
    pub(super) fn translated<'a>(&self, text: &'a str) -> Cow<'a, str> {
        terminal::translated(text, self.language)
    }

    /// Rows in columns, below a heading in the reader's language.
    pub(super) fn columns(&self, rows: &[Vec<String>]) -> String {
        table::columns(rows, self.language)
    }

    /// Says what has been done.
    pub(super) fn say(&self, text: &str) {
        note(self.translated(text));
    }

    /// Says that something is not as it should be, though the command goes on.
    pub(super) fn warn(&self, text: &str) {
        if self.json {
            note_json(&json!({"type": "warning", "message": text}));
        } else {
            note(terminal::warning(&printable(text), None, self.language));
        }
    }

    /// Says what went wrong with one of several things, when the command goes on with the others.
    pub(super) fn warn_of(&self, what: &str, failure: &Failure) {
        let what = format!("{what}: {}", failure.message());
        if self.json {
            let mut document = failure.document();
            document["type"] = "warning".into();
            document["message"] = what.into();
            note_json(&document);
        } else {
            note(terminal::warning(&printable(&what), failure.advice(), self.language));
        }
    }
}

/// Runs what has to wait for the store.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start: {error}")))?;
    runtime.block_on(work)
}
