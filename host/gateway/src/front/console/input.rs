//! Reads lines of input of limited length; a longer line is skipped without being stored.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// The longest line, in bytes.
pub(super) const MAX_LINE: usize = 1 << 20;

/// One line, without its line end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputLine {
    Whole(Vec<u8>),
    /// It was longer than [`MAX_LINE`].
    TooLong,
}

/// Reads lines.
pub(super) struct Input<R> {
    reader: BufReader<R>,
    /// The current line as far as it was read.
    line: Vec<u8>,
    begun: bool,
    too_long: bool,
}

impl<R: AsyncRead + Unpin> Input<R> {
    pub(super) fn new(reader: R) -> Self {
        Input { reader: BufReader::new(reader), line: Vec::new(), begun: false, too_long: false }
    }

    /// Returns the next line; `None` at the end. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The input cannot be read.
    pub(super) async fn next(&mut self) -> io::Result<Option<InputLine>> {
        loop {
            let chunk = self.reader.fill_buf().await?;
            if chunk.is_empty() {
                return Ok(self.begun.then(|| self.take()));
            }
            let end = chunk.iter().position(|&byte| byte == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            self.begun = true;
            self.too_long |= self.line.len() + part.len() > MAX_LINE;
            if self.too_long {
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(part);
            }
            let used = end.map_or(chunk.len(), |at| at + 1);
            self.reader.consume(used);
            if end.is_some() {
                return Ok(Some(self.take()));
            }
        }
    }

    fn take(&mut self) -> InputLine {
        self.begun = false;
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.too_long) { InputLine::TooLong } else { InputLine::Whole(line) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(text: &[u8]) -> Vec<InputLine> {
        let mut input = Input::new(text);
        let mut lines = Vec::new();
        while let Some(line) = input.next().await.expect("readable") {
            lines.push(line);
        }
        lines
    }

    fn whole(text: &str) -> InputLine {
        InputLine::Whole(text.into())
    }

    #[tokio::test]
    async fn lines_end_at_a_newline_or_with_the_input() {
        assert_eq!(lines(b"").await, []);
        assert_eq!(lines(b"a\n\nb").await, [whole("a"), whole(""), whole("b")]);
        assert_eq!(lines(b"a\n").await, [whole("a")]);
    }

    #[tokio::test]
    async fn a_line_too_long_is_passed_over_and_the_next_one_read() {
        let longest = "x".repeat(MAX_LINE);
        let text = format!("{longest}\n{longest}x\nb\n{longest}{longest}{longest}");
        assert_eq!(lines(text.as_bytes()).await, [whole(&longest), InputLine::TooLong, whole("b"), InputLine::TooLong]);
    }
}
