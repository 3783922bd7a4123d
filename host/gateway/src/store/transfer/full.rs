//! The lossless export format: JSON lines, one per message.
//!
//! The first line names the format. Then, for each conversation, there is a `session` line that says how many lines
//! follow it; a `message` line for every message of the archive, oldest first; a `live` line for every message of
//! the live window; a `case` line for every case of its channel; and an `image` line for every image that its messages
//! refer to. The last line is an `end` line: without it, the file was cut off. A reader that supports a version supports
//! all earlier ones: version 1 has no cases, before version 3 there was no `end` line, and before version 4 there were no
//! images.

mod case;

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufRead, BufReader, Write},
    iter::Peekable,
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use pmk_core::{Block, ImageId, Message, Origin, Role, SessionKey, history, structure};
use pmk_system::files;
use pmk_system::lines::Lines;
use serde::{Deserialize, Serialize};

use super::{BYTE_ORDER_MARK, TransferError};
use crate::store::{DumpedLive, DumpedMessage, SessionDump, StoredImage, Verbosity};

/// The version that is written.
pub const VERSION: u32 = 4;

/// The first version whose files say where they end.
const FIRST_WITH_END: u32 = 3;

/// The largest message id that is read: the largest integer that every JSON reader represents exactly.
const MAX_ID: i64 = 1 << 53;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    PmkHostSessions(Header),
    Session(Box<SessionLine>),
    Message(MessageLine),
    Live(LiveLine),
    Case(case::CaseLine),
    Image(ImageLine),
    End {},
}

impl Line {
    fn name(&self) -> &'static str {
        match self {
            Line::PmkHostSessions(_) => "pmk-host-sessions",
            Line::Session(_) => "session",
            Line::Message(_) => "message",
            Line::Live(_) => "live",
            Line::Case(_) => "case",
            Line::Image(_) => "image",
            Line::End {} => "end",
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct SessionLine {
    key: SessionKey,
    created_at_ms: i64,
    active_at_ms: i64,
    turns: u32,
    dropped_turns: u32,
    marker: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verbose: Option<Verbosity>,
    /// How many lines of each kind follow.
    messages: usize,
    live: usize,
    #[serde(default)]
    cases: usize,
    #[serde(default)]
    images: usize,
}

#[derive(Serialize, Deserialize)]
struct MessageLine {
    id: i64,
    role: Role,
    origin: Origin,
    blocks: Vec<Block>,
    tokens: u32,
    created_at_ms: i64,
}

#[derive(Serialize, Deserialize)]
struct LiveLine {
    id: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replacement: Option<Message>,
    tokens: u32,
}

#[derive(Serialize, Deserialize)]
struct ImageLine {
    sha256: ImageId,
    base64: String,
}

/// Writes the first line.
///
/// # Errors
/// It cannot be written.
pub fn write_header(file: &mut impl Write) -> io::Result<()> {
    write_line(file, &Line::PmkHostSessions(Header { version: VERSION }))
}

/// Writes the last line.
///
/// # Errors
/// It cannot be written.
pub fn write_end(file: &mut impl Write) -> io::Result<()> {
    write_line(file, &Line::End {})
}

/// Writes a conversation.
///
/// # Errors
/// It cannot be written.
pub fn write(file: &mut impl Write, dump: SessionDump) -> io::Result<()> {
    let ids: Vec<i64> = (1..).zip(&dump.messages).map(|(at, message)| message.id.unwrap_or(at)).collect();
    let session = SessionLine {
        key: dump.key,
        created_at_ms: dump.created_at_ms,
        active_at_ms: dump.active_at_ms,
        turns: u32::try_from(dump.turns).unwrap_or(u32::MAX),
        dropped_turns: dump.dropped_turns,
        marker: dump.marker_template,
        verbose: dump.verbosity,
        messages: dump.messages.len(),
        live: dump.live.len(),
        cases: dump.cases.len(),
        images: dump.images.len(),
    };
    write_line(file, &Line::Session(Box::new(session)))?;
    for (&id, stored) in ids.iter().zip(dump.messages) {
        let DumpedMessage { message: Message { role, origin, blocks }, tokens, created_at_ms, .. } = stored;
        write_line(file, &Line::Message(MessageLine { id, role, origin, blocks, tokens, created_at_ms }))?;
    }
    for DumpedLive { index, replacement, tokens } in dump.live {
        write_line(file, &Line::Live(LiveLine { id: ids[index], replacement, tokens }))?;
    }
    for case in dump.cases {
        write_line(file, &Line::Case(case::CaseLine::new(case, &ids)))?;
    }
    for StoredImage { sha256, bytes } in dump.images {
        write_line(file, &Line::Image(ImageLine { sha256, base64: BASE64_STANDARD.encode(&*bytes) }))?;
    }
    Ok(())
}

fn write_line(file: &mut impl Write, line: &Line) -> io::Result<()> {
    serde_json::to_writer(&mut *file, line)?;
    file.write_all(b"\n")
}

/// Whether a file declares this format.
pub fn is_full(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = files::open(path)
        .map_err(io::Error::from)
        .and_then(|(file, _)| BufReader::new(io::Read::take(file, 256)).read_until(b'\n', &mut start));
    let start = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&start);
    read.is_ok() && matches!(serde_json::from_slice(start), Ok(Line::PmkHostSessions(_)))
}

/// Reads the conversations of a file one at a time; only one is held in memory.
pub struct Conversations {
    path: PathBuf,
    lines: Peekable<Lines<BufReader<File>>>,
    /// The number of lines read.
    number: usize,
    /// A line that was read ahead.
    next: Option<Box<SessionLine>>,
    /// Whether an `end` line is still to come.
    must_end: bool,
}

/// A conversation, and the repairs that were made to it, one line each.
pub type Read = Result<(SessionDump, Vec<String>), (Option<SessionKey>, TransferError)>;

impl Conversations {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be read, it is of another format, or of a later version.
    pub fn open(path: &Path) -> Result<Self, TransferError> {
        let opened = files::open(path);
        let (file, _) = opened.map_err(|error| TransferError::Read { path: path.to_owned(), source: error.into() })?;
        let lines = Lines::new(BufReader::new(file)).peekable();
        let mut conversations = Conversations { path: path.to_owned(), lines, number: 0, next: None, must_end: false };
        match conversations.line() {
            Some(Ok(Line::PmkHostSessions(Header { version }))) if version <= VERSION => Ok(conversations),
            Some(Ok(Line::PmkHostSessions(Header { version }))) => {
                Err(TransferError::Newer { path: path.to_owned(), found: version, known: VERSION })
            }
            Some(Err(error @ TransferError::CutShort { .. })) => Err(error),
            _ => Err(TransferError::NotFull { path: path.to_owned() }),
        }
    }

    /// Returns the next line that is not blank.
    fn line(&mut self) -> Option<Result<Line, TransferError>> {
        loop {
            self.number += 1;
            let line = match self.lines.next()? {
                Ok(line) => line,
                Err(source) => {
                    // Nothing more is read, so nobody knows how the file ends.
                    self.must_end = false;
                    return Some(Err(TransferError::CutShort { path: self.path.clone(), source }));
                }
            };
            let text = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line);
            if text.trim_ascii().is_empty() {
                continue;
            }
            return Some(match serde_json::from_slice::<Line>(text) {
                Ok(line) => {
                    match &line {
                        Line::PmkHostSessions(Header { version }) => self.must_end = *version >= FIRST_WITH_END,
                        Line::End {} => self.must_end = false,
                        _ => {}
                    }
                    Ok(line)
                }
                // Half a line is the last one of a file that was cut off.
                Err(error) if error.is_eof() && self.lines.peek().is_none() => Err(self.ends_early()),
                Err(error) => Err(self.wrong(words(&error))),
            });
        }
    }

    /// The error for a file that was cut off, which is reported only once.
    fn ends_early(&mut self) -> TransferError {
        self.must_end = false;
        TransferError::EndsEarly { path: self.path.clone(), line: self.number }
    }

    fn wrong(&self, what: String) -> TransferError {
        TransferError::Line { path: self.path.clone(), line: self.number, what }
    }

    /// Reads the lines of a conversation.
    fn conversation(&mut self, session: SessionLine) -> Result<(SessionDump, Vec<String>), TransferError> {
        // The claimed number of lines is not trusted for allocating memory.
        let mut messages = Vec::new();
        let mut indexes = HashMap::new();
        for index in 0..session.messages {
            let MessageLine { id, role, origin, blocks, tokens, created_at_ms } = match self.expect()? {
                Line::Message(message) => message,
                other => return Err(self.unexpected("message", other)),
            };
            if !(1..=MAX_ID).contains(&id) || indexes.insert(id, index).is_some() {
                return Err(self.wrong(format!("{id} cannot be the id of this message")));
            }
            let message = Message { role, origin, blocks };
            messages.push(DumpedMessage { id: Some(id), message, tokens, created_at_ms });
        }
        let places = indexes.clone();
        let mut live = Vec::new();
        for _ in 0..session.live {
            let LiveLine { id, replacement, tokens } = match self.expect()? {
                Line::Live(live) => live,
                other => return Err(self.unexpected("live", other)),
            };
            // Removed from the map, so that no message is live twice.
            let index = indexes
                .remove(&id)
                .ok_or_else(|| self.wrong(format!("message {id} does not exist, or is already live")))?;
            live.push(DumpedLive { index, replacement, tokens });
        }
        let mut cases = Vec::new();
        for _ in 0..session.cases {
            match self.expect()? {
                Line::Case(case) => cases.push(
                    case.dumped(&places)
                        .map_err(|id| self.wrong(format!("there is no message {id} that can belong to the case")))?,
                ),
                other => return Err(self.unexpected("case", other)),
            }
        }
        let mut images = Vec::new();
        for _ in 0..session.images {
            match self.expect()? {
                Line::Image(ImageLine { sha256, base64 }) => {
                    let bytes = BASE64_STANDARD.decode(base64).ok().filter(|bytes| ImageId::of(bytes) == sha256);
                    let bytes =
                        bytes.ok_or_else(|| self.wrong(format!("these are not the bytes of image {sha256}")))?;
                    images.push(StoredImage { sha256, bytes: bytes.into() });
                }
                other => return Err(self.unexpected("image", other)),
            }
        }
        let mut dump = SessionDump {
            key: session.key,
            created_at_ms: session.created_at_ms,
            active_at_ms: session.active_at_ms,
            turns: u64::from(session.turns),
            dropped_turns: session.dropped_turns,
            marker_template: session.marker,
            verbosity: session.verbose,
            messages,
            has_made_up_times: false,
            live,
            cases,
            images,
        };
        let repairs = repair(&mut dump);
        Ok((dump, repairs))
    }

    /// Returns the next line of a conversation that has one more.
    fn expect(&mut self) -> Result<Line, TransferError> {
        self.line().unwrap_or_else(|| Err(self.ends_early()))
    }

    /// Returns the error for a conversation that ends too early. If another conversation follows, it is kept.
    fn unexpected(&mut self, wanted: &str, found: Line) -> TransferError {
        let error = self.wrong(format!("expected a `{wanted}` line, found a `{}` line", found.name()));
        if let Line::Session(session) = found {
            self.next = Some(session);
        }
        error
    }
}

impl Iterator for Conversations {
    type Item = Read;

    fn next(&mut self) -> Option<Read> {
        let session = match self.next.take() {
            Some(session) => session,
            // The rest of a conversation that could not be read is skipped; its error was reported.
            None => loop {
                match self.line() {
                    Some(Ok(Line::Session(session))) => break session,
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Some(Err((None, error))),
                    None if self.must_end => return Some(Err((None, self.ends_early()))),
                    None => return None,
                }
            },
        };
        let key = session.key.clone();
        Some(self.conversation(*session).map_err(|error| (Some(key), error)))
    }
}

/// Returns the parser's message without its own line number, which is always 1.
fn words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what).to_owned()
}

/// Removes tool blocks that have lost their partner from the live window; the archive keeps them. No store holds
/// such a window, but a file may have been edited.
fn repair(dump: &mut SessionDump) -> Vec<String> {
    let messages: Vec<&Message> = dump.live.iter().map(|live| dump.shown(live)).collect();
    if structure::pair_tools(&messages).orphans.is_empty() {
        return vec![];
    }
    let repaired = history::repair(messages.into_iter().cloned().collect());
    let live = repaired.messages.into_iter().map(|(at, message)| {
        let before = &dump.live[at];
        if message == *dump.shown(before) {
            return before.clone();
        }
        DumpedLive { index: before.index, tokens: pmk_core::tokens::message(&message), replacement: Some(message) }
    });
    dump.live = live.collect();
    repaired.repairs
}
