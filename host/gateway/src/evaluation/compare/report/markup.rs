//! Text in HTML and SVG.

use pmk_core::text;

/// Escapes text for HTML elements and attributes, and replaces invisible characters.
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
