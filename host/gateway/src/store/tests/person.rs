//! What one person has written, erased wherever it was.

use std::time::Duration;

use super::{
    archives::{found, say},
    receipts::receipt,
    retention::{columns_with, key},
    *,
};
use crate::store::{ErasedWords, WrittenIn};

const SHARED: &str = "slack:channel:C1:1.1";
const OWN: &str = "slack:dm:U1";
const WORDS: &str = "(gone)";

/// A message that waits.
async fn accepted(store: &Store, conversation: &str, user: &str, event_id: &str, text: &str) -> InboxId {
    let reply_to = ReplyTo { channel: "C1".into(), thread_ts: Some("1.1".into()) };
    let (user, text, ts) = (user.into(), text.into(), event_id.into());
    let message = Inbound { user, reply_to, text, ts, ..inbound(conversation, event_id) };
    store.accept(&message, NOW).await.unwrap().expect("a new message")
}

/// A message and its answer.
async fn answered(store: &Store, conversation: &str, user: &str, event_id: &str, text: &str) -> OpenTurn {
    let open = ask(store, accepted(store, conversation, user, event_id, text).await).await;
    let recorded = Recorded { revision: open.live.revision, ..recorded(text, "an answer") };
    store.record(open.turn, recorded, NOW).await.unwrap();
    store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    open
}

async fn erase(store: &Store, user: &str) -> Result<ErasedWords, StoreError> {
    store.erase_words(&key(SHARED), user, WORDS, Duration::ZERO, NOW).await
}

fn erased(messages: usize) -> ErasedWords {
    ErasedWords { messages, ..ErasedWords::default() }
}

#[tokio::test]
async fn what_one_person_has_written_is_erased_and_what_others_have_stays() {
    let home = home();
    let store = open(&home);
    let session = answered(&store, SHARED, "U1", "Ev1", "a zebra?").await.session;
    answered(&store, SHARED, "U2", "Ev2", "a giraffe?").await;
    answered(&store, SHARED, "U12", "Ev3", "an okapi?").await;
    say(&store, OWN, "Ev4", "a lion?", "it roars").await;
    let written_in = [WrittenIn { key: key(SHARED), alone: false }, WrittenIn { key: key(OWN), alone: true }];
    assert_eq!(store.written_in_by("U1").await.unwrap(), written_in);
    assert_eq!(store.written_in_by("U3").await.unwrap(), []);

    let revision = || number(&home, &format!("SELECT revision FROM session WHERE key = '{SHARED}'"));
    let before = revision();
    assert_eq!(erase(&store, "U1").await, Ok(erased(1)));
    assert_eq!(columns_with(&home, "zebra"), []);
    assert_eq!(found(&store, session, "zebra").await, [0; 0]);
    assert_eq!(live_texts(&store, SHARED).await[0], WORDS);
    assert!(revision() > before, "a window that somebody remembers is not used any more");
    for other in ["giraffe", "okapi"] {
        assert_eq!(columns_with(&home, other), [("message", "blocks")], "{other}");
        assert_eq!(found(&store, session, other).await.len(), 1, "{other}");
    }
    assert_eq!(store.written_in_by("U1").await.unwrap(), written_in[1..], "there is nothing left in the other");
    assert_eq!(erase(&store, "U1").await, Ok(erased(0)));
    // The conversation goes on.
    answered(&store, SHARED, "U1", "Ev5", "a zebra again?").await;
    assert_eq!(erase(&store, "U1").await, Ok(erased(1)));
}

#[tokio::test]
async fn of_messages_of_several_people_that_were_answered_together_only_those_of_one_go() {
    let home = home();
    let store = open(&home);
    let mut turns = vec![];
    for (user, event, text) in [("U1", "Ev1", "zebra"), ("U2", "Ev2", "giraffe"), ("U1", "Ev3", "zebras")] {
        turns.push(ask(&store, accepted(&store, SHARED, user, event, text).await).await.turn);
    }
    let pieces = vec![(turns[0], 0..5), (turns[1], 7..14), (turns[2], 16..22)];
    let also = vec![(turns[0], "U1".into()), (turns[1], "U2".into())];
    let recorded = Recorded { also, pieces, ..recorded("zebra\n\ngiraffe\n\nzebras", "an answer") };
    store.record(turns[2], recorded, NOW).await.unwrap();
    store.finish(turns[2], vec![sent(0, None)], vec![], NOW).await.unwrap();
    assert_eq!(erase(&store, "U1").await, Ok(erased(2)));
    assert_eq!(live_texts(&store, SHARED).await[0], format!("{WORDS}\n\ngiraffe\n\n{WORDS}"));
    assert_eq!(columns_with(&home, "zebra"), []);
}

#[tokio::test]
async fn what_is_not_answered_yet_is_not_erased_and_what_is_parked_is() {
    let home = home();
    let store = open(&home);
    answered(&store, SHARED, "U1", "Ev1", "a zebra?").await;
    let waits = accepted(&store, SHARED, "U1", "Ev2", "a second zebra?").await;
    let refused = StoreError::Unanswered(key(SHARED));
    assert_eq!(store.words_may_be_erased(&key(SHARED), "U1").await, Err(refused.clone()));
    assert_eq!(erase(&store, "U1").await, Err(refused.clone()));
    assert_eq!(live_texts(&store, SHARED).await[0], "a zebra?", "nothing was erased");
    // It does not keep what others have written.
    assert_eq!(store.words_may_be_erased(&key(SHARED), "U2").await, Ok(()));

    store.park(waits, "a test", vec![], NOW).await.unwrap();
    assert_eq!(erase(&store, "U1").await, Err(refused), "the person does not know it yet");
    store.parked_told(waits).await.unwrap();
    assert_eq!(erase(&store, "U1").await, Ok(ErasedWords { messages: 2, parked: 1, summaries: 0 }));
    assert_eq!(columns_with(&home, "zebra"), []);
    assert_eq!(store.parked().await.unwrap().len(), 0);
}

#[tokio::test]
async fn earlier_messages_of_threads_in_which_a_person_is_named_are_erased() {
    let home = home();
    let store = open(&home);
    let mut receipts = Receipts::default();
    for text in ["U1: a zebra", "U2: a giraffe", "you are a help desk of U1"] {
        receipts.keep(text);
    }
    for (number, earlier) in [(0, "U1: a zebra"), (1, "U2: a giraffe")] {
        let of_it = Receipt { background: Some(Digest::of(earlier)), ..receipt(number, &mut receipts, vec![]) };
        receipts.push(of_it);
    }
    let open = ask(&store, accepted(&store, SHARED, "U3", "Ev1", "which?").await).await;
    store.record(open.turn, Recorded { receipts, ..recorded("which?", "an answer") }, NOW).await.unwrap();
    store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    store.erase_earlier_of("U1").await.unwrap();
    assert_eq!(columns_with(&home, "zebra"), []);
    for stays in ["giraffe", "help desk of U1"] {
        assert_eq!(columns_with(&home, stays), [("text", "body")], "{stays}");
    }
}
