//! Several messages, one answer: the pause begins with the second message.

use super::*;

const PAUSE_MS: u64 = 60_000;

fn collecting() -> QueueConfig {
    QueueConfig { mode: QueueMode::Collect, debounce_ms: PAUSE_MS, most: 20 }
}

/// Regression: a single message waited for others that never came.
#[tokio::test(start_paused = true)]
async fn a_lone_message_is_answered_at_once_and_the_pause_begins_with_the_second() {
    for mode in [QueueMode::Collect, QueueMode::Steer] {
        let house = house(QueueConfig { mode, ..collecting() }, |_, _| Play::Answer);
        let begun = tokio::time::Instant::now();
        for text in ["alone", "alone again"] {
            house.say("U1", text).await;
            house.until_answered(&[text]).await;
        }
        assert!(begun.elapsed() < Duration::from_millis(PAUSE_MS), "{mode:?}: {:?}", begun.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_left_is_queued_before_any_of_it_is_answered() {
    let home = tempfile::tempdir().unwrap();
    {
        let store = Store::open(home.path()).unwrap();
        for text in ["one", "two", "three"] {
            store.accept(&message("U1", text), clock::now_ms()).await.unwrap();
        }
    }
    let house = house_in(home, collecting(), 0, |_, _| Play::Answer);
    let sweep = house.dispatcher.start().await.unwrap();
    house.until_answered(&["one+two+three"]).await;
    sweep.abort();
}
