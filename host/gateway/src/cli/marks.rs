//! Lines that begin with how well something is.

use std::fmt::Write;

use pmk_core::text;

/// `✓`, `!`, `✗`, or `-` for what was not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(pub char);

pub(super) const WELL: Mark = Mark('✓');
pub(super) const ODD: Mark = Mark('!');
pub(super) const BAD: Mark = Mark('✗');
pub(super) const LEFT_OUT: Mark = Mark('-');

/// One line, and below it what to do.
pub(super) fn line(mark: Mark, what: &str, hint: Option<&str>) -> String {
    let mut line = format!("{} {}\n", mark.0, text::one_line(what));
    if let Some(hint) = hint {
        // Nobody is kept from reading it by a line that could not be written into a text.
        let _ = writeln!(line, "    hint: {}", text::one_line(hint));
    }
    line
}
