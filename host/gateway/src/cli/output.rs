//! What subcommands print.

use std::io::{self, Write};

use dialoguer::console::Term;
use pmk_core::Language;
use pmk_system::{error::Failure, json};
use textwrap::{Options, WordSeparator, WordSplitter, core::Word};

use super::text::printable;
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
        false => note(terminal::error(&printable(failure.message()), failure.advice(), language)),
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
    let options = Options::new(columns.max(LEAST_COLUMNS))
        .subsequent_indent(indent)
        .word_separator(WordSeparator::Custom(words))
        .word_splitter(WordSplitter::NoHyphenation)
        .break_words(false);
    textwrap::fill(text, options)
}

/// What may stand on a line of its own: characters of Chinese, and what is written in others up to a space. An address is one
/// word, or nobody could open it.
fn words(line: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    let is_shown = |c: char| c.is_ascii_graphic();
    let mut words: Vec<&str> = Vec::new();
    let mut start = 0;
    for word in WordSeparator::UnicodeBreakProperties.find_words(line) {
        let end = start + word.word.len() + word.whitespace.len();
        match words.last_mut() {
            Some(last) if last.ends_with(is_shown) && word.word.starts_with(is_shown) => {
                *last = &line[start - last.len()..end];
            }
            _ => words.push(&line[start..end]),
        }
        start = end;
    }
    Box::new(words.into_iter().map(Word::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_never_torn() {
        let step = "1. https://api.slack.com/apps?new_app=1，選擇「From a manifest」，再選擇工作區";
        let shown = unbroken(step, "   ", Some(30));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[..2], ["1.", "   https://api.slack.com/apps?new_app=1，"]);
        assert_eq!(lines[2..].concat().replace(' ', ""), "選擇「Fromamanifest」，再選擇工作區");
        assert!(lines[2..].iter().all(|line| unicode_width::UnicodeWidthStr::width(*line) <= 30), "{shown}");
    }
}
