//! A message that is delivered again within 24 hours is not accepted again.

use super::*;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

fn with_alias(event_id: &str, alias: &str) -> Inbound {
    Inbound { aliases: vec![alias.into()], ..inbound("slack:dm:U1", event_id) }
}

#[tokio::test]
async fn the_same_event_is_taken_in_once() {
    let home = home();
    let store = open(&home);
    assert!(store.accept(&inbound("console:dm:U1", "Ev1"), NOW).await.unwrap().is_some());
    assert_eq!(store.accept(&inbound("console:dm:U1", "Ev1"), NOW + 1).await.unwrap(), None);
    // Also from elsewhere: the id identifies the event, not the conversation.
    assert_eq!(store.accept(&inbound("console:channel:C1", "Ev1"), NOW).await.unwrap(), None);
    drop(store);
    assert_eq!(open(&home).accept(&inbound("console:dm:U1", "Ev1"), NOW + 2).await.unwrap(), None);
    assert_eq!(number(&home, "SELECT count(*) FROM inbox"), 1);
}

#[tokio::test]
async fn one_message_as_two_events_is_one_message() {
    let home = home();
    let store = open(&home);
    assert!(store.accept(&with_alias("Ev1", "ts:T:C:1.0"), NOW).await.unwrap().is_some());
    assert_eq!(store.accept(&with_alias("Ev2", "ts:T:C:1.0"), NOW).await.unwrap(), None);
    // The second event's own id was learnt from the duplicate.
    assert_eq!(store.accept(&inbound("slack:dm:U1", "Ev2"), NOW).await.unwrap(), None);
    assert!(store.accept(&with_alias("Ev3", "ts:T:C:2.0"), NOW).await.unwrap().is_some());
}

/// Only one of the two events says that the message is in a group, and it may come second.
#[tokio::test]
async fn a_group_is_known_from_either_event_of_a_message() {
    let home = home();
    let store = open(&home);
    let here = |event_id: &str, ts: &str, in_group| {
        let reply_to = ReplyTo { channel: "C7".into(), thread_ts: Some(ts.into()) };
        let aliases = vec![format!("ts:T:C7:{ts}")];
        Inbound { aliases, reply_to, in_group, ..inbound(&format!("slack:channel:C7:{ts}"), event_id) }
    };
    assert!(store.accept(&here("Ev1", "1.0", false), NOW).await.unwrap().is_some());
    assert!(!store.knows_group("C7").await.unwrap());
    assert_eq!(store.accept(&here("Ev2", "1.0", true), NOW).await.unwrap(), None);
    assert!(store.knows_group("C7").await.unwrap());
    assert!(store.accept(&here("Ev3", "2.0", false), NOW).await.unwrap().is_some());
    drop(store);
    assert!(open(&home).knows_group("C7").await.unwrap(), "in every thread");
    assert!(!open(&home).knows_group("C8").await.unwrap());
}

#[tokio::test]
async fn fronts_do_not_share_ids() {
    let home = home();
    let store = open(&home);
    assert!(store.accept(&inbound("console:dm:U1", "Ev1"), NOW).await.unwrap().is_some());
    assert!(store.accept(&inbound("slack:dm:U1", "Ev1"), NOW).await.unwrap().is_some());
}

#[tokio::test]
async fn of_many_copies_at_once_one_is_taken_in() {
    let home = home();
    let store = open(&home);
    let copies = (0..50).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { store.accept(&inbound("slack:dm:U1", "Ev1"), NOW).await.unwrap() })
    });
    let mut new = 0;
    for copy in copies.collect::<Vec<_>>() {
        new += usize::from(copy.await.unwrap().is_some());
    }
    assert_eq!(new, 1);
}

#[tokio::test]
async fn after_a_day_it_is_new_again() {
    let home = home();
    let store = open(&home);
    let copy = inbound("slack:dm:U1", "Ev1");
    // A redelivery renews it.
    for (now, is_new) in [(NOW, true), (NOW + DAY_MS - 1, false), (NOW + DAY_MS, false), (NOW + 2 * DAY_MS, true)] {
        it_is(&home, now);
        assert_eq!(store.accept(&copy, now).await.unwrap().is_some(), is_new, "{now}");
    }
}

#[tokio::test]
async fn every_name_of_a_message_is_renewed_when_it_comes_again() {
    let home = home();
    let store = open(&home);
    let copy = |alias| with_alias("Ev1", alias);
    it_is(&home, NOW);
    assert!(store.accept(&copy("ts:1"), NOW).await.unwrap().is_some());
    it_is(&home, NOW + DAY_MS / 2);
    assert_eq!(store.accept(&copy("ts:2"), NOW + DAY_MS / 2).await.unwrap(), None);
    it_is(&home, NOW + DAY_MS + 1);
    // By the alias that the second copy brought, and by the one that both have.
    let other = Inbound { event_id: "Ev2".into(), ..copy("ts:2") };
    assert_eq!(store.accept(&other, NOW + DAY_MS + 1).await.unwrap(), None);
    assert_eq!(store.accept(&copy("ts:3"), NOW + DAY_MS + 1).await.unwrap(), None);
}

#[tokio::test]
async fn expired_names_are_cleared_away() {
    let home = home();
    let store = open(&home);
    it_is(&home, NOW);
    for n in 0..20 {
        store.accept(&with_alias(&format!("Ev{n}"), &format!("ts:{n}")), NOW + n).await.unwrap();
    }
    assert_eq!(number(&home, "SELECT count(*) FROM seen"), 40);
    it_is(&home, NOW + DAY_MS);
    for n in 20..36 {
        store.accept(&with_alias(&format!("Ev{n}"), &format!("ts:{n}")), NOW + DAY_MS + n).await.unwrap();
    }
    assert_eq!(number(&home, "SELECT count(*) FROM seen"), 2 * 16);
}

#[tokio::test]
async fn unfinished_questions_come_back_in_the_order_they_were_asked() {
    let home = home();
    let store = open(&home);
    for (key, event_id, ts) in [
        ("slack:dm:U1", "first", "1700000001.000100"),
        ("slack:dm:U2", "other", "1700000000.000100"),
        ("slack:dm:U1", "late", "1700000001.000300"),
        ("slack:dm:U1", "overtaken", "1700000001.000200"),
        ("console:dm:U1", "a", ""),
        ("console:dm:U1", "b", ""),
    ] {
        store.accept(&Inbound { ts: ts.into(), ..inbound(key, event_id) }, NOW).await.unwrap();
    }
    let mut order = Vec::new();
    for pending in store.open_work().await.unwrap().pending {
        let open = ask(&store, pending.inbox).await;
        assert_eq!(open.inbound.key, pending.key);
        order.push(open.inbound.event_id);
    }
    assert_eq!(order, ["first", "overtaken", "late", "other", "a", "b"]);
}
