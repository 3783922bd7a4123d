//! Whole turns on a real store, with a model that behaves as each test requires.

use std::path::PathBuf;

use async_trait::async_trait;
use pmk_models::{Answer, Meter, Model, ModelError, Request, Usage};
use pmk_system::panics;

use super::*;
use crate::{
    chat::{Attachments, Inbound, ReplyTo},
    dispatch::{Arrival, Dispatcher, Turns},
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

/// The turns of a running gateway.
struct Running(Arc<Services>);

#[async_trait]
impl Turns for Running {
    async fn run(&self, batch: &Batch) -> Result<(), TurnFailure> {
        run(&self.0, batch).await
    }

    async fn tell_parked(&self, _parked: &Parked) -> bool {
        true
    }

    fn note(&self, TaggedEvent { event, tags }: TaggedEvent) {
        self.0.ledger.note_of(event, tags);
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

/// Regression: the ledger had only that it was parked.
#[tokio::test]
async fn what_a_turn_that_panicked_had_cost_was_in_no_ledger() {
    panics::note_places();
    let home = tempfile::tempdir().expect("a folder");
    let store = Store::open(home.path()).expect("a store");
    let front = Arc::new(Lines::start().expect("a thread"));
    let services = services_of(home.path(), &store, Arc::new(Panicking), front);
    let turns = Arc::new(Running(Arc::clone(&services)));
    let (clock, queue) = (services.clock.clone(), services.config.queue);
    let (tasks, stop) = (services.tasks.clone(), services.stop.clone());
    let dispatcher = Dispatcher::new(clock, turns, store.clone(), queue, tasks, stop);
    dispatcher.take_in(question(), Arrival::Fresh).await.expect("it is stored");
    dispatcher.drain().await.expect("an end");
    let parked = store.parked().await.expect("readable");
    assert!(parked[0].why.contains("turn/tests.rs:"), "{}", parked[0].why);
    // With the last of them, the ledger is written.
    drop((dispatcher, services));
    let files = std::fs::read_dir(home.path()).expect("a folder").map(|file| file.expect("readable").path());
    let is_ledger = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "log");
    let ledger: String = files.filter(is_ledger).map(|path| std::fs::read_to_string(path).expect("text")).collect();
    let lines = ledger.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let kinds: Vec<String> = lines.filter_map(|line| line["type"].as_str().map(str::to_owned)).collect();
    let spent_and_parked: Vec<&String> = kinds.iter().filter(|kind| *kind != "turn.panicked").collect();
    assert_eq!(spent_and_parked, ["token.usage", "token.usage", "turn.parked"], "{kinds:?}");
}
