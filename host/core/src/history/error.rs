//! Why a file is not a history.

use thiserror::Error;

/// Why a file cannot be read as a history.
#[derive(Debug, Error)]
pub enum HistoryError {
    /// Nothing but white space.
    #[error("it is empty")]
    Empty,
    /// Neither one JSON value nor JSON lines.
    #[error("it is not JSON: {source}")]
    NotJson {
        /// The parser's error.
        source: serde_json::Error,
    },
    /// JSON lines, and this line is not JSON.
    #[error("line {line} is not JSON: {}", in_line(source))]
    BadLine {
        /// From 1, blank lines counted.
        line: usize,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// An object without a list of messages.
    #[error("it has no `messages` list")]
    NoMessages,
    /// Neither a text nor a list of text blocks.
    #[error("its system prompt {what}")]
    BadSystem {
        /// The rest of a sentence.
        what: String,
    },
    /// `line` is given where every message has its own line.
    #[error("{}: {what}", place(*index, *line))]
    BadMessage {
        /// From 0, a system prompt counted.
        index: usize,
        /// From 1, blank lines counted.
        line: Option<usize>,
        /// What is wrong with it.
        what: String,
    },
}

impl HistoryError {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            // Files that are appended to line by line end in half a line after a crash.
            HistoryError::NotJson { source } | HistoryError::BadLine { source, .. } if source.is_eof() => {
                "it is truncated; complete the part that was cut off, or remove it"
            }
            HistoryError::BadSystem { .. } => "a system prompt is a string or a list of text blocks",
            HistoryError::BadMessage { .. } => "a message has a `role` and, as `content`, a string or a list of blocks",
            _ => "a history is pmk's `session.json`, Anthropic's `{\"system\",\"messages\"}`, or one message per line",
        }
    }
}

/// The parser's error without its line number, which is always 1.
fn in_line(source: &serde_json::Error) -> String {
    let text = source.to_string();
    match text.rsplit_once(" at line ") {
        Some((what, _)) => format!("{what} at column {}", source.column()),
        None => text,
    }
}

fn place(index: usize, line: Option<usize>) -> String {
    match line {
        Some(line) => format!("line {line}"),
        None => format!("message {index}"),
    }
}
