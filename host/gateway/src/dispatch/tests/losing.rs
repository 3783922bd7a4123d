//! What is stored is processed, whatever happened to the caller that stored it.

use std::future::poll_fn;

use super::*;

/// A socket closes while the store commits: the future that waits for the commit is dropped.
#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_while_the_store_commits_leaves_no_message_lying() {
    let house = house(SEQUENTIAL, |_, _| Play::Answer);
    let texts: Vec<String> = (0..50).map(|n| format!("question {n}")).collect();
    for text in &texts {
        let mut taking_in = Box::pin(house.dispatcher.take_in(message("U1", text), Arrival::Fresh));
        // Polled once, so that the work starts, and never again.
        poll_fn(|cx| std::task::Poll::Ready(taking_in.as_mut().poll(cx).is_ready())).await;
    }
    house.settle().await;
    assert_eq!(house.answered(), texts, "in the order they came");
    assert_eq!(house.dispatcher.swept(), 0);
}

/// Regression: what an interrupted `sessions retry` had reopened was left to the sweep, which counted it as lost.
#[tokio::test(start_paused = true)]
async fn a_retry_whose_caller_goes_away_while_the_store_commits_leaves_no_message_lying() {
    let house = house(SEQUENTIAL, |_, _| Play::Answer);
    let inbox = house.store.accept(&message("U1", "parked"), clock::now_ms()).await.unwrap().expect("new");
    house.store.park(inbox, "a bug", vec![], clock::now_ms()).await.unwrap().expect("it is parked");
    {
        let mut retrying = Box::pin(house.dispatcher.retry(None));
        poll_fn(|cx| std::task::Poll::Ready(retrying.as_mut().poll(cx).is_ready())).await;
    }
    house.settle().await;
    assert_eq!(house.answered(), ["parked"]);
    assert_eq!(house.dispatcher.swept(), 0);
}

/// Stored but never queued, as an earlier version did.
#[tokio::test(start_paused = true)]
async fn a_message_that_comes_again_while_it_is_open_is_worked_on() {
    let house = house(SEQUENTIAL, |_, _| Play::Answer);
    house.store.accept(&message("U1", "left lying"), clock::now_ms()).await.unwrap().expect("new");
    assert_eq!(house.say("U1", "left lying").await, Accepted::Duplicate);
    house.settle().await;
    assert_eq!(house.answered(), ["left lying"]);
    assert_eq!(house.say("U1", "left lying").await, Accepted::Duplicate);
    house.settle().await;
    assert_eq!(house.answered(), ["left lying"], "what is done with is not answered again");
}

#[tokio::test(start_paused = true)]
async fn the_sweep_finds_what_nobody_works_on_and_says_so() {
    let house = house(SEQUENTIAL, |_, _| Play::Answer);
    let sweeping = house.dispatcher.start().await.unwrap();
    house.store.accept(&message("U1", "left lying"), clock::now_ms()).await.unwrap().expect("new");
    house.until_answered(&["left lying"]).await;
    assert_eq!(house.dispatcher.swept(), 1);
    assert_eq!(house.turns.log().events, ["queue.swept"]);
    sweeping.abort();
}

/// Regression: what `sessions retry` reopened in a home without a `run` counted as lost by a bug in the program.
#[tokio::test(start_paused = true)]
async fn what_a_command_has_reopened_was_reported_as_lost() {
    let house = house(SEQUENTIAL, |_, _| Play::Answer);
    let inbox = house.store.accept(&message("U1", "parked"), clock::now_ms()).await.unwrap().expect("new");
    house.store.park(inbox, "a bug", vec![], clock::now_ms()).await.unwrap().expect("it is parked");
    house.store.reopen(None, clock::now_ms()).await.unwrap();
    let suspects = house.dispatcher.look(&Default::default()).await;
    house.dispatcher.look(&suspects).await;
    house.until_answered(&["parked"]).await;
    assert_eq!((house.dispatcher.swept(), house.turns.log().events.len()), (0, 0));
}

/// When the sweep looks, a message may be stored and not queued yet, or finished and not removed yet.
#[tokio::test(start_paused = true)]
async fn one_look_of_the_sweep_proves_nothing() {
    let house = house(SEQUENTIAL, |_, _| Play::Answer);
    house.store.accept(&message("U1", "just stored"), clock::now_ms()).await.unwrap().expect("new");
    let suspects = house.dispatcher.look(&Default::default()).await;
    assert_eq!((suspects.len(), house.dispatcher.swept()), (1, 0));
    let suspects = house.dispatcher.look(&suspects).await;
    assert_eq!((suspects.len(), house.dispatcher.swept()), (0, 1));
    house.settle().await;
    assert_eq!(house.answered(), ["just stored"]);
}

#[tokio::test(start_paused = true)]
async fn a_start_goes_on_with_what_is_open_in_the_order_it_was_written() {
    let house = house(SEQUENTIAL, |_, _| Play::Answer);
    for (text, ts) in [("second", "1700000002.000100"), ("first", "1700000001.000100")] {
        let message = Inbound { ts: ts.into(), ..message("U1", text) };
        house.store.accept(&message, clock::now_ms()).await.unwrap().expect("new");
    }
    house.dispatcher.start().await.unwrap().abort();
    house.settle().await;
    assert_eq!(house.answered(), ["first", "second"]);
}

/// Regression: such a row made every start fail.
#[tokio::test(start_paused = true)]
async fn a_start_goes_on_around_a_row_that_it_cannot_read() {
    let house = house(SEQUENTIAL, |_, _| Play::Answer);
    for text in ["spoilt", "sound"] {
        house.store.accept(&message(text, text), clock::now_ms()).await.unwrap().expect("new");
    }
    sql(house.home.path())
        .execute("UPDATE session SET key = 'slack:dm:1 2' WHERE key = 'slack:dm:spoilt'", [])
        .unwrap();
    house.dispatcher.start().await.unwrap().abort();
    house.settle().await;
    assert_eq!(house.answered(), ["sound"]);
    let parked = house.store.parked().await.unwrap();
    assert_eq!((parked.len(), &*parked[0].key), (1, "slack:dm:1 2"));
}

/// Regression: messages taken along by a delayed turn were no longer in any queue.
#[tokio::test(start_paused = true)]
async fn what_was_steered_into_a_turn_that_is_held_up_is_not_left_lying() {
    let steer = QueueConfig { mode: QueueMode::Steer, debounce_ms: 1, most: 20 };
    let house = house(steer, |text, tries| match (text, tries) {
        ("one", 1) => Play::SteerThenStuck,
        _ => Play::Answer,
    });
    // Both are stored before the first turn begins, the second queued behind the pause.
    for text in ["one", "two"] {
        let inbox = house.store.accept(&message("U1", text), clock::now_ms()).await.unwrap().expect("new");
        let entered = queues::lock(&house.dispatcher.queues)
            .enter(&"slack:dm:U1".parse().unwrap(), QueuedMessage { ts: String::new(), inbox });
        assert_eq!(entered == EnqueueOutcome::First, text == "one");
    }
    queues::lock(&house.dispatcher.queues).begin(&"slack:dm:U1".parse().unwrap());
    queues::lock(&house.dispatcher.queues).part(&"slack:dm:U1".parse().unwrap());
    let dispatcher = Arc::clone(&house.dispatcher);
    house.dispatcher.tasks.spawn(async move { dispatcher.work("slack:dm:U1".parse().unwrap()).await });
    house.settle().await;
    assert_eq!(house.answered(), ["one", "two"]);
    assert_eq!(ids(house.store.open_work().await.unwrap()), []);
}
