//! Formats texts for a terminal.

use pmk_core::text::{collapse_whitespace, shortened};
pub(super) use pmk_system::clock::time;
use unicode_width::UnicodeWidthChar;

/// Removes characters from text by others that would control the terminal or deceive its reader.
pub(super) fn printable(text: &str) -> String {
    pmk_core::text::printable(text).into_owned()
}

/// The same on one line, at most `max` characters.
pub(super) fn one_line(text: &str, max: usize) -> String {
    let line = printable(&collapse_whitespace(text));
    shortened(&line, max).into_owned()
}

/// One line of at most `max` columns; a Chinese character takes two.
pub(super) fn columns(text: &str, max: usize) -> String {
    let line = printable(&collapse_whitespace(text));
    let mut width = 0;
    let fits = line.chars().take_while(|char| {
        width += char.width().unwrap_or(0);
        width <= max
    });
    shortened(&line, fits.count()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_steers_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\r\n\tc\u{9b}"), "a\u{fffd}[2Jb\u{fffd}\n\tc\u{fffd}");
        assert_eq!(one_line("a\nb\x07  c", 9), "a b\u{fffd} c");
        assert_eq!(one_line("預算很多", 2), "預算…");
        assert_eq!(columns("e\u{301}e\u{301}", 1), "e\u{301}…");
        assert_eq!((columns("預算很多", 5).as_str(), columns("預算", 4).as_str()), ("預算…", "預算"));
    }
}
