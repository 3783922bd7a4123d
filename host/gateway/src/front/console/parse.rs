//! Parses one line of input.

use pmk_core::{
    session_key::{self, MAX_ID_CHARS},
    text,
};
use pmk_system::json;
use serde_json::{Map, Value};

use super::{DEFAULT_CHANNEL, DEFAULT_USER, Typed};
use crate::{
    chat::{Inbound, MessageRef, ReactedAuthor, Reaction},
    front::{self},
};

/// A parsed line.
#[derive(Debug)]
pub(super) enum Said {
    Message(Box<Inbound>),
    Reaction(Reaction),
}

/// A line that is neither.
#[derive(Debug)]
pub(super) struct BadLine {
    /// Its event id, if that could be read.
    pub event_id: Option<String>,
    /// What is wrong: an id, or the whole line.
    pub field: &'static str,
    pub what: String,
}

/// What is wrong with a line.
struct Wrong {
    field: &'static str,
    what: String,
}

impl From<String> for Wrong {
    fn from(what: String) -> Self {
        Wrong { field: LINE, what }
    }
}

/// The field if no id is wrong.
pub(super) const LINE: &str = "line";
/// The longest id of a message: messages about it append a number to the id.
const MAX_EVENT_ID_CHARS: usize = MAX_ID_CHARS - ".4294967295".len();
/// How much of an unknown word is quoted.
const MOST_QUOTED: usize = 100;

/// Parses one line of input.
pub(super) fn parse(line: &[u8]) -> Result<Said, BadLine> {
    let object = object(line).map_err(|what| BadLine { event_id: None, field: LINE, what })?;
    said(&object).map_err(|Wrong { field, what }| {
        let event_id = object.get("event_id").and_then(Value::as_str).filter(|id| session_key::is_id(id));
        BadLine { event_id: event_id.map(str::to_owned), field, what }
    })
}

fn object(line: &[u8]) -> Result<Map<String, Value>, String> {
    let text = std::str::from_utf8(line)
        .map_err(|error| format!("it is not UTF-8 from byte {} on", error.valid_up_to() + 1))?;
    match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(format!("it is {}, not an object", json::kind(&other))),
        Err(error) if error.is_eof() => Err(format!("the JSON ends too early, after column {}", error.column())),
        Err(error) => Err(format!("it is not JSON, see column {}", error.column())),
    }
}

fn said(object: &Map<String, Value>) -> Result<Said, Wrong> {
    match text(object, "type")? {
        None | Some("message") => message(object).map(|message| Said::Message(Box::new(message))),
        Some("reaction") => reaction(object).map(Said::Reaction),
        Some(other) => Err(format!("unknown type `{}`; use `message` or `reaction`", quoted(other)).into()),
    }
}

/// Parses a reaction, in which every field is required: no message could be meant by default.
fn reaction(object: &Map<String, Value>) -> Result<Reaction, Wrong> {
    let given = |name: &str| match text(object, name)? {
        None | Some("") => Err(Wrong::from(format!("a reaction needs `{name}`"))),
        Some(value) => Ok(value.to_owned()),
    };
    let reaction = given("reaction")?;
    let named = |name| given(name).and_then(|id| checked(name, &id).map(str::to_owned));
    let (user, channel, ts) = (named("user")?, named("channel")?, given("ts")?);
    // The ids of messages that answer no question contain colons.
    checked("ts", &ts.replace(':', "."))?;
    Ok(Reaction { event_id: None, user, message: MessageRef { channel, ts }, reaction, author: ReactedAuthor::Unknown })
}

fn message(object: &Map<String, Value>) -> Result<Inbound, Wrong> {
    let typed = Typed {
        event_id: event_id(object)?,
        user: id(object, "user")?.unwrap_or(DEFAULT_USER).to_owned(),
        channel: id(object, "channel")?.unwrap_or(DEFAULT_CHANNEL).to_owned(),
        thread_ts: match text(object, "thread_ts")? {
            Some("") => None,
            _ => id(object, "thread_ts")?.map(str::to_owned),
        },
        text: text(object, "text")?.ok_or_else(|| "there is no `text`".to_owned())?.to_owned(),
    };
    let channel = typed.channel.clone();
    typed.inbound().ok_or_else(|| format!("the channel `{channel}` begins with neither `D` nor `C`").into())
}

/// Returns the message's own id, if it has one.
fn event_id(object: &Map<String, Value>) -> Result<Option<String>, Wrong> {
    let Some(id) = text(object, "event_id")?.filter(|id| !id.is_empty()) else { return Ok(None) };
    if checked("event_id", id)?.chars().nth(MAX_EVENT_ID_CHARS).is_some() {
        return Err(no_id("event_id", MAX_EVENT_ID_CHARS));
    }
    Ok(Some(id.to_owned()))
}

/// Returns a text, if there is one.
fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, String> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("`{name}` is {}, not a string", json::kind(other))),
    }
}

/// Returns a text that becomes part of a session key.
fn id<'a>(object: &'a Map<String, Value>, name: &'static str) -> Result<Option<&'a str>, Wrong> {
    match text(object, name)? {
        Some("") => Err(Wrong { field: name, what: format!("`{name}` is empty; omit it, or say who or where") }),
        id => id.map(|id| checked(name, id)).transpose(),
    }
}

fn checked<'a>(name: &'static str, id: &'a str) -> Result<&'a str, Wrong> {
    match front::malformed([(name, id)]) {
        Some(_) => Err(no_id(name, MAX_ID_CHARS)),
        None => Ok(id),
    }
}

fn no_id(name: &'static str, max: usize) -> Wrong {
    let what =
        format!("`{name}` is not an id: an id has letters, digits and punctuation other than `:`, at most {max}");
    Wrong { field: name, what }
}

/// Returns a word in a form that can be printed.
fn quoted(word: &str) -> String {
    text::one_line(text::head(word, MOST_QUOTED))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(line: &str) -> String {
        match parse(line.as_bytes()).expect(line) {
            Said::Message(message) => message.key.to_string(),
            Said::Reaction(reaction) => panic!("{reaction:?}"),
        }
    }

    fn refused(line: &str) -> String {
        parse(line.as_bytes()).expect_err(line).what
    }

    #[test]
    fn channels_decide_the_session() {
        assert_eq!(key(r#"{"text":"q"}"#), "console:dm:U1");
        assert_eq!(key(r#"{"user":"U2","channel":"D7","thread_ts":"1.2","text":"q"}"#), "console:dm:U2:1.2");
        assert_eq!(key(r#"{"type":"message","user":"U2","channel":"C7","text":"q"}"#), "console:channel:C7");
        assert_eq!(key(r#"{"user":null,"thread_ts":null,"text":"q"}"#), "console:dm:U1");
    }

    #[test]
    fn what_is_wrong_is_said_in_our_own_words() {
        for (line, wanted) in [
            ("{", "the JSON ends too early, after column 1"),
            (r#"{"text":"q",}"#, "it is not JSON, see column 13"),
            (r#"["message","Ev1","U1","D1",null,"q"]"#, "it is a list, not an object"),
            ("7", "it is a number, not an object"),
            ("{}", "there is no `text`"),
            (r#"{"text":7}"#, "`text` is a number, not a string"),
            (r#"{"text":"q","event_id":["a"]}"#, "`event_id` is a list, not a string"),
            (r#"{"type":"dance","text":""}"#, "unknown type `dance`; use `message` or `reaction`"),
            (r#"{"type":"reaction","user":"U1","channel":"D1","reaction":"x"}"#, "a reaction needs `ts`"),
            (r#"{"channel":"X1","text":"q"}"#, "the channel `X1` begins with neither `D` nor `C`"),
            (r#"{"user":"","text":"q"}"#, "`user` is empty; omit it, or say who or where"),
        ] {
            assert_eq!(refused(line), wanted, "{line}");
        }
        assert_eq!(parse(b"{\"text\":\"\xff\"}").expect_err("not UTF-8").what, "it is not UTF-8 from byte 10 on");
    }

    #[test]
    fn a_user_cannot_take_the_key_of_anothers_thread() {
        for line in [
            r#"{"user":"U1:1.2","text":"q"}"#,
            r#"{"user":"U1","thread_ts":"1:2","text":"q"}"#,
            r#"{"channel":"C1:1.2","text":"q"}"#,
            "{\"user\":\"U1\\u001b[2J\",\"text\":\"q\"}",
            r#"{"user":"U 1","text":"q"}"#,
        ] {
            assert!(refused(line).contains("is not an id"), "{line}");
        }
    }

    /// Regression: a message's id and the target of a reaction were not checked.
    #[test]
    fn every_id_is_checked_and_named() {
        let long = "1".repeat(MAX_ID_CHARS - 5);
        for id in ["1 2", "1:2", "1\n2", "\u{1b}[2J", "\u{202e}1", "\u{200b}1"] {
            for field in ["event_id", "user", "channel", "thread_ts"] {
                let mut line = serde_json::json!({"user": "U1", "channel": "D1", "text": "q"});
                line[field] = id.into();
                assert_eq!(parse(line.to_string().as_bytes()).expect_err(field).field, field, "{id:?}");
            }
            for field in ["user", "channel", "ts"] {
                let mut line = serde_json::json!({"type": "reaction", "user": "U1", "channel": "D1", "ts": "1.2", "reaction": "x"});
                line[field] = id.into();
                if (field, id) == ("ts", "1:2") {
                    assert!(parse(line.to_string().as_bytes()).is_ok(), "one of ours");
                    continue;
                }
                assert_eq!(parse(line.to_string().as_bytes()).expect_err(field).field, field, "{id:?}");
            }
        }
        let line = serde_json::json!({"event_id": long, "text": "q"}).to_string();
        let bad = parse(line.as_bytes()).expect_err("nothing could be said about it");
        assert!(bad.field == "event_id" && bad.what.contains("at most 117"), "{}", bad.what);
        assert_eq!(parse(br#"{"text":7}"#).expect_err("a number").field, LINE);
    }

    /// Regression: it was quoted unchanged, however long it was.
    #[test]
    fn a_word_that_is_not_known_is_quoted_short_and_printable() {
        let what = refused(&serde_json::json!({"type": format!("\u{202e}{}", "x".repeat(100_000))}).to_string());
        assert!(what.len() < 200 && !what.contains('\u{202e}'), "{what}");
    }

    #[test]
    fn an_error_names_the_event_it_is_about() {
        let bad = parse(br#"{"event_id":"Ev7","text":7}"#).expect_err("a number");
        assert_eq!(bad.event_id.as_deref(), Some("Ev7"));
    }

    proptest! {
        #[test]
        fn no_line_makes_the_reader_panic(line in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&line);
        }

        #[test]
        fn every_accepted_line_has_a_key_that_can_be_read_back(user in ".{0,6}", thread in ".{0,6}") {
            let line = serde_json::json!({"user": user, "thread_ts": thread, "text": "q"}).to_string();
            if let Ok(Said::Message(message)) = parse(line.as_bytes()) {
                prop_assert_eq!(message.key.to_string().parse(), Ok(message.key));
            }
        }
    }
}
