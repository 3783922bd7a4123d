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
use crate::front::{Accepted, Delivery, Front, FrontError, Inbound, Intake, Progress, Reaction, ReplyTo, TurnReport};

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
    ts: Option<String>,
    reaction: Option<String>,
}

/// What a line brings.
#[derive(Debug)]
enum Input {
    Message(Inbound),
    Reaction(Reaction),
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
                Ok(Input::Message(message)) => self.take(message, intake).await?,
                Ok(Input::Reaction(reaction)) => self.react(reaction, intake).await?,
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

    /// Does what a reaction asks for, and tells when it could not be done.
    async fn react(&self, reaction: Reaction, intake: &dyn Intake) -> Result<(), FrontError> {
        let Err(error) = intake.react(reaction).await else { return Ok(()) };
        self.say(&json!({
            "type": "error",
            "message": format!("the reaction had no effect: {error}"),
            "hint": "send it again",
        }))
        .await
    }

    fn say(&self, line: &Value) -> impl Future<Output = Result<(), FrontError>> + use<> {
        self.output.write(format!("{line}\n").into_bytes())
    }
}

/// Reads one line of input.
fn parse(line: &[u8]) -> Result<Input, String> {
    let text = std::str::from_utf8(line).map_err(|error| format!("not UTF-8: {error}"))?;
    let line: Line = serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| error.to_string())?;
    match line.kind.as_deref() {
        None | Some("message") => {}
        Some("reaction") => return reaction(line).map(Input::Reaction),
        Some(other) => return Err(format!("the type `{other}` is not known, only `message` and `reaction`")),
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
    said.inbound().map(Input::Message).ok_or_else(|| format!("the channel `{channel}` begins with neither `D` nor `C`"))
}

/// A reaction names everything: there is no message that would be meant by default.
fn reaction(line: Line) -> Result<Reaction, String> {
    let given = |value: Option<String>, key: &str| {
        value.filter(|value| !value.is_empty()).ok_or_else(|| format!("a reaction needs `{key}`"))
    };
    Ok(Reaction {
        user: given(line.user, "user")?,
        channel: given(line.channel, "channel")?,
        ts: given(line.ts, "ts")?,
        reaction: given(line.reaction, "reaction")?,
    })
}

#[async_trait]
impl Front for Lines {
    async fn listen(&self, intake: &dyn Intake, stop: CancellationToken) -> Result<(), FrontError> {
        self.read(tokio::io::stdin(), intake, &stop).await
    }

    async fn placeholder(&self, _reply_to: &ReplyTo, _text: &str) -> Result<Option<String>, FrontError> {
        Ok(None)
    }

    async fn progress(&self, progress: &Progress) -> Result<(), FrontError> {
        let line = json!({"type": "progress", "event_id": progress.event_id, "text": progress.text});
        self.say(&line).await
    }

    fn split(&self, text: &str) -> Vec<String> {
        vec![text.to_owned()]
    }

    async fn deliver(&self, part: Delivery<'_>) -> Result<Option<String>, FrontError> {
        // The same after a crash, so that a reader can tell a line that was printed twice.
        let ts = part.replaces.map_or_else(|| format!("{}.{}", part.event_id, part.number), str::to_owned);
        let line = json!({
            "type": part.kind.name(),
            "event_id": part.event_id,
            "channel": part.reply_to.channel,
            "thread_ts": part.reply_to.thread_ts,
            "ts": ts,
            "text": part.speech.text,
        });
        let order = self.order.lock().await;
        let written = self.say(&line);
        drop(order);
        written.await.map(|()| Some(ts))
    }

    fn tells_programs(&self) -> bool {
        true
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
        match parse(line.as_bytes()).expect(line) {
            Input::Message(message) => message.key.to_string(),
            Input::Reaction(reaction) => panic!("{reaction:?}"),
        }
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
            (r#"{"type":"dance","text":""}"#, "`dance`"),
            (r#"{"type":"reaction","user":"U1","channel":"D1","reaction":"x"}"#, "`ts`"),
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
