//! Two processes on one file: a `run`, and a command beside it.

use std::time::Duration;

use pmk_core::SessionKey;

use super::{group_commit::settle, *};

const KEY: &str = "slack:dm:U1";
const BRIEFLY: Duration = Duration::from_millis(120);

fn key() -> SessionKey {
    KEY.parse().unwrap()
}

/// A turn under way in a `run`, and a command beside it.
async fn a_turn_under_way(home: &Home, lock: &HomeLock) -> (Store, TurnId, Store) {
    let run = run(home, lock).await;
    let inbox = accept(&run, KEY, "Ev1").await;
    let turn = ask(&run, inbox).await.turn;
    (run, turn, beside(home))
}

fn beside(home: &Home) -> Store {
    Store::open_existing(home).unwrap()
}

#[tokio::test]
async fn a_turn_under_way_keeps_a_command_waiting_until_it_is_finished() {
    let home = home();
    let lock = HomeLock::take(home.path()).unwrap();
    let (run, turn, command) = a_turn_under_way(&home, &lock).await;
    let error = command.lease(&key(), "test", BRIEFLY, NOW).await.unwrap_err();
    assert!(error.to_string().starts_with("`slack:dm:U1` is being processed by `pmk-host run"), "{error}");

    let waiting = tokio::spawn(async move { command.lease(&key(), "test", Duration::from_secs(20), NOW).await });
    run.record(turn, recorded("q", "a"), NOW).await.unwrap();
    assert!(!waiting.is_finished());
    run.finish(turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    let _lease = waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn what_was_finished_along_with_a_turn_released_its_conversation() {
    let home = home();
    let lock = HomeLock::take(home.path()).unwrap();
    let (run, turn, command) = a_turn_under_way(&home, &lock).await;
    let BeginOutcome::Ask(along) = run.begin(accept(&run, KEY, "Ev2").await, None, Hold::Along, NOW).await.unwrap()
    else {
        panic!("it may begin")
    };
    run.record(along.turn, recorded("/pmk help", "help"), NOW).await.unwrap();
    run.finish(along.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    assert!(command.lease(&key(), "test", Duration::ZERO, NOW).await.is_err(), "the first turn is under way");
    run.record(turn, recorded("q", "a"), NOW).await.unwrap();
    run.finish(turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    let _lease = command.lease(&key(), "test", Duration::ZERO, NOW).await.unwrap();
}

#[tokio::test]
async fn what_a_turn_added_while_a_reset_waited_for_it_was_not_counted() {
    let home = home();
    let lock = HomeLock::take(home.path()).unwrap();
    let (run, turn, command) = a_turn_under_way(&home, &lock).await;
    let reset = tokio::spawn(async move {
        let first = command.reset(&key(), NOW).await.unwrap();
        (first, command.reset(&key(), NOW).await.unwrap())
    });
    settle().await;
    run.record(turn, recorded("q", "a"), NOW).await.unwrap();
    run.finish(turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    assert_eq!(reset.await.unwrap(), (Some(2), None));
}

#[tokio::test]
async fn a_dead_run_keeps_nobody_waiting() {
    let home = home();
    let lock = HomeLock::take(home.path()).unwrap();
    let run = run(&home, &lock).await;
    let inbox = accept(&run, KEY, "Ev1").await;
    ask(&run, inbox).await;
    let command = beside(&home);
    assert!(command.lease(&key(), "test", Duration::ZERO, NOW).await.is_err());
    drop((run, lock));
    let _lease = command.lease(&key(), "test", Duration::ZERO, NOW).await.unwrap();
}

#[tokio::test]
async fn a_command_keeps_a_run_waiting_until_it_is_done() {
    let home = home();
    let lock = HomeLock::take(home.path()).unwrap();
    let run = run(&home, &lock).await;
    let inbox = accept(&run, KEY, "Ev1").await;
    let command = beside(&home);
    let lease = command.lease(&key(), "test", Duration::ZERO, NOW).await.unwrap();
    assert!(matches!(run.begin(inbox, None, Hold::Alone, NOW).await.unwrap(), BeginOutcome::Busy));
    assert!(beside(&home).lease(&key(), "test", Duration::ZERO, NOW).await.is_err());
    command.release(lease).await.unwrap();
    ask(&run, inbox).await;
}

#[tokio::test]
async fn a_command_that_died_keeps_a_run_waiting_for_as_long_as_its_lease() {
    let home = home();
    let run = open(&home);
    let inbox = accept(&run, KEY, "Ev1").await;
    it_is(&home, NOW);
    let lost = beside(&home).lease(&key(), "test", Duration::ZERO, NOW).await.unwrap();
    let end = NOW + LEASE_FOR.as_millis() as i64;
    // The wait itself took at most some milliseconds.
    it_is(&home, end - 1);
    assert!(matches!(run.begin(inbox, None, Hold::Alone, end - 1).await.unwrap(), BeginOutcome::Busy));
    it_is(&home, end + 1_000);
    assert!(matches!(run.begin(inbox, None, Hold::Alone, end + 1_000).await.unwrap(), BeginOutcome::Ask(_)));
    assert_eq!(beside(&home).release(lost).await, Err(StoreError::LeaseLost { key: key() }));
}

/// Regression: the conversation was blocked for as long as the clock had been set back.
#[tokio::test]
async fn a_command_that_died_before_the_clock_was_set_back_keeps_nobody_waiting() {
    let home = home();
    let run = open(&home);
    let inbox = accept(&run, KEY, "Ev1").await;
    it_is(&home, NOW + 3_600_000);
    let _lost = beside(&home).lease(&key(), "test", Duration::ZERO, NOW + 3_600_000).await.unwrap();
    it_is(&home, NOW);
    let _lost = beside(&home).lease(&key(), "another", Duration::ZERO, NOW).await.unwrap();
    it_is(&home, NOW - 3_600_000);
    assert!(matches!(run.begin(inbox, None, Hold::Alone, NOW - 3_600_000).await.unwrap(), BeginOutcome::Ask(_)));
}

#[tokio::test]
async fn a_reset_empties_the_window_and_keeps_the_archive() {
    let home = home();
    let lock = HomeLock::take(home.path()).unwrap();
    let run = run(&home, &lock).await;
    let session = turn(&run, KEY, "Ev1").await.session;
    turn(&run, "slack:dm:U2", "Ev2").await;
    let marked =
        WindowEdit { dropped_turns_total: 7, marker_template: Some("{turns}".into()), ..WindowEdit::default() };
    run.edit_live(session, marked, vec![], NOW).await.unwrap();

    beside(&home).reset(&key(), NOW).await.unwrap();
    let summary = run.session(&key()).await.unwrap();
    assert_eq!((summary.live_messages, summary.archived_messages, summary.dropped_turns), (0, 2, 0));
    assert_eq!(live_texts(&run, "slack:dm:U2").await.len(), 2);
    // The running gateway continues with the empty window.
    let next = turn(&run, KEY, "Ev3").await;
    assert!(next.live.entries.is_empty());
    assert_eq!(next.live.marker_template, None);
    assert_eq!(live_texts(&run, KEY).await, ["question Ev3", "answer Ev3"]);

    let unknown: SessionKey = "slack:dm:U9".parse().unwrap();
    assert_eq!(beside(&home).reset(&unknown, NOW).await, Err(StoreError::UnknownSession(unknown)));
}
