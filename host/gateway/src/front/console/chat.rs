//! The terminal chat: a prompt, the answer under it, and in a dim line what the policy did.

use std::{
    io::{self, Write},
    sync::PoisonError,
};

use anstyle::{AnsiColor, Style};
use async_trait::async_trait;
use pmk_core::text;
use rustyline::{DefaultEditor, ExternalPrinter, error::ReadlineError};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use super::{DEFAULT_CHANNEL, DEFAULT_USER, Typed};
use crate::{
    front::{Delivery, Front, FrontError, Intake, Kind, Progress},
    report::{QuestionReport, TurnReport},
    talk::{Reaction, ReplyTo},
};

/// What `/help` says.
const HELP: &str = "\
type a question and press Enter; what was said before is remembered, also from the last time
  /help   this page
  /pmk    what else the gateway can be told to do: `/pmk help`
  /yes    your word on the question that you were shown last, where one waits for it; or /no
  Ctrl-D  leave; the answers under way still come
the dim line tells which policy decided what the model got to see, and how much that was";
const PROMPT: &str = "› ";
const ANSWER: Style = AnsiColor::Cyan.on_default();
const DIM: Style = Style::new().dimmed();

/// The front for a person at a terminal.
pub struct Chat {
    printer: Mutex<Box<dyn ExternalPrinter + Send>>,
    lines: Mutex<mpsc::Receiver<String>>,
    colour: bool,
    /// The message that asked for a word last.
    asked: std::sync::Mutex<Option<String>>,
}

impl Chat {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// The terminal does not allow line editing.
    pub fn start() -> Result<Chat, ReadlineError> {
        let mut editor = DefaultEditor::new()?;
        let printer = editor.create_external_printer()?;
        let (sender, lines) = mpsc::channel(1);
        std::thread::Builder::new().name("console-input".into()).spawn(move || {
            while let Ok(line) = editor.readline(PROMPT) {
                if line.trim().is_empty() {
                    continue;
                }
                // An entry that cannot be remembered is only missing from the history.
                let _ = editor.add_history_entry(&line);
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        })?;
        let colour = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
        Ok(Chat {
            printer: Mutex::new(Box::new(printer)),
            lines: Mutex::new(lines),
            colour,
            asked: std::sync::Mutex::default(),
        })
    }

    /// Whether a line is a word on what was asked last; then it is one, as a reaction would be.
    async fn is_word(&self, line: &str, intake: &dyn Intake) -> Result<bool, FrontError> {
        let reaction = match line.trim() {
            "/yes" => "✅",
            "/no" => "❌",
            _ => return Ok(false),
        };
        // Replaced as a whole.
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(ts) = asked else {
            self.print(DIM, "nothing waits for your word").await?;
            return Ok(true);
        };
        let (user, channel) = (DEFAULT_USER.to_owned(), DEFAULT_CHANNEL.to_owned());
        if let Err(error) = intake.react(Reaction { user, channel, ts, reaction: reaction.into() }).await {
            self.print(DIM, &format!("your word had no effect: {error}")).await?;
        }
        Ok(true)
    }

    async fn print(&self, style: Style, text: &str) -> Result<(), FrontError> {
        let text = text::printable(text);
        let line = if self.colour { format!("{style}{text}{style:#}\n") } else { format!("{text}\n") };
        let mut printer = self.printer.lock().await;
        // Without a prompt there is nothing to print around.
        printer.print(line.clone()).or_else(|_| write(&line)).map_err(|_| FrontError::Closed)
    }
}

fn write(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(line.as_bytes())?;
    stdout.flush()
}

#[async_trait]
impl Front for Chat {
    async fn listen(&self, intake: &dyn Intake, stop: CancellationToken) -> Result<(), FrontError> {
        let mut lines = self.lines.lock().await;
        loop {
            let line = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                line = lines.recv() => line,
            };
            // Ctrl-D, Ctrl-C or a closed terminal.
            let Some(text) = line else { return Ok(()) };
            if text.trim() == "/help" {
                self.print(DIM, HELP).await?;
                continue;
            }
            if self.is_word(&text, intake).await? {
                continue;
            }
            let said = Typed {
                event_id: None,
                user: DEFAULT_USER.into(),
                channel: DEFAULT_CHANNEL.into(),
                thread_ts: None,
                text,
            };
            let Some(message) = said.inbound() else { continue };
            if let Err(error) = intake.accept(message).await {
                self.print(DIM, &format!("your message was not stored: {error}")).await?;
            }
        }
    }

    async fn placeholder(
        &self,
        _event_id: &str,
        _reply_to: &ReplyTo,
        _text: &str,
    ) -> Result<Option<String>, FrontError> {
        Ok(None)
    }

    async fn progress(&self, progress: &Progress) -> Result<(), FrontError> {
        self.print(DIM, &progress.text).await
    }

    fn split(&self, text: &str) -> Vec<String> {
        vec![text.to_owned()]
    }

    async fn deliver(&self, part: Delivery<'_>) -> Result<Option<String>, FrontError> {
        let id = part.replaces.map_or_else(|| format!("{}.{}", part.event_id, part.number), str::to_owned);
        // What only tells something comes alone; what asks for a word comes after an answer.
        if part.kind == Kind::Notice && part.number > 0 {
            *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.clone());
        }
        self.print(ANSWER, &part.speech.text).await.map(|()| Some(id))
    }

    fn takes_words(&self) -> bool {
        true
    }

    async fn report(&self, _event_id: &str, report: &TurnReport) -> Result<(), FrontError> {
        // Nothing was decided for a command.
        let Some(QuestionReport { policy, tokens, turns_dropped, messages_replaced, .. }) = report.question() else {
            return Ok(());
        };
        let policy = policy.as_ref().map_or("?", |policy| &policy.name);
        let mut line = format!("{policy}: {} of {} tokens", tokens.after, tokens.limit);
        if *turns_dropped > 0 {
            line.push_str(&format!(", {turns_dropped} turns dropped"));
        }
        if *messages_replaced > 0 {
            line.push_str(&format!(", {messages_replaced} messages shortened"));
        }
        self.print(DIM, &line).await
    }
}
