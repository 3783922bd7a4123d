//! Whole turns on a real store, with a model that behaves as each test requires.

use std::{path::PathBuf, sync::Mutex};

use async_trait::async_trait;
use pmk_models::{Answer, Meter, Model, ModelError, Request, Usage};
use pmk_system::panics;

use super::*;
use crate::{
    chat::{Attachments, Inbound, Quote, QuoteKind, ReplyTo},
    dispatch::{Arrival, Dispatcher, Turns},
    exchange::GivenUp,
    front::console::Lines,
    ledger::TaggedEvent,
    services::tests::services_of,
    store::{Parked, Store},
};

/// A model that counts seven tokens, and then the program panics.
struct Panicking;

#[async_trait]
impl Model for Panicking {
    fn provider(&self) -> &'static str {
        "a provider"
    }

    fn name(&self) -> &str {
        "a model"
    }

    fn window(&self) -> u64 {
        100_000
    }

    async fn ask(&self, _request: &Request, meter: &Meter) -> Result<Answer, ModelError> {
        meter.add(Usage { input_tokens: 7, ..Usage::default() });
        panic!("as the test wants it")
    }
}

/// The turns of a running gateway, and what those have come to that were given up.
struct Running {
    services: Arc<Services>,
    given_up: Mutex<Vec<GivenUp>>,
}

#[async_trait]
impl Turns for Running {
    async fn run(&self, batch: &Batch) -> Result<(), TurnFailure> {
        let ended = run(&self.services, batch).await;
        if ended.is_err() {
            self.given_up.lock().expect("not poisoned").push(batch.given_up());
        }
        ended
    }

    async fn tell_parked(&self, _parked: &Parked) -> bool {
        true
    }

    fn note(&self, TaggedEvent { event, tags }: TaggedEvent) {
        self.services.ledger.note_of(event, tags);
    }
}

fn question() -> Inbound {
    Inbound {
        event_id: "Ev1".into(),
        aliases: vec![],
        key: "console:dm:U1".parse().expect("a conversation"),
        user: "U1".into(),
        reply_to: ReplyTo { channel: "D1".into(), thread_ts: None },
        text: "Why?".into(),
        attached: Attachments::default(),
        if_awaited: false,
        by_app: false,
        team: None,
        in_group: false,
        asked_at: None,
        ts: String::new(),
    }
}

/// Works on this message until it is parked, and returns what the attempts have come to that did not panic.
async fn parked(services: &Arc<Services>, store: &Store, asked: Inbound) -> Vec<GivenUp> {
    let turns = Arc::new(Running { services: Arc::clone(services), given_up: Mutex::default() });
    let (clock, queue) = (services.clock.clone(), services.config.queue);
    let (tasks, stop) = (services.tasks.clone(), services.stop.clone());
    let dispatcher = Dispatcher::new(clock, Arc::clone(&turns) as Arc<dyn Turns>, store.clone(), queue, tasks, stop);
    dispatcher.take_in(asked, Arrival::Fresh).await.expect("it is stored");
    dispatcher.drain().await.expect("an end");
    let mut given_up = turns.given_up.lock().expect("not poisoned");
    std::mem::take(&mut *given_up)
}

/// Regression: the ledger had only that it was parked.
#[tokio::test]
async fn what_a_turn_that_panicked_had_cost_was_in_no_ledger() {
    panics::note_places();
    let home = tempfile::tempdir().expect("a folder");
    let store = Store::open(home.path()).expect("a store");
    let front = Arc::new(Lines::start().expect("a thread"));
    let services = services_of(home.path(), &store, Arc::new(Panicking), front);
    parked(&services, &store, question()).await;
    let parked = store.parked().await.expect("readable");
    assert!(parked[0].why.contains("turn/tests.rs:"), "{}", parked[0].why);
    // With the last of them, the ledger is written.
    drop(services);
    let files = std::fs::read_dir(home.path()).expect("a folder").map(|file| file.expect("readable").path());
    let is_ledger = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "log");
    let ledger: String = files.filter(is_ledger).map(|path| std::fs::read_to_string(path).expect("text")).collect();
    let lines = ledger.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let kinds: Vec<String> = lines.filter_map(|line| line["type"].as_str().map(str::to_owned)).collect();
    let spent_and_parked: Vec<&String> = kinds.iter().filter(|kind| *kind != "turn.panicked").collect();
    assert_eq!(spent_and_parked, ["token.usage", "token.usage", "turn.parked"], "{kinds:?}");
}

/// Regression: what policies did while a request was put together was in no ledger, and in no arm, if the attempt ended
/// there.
#[tokio::test]
async fn an_attempt_that_ended_before_there_was_a_request_was_no_policys() {
    let home = tempfile::tempdir().expect("a folder");
    let store = Store::open(home.path()).expect("a store");
    let front = Arc::new(Lines::start().expect("a thread"));
    let services = services_of(home.path(), &store, Arc::new(Panicking), front);
    let full = "CREATE TRIGGER is_full BEFORE INSERT ON message BEGIN SELECT raise(ABORT, 'full'); END";
    let conn = rusqlite::Connection::open(Store::path(home.path())).expect("the file");
    conn.execute_batch(full).expect("a trigger");
    let quote = Quote { kind: QuoteKind::Forwarded, by: "U2".into(), text: "Because.".into(), is_cut: false };
    let asked = Inbound { attached: Attachments { quotes: vec![quote], ..Attachments::default() }, ..question() };
    let given_up = parked(&services, &store, asked).await;
    let decided = given_up.iter().map(|attempt| attempt.outcome.tags.policy_sha256.is_some());
    assert_eq!(decided.collect::<Vec<_>>(), [true]);
}
