//! Case operations on a real store.

use std::sync::Arc;

use pmk_core::Language;
use serde_json::Value;

use super::*;
use crate::ledger::Ledger;

/// The time of the gateway's clock.
const NOW: i64 = 1_760_000_000_000;

struct Scene {
    home: tempfile::TempDir,
    store: Store,
    ledger: Option<Ledger>,
    messages: Messages,
    clock: Clock,
}

impl Scene {
    fn new(language: Language) -> Scene {
        let home = tempfile::tempdir().expect("a folder");
        let store = Store::open(home.path()).expect("a store");
        let ledger = Some(Ledger::open(Arc::new(store.clone()), home.path()));
        Scene { home, store, ledger, messages: Messages::new(language), clock: Clock::of(|| NOW) }
    }

    fn cases(&self) -> CaseService<'_> {
        CaseService { store: &self.store, messages: &self.messages, clock: &self.clock }
    }

    fn refusal(&self, done: Result<String, CaseServiceError>) -> String {
        match done.expect_err("refused") {
            CaseServiceError::Refused(refusal) => self.messages.case_refused(&refusal),
            CaseServiceError::Store(error) => panic!("{error}"),
        }
    }

    async fn open(&self, channel: &str, event: &str, title: &str) -> Result<String, CaseServiceError> {
        self.cases().open(&order(channel, event), title).await
    }

    /// Returns the types of the ledger events, once all are written.
    fn events(&mut self) -> Vec<String> {
        self.ledger = None;
        let files = std::fs::read_dir(self.home.path()).expect("the home").map(|file| file.expect("a file").path());
        let text: String = files
            .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
            .map(|path| std::fs::read_to_string(path).expect("the ledger"))
            .collect();
        text.lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["type"].as_str().expect("a type").to_owned())
            .collect()
    }
}

fn order(channel: &str, event: &str) -> Order {
    Order { front: FrontName::Slack, channel: channel.into(), user: "U1".into(), event_id: event.into() }
}

#[tokio::test]
async fn a_channel_has_one_open_case_and_an_order_that_comes_again_is_one() {
    let mut scene = Scene::new(Language::English);
    let said = scene.open("C1", "Ev1", " login\n fails ").await.expect("opened");
    assert!(said.contains("case 1") && said.contains("`login fails`"), "{said}");
    assert_eq!(scene.open("C1", "Ev1", "login fails").await.expect("the same order"), said);
    assert!(
        matches!(scene.open("C1", "Ev2", "other").await, Err(CaseServiceError::Refused(CaseRefusal::OpenAlready(case))) if case.id.0 == 1)
    );
    scene.open("C2", "Ev3", "another channel's").await.expect("opened");
    assert_eq!(scene.store.channels_with_open_case(FrontName::Slack).await.expect("channels"), ["C1", "C2"]);
    assert_eq!(scene.store.channels_with_open_case(FrontName::Console).await.expect("channels"), [""; 0]);

    let closed = scene.cases().close(&order("C1", "Ev4")).await.expect("closed");
    assert_eq!(scene.cases().close(&order("C1", "Ev4")).await.expect("the same order"), closed);
    assert!(matches!(
        scene.cases().close(&order("C1", "Ev5")).await,
        Err(CaseServiceError::Refused(CaseRefusal::NoneOpen))
    ));
    scene.open("C1", "Ev6", "login fails again").await.expect("opened");
    let listed = scene.cases().list(FrontName::Slack, "C1").await.expect("listed");
    let (open, done) = (listed.find("login fails again").expect("open"), listed.rfind("login fails").expect("closed"));
    assert!(open < done && !listed.contains("another channel's"), "{listed}");
    assert_eq!(scene.events(), ["case.opened", "case.opened", "case.closed", "case.opened"]);
}

#[tokio::test]
async fn what_makes_no_case_is_said_and_changes_nothing() {
    for language in [Language::English, Language::TraditionalChinese] {
        let mut scene = Scene::new(language);
        let long = "長".repeat(MAX_TITLE_CHARS + 1);
        let refused = [
            scene.open("C1", "Ev1", " \n").await,
            scene.open("C1", "Ev1", "\u{200b}").await,
            scene.open("C1", "Ev1", &long).await,
            scene.open("D1", "Ev1", "title").await,
            scene.cases().show(FrontName::Slack, "C1").await,
            scene.cases().show(FrontName::Slack, "D1").await,
            scene.cases().close(&order("C1", "Ev1")).await,
            scene.cases().list(FrontName::Slack, "D1").await,
        ];
        let said: Vec<String> = refused.into_iter().map(|refused| scene.refusal(refused)).collect();
        assert!(said.iter().all(|said| !said.is_empty()), "{said:?}");
        assert_eq!(scene.store.cases().await.expect("cases"), []);
        assert!(!scene.cases().list(FrontName::Slack, "C1").await.expect("an empty list").is_empty());
        assert_eq!(scene.events(), [""; 0]);
    }
}

#[tokio::test]
async fn a_case_was_opened_by_the_clock_of_the_machine_where_the_gateway_goes_by_another() {
    let scene = Scene::new(Language::English);
    scene.open("C1", "Ev1", "login fails").await.expect("opened");
    scene.cases().close(&order("C1", "Ev2")).await.expect("closed");
    let cases = scene.store.cases().await.expect("cases");
    assert_eq!(cases[0].opened_at_ms, NOW);
    assert_eq!(cases[0].closed.as_ref().map(|(at_ms, _)| *at_ms), Some(NOW));
}
