//! What the operations of one transaction query is queried for all of them at once: each still sees what it would
//! have seen by itself.

use std::sync::Arc;

use pmk_stand_ins::{postgres, relay::Relay};
use tokio::task::JoinHandle;

use super::{
    hosts::{at_work, two},
    on_postgres::{
        Home,
        group_commit::{hold, settle},
        number,
    },
    *,
};
use crate::{
    calibration::{Bounds, Source},
    database::Database,
    store::{sql::Connection, writer::Prefetch},
};

const KEY: &str = "slack:dm:U1";

/// Operations that are sent while a host's writer is busy, so that one transaction contains all of them, in this
/// order.
struct Together<'s> {
    store: &'s Store,
    release: std::sync::mpsc::Sender<()>,
    holding: JoinHandle<Result<(), StoreError>>,
}

impl Together<'_> {
    async fn at(store: &Store) -> Together<'_> {
        let (release, holding) = hold(store).await;
        Together { store, release, holding }
    }

    /// Sends an operation.
    async fn queue<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        let task = tokio::spawn(work);
        settle().await;
        assert!(!task.is_finished());
        task
    }

    async fn accept(&self, inbound: Inbound) -> JoinHandle<Result<Option<InboxId>, StoreError>> {
        let store = self.store.clone();
        self.queue(async move { store.accept(&inbound, NOW).await }).await
    }

    async fn begin(&self, inbox: InboxId) -> JoinHandle<Result<BeginOutcome, StoreError>> {
        let store = self.store.clone();
        self.queue(async move { store.begin(inbox, None, Hold::Alone, NOW).await }).await
    }

    async fn record(&self, turn: TurnId, recorded: Recorded) -> JoinHandle<Result<(), StoreError>> {
        let store = self.store.clone();
        self.queue(async move { store.record(turn, recorded, NOW).await }).await
    }

    async fn go(self) {
        self.release.send(()).unwrap();
        self.holding.await.unwrap().unwrap();
    }
}

/// A home whose connection to the database can be cut; `None` where tests are to run without PostgreSQL.
fn through_a_relay() -> Option<(Home, Relay)> {
    let server = postgres::server()?;
    let relay = Relay::start(([127, 0, 0, 1], server.port()).into());
    let through = server.schema().replace(&server.port().to_string(), &relay.address().port().to_string());
    let home = Home { folder: tempfile::tempdir().unwrap(), database: Some(Database::parse(&through).unwrap()) };
    Some((home, relay))
}

#[tokio::test]
async fn messages_that_shared_a_transaction_were_waited_for_one_after_the_other() {
    const MESSAGES: usize = 40;
    let Some((home, relay)) = through_a_relay() else { return };
    let (store, _lock) = at_work(&home).await;
    accept(&store, KEY, "Ev0").await;
    let together = Together::at(&store).await;
    let mut messages = Vec::new();
    for n in 1..=MESSAGES {
        messages.push(together.accept(inbound(&format!("slack:dm:U{n}"), &format!("Ev{n}"))).await);
    }
    let before = relay.round_trips();
    together.go().await;
    for message in messages {
        assert!(message.await.unwrap().unwrap().is_some());
    }
    let waited = relay.round_trips() - before;
    // One wait for what all of them query, some for the ids of new conversations, 16 at once, and one for the
    // commit.
    assert!(waited <= MESSAGES / 2, "{waited}");
}

#[tokio::test]
async fn a_message_that_comes_twice_within_one_transaction_is_taken_in_once() {
    let Some([one, _]) = two() else { return };
    let (store, _lock) = at_work(&one).await;
    accept(&store, KEY, "Ev0").await;
    let together = Together::at(&store).await;
    let first = together.accept(Inbound { aliases: vec!["msg:1".into()], ..inbound(KEY, "Ev1") }).await;
    let again = together.accept(Inbound { aliases: vec!["msg:1".into()], ..inbound(KEY, "Ev2") }).await;
    together.go().await;
    assert!(first.await.unwrap().unwrap().is_some());
    assert_eq!(again.await.unwrap().unwrap(), None);
    assert_eq!(number(&one, "SELECT count(*) FROM inbox"), 2);
}

#[tokio::test]
async fn two_messages_that_begin_a_conversation_within_one_transaction_begin_one() {
    let Some([one, _]) = two() else { return };
    let (store, _lock) = at_work(&one).await;
    let together = Together::at(&store).await;
    let messages = [together.accept(inbound(KEY, "Ev1")).await, together.accept(inbound(KEY, "Ev2")).await];
    together.go().await;
    for message in messages {
        assert!(message.await.unwrap().unwrap().is_some());
    }
    assert_eq!(number(&one, "SELECT count(*) FROM session"), 1);
    assert_eq!(number(&one, "SELECT count(*) FROM inbox WHERE session_id = (SELECT id FROM session)"), 2);
}

#[tokio::test]
async fn a_question_that_begins_as_the_one_before_ends_lets_the_older_one_of_another_host_go_first() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    let written = |event: &str, ts: &str| Inbound { ts: ts.into(), ..inbound(KEY, event) };
    let under_way = first.accept(&written("Ev1", "1700000001.000100"), NOW).await.unwrap().unwrap();
    let turn = ask(&first, under_way).await.turn;
    first.record(turn, recorded("q", "a"), NOW).await.unwrap();
    let theirs = second.accept(&written("Ev2", "1700000002.000100"), NOW).await.unwrap().unwrap();
    let own = first.accept(&written("Ev3", "1700000003.000100"), NOW).await.unwrap().unwrap();
    let together = Together::at(&first).await;
    let store = first.clone();
    let ended = together.queue(async move { store.finish(turn, vec![sent(0, None)], vec![], NOW).await }).await;
    let begun = together.begin(own).await;
    together.go().await;
    ended.await.unwrap().unwrap();
    let begun = begun.await.unwrap().unwrap();
    assert!(matches!(begun, BeginOutcome::Elsewhere), "{begun:?}");
    ask(&second, theirs).await;
}

#[tokio::test]
async fn a_question_that_begins_as_an_older_one_is_stored_lets_that_go_first() {
    let Some([one, _]) = two() else { return };
    let (store, _lock) = at_work(&one).await;
    let written = |event: &str, ts: &str| Inbound { ts: ts.into(), ..inbound(KEY, event) };
    let later = store.accept(&written("Ev2", "1700000002.000100"), NOW).await.unwrap().unwrap();
    let together = Together::at(&store).await;
    let older = together.accept(written("Ev1", "1700000001.000100")).await;
    let begun = together.begin(later).await;
    together.go().await;
    let older = older.await.unwrap().unwrap().unwrap();
    let begun = begun.await.unwrap().unwrap();
    assert!(matches!(begun, BeginOutcome::Elsewhere), "{begun:?}");
    ask(&store, older).await;
}

#[tokio::test]
async fn what_fails_in_a_transaction_that_was_asked_for_at_once_fails_alone() {
    let Some([one, _]) = two() else { return };
    let (store, _lock) = at_work(&one).await;
    let inbox = accept(&store, KEY, "Ev0").await;
    let turn = ask(&store, inbox).await.turn;
    let together = Together::at(&store).await;
    let before = together.accept(inbound("slack:dm:U2", "Ev1")).await;
    let failing = {
        let store = store.clone();
        let nonsense = |conn: &Connection| {
            conn.execute("INSERT INTO seen (front, key, at) VALUES ('slack', 'half', 0)", [])?;
            Ok(conn.execute("INSERT INTO inbox (session_id) VALUES (-1)", [])?)
        };
        together.queue(async move { store.write_prefetched(Prefetch::Narrow, nonsense).await }).await
    };
    let after = together.accept(inbound("slack:dm:U3", "Ev2")).await;
    let recording = together.record(turn, recorded("q", "a")).await;
    together.go().await;
    assert!(before.await.unwrap().unwrap().is_some());
    assert!(failing.await.unwrap().is_err());
    assert!(after.await.unwrap().unwrap().is_some());
    recording.await.unwrap().unwrap();
    assert_eq!(number(&one, "SELECT count(*) FROM inbox"), 3);
    assert_eq!(number(&one, "SELECT count(*) FROM seen WHERE key = 'half'"), 0);
    assert_eq!(number(&one, "SELECT count(*) FROM message"), 2);
}

#[tokio::test]
async fn a_turn_that_is_begun_anew_as_its_placeholder_is_stored_knows_it() {
    let Some([one, _]) = two() else { return };
    let (store, _lock) = at_work(&one).await;
    let inbox = accept(&store, KEY, "Ev1").await;
    let turn = ask(&store, inbox).await.turn;
    let together = Together::at(&store).await;
    let placing = store.placed(turn, "1700000001.000200");
    let placed = together.queue(placing).await;
    let begun = together.begin(inbox).await;
    together.go().await;
    placed.await.unwrap().unwrap();
    let begun = begun.await.unwrap().unwrap();
    assert!(
        matches!(&begun, BeginOutcome::Ask(open) if open.placeholder.as_deref() == Some("1700000001.000200")),
        "{begun:?}"
    );
}

#[tokio::test]
async fn a_question_that_begins_as_the_one_before_is_answered_sees_that_answer() {
    let Some([one, _]) = two() else { return };
    let (store, _lock) = at_work(&one).await;
    super::turn(&store, KEY, "Ev0").await;
    let (first, second) = (accept(&store, KEY, "Ev1").await, accept(&store, KEY, "Ev2").await);
    let turn = ask(&store, first).await.turn;
    let together = Together::at(&store).await;
    let recording = together.record(turn, recorded("q", "a")).await;
    let begun = together.begin(second).await;
    together.go().await;
    recording.await.unwrap().unwrap();
    let begun = begun.await.unwrap().unwrap();
    assert!(matches!(&begun, BeginOutcome::Ask(open) if open.live.entries.len() == 4), "{begun:?}");
}

#[tokio::test]
async fn what_two_answers_of_one_transaction_teach_of_a_model_is_all_stored() {
    let Some([one, _]) = two() else { return };
    let (store, _lock) = at_work(&one).await;
    let mut turns = Vec::new();
    for user in ["slack:dm:U1", "slack:dm:U2"] {
        let inbox = accept(&store, user, user).await;
        turns.push(ask(&store, inbox).await.turn);
    }
    let (mut refused, mut answered) = (Bounds::default(), Bounds::default());
    refused.refused(SessionId::of(1), 30_000, Some(32_768), Source::Refused, NOW);
    answered.answered(SessionId::of(2), 10_000, Some(12_000), NOW);
    let together = Together::at(&store).await;
    let mut recording = Vec::new();
    for (turn, bounds) in turns.into_iter().zip([refused, answered]) {
        let learnt = ModelCalibration {
            provider: "openai".into(),
            model: "made-up".into(),
            bounds,
            ..ModelCalibration::default()
        };
        let teaching = Recorded { calibration: Some(learnt), ..recorded("q", "a") };
        recording.push(together.record(turn, teaching).await);
    }
    together.go().await;
    for recorded in recording {
        recorded.await.unwrap().unwrap();
    }
    let stored = store.calibration("openai", "made-up").await.unwrap().bounds;
    assert_eq!((stored.refused, stored.answered), (refused.refused, answered.answered));
}

#[tokio::test]
async fn who_waited_behind_an_operation_that_lost_the_connection_was_refused_with_it() {
    let Some([one, _]) = two() else { return };
    let (store, _lock) = at_work(&one).await;
    let together = Together::at(&store).await;
    let losing = {
        let store = store.clone();
        let end = |conn: &Connection| Ok(conn.execute("SELECT pg_terminate_backend(pg_backend_pid())", [])?);
        together.queue(async move { store.write_prefetched(Prefetch::Narrow, end).await }).await
    };
    let behind = together.accept(inbound(KEY, "Ev1")).await;
    together.go().await;
    assert!(matches!(losing.await.unwrap(), Err(StoreError::Away { .. })));
    assert!(behind.await.unwrap().unwrap().is_some());
}

/// Regression: after the connection was lost during a prefetch, statements ran outside of a transaction, and even a
/// host that others had declared gone could write.
#[tokio::test]
async fn what_was_asked_ahead_when_the_connection_was_lost_was_written_in_no_transaction() {
    let Some((home, relay)) = through_a_relay() else { return };
    let (store, _lock) = at_work(&home).await;
    accept(&store, KEY, "Ev0").await;
    let together = Together::at(&store).await;
    let relay = Arc::new(relay);
    let asking = Prefetch::asks(move |conn| {
        relay.cut();
        let asked = conn.prepare_cached("SELECT 1 FROM session").and_then(|mut asks| asks.exists([]));
        relay.mend();
        assert!(asked.is_err());
        Ok(())
    });
    let writing = {
        let store = store.clone();
        let write = |conn: &Connection| Ok(conn.execute("UPDATE session SET \"verbose\" = 'full'", [])?);
        together.queue(async move { store.write_prefetched(asking, write).await }).await
    };
    let behind = together.accept(inbound(KEY, "Ev1")).await;
    together.go().await;
    assert!(matches!(writing.await.unwrap(), Err(StoreError::Away { .. })));
    assert_eq!(number(&home, "SELECT count(*) FROM session WHERE \"verbose\" = 'full'"), 0);
    assert!(behind.await.unwrap().unwrap().is_some());
}
