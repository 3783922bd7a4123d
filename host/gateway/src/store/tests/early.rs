//! Changes that arrive before the message that they are about.

use std::time::Duration;

use super::{
    changes::{answered, at, deleted, edit, say, written},
    retention::{columns_with, key},
    *,
};
use crate::chat::Edit;

/// A reaction that stops a question was lost if it arrived before the question.
#[tokio::test]
async fn a_question_that_was_stopped_before_it_arrived_is_not_asked() {
    let home = home();
    let store = open(&home);
    it_is(&home, NOW);
    let stopped = async |number: usize| store.stop_early(&MessageRef::new("D1", at(number)), "U1", NOW).await.unwrap();
    assert!(stopped(1).await && stopped(1).await, "it comes twice");
    let inbox = say(&store, 1, "never mind").await;
    let open = ask(&store, inbox).await;
    assert_eq!(open.called_off, Some(CalledOff::Stopped));
    assert_eq!(number(&home, "SELECT count(*) FROM event WHERE line LIKE '%turn.stopped%'"), 1);
    assert!(!stopped(1).await, "it is here");

    // What it says by an edit before the stop is what is not asked.
    store.edit(&edit(2, "two, as edited", 1), NOW).await.unwrap();
    assert!(stopped(2).await);
    let inbox = say(&store, 2, "two").await;
    let open = ask(&store, inbox).await;
    assert_eq!((open.called_off, &*open.inbound.text), (Some(CalledOff::Stopped), "two, as edited"));

    assert!(stopped(3).await);
    store.edit(&edit(3, "three, as edited", 2), NOW).await.unwrap();
    store.edit(&edit(3, "an earlier edit", 1), NOW).await.unwrap();
    let inbox = say(&store, 3, "three").await;
    let open = ask(&store, inbox).await;
    assert_eq!((open.called_off, &*open.inbound.text), (Some(CalledOff::Stopped), "three, as edited"));

    deleted(&store, &at(4)).await;
    assert!(stopped(4).await);
    assert_eq!(store.accept(&written(4, "four"), NOW).await.unwrap(), None, "it is deleted");

    // It is a question only since its edit.
    assert!(stopped(5).await);
    store.edit(&Edit { comes_alone: true, ..edit(5, "five, as edited", 1) }, NOW).await.unwrap();
    let inbox = say(&store, 5, "five, as edited").await;
    assert_eq!(ask(&store, inbox).await.called_off, None);

    // Sockets do not preserve order: the stop may be for the question.
    assert!(stopped(6).await);
    let before_the_stop = format!("{}.000000", NOW / 1_000 - 9);
    let edited = Edit { comes_alone: true, at: before_the_stop, ..edit(6, "six, as edited", 1) };
    store.edit(&edited, NOW).await.unwrap();
    let inbox = say(&store, 6, "six, as edited").await;
    assert_eq!(ask(&store, inbox).await.called_off, Some(CalledOff::Stopped));
}

/// Regression: who had stopped it was erased together with what it said by its edit, and it was asked.
#[tokio::test]
async fn a_question_was_asked_that_was_stopped_before_it_arrived_if_its_edit_was_erased() {
    let home = home();
    let store = open(&home);
    answered(&store, 1, "a lion?", "it roars", 0).await;
    for number in [2, 3] {
        assert_eq!(store.edit(&edit(number, "a zebra?", 1), NOW).await, Ok(Changed::Unknown));
        assert!(store.stop_early(&MessageRef::new("D1", at(number)), "U1", NOW).await.unwrap());
        if number == 2 {
            let conversation = key("slack:dm:U1");
            store.erase_conversation(&conversation, Erasing::Anyway, Duration::ZERO, NOW).await.unwrap();
        } else {
            store.erase_elsewhere("U1", vec![]).await.unwrap();
        }
        assert_eq!(columns_with(&home, "zebra"), []);
        let inbox = say(&store, number, "a giraffe?").await;
        assert_eq!(ask(&store, inbox).await.called_off, Some(CalledOff::Stopped), "{number}");
    }
}

/// It has the position of the question.
#[tokio::test]
async fn an_answer_that_is_handed_on_is_not_called_off_with_its_deleted_question() {
    let home = home();
    let store = open(&home);
    answered(&store, 1, "which?", "I have asked", 0).await;
    deleted(&store, &at(1)).await;
    let answer = Inbound { event_id: ":answer:7".into(), ..written(1, "the third") };
    assert!(store.accept(&answer, NOW).await.unwrap().is_some());
}
