//! A turn that cannot continue, or panics, is parked, and its conversation goes on.

use super::*;

async fn retry(house: &House, key: Option<&str>) -> usize {
    let key = key.map(|key| key.parse().unwrap());
    house.dispatcher.retry(key.as_ref()).await.unwrap().pending.len()
}

/// Regression: a message taken up while its notice was being sent was processed by nobody, or the notice replaced
/// its answer.
#[tokio::test(start_paused = true)]
async fn what_is_taken_up_while_it_is_told_is_told_first_and_then_answered() {
    let house = house(SEQUENTIAL, |text, tries| match (text, tries) {
        ("stuck", 1) => hopeless("it will not do"),
        _ => Play::Answer,
    });
    let telling = house.dispatcher.telling.lock().await;
    house.say("U1", "stuck").await;
    house.say("U1", "next").await;
    house.until_answered(&["next"]).await;
    let dispatcher = Arc::clone(&house.dispatcher);
    let retried = tokio::spawn(async move { dispatcher.retry(None).await.unwrap().pending.len() });
    drop(telling);
    assert_eq!(retried.await.unwrap(), 1);
    house.until_answered(&["stuck"]).await;
    house.settle().await;
    assert_eq!(house.turns.log().told, ["stuck: it will not do"]);
    assert_eq!(house.dispatcher.swept(), 0);
}

/// Regression: the notice could replace what was shown to whoever had stopped the question meanwhile.
#[tokio::test(start_paused = true)]
async fn what_was_stopped_while_it_was_told_did_not_wait_for_its_notice() {
    let house = house(SEQUENTIAL, |text, tries| match (text, tries) {
        ("stuck", 1) => hopeless("it will not do"),
        _ => Play::Answer,
    });
    let telling = house.dispatcher.telling.lock().await;
    house.say("U1", "stuck").await;
    house.say("U1", "next").await;
    house.until_answered(&["next"]).await;
    let key: SessionKey = "slack:dm:U1".parse().unwrap();
    let parked = house.store.parked().await.unwrap()[0].inbox;
    house.store.stop(&key, vec![parked], "U1", None, clock::now_ms()).await.unwrap();
    house.dispatcher.look_at_once_told(&key);
    house.say("U1", "last").await;
    house.until_answered(&["last"]).await;
    assert_eq!(house.answered(), ["next", "last"]);
    drop(telling);
    house.until_answered(&["stuck"]).await;
    house.settle().await;
    assert_eq!(house.dispatcher.swept(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_panic_does_not_silence_its_conversation() {
    let house = house(SEQUENTIAL, |text, _| if text == "boom" { Play::Panic } else { Play::Answer });
    house.say("U1", "boom").await;
    house.say("U1", "after").await;
    house.settle().await;
    assert_eq!(house.answered(), ["after"]);
    let log = house.turns.log().clone();
    assert_eq!(log.tries["boom"], 2, "tried once more");
    assert_eq!(log.events, ["turn.panicked", "turn.panicked"]);
    assert!(log.told[0].starts_with("boom: the program panicked at ") && log.told[0].contains("tests.rs:"), "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn a_panic_that_does_not_come_again_costs_nothing() {
    let house = house(SEQUENTIAL, |_, tries| if tries == 1 { Play::Panic } else { Play::Answer });
    house.say("U1", "once").await;
    house.settle().await;
    assert_eq!((house.answered(), house.store.parked().await.unwrap()), (vec!["once".to_owned()], vec![]));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_pass_is_parked_and_told_and_the_next_message_is_answered() {
    let house = house(SEQUENTIAL, |text, tries| match (text, tries) {
        ("stuck", 1) => hopeless("the store is damaged"),
        _ => Play::Answer,
    });
    house.say("U1", "stuck").await;
    house.say("U1", "next").await;
    house.settle().await;
    assert_eq!(house.answered(), ["next"]);
    assert_eq!(house.turns.log().told, ["stuck: the store is damaged"]);
    let parked = house.store.parked().await.unwrap();
    assert_eq!((&*parked[0].why, parked[0].told), ("the store is damaged", true));

    assert_eq!(house.say("U1", "stuck").await, Accepted::Duplicate, "a redelivery does not take it up");
    assert_eq!(retry(&house, Some("slack:dm:U2")).await, 0);
    assert_eq!(retry(&house, Some("slack:dm:U1")).await, 1);
    house.settle().await;
    assert_eq!(house.answered(), ["next", "stuck"]);
    assert_eq!(house.store.parked().await.unwrap(), []);
}

/// Every attempt to park something finds the disk full: no number is left for the row that this adds.
const FULL_FOR_PARKING: &str = "CREATE TABLE last (id INTEGER PRIMARY KEY AUTOINCREMENT);
     INSERT INTO last VALUES (9223372036854775807);
     CREATE TRIGGER is_full BEFORE UPDATE OF parked_at ON inbox WHEN NEW.parked_at IS NOT NULL
     BEGIN INSERT INTO last VALUES (NULL); END";

/// Returns a house in which the first attempt at a message is hopeless, once that message could not be parked.
async fn unable_to_park() -> House {
    let house = house(SEQUENTIAL, |text, tries| match (text, tries) {
        ("stuck", 1) => Play::Spent(7, TurnFailure::Hopeless { why: "it will not do".into() }),
        _ => Play::Answer,
    });
    sql(house.home.path()).execute_batch(FULL_FOR_PARKING).unwrap();
    house.say("U1", "stuck").await;
    let is_refused = || house.dispatcher.told.lock().unwrap().is_some();
    while !is_refused() {
        assert!(!house.dispatcher.stop.is_cancelled(), "it ends: {:?}", house.dispatcher.ended.get());
        tokio::task::yield_now().await;
    }
    house
}

/// Regression: it ended the gateway.
#[tokio::test(start_paused = true)]
async fn a_disk_that_was_full_when_a_message_was_to_be_parked_ended_the_gateway() {
    let house = unable_to_park().await;
    house.say("U2", "another").await;
    house.until_answered(&["another"]).await;
    sql(house.home.path()).execute_batch("DROP TRIGGER is_full").unwrap();
    house.until(|log| !log.told.is_empty()).await;
    house.settle().await;
    let log = house.turns.log().clone();
    assert_eq!((&*log.told, log.tries["stuck"]), (&["stuck: it will not do".to_owned()][..], 1));
    assert_eq!(spent_by_ledger(&house), [7], "it is counted once");
}

#[tokio::test(start_paused = true)]
async fn what_people_change_while_it_cannot_be_parked_is_tried_again() {
    let house = unable_to_park().await;
    house.dispatcher.interrupt(&"slack:dm:U1".parse().unwrap());
    house.until_answered(&["stuck"]).await;
    house.settle().await;
    assert_eq!((house.turns.log().told.len(), spent_by_ledger(&house)), (0, vec![7]));
}

#[tokio::test(start_paused = true)]
async fn what_was_spent_on_what_cannot_be_parked_is_counted_by_a_stop() {
    let house = unable_to_park().await;
    house.dispatcher.stop.cancel();
    house.settle().await;
    assert_eq!(house.turns.log().events, ["token.usage"]);
    assert_eq!(ids(house.store.open_work().await.unwrap()).len(), 1, "it goes on at the next start");
}

/// Regression: it ended the gateway.
#[tokio::test(start_paused = true)]
async fn a_disk_that_was_full_when_a_damaged_message_was_to_be_parked_ended_the_gateway() {
    let house = house(SEQUENTIAL, |_, _| Play::Answer);
    house.store.accept(&message("U1", "spoilt"), clock::now_ms()).await.unwrap().expect("new");
    let conn = sql(house.home.path());
    conn.execute("UPDATE session SET key = 'slack:dm:1 2'", []).unwrap();
    conn.execute_batch(FULL_FOR_PARKING).unwrap();
    house.dispatcher.look(&Default::default()).await;
    assert!(!house.dispatcher.stop.is_cancelled(), "{:?}", house.dispatcher.ended.get());
    conn.execute_batch("DROP TRIGGER is_full").unwrap();
    house.dispatcher.look(&Default::default()).await;
    assert_eq!(house.store.parked().await.unwrap().len(), 1);
}

/// The tokens of each call that the ledger of a home counts.
fn spent_by_ledger(house: &House) -> Vec<u64> {
    let ledger = sql(house.home.path());
    let mut lines = ledger.prepare("SELECT line FROM event ORDER BY id").unwrap();
    let lines: Vec<String> = lines.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let lines = lines.iter().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines.filter_map(|line| line["inputTokens"].as_u64()).collect()
}

/// A dispatcher that has worked on these, together at first.
async fn collected(texts: [&str; 2], script: impl Fn(&str, u32) -> Play + Send + Sync + 'static) -> House {
    let together = QueueConfig { mode: QueueMode::Collect, debounce_ms: 0, most: 20 };
    let home = tempfile::tempdir().unwrap();
    {
        let store = Store::open(home.path()).unwrap();
        for text in texts {
            store.accept(&message("U1", text), clock::now_ms()).await.unwrap();
        }
    }
    let house = house_in(home, together, 0, script);
    house.dispatcher.start().await.unwrap().abort();
    house.settle().await;
    house
}

/// Regression: what the model has cost was in no ledger if the message was parked, or the batch taken apart.
#[tokio::test(start_paused = true)]
async fn what_was_spent_on_a_parked_message_or_a_batch_taken_apart_was_not_counted() {
    let house = collected(["stuck", "next"], |text, tries| match (text, tries) {
        // The newest of both.
        ("next", 1) => Play::Spent(1, TurnFailure::Apart),
        ("stuck", 1) => {
            Play::Spent(10, TurnFailure::Passing { why: "the disk is full".into(), retry_after: Duration::ZERO })
        }
        ("stuck", _) => Play::Spent(100, TurnFailure::Hopeless { why: "it will not do".into() }),
        _ => Play::Answer,
    })
    .await;
    assert_eq!((house.answered(), house.turns.log().told.len()), (vec!["next".to_owned()], 1));
    assert_eq!(spent_by_ledger(&house), [1, 10, 100]);
}

/// Regression: it counted for no answer, and for no arm of an experiment.
#[tokio::test(start_paused = true)]
async fn what_was_spent_on_a_batch_taken_apart_was_nobodys_if_its_first_message_was_over() {
    let house = collected(["over", "next"], |text, tries| match (text, tries) {
        // The newest of both.
        ("next", 1) => Play::Spent(1, TurnFailure::Apart),
        ("over", _) => Play::Gone,
        _ => Play::Answer,
    })
    .await;
    assert_eq!(house.answered(), ["over", "next"]);
    assert_eq!(spent_by_ledger(&house), [1]);
    assert_eq!(house.turns.log().events, [] as [String; 0], "it is the answer's, and no line of its own");
}

/// Regression: what it had spent by itself was charged to the next one.
#[tokio::test(start_paused = true)]
async fn what_the_first_message_of_a_batch_had_spent_by_itself_was_the_next_ones() {
    let house = collected(["over", "next"], |text, tries| match (text, tries) {
        // The newest of both.
        ("next", 1) => Play::Spent(1, TurnFailure::Apart),
        ("over", 1) => Play::Spent(10, TurnFailure::Anew),
        ("over", _) => Play::Gone,
        _ => Play::Answer,
    })
    .await;
    assert_eq!(house.answered(), ["over", "next"]);
    assert_eq!(spent_by_ledger(&house), [] as [u64; 0], "nothing is charged to the next");
    assert_eq!(house.turns.log().events, ["token.usage", "token.usage"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_stopped_turn_had_come_to_was_no_arms() {
    let house = house(SEQUENTIAL, |_, _| Play::Spent(10, TurnFailure::Over(None)));
    house.say("U1", "stopped").await;
    house.settle().await;
    let log = house.turns.log();
    assert_eq!((&*log.events, &*log.arms), (&["token.usage".to_owned()][..], &["b".to_owned()][..]));
}

#[tokio::test(start_paused = true)]
async fn a_parked_message_stays_parked_over_a_restart() {
    let house = house(SEQUENTIAL, |_, _| hopeless("it will not do"));
    house.say("U1", "stuck").await;
    house.settle().await;
    let House { home, dispatcher, turns, store } = house;
    drop((dispatcher, turns, store));
    let house = house_in(home, SEQUENTIAL, 0, |_, _| Play::Answer);
    house.dispatcher.start().await.unwrap().abort();
    house.settle().await;
    assert_eq!(house.answered(), Vec::<String>::new());
    assert_eq!(retry(&house, None).await, 1);
    house.settle().await;
    assert_eq!(house.answered(), ["stuck"]);
}

#[tokio::test(start_paused = true)]
async fn who_could_not_be_told_is_told_later() {
    let house = house_in(tempfile::tempdir().unwrap(), SEQUENTIAL, 1, |_, _| hopeless("it will not do"));
    let sweeping = house.dispatcher.start().await.unwrap();
    house.say("U1", "stuck").await;
    house.until(|log| log.told.len() == 2).await;
    assert_eq!(house.turns.log().maybe_told, [false, true], "the first to tell them looks for no earlier notice");
    sweeping.abort();
}

/// Regression: the notice of each parked message was tried every ten seconds for ever.
#[tokio::test(start_paused = true)]
async fn who_cannot_be_told_was_tried_every_ten_seconds() {
    let house = house_in(tempfile::tempdir().unwrap(), SEQUENTIAL, usize::MAX, |_, _| hopeless("it will not do"));
    let sweeping = house.dispatcher.start().await.unwrap();
    house.say("U1", "stuck").await;
    house.until(|log| !log.told.is_empty()).await;
    let begun = tokio::time::Instant::now();
    house.until(|log| log.told.len() >= 12).await;
    assert!(begun.elapsed() > Duration::from_secs(2_400), "{:?}", begun.elapsed());
    sweeping.abort();
}

/// Of several messages answered together, one may be the one that cannot be answered.
#[tokio::test(start_paused = true)]
async fn a_message_that_cannot_go_on_does_not_take_others_with_it() {
    let collect = QueueConfig { mode: QueueMode::Collect, debounce_ms: 1_000, most: 20 };
    let house = house(collect, |text, _| match text {
        "bad" => hopeless("it will not do"),
        _ => Play::Answer,
    });
    for text in ["one", "two", "bad"] {
        house.say("U1", text).await;
    }
    house.settle().await;
    assert_eq!(house.answered(), ["one", "two"]);
    assert_eq!(house.turns.log().told, ["bad: it will not do"]);
}
