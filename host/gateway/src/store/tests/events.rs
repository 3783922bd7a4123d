//! Ledger events are stored with what they report, or not at all.

use super::*;
use crate::ledger::{Event, InExperiment, LedgerQueue, TaggedEvent, Tags};

pub(in crate::store::tests) fn event(name: &str) -> TaggedEvent {
    Event::QueueSwept { messages: name.len() as u64 }.into()
}

/// The types of the queued lines.
fn told(store: &Store) -> Vec<String> {
    let lines = store.waiting(0, 100).unwrap();
    lines.iter().map(|line| line.text.split('"').nth(7).unwrap().to_owned()).collect()
}

/// The turn ids of the stored events.
fn turn_ids(home: &Home) -> Vec<Option<i64>> {
    asked(home, |conn| {
        let mut statement = conn.prepare_cached("SELECT turn_id FROM event ORDER BY id").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    })
}

/// Runs the exporter's blocking calls on a thread that may block.
pub(in crate::store::tests) async fn waiting<T: Send + 'static>(
    store: &Store,
    work: impl FnOnce(&Store) -> T + Send + 'static,
) -> T {
    let store = store.clone();
    tokio::task::spawn_blocking(move || work(&store)).await.unwrap()
}

#[tokio::test]
async fn the_events_of_a_turn_are_stored_with_it_and_those_of_a_refused_write_are_not() {
    let home = home();
    let store = open(&home);
    let inbox = accept(&store, "slack:dm:U1", "Ev1").await;
    let open = ask(&store, inbox).await;
    let place = InExperiment { experiment: "less".into(), arm: "b".into() };
    let tags = Tags { policy_sha256: Some("abc".into()), place: Some(place) };
    let event_of_turn = TaggedEvent { event: Event::FrontAccepted, tags };
    let answer = Recorded { events: vec![event_of_turn], ..recorded("q", "a") };
    store.record(open.turn, answer.clone(), NOW).await.unwrap();
    store.record(open.turn, answer, NOW).await.unwrap_err();
    store.finish(open.turn, vec![], vec![event("too early")], NOW).await.unwrap_err();
    store.finish(open.turn, vec![sent(0, None)], vec![event("over")], NOW + 1).await.unwrap();
    store.finish(open.turn, vec![], vec![event("over")], NOW + 2).await.unwrap_err();
    let lines = waiting(&store, |store| store.waiting(0, 100).unwrap()).await;
    let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "{\"at\":\"2025-10-09T08:53:20.000Z\",\"type\":\"front.accepted\",\"policySha256\":\"abc\",\
             \"experiment\":\"less\",\"arm\":\"b\"}\n",
            "{\"at\":\"2025-10-09T08:53:20.001Z\",\"type\":\"queue.swept\",\"messages\":4}\n",
        ]
    );
    assert!(lines.iter().all(|line| line.file == "events-2025-10.log"), "{lines:?}");
    assert_eq!(turn_ids(&home), [Some(open.turn.0); 2]);
}

#[tokio::test]
async fn what_only_the_store_knows_it_tells_itself_and_once() {
    let home = home();
    let store = open(&home);
    let inbox = accept(&store, "slack:dm:U1", "Ev1").await;
    assert!(store.park(inbox, "it is damaged", vec![], NOW).await.unwrap().is_some());
    assert!(store.park(inbox, "it is damaged", vec![], NOW).await.unwrap().is_none());
    store.unpark(None, NOW).await.unwrap();
    store.unpark(None, NOW).await.unwrap();
    assert_eq!(waiting(&store, told).await, ["turn.parked", "turn.retried"]);
    assert_eq!(turn_ids(&home), [Some(inbox.0), None]);
}

#[tokio::test]
async fn an_edit_of_the_window_is_told_with_it() {
    let home = home();
    let store = open(&home);
    let open = turn(&store, "slack:dm:U1", "Ev1").await;
    let nowhere = Replacement { position: 99, message: Message::user("q").into(), tokens: 1, chars: 1 };
    let bad = WindowEdit { replaced: vec![nowhere], ..WindowEdit::default() };
    store.edit_live(open.session, bad, vec![event("not done")], NOW).await.unwrap_err();
    store.edit_live(open.session, WindowEdit::default(), vec![event("edited")], NOW).await.unwrap();
    let edit = FoldEdit { first: 0, last: 0, summary: None, dropped_turns: 1, marker_template: None, revision: 0 };
    store.fold(open.session, edit, vec![Event::FrontAccepted.into()], NOW).await.unwrap();
    assert_eq!(waiting(&store, told).await, ["queue.swept", "front.accepted"]);
}
