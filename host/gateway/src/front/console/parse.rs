//! What one line of input says.

use pmk_core::session_key::MAX_ID_CHARS;
use serde_json::{Map, Value};

use super::{DEFAULT_CHANNEL, DEFAULT_USER, Typed};
use crate::{
    front::{self, Inbound, Reaction},
    json,
};

/// What a line says.
#[derive(Debug)]
pub(super) enum Said {
    Message(Box<Inbound>),
    Reaction(Reaction),
}

/// A line that is neither.
#[derive(Debug)]
pub(super) struct BadLine {
    /// The id it gave itself, where that much could be read.
    pub event_id: Option<String>,
    pub what: String,
}

/// Reads one line of input.
pub(super) fn parse(line: &[u8]) -> Result<Said, BadLine> {
    let object = object(line).map_err(|what| BadLine { event_id: None, what })?;
    said(&object)
        .map_err(|what| BadLine { event_id: object.get("event_id").and_then(Value::as_str).map(str::to_owned), what })
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

fn said(object: &Map<String, Value>) -> Result<Said, String> {
    match text(object, "type")? {
        None | Some("message") => message(object).map(|message| Said::Message(Box::new(message))),
        Some("reaction") => reaction(object).map(Said::Reaction),
        Some(other) => Err(format!("the type `{other}` is not known, only `message` and `reaction`")),
    }
}

/// A reaction names everything: no message could be meant by default.
fn reaction(object: &Map<String, Value>) -> Result<Reaction, String> {
    let given = |name: &str| match text(object, name)? {
        None | Some("") => Err(format!("a reaction needs `{name}`")),
        Some(value) => Ok(value.to_owned()),
    };
    Ok(Reaction { user: given("user")?, channel: given("channel")?, ts: given("ts")?, reaction: given("reaction")? })
}

fn message(object: &Map<String, Value>) -> Result<Inbound, String> {
    let typed = Typed {
        event_id: text(object, "event_id")?.filter(|id| !id.is_empty()).map(str::to_owned),
        user: id(object, "user")?.unwrap_or(DEFAULT_USER).to_owned(),
        channel: id(object, "channel")?.unwrap_or(DEFAULT_CHANNEL).to_owned(),
        thread_ts: match text(object, "thread_ts")? {
            Some("") => None,
            _ => id(object, "thread_ts")?.map(str::to_owned),
        },
        text: text(object, "text")?.ok_or("there is no `text`")?.to_owned(),
    };
    let channel = typed.channel.clone();
    typed.inbound().ok_or_else(|| format!("the channel `{channel}` begins with neither `D` nor `C`"))
}

/// A text, where there is one.
fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, String> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("`{name}` is {}, not a text", json::kind(other))),
    }
}

/// A text that becomes part of a session key.
fn id<'a>(object: &'a Map<String, Value>, name: &'static str) -> Result<Option<&'a str>, String> {
    match text(object, name)? {
        Some("") => Err(format!("`{name}` is empty; leave it out, or say who or where")),
        Some(id) if front::malformed([(name, id)]).is_some() => Err(format!(
            "`{name}` is no id: those are of letters, digits and punctuation other than `:`, {MAX_ID_CHARS} at most"
        )),
        id => Ok(id),
    }
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
            (r#"{"text":7}"#, "`text` is a number, not a text"),
            (r#"{"text":"q","event_id":["a"]}"#, "`event_id` is a list, not a text"),
            (r#"{"type":"dance","text":""}"#, "the type `dance` is not known, only `message` and `reaction`"),
            (r#"{"type":"reaction","user":"U1","channel":"D1","reaction":"x"}"#, "a reaction needs `ts`"),
            (r#"{"channel":"X1","text":"q"}"#, "the channel `X1` begins with neither `D` nor `C`"),
            (r#"{"user":"","text":"q"}"#, "`user` is empty; leave it out, or say who or where"),
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
            assert!(refused(line).contains("is no id"), "{line}");
        }
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
