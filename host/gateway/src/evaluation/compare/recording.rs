//! A recorded conversation, ready to be replayed.

use std::{collections::HashMap, io::BufReader, ops::Range, path::Path};

use pmk_core::{
    Entry, HistoryBuilder, Message, Origin, SessionKey,
    history::{self, HistoryError, Repaired},
    marker,
    structure::Structure,
    tokens,
};
use pmk_system::files;
use pmk_system::lines::Lines;
use serde_json::Value;

use super::given::Given;
use crate::store::{SessionDump, transfer::TransferError};

/// Fields with the ids by which questions refer to a message.
const ID_FIELDS: [&str; 3] = ["id", "ids", "dia_id"];

/// Some editors begin a file with this.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A conversation as it was recorded.
#[derive(Debug, Default)]
pub struct Recording {
    /// The key of the conversation, if known.
    pub key: Option<SessionKey>,
    /// The system prompt, if it was recorded.
    pub system: String,
    /// The tokens of the system prompt.
    pub system_tokens: u64,
    /// The messages, numbered from 1.
    pub entries: Vec<Entry>,
    /// The turns, each with all its messages.
    pub turns: Vec<Range<usize>>,
    /// Turns that were dropped before the recording begins.
    pub dropped_turns: u32,
    /// The repairs that were necessary, one line each.
    pub repairs: Vec<String>,
    /// Whether a question of it is parked in the store.
    pub has_parked: bool,
    /// Whether the store has its turns without any receipt.
    pub lacks_receipts: bool,
    /// The inputs of each turn, from the receipts; empty if there are none.
    pub(crate) given: Vec<Given>,
    /// The message that each id refers to.
    indexes: HashMap<String, usize>,
}

impl Recording {
    /// Reads a file: JSON with `messages`, a JSON list of messages, or lines of messages.
    ///
    /// # Errors
    /// It cannot be read, or is not a history.
    pub fn read(path: &Path, key: Option<SessionKey>) -> Result<Recording, TransferError> {
        let wrong = |source| TransferError::History { path: path.to_owned(), source };
        let failed = |source| TransferError::Read { path: path.to_owned(), source };
        let mut reader = Reader::default();
        if path.extension().is_some_and(|extension| extension == "jsonl" || extension == "ndjson") {
            let file = files::open(path).map_err(|error| failed(error.into()))?.0;
            for (number, line) in Lines::new(BufReader::new(file)).enumerate() {
                reader.line(number, &String::from_utf8_lossy(&line.map_err(failed)?));
            }
        } else {
            let text = files::read_text(path).map_err(failed)?;
            let text = text.trim_start_matches(BYTE_ORDER_MARK);
            match serde_json::from_str(text) {
                Ok(value) => reader.document(value).map_err(wrong)?,
                Err(source) => {
                    text.lines().enumerate().for_each(|(number, line)| reader.line(number, line));
                    if reader.ids.is_empty() {
                        return Err(wrong(HistoryError::NotJson { source }));
                    }
                }
            }
        }
        if reader.ids.is_empty() {
            return Err(wrong(HistoryError::NoMessages));
        }
        let Reader { history, ids, mut repairs, .. } = reader;
        let history = history.finish();
        repairs.extend(history.unread);
        let messages = history.messages.into_iter().zip(ids).collect();
        Ok(Recording::of(key, history.system.unwrap_or_default(), messages, repairs))
    }

    /// Creates the recording of a conversation from a full export: all messages, as people and the model wrote them.
    /// What the policy of that time made of them is left out.
    pub fn of_dump(dump: SessionDump) -> Recording {
        let said = dump.messages.into_iter().filter(|stored| stored.message.origin != Origin::Summary);
        let messages = (1..).zip(said).map(|(at, stored): (i64, _)| {
            let id = stored.id.unwrap_or(at);
            (stored.message, vec![id.to_string(), format!("m{id}")])
        });
        Recording::of(Some(dump.key), String::new(), messages.collect(), vec![])
    }

    /// Creates a recording of these messages, each with the ids by which questions refer to it.
    pub fn of(
        key: Option<SessionKey>,
        system: String,
        messages: Vec<(Message, Vec<String>)>,
        mut repairs: Vec<String>,
    ) -> Recording {
        let (messages, mut names): (Vec<Message>, Vec<Vec<String>>) = messages.into_iter().unzip();
        let Repaired { messages, repairs: repaired } = history::repair(messages);
        repairs.extend(repaired);
        let mut recording = Recording {
            key,
            system_tokens: u64::from(tokens::estimate(&system)),
            system,
            repairs,
            ..Recording::default()
        };
        for (index, message) in messages {
            match message.origin {
                Origin::Marker => {
                    let turns = marker::parse(&message.plain_text()).unwrap_or(0);
                    recording.dropped_turns = recording.dropped_turns.saturating_add(turns);
                }
                // Shown in one request only, by the policy of that time.
                Origin::Retrieval | Origin::Recall => {}
                _ => {
                    let place = recording.entries.len();
                    recording.entries.push(Entry::new(place as i64 + 1, message));
                    for name in std::mem::take(&mut names[index]) {
                        // Of several messages of one id, the first.
                        recording.indexes.entry(name).or_insert(place);
                    }
                }
            }
        }
        let starts = Structure::of(&recording.entries).turn_starts.into_iter().map(|start| start as usize);
        let bounds: Vec<usize> = starts.chain([recording.entries.len()]).collect();
        recording.turns = bounds.windows(2).map(|bounds| bounds[0]..bounds[1]).collect();
        recording
    }

    /// Returns the messages before the first turn.
    pub fn opening(&self) -> &[Entry] {
        &self.entries[..self.turns.first().map_or(self.entries.len(), |turn| turn.start)]
    }

    /// Returns the message that questions refer to by this id.
    pub fn find(&self, id: &str) -> Option<usize> {
        self.indexes.get(id).copied()
    }

    /// Returns the turn that a message belongs to.
    pub fn turn_of(&self, index: usize) -> usize {
        self.turns.partition_point(|turn| turn.start <= index).saturating_sub(1)
    }
}

#[derive(Default)]
struct Reader {
    history: HistoryBuilder,
    ids: Vec<Vec<String>>,
    repairs: Vec<String>,
}

impl Reader {
    fn document(&mut self, value: Value) -> Result<(), HistoryError> {
        let messages = match value {
            Value::Array(messages) => messages,
            Value::Object(mut object) => {
                self.history = HistoryBuilder::with_system_prompt(object.get("system").unwrap_or(&Value::Null))?;
                match object.remove("messages") {
                    Some(Value::Array(messages)) => messages,
                    _ => return Err(HistoryError::NoMessages),
                }
            }
            _ => return Err(HistoryError::NoMessages),
        };
        for (number, message) in messages.iter().enumerate() {
            if self.history.push(None, message)? {
                self.ids.push(ids(message, number));
            }
        }
        Ok(())
    }

    /// Lines that are not messages are skipped, for example a line cut off by a crash.
    fn line(&mut self, number: usize, line: &str) {
        let line = line.trim_start_matches(BYTE_ORDER_MARK).trim();
        if line.is_empty() {
            return;
        }
        let read = serde_json::from_str::<Value>(line)
            .map_err(|source| HistoryError::BadLine { line: number + 1, source })
            .and_then(|value| Ok((self.history.push(Some(number + 1), &value)?, value)));
        match read {
            Ok((true, value)) => self.ids.push(ids(&value, number)),
            Ok((false, _)) => {}
            Err(error) => self.repairs.push(format!("{error}; the line is left out")),
        }
    }
}

/// Returns the ids of a message: from its fields, or else its position.
fn ids(message: &Value, number: usize) -> Vec<String> {
    let named = ID_FIELDS.iter().filter_map(|field| message.get(field));
    let ids: Vec<String> = named
        .flat_map(|value| match value {
            Value::Array(several) => several.iter().filter_map(id).collect(),
            one => id(one).into_iter().collect::<Vec<_>>(),
        })
        .collect();
    if ids.is_empty() { vec![number.to_string()] } else { ids }
}

/// An id is a string or a number.
pub(super) fn id(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(name: &str, text: &str) -> Recording {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file");
        Recording::read(&path, None).expect("a history")
    }

    #[test]
    fn messages_are_called_by_their_fields_or_else_by_their_line() {
        let lines = "{\"role\":\"user\",\"content\":\"a\",\"dia_id\":\"D1:1\"}\n\n{\"role\":\"assistant\",\"content\":\"b\"}\n\
                     {\"role\":\"user\",\"content\":\"c\",\"ids\":[\"x\",7]}\nnot json\n";
        let recording = read("c.jsonl", lines);
        let found = ["D1:1", "2", "x", "7", "D1:2"].map(|id| recording.find(id));
        assert_eq!(found, [Some(0), Some(1), Some(2), Some(2), None]);
        assert_eq!(recording.turns, [0..2, 2..3]);
        assert_eq!((recording.turn_of(1), recording.turn_of(2)), (0, 1));
        assert_eq!(recording.repairs.len(), 1, "{:?}", recording.repairs);
    }

    #[test]
    fn every_format_is_read() {
        let messages = r#"[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]"#;
        assert_eq!(read("a.json", messages).entries.len(), 2);
        let document = read("b.json", &format!(r#"{{"system":"be brief","messages":{messages}}}"#));
        assert_eq!((document.system.as_str(), document.turns.len()), ("be brief", 1));
        let pmk = r#"{"userId":"U1","turns":13,"messages":[
            {"role":"user","content":"我先把 workspace 的 PKB context 給你"},{"role":"assistant","content":"了解"},
            {"role":"user","content":"(此處省略 12 輪較舊的對話以節省 context)"},
            {"role":"user","content":"q"},{"role":"assistant","content":"a"}]}"#;
        let pmk = read("session.json", pmk);
        assert_eq!((pmk.dropped_turns, pmk.opening().len(), &pmk.turns[0]), (12, 2, &(2..4)));
    }
}
