//! The terminal chat: a prompt, the answer above it, and a dim line about what the policy did.

use std::{
    borrow::Cow,
    collections::HashMap,
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anstyle::Style;
use async_trait::async_trait;
use dialoguer::console::Term;
use indicatif::HumanCount;
use pmk_core::text;
use pmk_models::Listener;
use rustyline::{ExternalPrinter, error::ReadlineError};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{DEFAULT_CHANNEL, DEFAULT_USER, Typed as Said};
use crate::{
    chat::{Inbound, MessageRef, ReactedAuthor, Reaction},
    front::{Delivery, Front, FrontError, Intake, Kind, OnStreamed, Progress},
    ledger::report::{QuestionReport, TurnReport},
    messages::Messages,
};

mod aloud;
mod keyboard;
mod markdown;

use aloud::{Aloud, Shown};
use keyboard::Typed;

const DIM: Style = Style::new().dimmed();
/// The most columns of a line, however wide the terminal is: longer lines are hard to read.
const MOST_COLUMNS: usize = 100;
/// After this many seconds without an answer, a notice says that there is none yet; then after each
/// minute.
const WAITED: [u64; 3] = [3, 10, 30];

/// The front for a person at a terminal.
pub struct Chat {
    screen: Arc<Screen>,
    typed: tokio::sync::Mutex<mpsc::Receiver<Typed>>,
    messages: Arc<Messages>,
    /// The message that most recently asked for a yes or no.
    asked: Mutex<Option<String>>,
    /// The tasks that show these notices, by the event of the question.
    waiting: Tellers,
    shown: Arc<Shown>,
}

type Tellers = Arc<Mutex<HashMap<String, AbortOnDropHandle<()>>>>;

/// What is shown at the first prompt.
pub struct Opening<'a> {
    /// `PROVIDER:NAME`; `None` for the stand-in.
    pub model: Option<&'a str>,
    /// The model's window, in tokens.
    pub window: u64,
    /// The policies that decide, on one line.
    pub policies: &'a str,
}

impl Chat {
    /// Takes over the terminal and shows the opening.
    ///
    /// # Errors
    /// The terminal does not support line editing.
    pub fn start(messages: Messages, opening: &Opening<'_>) -> Result<Chat, ReadlineError> {
        let is_coloured = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
        let window = HumanCount(opening.window).to_string();
        let lines = [
            messages.chat_begin(env!("CARGO_PKG_VERSION")),
            messages.chat_model(opening.model.unwrap_or_default(), &window, opening.model.is_none()),
            messages.chat_policy(opening.policies),
            messages.chat_keys(),
        ];
        let screen = Screen { printer: Mutex::new(None), is_coloured };
        screen.print(&screen.dim(&lines.join("\n"))).map_err(io::Error::other)?;
        let (printer, typed) = keyboard::start(|line| matches!(Wanted::of(line), Wanted::Leave))?;
        *screen.printer.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(printer));
        Ok(Chat {
            screen: Arc::new(screen),
            typed: tokio::sync::Mutex::new(typed),
            messages: Arc::new(messages),
            asked: Mutex::default(),
            waiting: Arc::default(),
            shown: Arc::default(),
        })
    }

    /// Returns a function that shows a line that is not part of an answer, above the prompt.
    pub fn aside(&self) -> impl Fn(&str) + Send + Sync + 'static {
        let screen = Arc::clone(&self.screen);
        // If it cannot be shown, nobody reads it any more.
        move |text| drop(screen.print(&screen.dim(text)))
    }

    fn tell(&self, text: &str) -> Result<(), FrontError> {
        self.screen.print(&self.screen.dim(text))
    }

    /// Passes a yes or no to the latest question, as a reaction would be.
    async fn give_word(&self, reaction: &str, intake: &dyn Intake) -> Result<(), FrontError> {
        // Replaced as a whole.
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(ts) = asked else { return self.tell(&self.messages.chat_no_word()) };
        let given = Reaction {
            event_id: None,
            user: DEFAULT_USER.to_owned(),
            message: MessageRef::new(DEFAULT_CHANNEL, ts),
            reaction: reaction.to_owned(),
            author: ReactedAuthor::Unknown,
        };
        match intake.react(given).await {
            Ok(()) => Ok(()),
            Err(error) => self.tell(&self.messages.chat_no_effect(&error.to_string())),
        }
    }

    async fn say(&self, text: String, intake: &dyn Intake) -> Result<(), FrontError> {
        let (user, channel) = (DEFAULT_USER.into(), DEFAULT_CHANNEL.into());
        let said = Said { event_id: None, user, channel, thread_ts: None, text };
        let Some(message) = said.inbound() else { return Ok(()) };
        match intake.accept(message).await {
            Ok(_) => Ok(()),
            Err(error) => self.tell(&self.messages.chat_not_stored(&error.to_string())),
        }
    }

    fn no_longer_waiting(&self, event_id: &str) {
        no_longer(&self.waiting, event_id);
    }
}

fn no_longer(waiting: &Tellers, event_id: &str) {
    waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(event_id);
}

/// What a line asks for.
enum Wanted<'a> {
    Help,
    Leave,
    Word(&'static str),
    /// A message to be answered, by the model or the gateway.
    Message(Cow<'a, str>),
    Unknown(&'a str),
    /// The first word after a command that takes none.
    TooMany(&'a str),
}

impl Wanted<'_> {
    fn of(line: &str) -> Wanted<'_> {
        let typed = line.trim();
        let mut words = typed.split_whitespace();
        match (words.next().unwrap_or_default(), words.next()) {
            // The gateway says which words are too many.
            ("/context" | "/policy", _) => Wanted::Message(Cow::Owned(format!("/pmk {}", &typed[1..]))),
            ("/help" | "/quit" | "/exit" | "/yes" | "/no", Some(more)) => Wanted::TooMany(more),
            ("/help", None) => Wanted::Help,
            ("/quit" | "/exit" | "quit" | "exit", None) => Wanted::Leave,
            ("/yes", None) => Wanted::Word("✅"),
            ("/no", None) => Wanted::Word("❌"),
            (word, None) if is_mistyped(word) => Wanted::Unknown(word),
            _ => Wanted::Message(Cow::Borrowed(line)),
        }
    }
}

/// Returns whether a word looks like a command but is none; a path is a question.
fn is_mistyped(word: &str) -> bool {
    let name = word.strip_prefix('/').filter(|name| !name.eq_ignore_ascii_case("pmk"));
    name.is_some_and(|name| name.chars().all(|c| c.is_ascii_alphabetic()))
}

/// The terminal output.
struct Screen {
    /// Set once there is a prompt.
    printer: Mutex<Option<Box<dyn ExternalPrinter + Send>>>,
    is_coloured: bool,
}

impl Screen {
    /// Returns the gateway's own text, line by line.
    fn dim(&self, text: &str) -> String {
        let lines = text::printable(text);
        let lines = markdown::with_emoji(&lines)
            .lines()
            .flat_map(|line| markdown::hanging(line, columns()))
            .collect::<Vec<_>>();
        lines
            .iter()
            .map(|line| if self.is_coloured { format!("{DIM}{line}{DIM:#}\n") } else { format!("{line}\n") })
            .collect()
    }

    fn markdown(&self, source: &str) -> String {
        markdown::render(source, columns(), self.is_coloured)
    }

    /// Writes lines, above the prompt if there is one.
    fn print(&self, lines: &str) -> Result<(), FrontError> {
        let mut printer = self.printer.lock().unwrap_or_else(PoisonError::into_inner);
        let printed = printer.as_mut().map(|printer| printer.print(lines.to_owned()));
        match printed {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => write(lines).map_err(|_| FrontError::Closed),
        }
    }
}

/// Returns the most columns of a line.
fn columns() -> usize {
    let columns = Term::stdout().size_checked().map_or(80, |(_, columns)| usize::from(columns));
    columns.min(MOST_COLUMNS)
}

fn write(lines: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(lines.as_bytes())?;
    stdout.flush()
}

#[async_trait]
impl Front for Chat {
    async fn listen(&self, intake: &dyn Intake, stop: CancellationToken) -> Result<(), FrontError> {
        let mut typed = self.typed.lock().await;
        loop {
            let next = tokio::select! {
                () = stop.cancelled() => {
                    // Below the current input line, which is not drawn again.
                    let told = self.screen.dim(&self.messages.chat_stopped());
                    return write(&format!("\r\n{}\r\n", told.trim_end())).map_err(|_| FrontError::Closed);
                }
                next = typed.recv() => next,
            };
            let line = match next {
                None => return Ok(()),
                Some(Typed::Cleared) => {
                    self.tell(&self.messages.chat_leave())?;
                    continue;
                }
                Some(Typed::Line(line)) => line,
            };
            match Wanted::of(&line) {
                Wanted::Leave => return Ok(()),
                Wanted::Help => self.tell(&self.messages.chat_help())?,
                Wanted::Unknown(word) => self.tell(&self.messages.chat_unknown(word))?,
                Wanted::TooMany(word) => self.tell(&self.messages.chat_too_many(word))?,
                Wanted::Word(reaction) => self.give_word(reaction, intake).await?,
                Wanted::Message(text) => self.say(text.into_owned(), intake).await?,
            }
        }
    }

    /// Posts nothing that a reply could replace; instead, notices are shown while the answer takes
    /// its time.
    async fn placeholder(&self, question: &Inbound, _text: &str) -> Result<Option<String>, FrontError> {
        let (screen, messages, begun) = (Arc::clone(&self.screen), Arc::clone(&self.messages), Instant::now());
        let telling = tokio::spawn(async move {
            for seconds in WAITED.into_iter().chain((60..).step_by(60)) {
                tokio::time::sleep_until(begun + Duration::from_secs(seconds)).await;
                if screen.print(&screen.dim(&messages.chat_waits(seconds))).is_err() {
                    return;
                }
            }
        });
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(question.event_id.clone(), AbortOnDropHandle::new(telling));
        Ok(None)
    }

    async fn progress(&self, progress: &Progress) -> Result<(), FrontError> {
        self.tell(&progress.text)
    }

    fn listener(&self, question: &Inbound, _streamed: OnStreamed) -> Option<Arc<dyn Listener>> {
        let (waiting, awaited) = (Arc::clone(&self.waiting), question.event_id.clone());
        Some(Arc::new(Aloud {
            event_id: question.event_id.clone(),
            screen: Arc::clone(&self.screen),
            shown: Arc::clone(&self.shown),
            begins: Box::new(move || no_longer(&waiting, &awaited)),
        }))
    }

    fn split(&self, text: &str, _kind: Kind) -> Vec<String> {
        vec![text.to_owned()]
    }

    async fn deliver(&self, part: Delivery<'_>) -> Result<Option<String>, FrontError> {
        let id = part.replaces.map_or_else(|| format!("{}.{}", part.event_id, part.number), str::to_owned);
        self.no_longer_waiting(part.event_id);
        // A plain notice comes alone; one that asks for a yes or no comes after an answer.
        if part.kind == Kind::Notice && part.number > 0 {
            *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.clone());
        }
        let answer = &part.speech.text;
        let lines = match self.shown.take(part.event_id).map(|shown| aloud::rest(answer, &shown)) {
            Some(rest) if rest.trim().is_empty() => return Ok(Some(id)),
            Some(rest) => format!("\n{}", self.screen.markdown(&rest)),
            None => self.screen.markdown(answer),
        };
        self.screen.print(&lines).map(|()| Some(id))
    }

    fn takes_words(&self) -> bool {
        true
    }

    async fn report(&self, event_id: &str, report: &TurnReport) -> Result<(), FrontError> {
        self.no_longer_waiting(event_id);
        // Nothing was decided for a command, nor if the model was not called.
        let Some(QuestionReport { policy, tokens, turns_dropped, messages_replaced, recalled, .. }) = report.question()
        else {
            return Ok(());
        };
        if tokens.limit == 0 {
            return Ok(());
        }
        let shown = |number: u64| HumanCount(number).to_string();
        let policy = policy.as_ref().map(|policy| policy.name.as_str());
        let mut parts = vec![self.messages.chat_turn(policy, &shown(tokens.after), &shown(tokens.limit))];
        parts.extend((*turns_dropped > 0).then(|| self.messages.chat_dropped(*turns_dropped)));
        parts.extend((*messages_replaced > 0).then(|| self.messages.chat_shortened(*messages_replaced)));
        parts.extend((!recalled.is_empty()).then(|| self.messages.chat_recalled(recalled.len())));
        self.tell(&self.messages.listed(&parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_words_are_told_from_questions() {
        let of = |line| match Wanted::of(line) {
            Wanted::Help => "help".to_owned(),
            Wanted::Leave => "leave".to_owned(),
            Wanted::Word(word) => word.to_owned(),
            Wanted::Message(text) => format!("says {text}"),
            Wanted::Unknown(word) => format!("unknown {word}"),
            Wanted::TooMany(word) => format!("too many {word}"),
        };
        for (line, wanted) in [
            (" /help ", "help"),
            ("exit", "leave"),
            ("/quit", "leave"),
            ("quit smoking, how?", "says quit smoking, how?"),
            ("/context", "says /pmk context"),
            ("/hlep", "unknown /hlep"),
            ("/pmk", "says /pmk"),
            ("/PMK help", "says /PMK help"),
            ("/etc/passwd", "says /etc/passwd"),
            ("/tmp is full", "says /tmp is full"),
            ("/etc/hosts is broken", "says /etc/hosts is broken"),
            ("/", "unknown /"),
            ("/ or a backslash?", "says / or a backslash?"),
            (" /context  3 ", "says /pmk context  3"),
            ("/policy x", "says /pmk policy x"),
            ("/yes please do", "too many please"),
            ("/quit now", "too many now"),
            ("", "says "),
        ] {
            assert_eq!(of(line), wanted, "{line}");
        }
    }
}
