//! JSON lines: what a script writes and reads.

use std::io;

use async_trait::async_trait;
use pmk_system::json;
use serde_json::{Value, json};
use tokio::{io::AsyncRead, sync::Mutex};
use tokio_util::sync::CancellationToken;

use super::{
    fresh_id,
    input::{Input, InputLine, MAX_LINE},
    output::Output,
    parse::{BadLine, LINE, Said, parse},
};
use crate::{
    chat::{Accepted, Inbound, Notice, Reaction, ReplyTo},
    front::{Delivery, Front, FrontError, Intake, Kind, Progress},
    ledger::report::TurnReport,
};

/// An example of a valid line.
const EXAMPLE: &str =
    r#"write one JSON object per line, such as {"user":"U1","channel":"D1","text":"…","event_id":"Ev1"}"#;

/// The front that speaks JSON lines over standard input and output.
pub struct Lines {
    output: Output,
    /// Held from storing a message until `accepted` is queued, so that nothing about the message
    /// comes first.
    order: Mutex<()>,
}

impl Lines {
    /// Returns a front on this process's standard input and output.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start() -> io::Result<Lines> {
        Ok(Lines { output: Output::start()?, order: Mutex::new(()) })
    }

    /// Returns why lines could not be written, unless the reader simply stopped reading.
    pub fn failure(&self) -> Option<&str> {
        self.output.failure()
    }

    async fn read(
        &self,
        input: impl AsyncRead + Unpin,
        intake: &dyn Intake,
        stop: &CancellationToken,
    ) -> Result<(), FrontError> {
        let mut input = Input::new(input);
        for number in 1u64.. {
            let line = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                line = input.next() => line,
            };
            let line = line.map_err(|error| FrontError::Fatal {
                what: format!("cannot read standard input: {error}"),
                hint: "start it again; everything accepted so far is stored".into(),
            })?;
            match line {
                None => return Ok(()),
                Some(InputLine::Whole(line)) if line.trim_ascii().is_empty() => {}
                Some(InputLine::Whole(line)) => match parse(&line) {
                    Ok(Said::Message(message)) => self.take(*message, intake).await?,
                    Ok(Said::Reaction(reaction)) => self.react(reaction, intake).await?,
                    Err(bad) => self.refuse(number, bad, EXAMPLE, intake).await?,
                },
                Some(InputLine::TooLong) => {
                    let what = format!("it is longer than {MAX_LINE} bytes");
                    let bad = BadLine { event_id: None, field: LINE, what };
                    self.refuse(number, bad, "send a long text as several messages", intake).await?;
                }
            }
        }
        Ok(())
    }

    /// Reports what is wrong with a line, and has it counted.
    async fn refuse(&self, number: u64, bad: BadLine, hint: &str, intake: &dyn Intake) -> Result<(), FrontError> {
        intake.notice(Notice::Malformed { field: bad.field });
        let mut line = json!({
            "type": "error",
            "line": number,
            "message": format!("line {number} of the input: {}", bad.what),
            "hint": hint,
        });
        if let Some(event_id) = bad.event_id {
            line["event_id"] = event_id.into();
        }
        self.say(&line).await
    }

    /// Stores one message and reports that.
    async fn take(&self, message: Inbound, intake: &dyn Intake) -> Result<(), FrontError> {
        let event_id = message.event_id.clone();
        let order = self.order.lock().await;
        let line = match intake.accept(message).await {
            Ok(Accepted::New) => json!({"type": "accepted", "event_id": event_id}),
            Ok(Accepted::Duplicate) => json!({"type": "accepted", "event_id": event_id, "duplicate": true}),
            Err(error) => json!({
                "type": "error",
                "event_id": event_id,
                "message": format!("the message was not stored: {}", error.message()),
                "hint": error.advice().map_or_else(|| "send it again".to_owned(), |hint| format!("{hint}; then send it again")),
            }),
        };
        let written = self.say(&line);
        drop(order);
        written.await
    }

    /// Does what a reaction asks for, and reports if that failed.
    async fn react(&self, reaction: Reaction, intake: &dyn Intake) -> Result<(), FrontError> {
        let Err(error) = intake.react(reaction).await else { return Ok(()) };
        self.say(&json!({
            "type": "error",
            "message": format!("the reaction had no effect: {}", error.message()),
            "hint": "send it again",
        }))
        .await
    }

    /// Writes a line about a stored message.
    async fn say_in_order(&self, line: &Value) -> Result<(), FrontError> {
        let order = self.order.lock().await;
        let written = self.say(line);
        drop(order);
        written.await
    }

    fn say(&self, line: &Value) -> impl Future<Output = Result<(), FrontError>> + use<> {
        self.output.write(format!("{}\n", json::shown(line)).into_bytes())
    }
}

#[async_trait]
impl Front for Lines {
    async fn listen(&self, intake: &dyn Intake, stop: CancellationToken) -> Result<(), FrontError> {
        self.read(tokio::io::stdin(), intake, &stop).await
    }

    async fn placeholder(&self, _question: &Inbound, _text: &str) -> Result<Option<String>, FrontError> {
        Ok(None)
    }

    async fn mark(&self, event_id: &str, reply_to: &ReplyTo, _ts: &str, emoji: &str) -> Result<(), FrontError> {
        let line = json!({
            "type": "mark",
            "event_id": event_id,
            "channel": reply_to.channel,
            "thread_ts": reply_to.thread_ts,
            "reaction": emoji,
        });
        self.say_in_order(&line).await
    }

    async fn progress(&self, progress: &Progress) -> Result<(), FrontError> {
        let line = json!({"type": "progress", "event_id": progress.event_id, "text": progress.text});
        self.say_in_order(&line).await
    }

    fn split(&self, text: &str, _kind: Kind) -> Vec<String> {
        vec![text.to_owned()]
    }

    async fn deliver(&self, part: Delivery<'_>) -> Result<Option<String>, FrontError> {
        // A message that belongs to no question is not printed again after a crash; it is only to be told from others.
        let own_id = part.event_id.is_empty().then(|| fresh_id(":notice"));
        let event_id = own_id.as_deref().unwrap_or(part.event_id);
        // The id is the same after a crash, so that a reader can recognize a line that was printed
        // twice.
        let ts = part.replaces.map_or_else(|| format!("{event_id}.{}", part.number), str::to_owned);
        let mut line = json!({
            "type": part.kind.name(),
            "event_id": event_id,
            "channel": part.reply_to.channel,
            "thread_ts": part.reply_to.thread_ts,
            "ts": ts,
            "text": part.speech.text,
        });
        if !part.event_ids.is_empty() {
            line["event_ids"] = json!(part.event_ids);
        }
        self.say_in_order(&line).await.map(|()| Some(ts))
    }

    fn tells_programs(&self) -> bool {
        true
    }

    async fn report(&self, _event_id: &str, report: &TurnReport) -> Result<(), FrontError> {
        self.say_in_order(&json!(report)).await
    }
}
