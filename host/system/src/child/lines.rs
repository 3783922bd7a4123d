//! Splits chunks from a pipe into lines.

/// Collects bytes and passes complete lines on, each limited to a number of bytes.
#[derive(Debug)]
pub(super) struct Lines {
    max_bytes: usize,
    line: Vec<u8>,
    /// The line exceeded the limit: its rest is skipped.
    cut: bool,
}

impl Lines {
    pub fn new(max_bytes: usize) -> Self {
        Lines { max_bytes, line: Vec::new(), cut: false }
    }

    pub fn push(&mut self, bytes: &[u8], on_line: &mut impl FnMut(&str)) {
        let mut pieces = bytes.split(|&byte| byte == b'\n');
        // Splitting gives at least one piece; all but the last end with a line feed.
        let last = pieces.next_back().unwrap_or_default();
        for piece in pieces {
            self.extend(piece);
            self.give(on_line);
        }
        self.extend(last);
    }

    /// The last line may lack its line feed.
    pub fn finish(mut self, on_line: &mut impl FnMut(&str)) {
        if !self.line.is_empty() {
            self.give(on_line);
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        let room = self.max_bytes - self.line.len();
        self.cut |= bytes.len() > room;
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn give(&mut self, on_line: &mut impl FnMut(&str)) {
        let mut line = &self.line[..];
        if self.cut {
            line = without_torn_character(line);
        } else if let [start @ .., b'\r'] = line {
            line = start;
        }
        on_line(&String::from_utf8_lossy(line));
        self.line.clear();
        self.cut = false;
    }
}

/// The bytes without an incomplete character at their end.
fn without_torn_character(bytes: &[u8]) -> &[u8] {
    let tail_start = bytes.len().saturating_sub(3);
    let torn = (tail_start..bytes.len())
        .find(|&at| matches!(std::str::from_utf8(&bytes[at..]), Err(error) if error.valid_up_to() == 0 && error.error_len().is_none()));
    &bytes[..torn.unwrap_or(bytes.len())]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(chunks: &[&[u8]], max_bytes: usize) -> Vec<String> {
        let mut lines = Lines::new(max_bytes);
        let mut seen = Vec::new();
        for chunk in chunks {
            lines.push(chunk, &mut |line: &str| seen.push(line.to_owned()));
        }
        lines.finish(&mut |line: &str| seen.push(line.to_owned()));
        seen
    }

    #[test]
    fn both_line_ends_and_a_last_line_without() {
        assert_eq!(split(&[b"a\r\nb", b"c\n\nd"], 10), ["a", "bc", "", "d"]);
        assert!(split(&[b"", b""], 10).is_empty());
    }

    #[test]
    fn a_long_line_is_cut_between_two_characters() {
        assert_eq!(split(&["預算表\nok".as_bytes()], 7), ["預算", "ok"]);
        assert_eq!(split(&["預算表\nok".as_bytes()], 8), ["預算", "ok"]);
    }

    #[test]
    fn what_is_not_utf8_is_replaced() {
        assert_eq!(split(&[b"a\xffb\xe9\x80\nc"], 10), ["a\u{fffd}b\u{fffd}", "c"]);
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_chunks_give_the_same_lines(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..200),
            cut in any::<prop::sample::Index>(),
            max_bytes in 0usize..30,
        ) {
            let cut = cut.index(bytes.len() + 1);
            let lines = split(&[&bytes[..cut], &bytes[cut..]], max_bytes);
            prop_assert_eq!(&lines, &split(&[&bytes], max_bytes));
            // A byte that is not UTF-8 becomes a character of three bytes.
            prop_assert!(lines.iter().all(|line| line.len() <= 3 * max_bytes));
        }
    }
}
