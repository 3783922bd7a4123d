//! The log of a component during one decision, limited to what the contract promises to keep.

use std::mem;

use pmk_core::text;
use serde::Serialize;

/// How much of the last output before a failure is kept, in bytes.
const MAX_LAST_WORDS_BYTES: usize = 500;

/// The level of a log line, with the codes of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// 1; also output on stderr.
    Error,
    /// 2.
    Warn,
    /// 3, and every code not listed here; also output on stdout.
    Info,
    /// 4.
    Debug,
    /// 5.
    Trace,
}

impl LogLevel {
    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
            LogLevel::Trace => "trace",
        }
    }

    /// The level with that code in the contract.
    pub(crate) const fn of_code(code: u8) -> Self {
        match code {
            1 => LogLevel::Error,
            2 => LogLevel::Warn,
            4 => LogLevel::Debug,
            5 => LogLevel::Trace,
            _ => LogLevel::Info,
        }
    }
}

/// One line of a component's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogLine {
    /// Its level.
    pub level: LogLevel,
    /// Its text.
    pub text: String,
}

/// The stream that a component prints to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// Lines in order. What exceeds the limit is dropped and never stops the component.
#[derive(Debug)]
pub(crate) struct Log {
    lines: Vec<LogLine>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// The end of what was printed on stderr after the log was full: it may be the message of a panic.
    lost: Vec<u8>,
    left: usize,
    /// Whether anything was dropped.
    is_cut: bool,
    /// Kept even if the log is full: it may be the message of a panic.
    last_error: Option<String>,
}

impl Log {
    pub fn new(limit: usize) -> Self {
        let (stdout, stderr, lost) = (Vec::new(), Vec::new(), Vec::new());
        Log { lines: Vec::new(), stdout, stderr, lost, left: limit, is_cut: false, last_error: None }
    }

    /// Adds a line from the log function.
    pub fn line(&mut self, level: LogLevel, message: &str) {
        let kept = text::head_bytes(message, self.left);
        // After the first truncation the log takes nothing more, so that later lines cost nothing.
        self.left = if kept.len() < message.len() { 0 } else { self.left - kept.len() };
        self.is_cut |= kept.len() < message.len();
        if level == LogLevel::Error {
            self.lost.clear();
            self.last_error = Some(text::plain(text::head_bytes(message, MAX_LAST_WORDS_BYTES)).into_owned());
        }
        let seen = text::plain(kept);
        if !seen.is_empty() {
            self.lines.push(LogLine { level, text: seen.into_owned() });
        }
    }

    /// Adds printed bytes; they become lines at each line feed and at the end.
    pub fn print(&mut self, stream: Stream, bytes: &[u8]) {
        let (kept, lost) = bytes.split_at(bytes.len().min(self.left));
        self.left -= kept.len();
        self.is_cut |= !lost.is_empty();
        for part in kept.split_inclusive(|&byte| byte == b'\n') {
            self.pending(stream).extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.finish_line(stream);
            }
        }
        if stream == Stream::Stderr {
            self.lost.extend_from_slice(&lost[lost.len().saturating_sub(MAX_LAST_WORDS_BYTES)..]);
            self.lost.drain(..self.lost.len().saturating_sub(MAX_LAST_WORDS_BYTES));
        }
    }

    /// The last output at error level or on stderr: after a panic, its message.
    pub fn last_words(&self) -> Option<String> {
        let printed = [&self.lost, &self.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        // What was lost may begin within a character.
        let mut printed = printed.iter().map(|printed| printed.trim_start_matches(char::REPLACEMENT_CHARACTER).trim());
        match printed.find(|printed| !printed.is_empty()) {
            Some(printed) => Some(text::head_bytes(printed, MAX_LAST_WORDS_BYTES).to_owned()),
            None => self.last_error.clone(),
        }
    }

    /// Whether something exceeded the limit and was dropped.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Takes all lines, unfinished ones included.
    pub fn take_lines(&mut self) -> Vec<LogLine> {
        self.finish_line(Stream::Stdout);
        self.finish_line(Stream::Stderr);
        mem::take(&mut self.lines)
    }

    fn pending(&mut self, stream: Stream) -> &mut Vec<u8> {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    fn finish_line(&mut self, stream: Stream) {
        let bytes = mem::take(self.pending(stream));
        let printed = String::from_utf8_lossy(&bytes);
        let printed = printed.trim_end();
        if printed.is_empty() {
            return;
        }
        let level = match stream {
            Stream::Stdout => LogLevel::Info,
            Stream::Stderr => LogLevel::Error,
        };
        if stream == Stream::Stderr {
            self.last_error = Some(text::plain(text::head_bytes(printed, MAX_LAST_WORDS_BYTES)).into_owned());
        }
        self.lines.push(LogLine { level, text: text::plain(printed).into_owned() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(mut log: Log) -> Vec<String> {
        log.take_lines().into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn the_tail_is_dropped_at_a_grapheme() {
        let mut log = Log::new(5);
        log.line(LogLevel::Info, "預算");
        log.line(LogLevel::Info, "abc");
        log.line(LogLevel::Info, "d");
        assert_eq!(texts(log), ["預"]);
    }

    #[test]
    fn the_message_of_a_panic_is_known_even_where_the_log_is_full() {
        let mut log = Log::new(4);
        log.line(LogLevel::Info, "chatter");
        log.line(LogLevel::Error, "it went bust");
        assert_eq!(log.last_words().as_deref(), Some("it went bust"));
        assert_eq!(texts(log), ["chat"]);
    }

    /// Regression: after 8 KiB of output, the message of a panic that was printed was lost.
    #[test]
    fn the_message_of_a_panic_is_known_even_if_it_is_printed_where_the_log_is_full() {
        let mut log = Log::new(8);
        log.print(Stream::Stderr, b"chatter\n");
        log.print(Stream::Stderr, "預".repeat(400).as_bytes());
        log.print(Stream::Stdout, b"as usual\n");
        log.print(Stream::Stderr, b"\nthread 'main' panicked: ");
        log.print(Stream::Stderr, b"it went bust\n");
        let words = log.last_words().expect("last words");
        assert!(words.starts_with('預') && words.ends_with("\nthread 'main' panicked: it went bust"), "{words}");
        assert!(words.len() <= MAX_LAST_WORDS_BYTES);
        log.line(LogLevel::Error, "and all is lost");
        assert_eq!(log.last_words().as_deref(), Some("and all is lost"));
        assert_eq!(texts(log), ["chatter"]);
    }

    /// Regression: bidirectional controls and invisible characters in a line reached the operator's log.
    #[test]
    fn what_is_not_seen_is_in_no_line() {
        let mut log = Log::new(100);
        log.line(LogLevel::Error, "all\u{202e} is\u{200b} well\u{1b}[2J");
        log.print(Stream::Stdout, "so\u{2066} it is\n".as_bytes());
        assert_eq!(log.last_words().as_deref(), Some("all is well[2J"));
        assert_eq!(texts(log), ["all is well[2J", "so it is"]);
    }

    #[test]
    fn printed_pieces_become_lines() {
        let mut log = Log::new(100);
        log.print(Stream::Stderr, b"\nthread 'main' ");
        log.print(Stream::Stdout, b"one\ntw");
        log.print(Stream::Stderr, b"panicked at ");
        assert_eq!(log.last_words().as_deref(), Some("thread 'main' panicked at"));
        log.print(Stream::Stdout, b"o");
        assert_eq!(texts(log), ["one", "two", "thread 'main' panicked at"]);
    }

    #[test]
    fn printing_stops_at_the_limit_even_within_a_character() {
        let mut log = Log::new(4);
        log.print(Stream::Stdout, "預算".as_bytes());
        assert_eq!(texts(log), ["預\u{fffd}"]);
    }
}
