//! Lines that begin with a mark for the state of what was checked.

use dialoguer::console::Term;
use pmk_core::{Language, text};

use super::output::{columns, unbroken};
use crate::messages::terminal;

/// `✓`, `!`, `✗`, or `-` for what was not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(pub char);

pub(super) const WELL: Mark = Mark('✓');
pub(super) const ODD: Mark = Mark('!');
pub(super) const BAD: Mark = Mark('✗');
pub(super) const LEFT_OUT: Mark = Mark('-');

/// Formats one line, and below it the hint. On a terminal, lines are not broken within words.
pub(super) fn line(mark: Mark, what: &str, hint: Option<&str>, language: Language) -> String {
    laid_out(mark, what, hint.map(|hint| terminal::hint(hint, language)), columns(&Term::stdout()))
}

fn laid_out(mark: Mark, what: &str, hint: Option<String>, columns: Option<usize>) -> String {
    let what = format!("{} {}", mark.0, text::one_line(what));
    let hint = hint.map(|hint| unbroken(&format!("    {}", text::one_line(&hint)), "", columns));
    [Some(unbroken(&what, "    ", columns)), hint].into_iter().flatten().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_is_torn_and_what_goes_on_is_indented() {
        let hint = Some("hint: 請設定 ANTHROPIC_API_KEY 並使用 `--model anthropic-api`".to_owned());
        let page = laid_out(BAD, "model         sim, a stand-in that quotes the conversation", hint, Some(40));
        let expected = "✗ model         sim, a stand-in that\n    quotes the conversation\n    \
                        hint: 請設定 ANTHROPIC_API_KEY 並使\n    用 `--model anthropic-api`\n";
        assert_eq!(page, expected);
        assert_eq!(laid_out(WELL, "home  a b", None, None), "✓ home  a b\n");
    }
}
