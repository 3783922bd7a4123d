//! Reads and writes the conversation files of pmk.

use std::{
    fmt,
    fs::File,
    io::{BufRead, BufReader, Read, Seek},
    path::Path,
};

use jiff::Timestamp;
use pmk_core::{
    FrontName, History, HistoryBuilder, Marker, Message, Origin, Place, Role, SessionKey,
    history::{self, HistoryError, Repaired},
    marker, session_key,
    structure::Structure,
    tokens,
};
use pmk_system::files;
use pmk_system::lines::Lines;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{SeqAccess, Visitor},
};
use serde_json::{Value, error::Category};

use super::{
    BYTE_ORDER_MARK, TransferError,
    flatten::{Flat, flatten},
};
use crate::store::{DumpedLive, DumpedMessage, SessionDump};

/// pmk's own estimate of tokens: UTF-16 units over this.
const UNITS_PER_TOKEN: f64 = 3.5;

/// Messages without a time of their own are assumed to be this far apart, as in pmk itself.
const APART_MS: i64 = 1_000;

/// The display name of people of whom only the id is known.
const NO_NAME: &str = "?";

/// A conversation as read from a file of pmk.
#[derive(Debug)]
pub struct Imported {
    pub dump: SessionDump,
    /// The repairs that were made, and what could not be read: one line each.
    pub repairs: Vec<String>,
}

/// Reads the file of a conversation: pmk's `session.json`, or lines of messages where the name ends in `.jsonl`.
/// `key` names the conversation; otherwise its path does, or the ids in it. A broken history is repaired.
///
/// # Errors
/// It cannot be read, it is no history, none of its lines is a message, or nothing says which conversation it is.
pub fn read(path: &Path, key: Option<&SessionKey>, now_ms: i64) -> Result<Imported, TransferError> {
    let is_lines = path.extension().is_some_and(|extension| extension == "jsonl");
    let failed = |error: files::FileReadError| TransferError::Read { path: path.to_owned(), source: error.into() };
    let (file, metadata) = files::open(path).map_err(failed)?;
    let (bytes, limit) = (metadata.len(), files::MAX_TEXT_BYTES);
    // It is read message by message, but a single one could be as long as the whole file.
    if !is_lines && bytes > limit {
        return Err(failed(files::FileReadError::TooLarge { bytes, limit }));
    }
    let raw = if is_lines { read_lines(path, file, now_ms)? } else { read_session(path, file, now_ms)? };
    let key = key.cloned().or_else(|| super::tree::key_of(path)).or_else(|| raw.key.clone());
    let key = key.ok_or_else(|| TransferError::Anonymous { path: path.to_owned() })?;
    Ok(raw.imported(key))
}

/// A history as it is in the file.
struct Raw {
    history: History,
    /// The time of each message.
    times: Vec<i64>,
    has_made_up_times: bool,
    key: Option<SessionKey>,
    active_at_ms: i64,
    turns: Option<u64>,
    /// Lines that were not messages.
    skipped: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionFile {
    messages: Messages,
    #[serde(default)]
    system: Value,
    #[serde(default)]
    user_id: Value,
    #[serde(default)]
    channel_id: Value,
    #[serde(default)]
    last_active_at: Value,
    #[serde(default)]
    turns: Value,
}

/// The messages of a file, each added to the history as it is read: at most one is held twice.
struct Messages(Result<History, HistoryError>);

impl<'de> Deserialize<'de> for Messages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(EachMessage)
    }
}

struct EachMessage;

impl<'de> Visitor<'de> for EachMessage {
    type Value = Messages;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Messages, A::Error> {
        let mut history = HistoryBuilder::default();
        let mut wrong = None;
        while let Some(value) = list.next_element::<Value>()? {
            if wrong.is_none() {
                wrong = history.push(None, &value).err();
            }
        }
        Ok(Messages(wrong.map_or_else(|| Ok(history.finish()), Err)))
    }
}

fn read_session(path: &Path, file: File, now_ms: i64) -> Result<Raw, TransferError> {
    let failed = |source| TransferError::Read { path: path.to_owned(), source };
    let broken = |source| TransferError::History { path: path.to_owned(), source };
    // The text is never held as a whole, so a large session is in memory only once.
    let mut file = BufReader::new(file);
    if file.fill_buf().map_err(failed)?.starts_with(BYTE_ORDER_MARK) {
        file.consume(BYTE_ORDER_MARK.len());
    }
    let session: SessionFile = serde_json::from_reader(&mut file).map_err(|source| match source.classify() {
        Category::Io => failed(source.into()),
        Category::Data => broken(HistoryError::NoMessages),
        Category::Eof if is_blank(&mut file) => broken(HistoryError::Empty),
        Category::Eof | Category::Syntax => broken(HistoryError::NotJson { source }),
    })?;
    let history = session.messages.0.map_err(broken)?;
    let mut skipped = Vec::new();
    if !session.system.is_null() || history.system.is_some() {
        skipped.push("its system prompt is left out: the gateway has its own".to_owned());
    }
    let active_at_ms = session.last_active_at.as_f64().map_or(now_ms, |at| at as i64);
    let newest_first = (0..history.messages.len() as i64).rev();
    Ok(Raw {
        times: newest_first.map(|before| active_at_ms.saturating_sub(before.saturating_mul(APART_MS))).collect(),
        has_made_up_times: true,
        history,
        key: key_of(&session.user_id, Place::Dm).or_else(|| key_of(&session.channel_id, Place::Channel)),
        active_at_ms,
        turns: session.turns.as_u64().filter(|&turns| turns <= u64::from(u32::MAX)),
        skipped,
    })
}

/// Whether a file contains nothing but white space, with or without a byte order mark.
fn is_blank(file: &mut BufReader<File>) -> bool {
    let is_nothing = |byte: u8| byte.is_ascii_whitespace() || BYTE_ORDER_MARK.contains(&byte);
    file.rewind().is_ok() && file.bytes().all(|byte| byte.is_ok_and(is_nothing))
}

fn key_of(id: &Value, place: fn(String) -> Place) -> Option<SessionKey> {
    let id = id.as_str().filter(|id| session_key::is_id(id))?;
    Some(SessionKey { front: FrontName::Slack, place: place(id.to_owned()), thread: None })
}

/// Skips lines that are no messages, such as half a line after a crash, as pmk does; but reports them.
fn read_lines(path: &Path, file: File, now_ms: i64) -> Result<Raw, TransferError> {
    let mut history = HistoryBuilder::default();
    let (mut times, mut has_made_up_times, mut skipped) = (Vec::new(), false, Vec::new());
    for (number, line) in (1..).zip(Lines::new(BufReader::new(file))) {
        let line = line.map_err(|source| TransferError::Read { path: path.to_owned(), source })?;
        let text = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line);
        if text.trim_ascii().is_empty() {
            continue;
        }
        let read = serde_json::from_slice::<Value>(text)
            .map_err(|source| HistoryError::BadLine { line: number, source })
            .and_then(|value| Ok((history.push(Some(number), &value)?, time(&value))));
        match read {
            Ok((false, _)) => skipped.push(format!("line {number}: a system prompt is left out")),
            Ok((true, at)) => {
                has_made_up_times |= at.is_none();
                times.push(at.or(times.last().copied()).unwrap_or(now_ms));
            }
            Err(error) => skipped.push(format!("{error}; the line is left out")),
        }
    }
    let history = history.finish();
    // pmk begins such a file with its first message: without any, it has lost what was in it.
    if history.messages.is_empty() {
        return Err(TransferError::NoMessage { path: path.to_owned() });
    }
    let active_at_ms = times.iter().copied().max().unwrap_or(now_ms);
    Ok(Raw { history, times, has_made_up_times, key: None, active_at_ms, turns: None, skipped })
}

fn time(line: &Value) -> Option<i64> {
    let at: Timestamp = line.get("ts")?.as_str()?.parse().ok()?;
    Some(at.as_millisecond())
}

impl Raw {
    /// Repairs the history. A marker becomes the count of dropped turns, from which the host writes its own marker.
    fn imported(self, key: SessionKey) -> Imported {
        let Raw { history, times, has_made_up_times, active_at_ms, turns, skipped, .. } = self;
        let mut repairs: Vec<String> = skipped.into_iter().chain(history.unread).collect();
        let (said, dropped_turns) = without_the_hosts_own(history.messages, &mut repairs);
        let Repaired { messages, repairs: repaired } = history::repair_numbered(said);
        repairs.extend(repaired);
        let mut kept: Vec<DumpedMessage> = Vec::with_capacity(messages.len());
        let mut unanswered = 0;
        let mut asked = false;
        let starts = Structure::of(&messages.iter().map(|(_, message)| message).collect::<Vec<_>>()).turn_starts;
        for (at, (index, message)) in (0..).zip(messages) {
            let asks = starts.binary_search(&at).is_ok();
            unanswered += usize::from(asks && asked);
            asked = asks || (asked && message.role == Role::User);
            let tokens = tokens::message(&message);
            kept.push(DumpedMessage {
                id: None,
                message,
                tokens,
                created_at_ms: times.get(index).copied().unwrap_or(active_at_ms),
            });
        }
        unanswered += usize::from(asked);
        if unanswered > 0 {
            repairs.push(format!(
                "questions without an answer: {unanswered}; each is sent to the model with the next one"
            ));
        }
        let shown =
            |(index, stored): (usize, &DumpedMessage)| DumpedLive { index, replacement: None, tokens: stored.tokens };
        let live = kept.iter().enumerate().map(shown).collect();
        let dump = SessionDump {
            key,
            created_at_ms: kept.first().map_or(active_at_ms, |first| first.created_at_ms.min(active_at_ms)),
            active_at_ms,
            turns: turns.unwrap_or(starts.len() as u64),
            dropped_turns,
            marker_template: None,
            verbosity: None,
            live,
            messages: kept,
            has_made_up_times,
            cases: vec![],
            images: vec![],
        };
        Imported { dump, repairs }
    }
}

/// Returns what people and the model said, each message with its index, and the number of turns that markers stand
/// for. Messages that the host had inserted are removed first, because the rest must begin with a question.
fn without_the_hosts_own(messages: Vec<Message>, repairs: &mut Vec<String>) -> (Vec<(usize, Message)>, u32) {
    let mut dropped_turns = 0u32;
    let mut said = Vec::with_capacity(messages.len());
    for (index, message) in messages.into_iter().enumerate() {
        match message.origin {
            Origin::Marker => {
                let turns = marker::parse(&message.plain_text()).unwrap_or(0);
                dropped_turns = dropped_turns.saturating_add(turns);
                repairs
                    .push(format!("message {index}: a marker; the count of dropped turns continues from its {turns}"));
            }
            Origin::Retrieval | Origin::Recall => {
                repairs.push(format!("message {index}: it was shown for one request only, and is left out"));
            }
            _ => said.push((index, message)),
        }
    }
    (said, dropped_turns)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel_id: Option<&'a str>,
    display_name: &'a str,
    messages: Vec<Flat>,
    last_active_at: i64,
    approx_tokens: u64,
    turns: u64,
}

/// Returns what the model would see of a conversation, as a session file of pmk.
pub fn session_file(dump: &SessionDump) -> String {
    let live: Vec<&Message> = dump.live.iter().map(|live| dump.shown(live)).collect();
    let is_seed = |message: &&&Message| matches!(message.origin, Origin::Seed | Origin::SeedAck);
    let (seed, rest) = live.split_at(live.iter().take_while(is_seed).count());
    // Always with the host's own text: pmk knows no others.
    let marker = (dump.dropped_turns > 0).then(|| Marker::new(dump.dropped_turns).message());
    let messages = flatten(seed.iter().copied().chain(&marker).chain(rest.iter().copied()));
    let units: usize = messages.iter().map(|message| message.content.encode_utf16().count()).sum();
    let (user_id, channel_id) = match &dump.key.place {
        Place::Dm(user) => (Some(user.as_str()), None),
        Place::Channel(channel) => (None, Some(channel.as_str())),
    };
    let written = Written {
        user_id,
        channel_id,
        display_name: NO_NAME,
        messages,
        last_active_at: dump.active_at_ms,
        approx_tokens: (units as f64 / UNITS_PER_TOKEN).ceil() as u64,
        turns: dump.turns,
    };
    let mut json = serde_json::to_string_pretty(&written).expect("texts and numbers always have a JSON form");
    json.push('\n');
    json
}
