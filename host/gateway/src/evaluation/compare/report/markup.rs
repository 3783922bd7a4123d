//! Text within HTML and SVG.

use pmk_core::text;

/// Text as HTML shows it, in elements and in attributes; without what would not be seen.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text::printable(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_its_place() {
        assert_eq!(escape("<script>'\"&\u{1b}\n"), "&lt;script&gt;&#39;&quot;&amp;\u{fffd}\n");
    }
}
