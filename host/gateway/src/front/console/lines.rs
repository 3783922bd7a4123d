//! JSON lines: what a script writes and reads.

use std::io;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    sync::Mutex,
};
use tokio_util::sync::CancellationToken;

use super::{DEFAULT_CHANNEL, DEFAULT_USER, Said, output::Output};
use crate::front::{Accepted, Delivery, Front, FrontError, Inbound, Intake, ReplyTo, TurnReport};

/// The front that speaks JSON lines over standard input and output.
pub struct Lines {
    output: Output,
    /// Held from storing a message until `accepted` is queued, so that no reply comes before it.
    order: Mutex<()>,
}

/// One line of input.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: Option<String>,
    event_id: Option<String>,
    user: Option<String>,
    channel: Option<String>,
    thread_ts: Option<String>,
    text: Option<String>,
}

impl Lines {
    /// A front on this process's standard input and output.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start() -> io::Result<Lines> {
        Ok(Lines { output: Output::start()?, order: Mutex::new(()) })
    }

    async fn read(
        &self,
        input: impl AsyncRead + Unpin,
        intake: &dyn Intake,
        stop: &CancellationToken,
    ) -> Result<(), FrontError> {
        let mut input = BufReader::new(input);
        let mut number = 0u64;
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                read = input.read_until(b'\n', &mut line) => read,
            };
            match read {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) => {
                    return Err(FrontError::Fatal {
                        what: format!("cannot read standard input: {error}"),
                        hint: "start again; everything accepted so far is stored".into(),
                    });
                }
            }
            number += 1;
            if line.trim_ascii().is_empty() {
                continue;
            }
            match parse(&line) {
                Ok(message) => self.take(message, intake).await?,
                Err(what) => {
                    self.say(&json!({
                        "type": "error",
                        "line": number,
                        "message": format!("line {number} of the input: {what}"),
                        "hint": "write one JSON object a line, as {\"user\":\"U1\",\"channel\":\"D1\",\"text\":\"…\",\"event_id\":\"Ev1\"}",
                    }))
                    .await?;
                }
            }
        }
    }

    /// Stores one message and says so.
    async fn take(&self, message: Inbound, intake: &dyn Intake) -> Result<(), FrontError> {
        let event_id = message.event_id.clone();
        let order = self.order.lock().await;
        let line = match intake.accept(message).await {
            Ok(Accepted::New) => json!({"type": "accepted", "event_id": event_id}),
            Ok(Accepted::Duplicate) => json!({"type": "accepted", "event_id": event_id, "duplicate": true}),
            Err(error) => json!({
                "type": "error",
                "event_id": event_id,
                "message": format!("the message was not stored: {error}"),
                "hint": "send it again",
            }),
        };
        let written = self.say(&line);
        drop(order);
        written.await
    }

    fn say(&self, line: &Value) -> impl Future<Output = Result<(), FrontError>> + use<> {
        self.output.write(format!("{line}\n").into_bytes())
    }
}

/// Reads one line of input.
fn parse(line: &[u8]) -> Result<Inbound, String> {
    let text = std::str::from_utf8(line).map_err(|error| format!("not UTF-8: {error}"))?;
    let line: Line = serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| error.to_string())?;
    match line.kind.as_deref() {
        None | Some("message") => {}
        Some(other) => return Err(format!("the type `{other}` is not known, only `message`")),
    }
    let text = line.text.ok_or("there is no `text`")?;
    let said = Said {
        event_id: line.event_id.filter(|id| !id.is_empty()),
        user: line.user.filter(|user| !user.is_empty()).unwrap_or_else(|| DEFAULT_USER.into()),
        channel: line.channel.unwrap_or_else(|| DEFAULT_CHANNEL.into()),
        thread_ts: line.thread_ts.filter(|ts| !ts.is_empty()),
        text,
    };
    let channel = said.channel.clone();
    said.inbound().ok_or_else(|| format!("the channel `{channel}` begins with neither `D` nor `C`"))
}

#[async_trait]
impl Front for Lines {
    async fn listen(&self, intake: &dyn Intake, stop: CancellationToken) -> Result<(), FrontError> {
        self.read(tokio::io::stdin(), intake, &stop).await
    }

    async fn placeholder(&self, _reply_to: &ReplyTo) -> Result<Option<String>, FrontError> {
        Ok(None)
    }

    fn split(&self, text: &str) -> Vec<String> {
        vec![text.to_owned()]
    }

    async fn deliver(&self, part: Delivery<'_>) -> Result<Option<String>, FrontError> {
        let line = json!({
            "type": "reply",
            "event_id": part.event_id,
            "channel": part.reply_to.channel,
            "thread_ts": part.reply_to.thread_ts,
            "text": part.text,
        });
        let order = self.order.lock().await;
        let written = self.say(&line);
        drop(order);
        written.await.map(|()| None)
    }

    async fn report(&self, _event_id: &str, report: &TurnReport) -> Result<(), FrontError> {
        self.say(report).await
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(line: &str) -> String {
        parse(line.as_bytes()).expect(line).key.to_string()
    }

    #[test]
    fn channels_decide_the_session() {
        assert_eq!(key(r#"{"text":"q"}"#), "console:dm:U1");
        assert_eq!(key(r#"{"user":"U2","channel":"D7","thread_ts":"1.2","text":"q"}"#), "console:dm:U2:1.2");
        assert_eq!(key(r#"{"type":"message","user":"U2","channel":"C7","text":"q"}"#), "console:channel:C7");
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, wanted) in [
            ("{", "EOF"),
            ("{}", "no `text`"),
            (r#"{"type":"reaction","text":""}"#, "`reaction`"),
            (r#"{"channel":"X1","text":"q"}"#, "`X1`"),
        ] {
            let error = parse(line.as_bytes()).expect_err(line);
            assert!(error.contains(wanted), "{error}");
        }
        assert!(parse(b"\xff").expect_err("not UTF-8").contains("UTF-8"));
    }

    proptest! {
        #[test]
        fn no_line_makes_the_reader_panic(line in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&line);
        }
    }
}
