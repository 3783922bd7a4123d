//! What apps ask: how much of it is answered, and what they may change about it.

use super::{
    asking::{HOUR, asking},
    changes::{at, edit, here, waits_as, written},
    *,
};
use crate::{directive::Kind, store::Bound};

#[tokio::test]
async fn a_question_of_an_app_counts_once_however_often_its_turn_is_begun() {
    let home = home();
    let store = open(&home);
    let [mut one, mut other] =
        [turn(&store, "slack:channel:C1", "Ev1").await, turn(&store, "slack:dm:U1", "Ev2").await];
    let count = async |turn: &OpenTurn, now| {
        it_is(&home, now);
        store.count_of_app(turn, 2, now).await.unwrap()
    };
    for (received, now) in [(NOW, NOW), (NOW, NOW + 5), (NOW + 1, NOW + 6), (NOW, NOW + 7)] {
        one.received_at_ms = received;
        assert_eq!(count(&one, now).await, None, "{received}");
    }
    one.received_at_ms = NOW + 8;
    assert_eq!(count(&one, NOW + 8).await, Some(Bound::Person));
    other.received_at_ms = NOW + 8;
    assert_eq!(count(&other, NOW + 8).await, Some(Bound::Person), "in another conversation");
    one.inbound.user = "U7".into();
    assert_eq!(count(&one, NOW + 8).await, Some(Bound::Conversation), "another app in this one");
    other.inbound.user = "U7".into();
    assert_eq!(count(&other, NOW + 8).await, None);
    let asking = asking(Kind::MraAsk, "U1", one.session);
    assert_eq!(store.count_asked(asking, 1, NOW + 9).await.unwrap(), None, "directives are counted apart");
    one.inbound.user = "U1".into();
    assert_eq!(count(&one, NOW + HOUR).await, None, "the first of them is an hour ago");
}

/// Regression: an app that reacts to its own question, and to each answer, had it asked again and again.
#[tokio::test]
async fn an_app_that_had_its_question_asked_once_more_was_answered_without_limit() {
    for (by_app, actor, is_taken) in [
        (true, ("U1", false), false),
        (true, ("U1", true), false),
        (true, ("U9", true), true),
        (false, ("U1", false), true),
    ] {
        let home = home();
        let store = open(&home);
        let message = Inbound { by_app, ts: "1.0".into(), ..inbound("slack:dm:U1", "Ev1") };
        let asked = ask(&store, store.accept(&message, NOW).await.unwrap().expect("a new message")).await;
        let outcome = TurnOutcome { asked_by: Some("U1".into()), ..TurnOutcome::default() };
        store.record(asked.turn, Recorded { outcome, ..recorded("q", "a") }, NOW).await.unwrap();
        store.finish(asked.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
        // Long after its question was counted.
        let later = NOW + 24 * HOUR;
        match store.again(actor, &MessageRef::new("D1", "1.0"), reaction("repeat"), later).await.unwrap() {
            RegenerateOutcome::Taken(again) => {
                assert!(is_taken, "{by_app} {actor:?}");
                assert_eq!(ask(&store, again.inbox).await.inbound.by_app, by_app);
            }
            other => assert_eq!((other, is_taken), (RegenerateOutcome::Nothing, false), "{by_app} {actor:?}"),
        }
    }
}

/// Regression: an app that wrote its question bit by bit, by edits, had the model asked anew for each bit.
#[tokio::test]
async fn an_app_that_edited_its_question_while_it_was_answered_had_the_model_asked_anew() {
    let home = home();
    let store = open(&home);
    let asked = Inbound { by_app: true, ..written(1, "one") };
    let inbox = store.accept(&asked, NOW).await.unwrap().expect("a new message");
    assert_eq!(store.edit(&edit(1, "one two", 1), NOW).await, Ok(here(false)));
    let begun = ask(&store, inbox).await;
    assert_eq!(begun.inbound.text, "one two", "it had not begun");
    assert_eq!(store.edit(&edit(1, "one two", 2), NOW).await, Ok(Changed::Nothing));
    for (bit, second) in [("one two three", 3), ("one two three four", 4)] {
        assert_eq!(store.edit(&edit(1, bit, second), NOW).await, Ok(here(false)), "{bit}");
        assert_eq!(store.edit(&edit(1, bit, second), NOW).await, Ok(Changed::Nothing), "{bit}, again");
    }
    let outcome = TurnOutcome { asked_by: Some("U1".into()), ..TurnOutcome::default() };
    let recorded = Recorded { outcome, revision: begun.live.revision, ..recorded("one two", "a") };
    store.record(begun.turn, recorded, NOW).await.unwrap();
    store.finish(begun.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    let admin = ("U9", true);
    let again = store.again(admin, &MessageRef::new("D1", at(1)), reaction("wish"), NOW).await.unwrap();
    let RegenerateOutcome::Taken(again) = again else { panic!("{again:?}") };
    assert_eq!(waits_as(&store, again.inbox).await, "one two three four");
    // Of one that is parked, no answer is being made.
    let parked = store.accept(&Inbound { by_app: true, ..written(2, "too long") }, NOW).await.unwrap().expect("new");
    ask(&store, parked).await;
    store.park(parked, "refused", vec![], NOW).await.unwrap();
    assert_eq!(store.edit(&edit(2, "short", 5), NOW).await, Ok(here(true)));
    store.unpark(None, NOW).await.unwrap();
    assert_eq!(waits_as(&store, parked).await, "short");
}
