//! Whose answer a message is.

use pmk_core::FrontName;

use super::*;
use crate::{escalation::Marker, front::Speech};

fn marker(contacts: &[&str]) -> Marker {
    Marker {
        channel_id: "C1".into(),
        thread_ts: "1.1".into(),
        question: "本月預算?".into(),
        scope: Some("erp".into()),
        reason: None,
        pending_since: 7,
        mentioned_user_ids: contacts.iter().map(|&id| id.to_owned()).collect(),
        asker_user_id: Some("U1".into()),
    }
}

async fn said(store: &Store, event_id: &str, user: &str, thread: Option<&str>) -> InboxId {
    let key = format!("slack:channel:C1{}", thread.map(|ts| format!(":{ts}")).unwrap_or_default());
    let reply_to = ReplyTo { channel: "C1".into(), thread_ts: thread.map(str::to_owned) };
    let message = Inbound { user: user.into(), reply_to, ..inbound(&key, event_id) };
    store.accept(&message, NOW).await.unwrap().expect("a new message")
}

/// A store in which a thread waits for U2 and U3.
async fn waiting(home: &TempDir) -> Store {
    let store = open(home);
    let asked = ask(&store, said(&store, "Ev1", "U1", None).await).await;
    let escalation = Some(Escalating::Asked(FrontName::Slack, marker(&["U2", "U3"])));
    store.record(asked.turn, Recorded { escalation, ..recorded("q", "forwarded") }, NOW).await.unwrap();
    store.finish(asked.turn, vec![(0, None)], NOW).await.unwrap();
    store
}

#[tokio::test]
async fn the_awaited_answer_is_absorbed_once() {
    let home = home();
    let store = waiting(&home).await;
    // Two contacts at the same moment, and each attempt of the first finds it again.
    let (first, second) = (said(&store, "Ev2", "U2", Some("1.1")).await, said(&store, "Ev3", "U3", Some("1.1")).await);
    let absorbing = ask(&store, first).await;
    assert_eq!(absorbing.absorbs, Some(marker(&["U2", "U3"])));
    assert_eq!(ask(&store, second).await.absorbs, None);
    assert_eq!(ask(&store, first).await.absorbs, Some(marker(&["U2", "U3"])));
    store.record(absorbing.turn, recorded("reply", "answer"), NOW).await.unwrap();
    assert_eq!(store.escalations().await.unwrap(), []);
}

#[tokio::test]
async fn nobody_else_answers_and_no_other_thread() {
    let home = home();
    let store = waiting(&home).await;
    for (event, user, thread) in
        [("Ev2", "U1", Some("1.1")), ("Ev3", "U9", Some("1.1")), ("Ev4", "U2", Some("2.2")), ("Ev5", "U2", None)]
    {
        let inbox = said(&store, event, user, thread).await;
        let open = ask(&store, inbox).await;
        assert_eq!(open.absorbs, None, "{event}");
        store.finish(open.turn, vec![], NOW).await.unwrap();
    }
    assert_eq!(store.escalations().await.unwrap(), [marker(&["U2", "U3"])]);
}

#[tokio::test]
async fn a_contact_who_is_ignored_leaves_the_thread_waiting() {
    let home = home();
    let store = waiting(&home).await;
    let ignored = ask(&store, said(&store, "Ev2", "U2", Some("1.1")).await).await;
    store.finish(ignored.turn, vec![], NOW).await.unwrap();
    assert!(ask(&store, said(&store, "Ev3", "U3", Some("1.1")).await).await.absorbs.is_some());
}

#[tokio::test]
async fn a_marker_of_pmk_is_imported_once_and_never_over_our_own() {
    let home = home();
    let store = open(&home);
    assert!(store.import_escalation(FrontName::Slack, &marker(&["U2"])).await.unwrap());
    assert!(!store.import_escalation(FrontName::Slack, &marker(&["U9"])).await.unwrap());
    assert_eq!(store.escalations().await.unwrap(), [marker(&["U2"])]);
}

#[tokio::test]
async fn where_a_message_goes_survives_a_crash() {
    let home = home();
    let store = open(&home);
    let inbox = said(&store, "Ev1", "U1", None).await;
    let asked = ask(&store, inbox).await;
    let elsewhere = Outgoing {
        speech: Speech { text: "<@U2> help".into(), pings: vec!["U2".into()] },
        thread_ts: Some("1.1".into()),
        purpose: Purpose::Notice { atom: "---".into() },
    };
    let parts = vec![Outgoing::reply("answer"), elsewhere.clone()];
    store.record(asked.turn, Recorded { parts, ..recorded("q", "a") }, NOW).await.unwrap();
    drop(store);
    let Begin::Deliver(answered) = open(&home).begin(inbox, NOW).await.unwrap() else { panic!("it has an answer") };
    assert_eq!(answered.parts[0].outgoing, Outgoing::reply("answer"));
    assert_eq!(answered.parts[1].outgoing, elsewhere);
}
