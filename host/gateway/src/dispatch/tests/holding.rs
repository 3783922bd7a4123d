//! A delayed turn is retried, does not block others, and is not retried forever if it evidently will not
//! succeed.

use super::*;

#[tokio::test(start_paused = true)]
async fn what_passes_is_waited_for() {
    let house = house(SEQUENTIAL, |_, tries| if tries < 20 { passing("Slack is down") } else { Play::Answer });
    house.say("U1", "patient").await;
    house.settle().await;
    assert_eq!(house.answered(), ["patient"]);
}

/// Regression: the database was back, and turns that it had delayed still waited for the rest of
/// their pauses.
#[tokio::test(start_paused = true)]
async fn what_the_database_has_held_up_waited_for_up_to_half_a_minute_once_it_was_back() {
    let house = house(SEQUENTIAL, |_, tries| if tries < 5 { passing("the database is away") } else { Play::Answer });
    house.say("U1", "patient").await;
    house.until(|log| log.tries.get("patient") == Some(&4)).await;
    let back = tokio::time::Instant::now();
    // It would wait for fifteen seconds now. Time stands still while this task is busy.
    for _ in 0..100 {
        tokio::task::yield_now().await;
        house.store.comes_back();
    }
    house.until_answered(&["patient"]).await;
    assert!(back.elapsed() < Duration::from_secs(15), "{:?}", back.elapsed());
    house.settle().await;
}

/// Regression: it made the stop a failure, after which systemd started the gateway again.
#[tokio::test(start_paused = true)]
async fn a_turn_that_took_longer_than_a_stop_waits_made_the_stop_fail() {
    let house = house(SEQUENTIAL, |_, _| Play::Hang);
    house.say("U1", "endless").await;
    house.until(|log| log.tries.contains_key("endless")).await;
    house.dispatcher.stop.cancel();
    let asked = tokio::time::Instant::now();
    house.settle().await;
    assert!(asked.elapsed() >= DRAIN_TIME, "{:?}", asked.elapsed());
    assert_eq!(ids(house.store.open_work().await.unwrap()).len(), 1, "it goes on at the next start");
}

/// Regression: what the model had cost until then was in no ledger.
#[tokio::test(start_paused = true)]
async fn what_a_turn_that_took_longer_than_a_stop_waits_had_cost_was_not_counted() {
    let house = house(SEQUENTIAL, |_, _| Play::SpentWhenInterrupted(7));
    for user in ["U1", "U2"] {
        house.say(user, &format!("endless of {user}")).await;
    }
    house.until(|log| log.tries.len() == 2).await;
    house.dispatcher.stop.cancel();
    let asked = tokio::time::Instant::now();
    house.settle().await;
    assert!(asked.elapsed() >= DRAIN_TIME, "{:?}", asked.elapsed());
    let log = house.turns.log().clone();
    assert_eq!(log.events, ["token.usage", "token.usage"]);
    assert!(log.tries.values().all(|tries| *tries == 1), "nothing is asked again: {log:?}");
    assert_eq!((log.told, log.answered), (vec![], vec![]));
    assert_eq!(ids(house.store.open_work().await.unwrap()).len(), 2, "they go on at the next start");
}

/// Regression: what the model has cost was in no ledger if the gateway stopped while the next attempt was waited for.
#[tokio::test(start_paused = true)]
async fn what_was_spent_before_a_stop_in_a_pause_was_not_counted() {
    let failures: [fn() -> TurnFailure; 2] = [
        || TurnFailure::Passing { why: "Slack is down".into(), retry_after: Duration::from_secs(3_600) },
        || TurnFailure::Elsewhere,
    ];
    for failure in failures {
        let house = house(SEQUENTIAL, move |_, _| Play::Spent(7, failure()));
        house.say("U1", "patient").await;
        house.until(|log| log.tries.contains_key("patient")).await;
        house.dispatcher.stop.cancel();
        house.settle().await;
        let log = house.turns.log();
        assert_eq!((&*log.events, log.tries["patient"]), (&["token.usage".to_owned()][..], 1), "{:?}", failure());
    }
}

/// Regression: the next message of the conversation was charged for it; if there was none, it was in no ledger.
#[tokio::test]
async fn what_was_spent_on_a_message_that_somebody_else_ended_was_not_counted_as_its_own() {
    let house = house(SEQUENTIAL, |text, tries| match (text, tries) {
        ("gone", 1) => Play::Spent(7, TurnFailure::Anew),
        ("gone", _) => Play::Gone,
        _ => Play::Answer,
    });
    for text in ["gone", "next"] {
        house.say("U1", text).await;
    }
    house.settle().await;
    assert_eq!(house.answered(), ["gone", "next"]);
    assert_eq!(house.turns.log().events, ["token.usage"]);
}

#[tokio::test]
async fn turns_that_are_held_up_keep_no_permit() {
    let house = house(SEQUENTIAL, |text, _| if text == "quick" { Play::Answer } else { passing("Slack is down") });
    for n in 0..=MAX_RUNNING_TURNS {
        house.say(&format!("U{n}"), &format!("held up {n}")).await;
    }
    house.until(|log| log.tries.len() > MAX_RUNNING_TURNS).await;
    house.say("UQUICK", "quick").await;
    house.until_answered(&["quick"]).await;
    house.dispatcher.stop.cancel();
    house.settle().await;
}

/// No list of errors is complete: a turn that is delayed forever while no other turn is delayed is
/// parked.
#[tokio::test(start_paused = true)]
async fn what_holds_up_one_turn_alone_for_ten_minutes_is_parked() {
    let house =
        house(SEQUENTIAL, |text, _| if text == "odd" { passing("an error nobody knows") } else { Play::Answer });
    let begun = tokio::time::Instant::now();
    house.say("U1", "odd").await;
    house.until(|log| log.tries.contains_key("odd")).await;
    for n in 0..OTHERS {
        house.say("U2", &format!("fine {n}")).await;
    }
    house.settle().await;
    assert!(begun.elapsed() >= worker::HELD_UP_MOST, "{:?}", begun.elapsed());
    let told = house.turns.log().told.concat();
    assert!(told.starts_with("odd: an error nobody knows, for 1"), "{told}");
    assert!(told.ends_with(" minutes, while other turns went on"), "{told}");
}

/// An outage may end a moment earlier for some turns than for others.
#[tokio::test(start_paused = true)]
async fn who_is_still_held_up_right_after_an_outage_is_not_parked() {
    let house = house(SEQUENTIAL, |text, tries| match text {
        "last" if tries < 45 => passing("Slack is down"),
        _ if tries < 40 => passing("Slack is down"),
        _ => Play::Answer,
    });
    for text in ["last", "one", "two", "three", "four"] {
        house.say(&format!("U-{text}"), text).await;
    }
    house.settle().await;
    assert_eq!(house.answered().len(), 5);
    assert_eq!(house.turns.log().told, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn who_is_told_when_to_come_again_is_never_parked() {
    let house = house(SEQUENTIAL, |text, tries| {
        if text == "limited" && tries < 100 {
            let retry_after = Duration::from_secs(30);
            return Play::TurnFailure(TurnFailure::Passing { why: "rate limited".into(), retry_after });
        }
        Play::Answer
    });
    house.say("U1", "limited").await;
    for n in 0..OTHERS {
        house.say("U2", &format!("fine {n}")).await;
    }
    house.settle().await;
    assert!(house.answered().contains(&"limited".to_owned()));
}

/// Regression: a single `invalid_auth` for a working token parked an answer that was already paid
/// for.
#[tokio::test(start_paused = true)]
async fn one_refusal_parks_nothing_and_one_that_stays_does() {
    let refused = || Play::TurnFailure(TurnFailure::Refused { why: "invalid_auth".into() });
    let house = house(SEQUENTIAL, move |text, tries| match text {
        "once" if tries > 1 => Play::Answer,
        _ => refused(),
    });
    house.say("U1", "once").await;
    house.say("U2", "for good").await;
    house.settle().await;
    assert_eq!(
        (house.answered(), house.turns.log().told.clone()),
        (vec!["once".into()], vec!["for good: invalid_auth".into()])
    );
}

#[tokio::test(start_paused = true)]
async fn what_holds_up_everybody_is_waited_for() {
    let house = house(SEQUENTIAL, |_, tries| if tries < 200 { passing("Slack is down") } else { Play::Answer });
    for user in ["U1", "U2", "U3"] {
        house.say(user, &format!("of {user}")).await;
    }
    house.settle().await;
    assert_eq!(house.answered().len(), 3);
    assert_eq!(house.store.parked().await.unwrap(), []);
}

const OTHERS: u64 = worker::OTHERS_MEANWHILE;
