//! The dispatcher with a real store, and with turns that behave as each test requires. With paused time, the clock
//! jumps to the next timer while only the store is working.

use std::{collections::HashMap, path::Path, sync::MutexGuard};

use pmk_system::{clock, panics};
use tempfile::TempDir;
use tokio::sync::Notify;

use super::*;
use crate::{
    chat::{Accepted, Attachments, Inbound, ReplyTo},
    config::QueueMode,
    exchange::GivenUp,
    ids::{InboxId, TurnId},
    ledger::{Event, InExperiment, Tags},
    store::{BeginOutcome, Hold},
};

mod collecting;
mod holding;
mod losing;
mod parking;

/// The behaviour of a turn, by the text of its message and the number of the attempt, from 1.
type Script = Box<dyn Fn(&str, u32) -> Play + Send + Sync>;

enum Play {
    /// It finishes.
    Answer,
    TurnFailure(TurnFailure),
    /// It fails after the model has counted so many tokens, in the arm `b`.
    Spent(u64, TurnFailure),
    /// Somebody else has ended it, and nothing is stored of what was spent on it.
    Gone,
    Panic,
    /// It never ends.
    Hang,
    /// It ends only when it is interrupted, after the model has counted so many tokens, and once what it shows has ended.
    SpentWhenInterrupted(u64),
    /// It takes along what arrived meanwhile, and then fails.
    SteerThenStuck,
}

fn passing(why: &str) -> Play {
    Play::TurnFailure(TurnFailure::Passing { why: why.into(), retry_after: Duration::ZERO })
}

fn spent(input_tokens: u64) -> Event {
    Event::TokenUsage {
        actor: "U1".into(),
        provider: "a provider".into(),
        model: "a model".into(),
        input_tokens,
        output_tokens: 0,
        cache_read_tokens: 0,
        cache_creation_tokens: 0,
    }
}

fn hopeless(why: &str) -> Play {
    Play::TurnFailure(TurnFailure::Hopeless { why: why.into() })
}

/// Turns that follow a script, with a log for the test.
struct Scripted {
    store: Store,
    script: Script,
    /// How many attempts to tell people of a parked message fail.
    untold: usize,
    log: Mutex<Log>,
    happened: Notify,
}

#[derive(Clone, Debug, Default)]
struct Log {
    tries: HashMap<String, u32>,
    /// Messages in the order in which they were finished; those answered together are joined by
    /// `+`.
    answered: Vec<String>,
    told: Vec<String>,
    /// Whether each of those who were told may have been told before.
    maybe_told: Vec<bool>,
    events: Vec<String>,
    /// The arms that these events name.
    arms: Vec<String>,
}

impl Scripted {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn happen(&self, change: impl FnOnce(&mut Log)) {
        change(&mut self.log());
        self.happened.notify_waiters();
    }

    async fn end(&self, turns: &[(TurnId, String)], costs: &[TaggedEvent]) {
        for (turn, _) in turns {
            self.store.finish(*turn, vec![], costs.to_vec(), clock::now_ms()).await.unwrap();
        }
        let texts: Vec<&str> = turns.iter().map(|(_, text)| &**text).collect();
        self.happen(|log| log.answered.push(texts.join("+")));
    }

    fn try_again(&self, text: &str) -> u32 {
        let mut tries = 0;
        self.happen(|log| {
            let tried = log.tries.entry(text.to_owned()).or_default();
            *tried += 1;
            tries = *tried;
        });
        tries
    }
}

#[async_trait]
impl Turns for Scripted {
    async fn run(&self, batch: &Batch) -> Result<(), TurnFailure> {
        let mut open = vec![];
        for &inbox in batch.ids() {
            match self.store.begin(inbox, Some(batch.key()), Hold::Alone, clock::now_ms()).await {
                Ok(BeginOutcome::Ask(turn)) => open.push((turn.turn, turn.inbound.text)),
                Ok(_) => {}
                Err(error) => return Err(TurnFailure::Hopeless { why: error.to_string() }),
            }
        }
        let Some((_, newest)) = open.last() else { return Ok(()) };
        let tries = self.try_again(newest);
        match (self.script)(newest, tries) {
            Play::Answer => self.end(&open, &batch.take_given_up().events).await,
            Play::Gone => self.end(&open, &[]).await,
            Play::TurnFailure(stuck) => return Err(stuck),
            Play::Spent(tokens, stuck) => {
                let place = InExperiment { experiment: "less".into(), arm: "b".into() };
                let tags = Tags { place: Some(place), ..Tags::default() };
                let events = vec![TaggedEvent { event: spent(tokens), tags }];
                batch.give_up(GivenUp { events, ..GivenUp::default() });
                return Err(stuck);
            }
            Play::SpentWhenInterrupted(tokens) => {
                batch.interrupted().cancelled_owned().await;
                tokio::time::sleep(Duration::from_secs(2)).await;
                batch.give_up(GivenUp { events: vec![spent(tokens).into()], ..GivenUp::default() });
                return Err(TurnFailure::Anew);
            }
            Play::Panic => panic!("as the test wants it"),
            Play::Hang => std::future::pending().await,
            Play::SteerThenStuck => {
                batch.take_along(9);
                return Err(TurnFailure::Passing { why: "the disk is full".into(), retry_after: Duration::ZERO });
            }
        }
        Ok(())
    }

    async fn tell_parked(&self, parked: &Parked) -> bool {
        let who = parked.message.as_ref().map_or_else(|| parked.key.clone(), |message| message.text.clone());
        self.happen(|log| {
            log.told.push(format!("{who}: {}", parked.why));
            log.maybe_told.push(parked.maybe_told);
        });
        self.log().told.len() > self.untold
    }

    fn note(&self, TaggedEvent { event, tags }: TaggedEvent) {
        let event = serde_json::to_value(event).expect("an event is JSON");
        self.happen(|log| {
            log.events.push(event["type"].as_str().unwrap_or_default().to_owned());
            log.arms.extend(tags.place.map(|place| place.arm.to_string()));
        });
    }
}

/// A running dispatcher.
struct House {
    turns: Arc<Scripted>,
    dispatcher: Arc<Dispatcher>,
    store: Store,
    home: TempDir,
}

fn house(queue: QueueConfig, script: impl Fn(&str, u32) -> Play + Send + Sync + 'static) -> House {
    house_in(tempfile::tempdir().unwrap(), queue, 0, script)
}

fn house_in(
    home: TempDir,
    queue: QueueConfig,
    untold: usize,
    script: impl Fn(&str, u32) -> Play + Send + Sync + 'static,
) -> House {
    panics::note_places();
    let store = Store::open(home.path()).unwrap();
    let turns = Arc::new(Scripted {
        store: store.clone(),
        script: Box::new(script),
        untold,
        log: Mutex::default(),
        happened: Notify::new(),
    });
    let dispatcher = Dispatcher::new(
        Clock::system(),
        Arc::clone(&turns) as Arc<dyn Turns>,
        store.clone(),
        queue,
        TaskTracker::new(),
        CancellationToken::new(),
    );
    House { turns, dispatcher, store, home }
}

impl House {
    async fn say(&self, user: &str, text: &str) -> Accepted {
        self.dispatcher.take_in(message(user, text), Arrival::Fresh).await.unwrap()
    }

    /// Waits until the log satisfies the predicate. There is no time limit of its own, since time
    /// may jump.
    async fn until(&self, is_so: impl Fn(&Log) -> bool) {
        loop {
            let mut happened = std::pin::pin!(self.turns.happened.notified());
            happened.as_mut().enable();
            if is_so(&self.turns.log()) {
                return;
            }
            happened.await;
        }
    }

    async fn until_answered(&self, texts: &[&str]) {
        self.until(|log| texts.iter().all(|text| log.answered.iter().any(|done| done == text))).await;
    }

    /// Waits until the queues are empty.
    async fn settle(&self) {
        self.dispatcher.drain().await.unwrap();
    }

    fn answered(&self) -> Vec<String> {
        self.turns.log().answered.clone()
    }
}

fn message(user: &str, text: &str) -> Inbound {
    Inbound {
        event_id: text.into(),
        aliases: vec![],
        key: format!("slack:dm:{user}").parse().unwrap(),
        user: user.into(),
        reply_to: ReplyTo { channel: "D1".into(), thread_ts: None },
        text: text.into(),
        attached: Attachments::default(),
        if_awaited: false,
        by_app: false,
        team: None,
        in_group: false,
        asked_at: None,
        ts: String::new(),
    }
}

fn sql(home: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(Store::path(home)).unwrap()
}

fn ids(open: crate::store::OpenWork) -> Vec<InboxId> {
    open.pending.into_iter().map(|pending| pending.inbox).collect()
}

const SEQUENTIAL: QueueConfig = QueueConfig { mode: QueueMode::Sequential, debounce_ms: 0, most: 20 };
