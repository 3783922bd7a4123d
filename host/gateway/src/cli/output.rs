//! The output of subcommands.

use std::io::{self, Write as _};

use dialoguer::console::Term;
use pmk_core::Language;
use pmk_system::{error::Failure, json};
use textwrap::{Options, WordSeparator, WordSplitter, core::Word};

use super::text::printable;
use crate::{messages::terminal, stderr};

/// Narrower terminals are not wrapped any further: nobody reads at them.
const LEAST_COLUMNS: usize = 20;

/// Prints data. A reader that has closed the pipe is not an error.
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

/// Prints something that is not data, wrapped to the terminal.
pub(super) fn note(text: impl std::fmt::Display) {
    let text = unbroken(&text.to_string(), "  ", columns(&Term::stderr()));
    stderr::say(&format!("{text}\n"));
}

/// The same for numbered steps.
pub(super) fn note_steps(steps: &str) {
    stderr::say(&format!("{}\n", unbroken(steps, "   ", columns(&Term::stderr()))));
}

/// Prints text for people, wrapped to the terminal; continuation lines have this indent.
pub(super) fn print_page(page: &str, indent: &str) -> Result<(), Failure> {
    print(&unbroken(page, indent, columns(&Term::stdout())))
}

/// Prints a failure: to people in their language, to machines in English.
pub(super) fn note_failure(failure: &Failure, language: Language, json: bool) {
    match json {
        true => note_json(&failure.document()),
        false => note(terminal::error(&printable(failure.message()), failure.advice(), language)),
    }
}

/// Prints something that is not data as one line of JSON.
pub(super) fn note_json(document: &serde_json::Value) {
    stderr::say(&format!("{}\n", json::shown(document)));
}

/// Returns the width of a terminal; `None` if there is none.
pub(super) fn columns(term: &Term) -> Option<usize> {
    term.size_checked().map(|(_, columns)| usize::from(columns))
}

/// Wraps text to this many columns without breaking words; continuation lines have this indent in addition to that of
/// their line.
pub(super) fn unbroken(text: &str, indent: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    let fill = |line: &str| {
        let own = &line[..line.len() - line.trim_start_matches(' ').len()];
        let indent = format!("{own}{indent}");
        let options = Options::new(columns.max(LEAST_COLUMNS))
            .subsequent_indent(&indent)
            .word_separator(WordSeparator::Custom(words))
            .word_splitter(WordSplitter::NoHyphenation)
            .break_words(false);
        textwrap::fill(line, options)
    };
    // Each line is filled separately: `textwrap` treats only the first line of a text as one that begins a paragraph.
    text.split('\n').map(fill).collect::<Vec<_>>().join("\n")
}

/// Splits a line into units that must not be broken: Chinese characters, and other text up to a space. A URL is one
/// unit, because a broken one could not be opened.
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

    /// Regression: each but the first of several steps was indented as a continuation, and broken at the terminal's
    /// edge.
    #[test]
    fn each_of_several_steps_is_filled_by_itself() {
        for (steps, columns, expected) in [
            (
                "\n1. choose the workspace, paste the JSON above\n2. install it, and take the bot token (xoxb-…)\n",
                30,
                "\n1. choose the workspace, paste\n   the JSON above\n2. install it, and take the\n   bot token (xoxb-…)\n",
            ),
            (
                "1. 選工作區，貼上上面的 JSON\n2. 安裝，取得機器人的 token（xoxb-…）\n  a. 很長很長的一行字",
                20,
                "1. 選工作區，貼上上\n   面的 JSON\n2. 安裝，取得機器人\n   的 token\n   （xoxb-…）\n  a. 很長很長的一行\n     字",
            ),
        ] {
            assert_eq!(unbroken(steps, "   ", Some(columns)), expected);
        }
    }

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
