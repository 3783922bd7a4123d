//! Reads the lines of a file provided by a user, with a limit on their length: only one is in memory at a time.

use std::io::{self, BufRead};

/// The maximum length of a line, in bytes. A line contains one message, and the largest one seen had some megabytes.
pub const MAX_LINE_BYTES: usize = 64 << 20;

/// The lines, without their line ends. After an error there are no more.
#[derive(Debug)]
pub struct Lines<R> {
    /// `None` once nothing more is read.
    reader: Option<R>,
    number: usize,
    limit: usize,
}

impl<R: BufRead> Lines<R> {
    /// Lines of at most [`MAX_LINE_BYTES`].
    pub fn new(reader: R) -> Self {
        Lines::within(MAX_LINE_BYTES, reader)
    }

    /// Lines of at most `limit` bytes.
    fn within(limit: usize, reader: R) -> Self {
        Lines { reader: Some(reader), number: 0, limit }
    }

    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some(reader) = &mut self.reader else { return Ok(None) };
        self.number += 1;
        let mut line = Vec::new();
        // One more for the line end.
        let most = (self.limit as u64).saturating_add(1);
        if io::Read::take(reader, most).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        if line.len() > self.limit {
            let what = format!("line {} is longer than the limit of {} bytes", self.number, self.limit);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
        }
        Ok(Some(line))
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<io::Result<Vec<u8>>> {
        let line = self.read().transpose();
        if !matches!(line, Some(Ok(_))) {
            self.reader = None;
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<Result<String, String>> {
        let lines = Lines::within(4, text.as_bytes());
        lines.map(|line| line.map(|line| String::from_utf8(line).unwrap()).map_err(|error| error.to_string())).collect()
    }

    #[test]
    fn a_line_that_is_too_long_is_the_last() {
        let read = |text: &str| Ok(text.to_owned());
        let too_long = |number| Err(format!("line {number} is longer than the limit of 4 bytes"));
        assert_eq!(lines(""), []);
        assert_eq!(lines("a\n\n1234\nb"), [read("a"), read(""), read("1234"), read("b")]);
        assert_eq!(lines("1234"), [read("1234")]);
        assert_eq!(lines("a\n12345\nb"), [read("a"), too_long(2)]);
        assert_eq!(lines("12345"), [too_long(1)]);
    }
}
