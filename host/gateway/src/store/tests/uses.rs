//! How often atoms were shown and doubted.

use pmk_core::FrontName;

use super::*;
use crate::{
    chat::{ReactedAuthor, Reaction},
    escalation::Marker,
    store::AtomUse,
};

fn marker(thread: &str) -> Marker {
    let json = json!({"channelId": "C1", "threadTs": thread, "question": "q", "pendingSince": 1,
        "mentionedUserIds": ["U2"]});
    serde_json::from_value(json).expect("a marker")
}

/// A turn that was shown these atoms, and whose answer was posted under this id; people are asked in a thread,
/// where one is given.
async fn shown(store: &Store, key: &str, atoms: &[&str], ts: &str, asked_in: Option<&str>, now_ms: i64) {
    let open = ask(store, accept(store, key, ts).await).await;
    let atoms = atoms.iter().map(|&atom| atom.to_owned()).collect();
    let escalation = asked_in.map(|thread| EscalationUpdate::Asked(FrontName::Slack, marker(thread)));
    store.record(open.turn, Recorded { atoms, escalation, ..recorded("q", "a") }, now_ms).await.unwrap();
    store.finish(open.turn, vec![sent(0, Some(ts))], vec![], now_ms).await.unwrap();
}

async fn vote(store: &Store, user: &str, ts: &str, likes: bool) {
    let reaction = Reaction {
        event_id: None,
        user: user.into(),
        message: MessageRef::new("C1", ts),
        reaction: String::new(),
        author: ReactedAuthor::Unknown,
    };
    store.vote(&reaction, likes, NOW).await.unwrap();
}

#[tokio::test]
async fn atoms_are_counted_by_turn_and_each_doubt_once() {
    const DAY: i64 = 24 * 60 * 60 * 1_000;
    let home = home();
    let store = open(&home);
    let key = "slack:channel:C1:1.1";
    shown(&store, key, &["a", "b"], "2.1", None, NOW).await;
    shown(&store, key, &["a"], "2.2", None, NOW + 5).await;
    shown(&store, "slack:channel:C1:7.7", &["c"], "2.3", None, NOW).await;
    let uses = async || store.atom_uses().await.unwrap();
    assert_eq!(uses().await["a"], AtomUse { shown: 2, last_shown_at_ms: Some(NOW + 5), doubted: 0 });
    vote(&store, "U1", "2.1", false).await;
    vote(&store, "U1", "2.1", false).await;
    vote(&store, "U3", "2.1", false).await;
    vote(&store, "U1", "2.2", true).await;
    assert_eq!((uses().await["a"].doubted, uses().await["b"].doubted, uses().await["c"].doubted), (2, 2, 0));
    // A person changes their vote.
    vote(&store, "U3", "2.1", true).await;
    assert_eq!(uses().await["b"].doubted, 1);
    // The thread counts once, however often people are asked in it, and only for atoms shown there recently.
    shown(&store, key, &["b"], "2.4", Some("1.1"), NOW + 10).await;
    store.cancel_escalation("C1", "1.1", "U1", NOW + 15).await.unwrap().expect("it waits");
    shown(&store, key, &[], "2.5", Some("1.1"), NOW + 20).await;
    shown(&store, "slack:channel:C1:7.7", &[], "2.6", Some("7.7"), NOW + DAY).await;
    assert_eq!((uses().await["a"].doubted, uses().await["b"].doubted, uses().await["c"].doubted), (2, 2, 0));
    assert_eq!(uses().await["b"].shown, 2);
    drop(store);
    assert_eq!(open(&home).atom_uses().await.unwrap().len(), 3);
}
