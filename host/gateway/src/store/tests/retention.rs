//! Conversations that are erased as a whole.

use std::time::Duration;

use pmk_core::{FrontName, ImageId, SessionKey};

use super::{
    archives::{found, say},
    receipts::receipt,
    *,
};
use crate::escalation::{Marker, PriorAttempts};

const KEY: &str = "slack:channel:C1:1.1";
const OTHER: &str = "slack:dm:U1";
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Every column that may hold what people or the model have said.
const SAID: [(&str, &str); 12] = [
    ("message", "blocks"),
    ("live", "replacement"),
    ("session", "marker"),
    ("text", "body"),
    ("inbox", "message"),
    ("inbox", "edited"),
    ("inbox", "attached"),
    ("turn", "reading"),
    ("outbox", "body"),
    ("outbox", "how"),
    ("escalation", "marker"),
    ("proposal", "marker"),
];

/// The columns in which a word is stored.
fn columns_with(home: &Home, word: &str) -> Vec<(&'static str, &'static str)> {
    let holds = |(table, column): &(&str, &str)| {
        number(home, &format!("SELECT count(*) FROM {table} WHERE {column} LIKE '%{word}%'")) > 0
    };
    SAID.into_iter().filter(holds).collect()
}

fn key(key: &str) -> SessionKey {
    key.parse().unwrap()
}

async fn erase(store: &Store, wanted: &str) -> Result<ErasedConversation, StoreError> {
    let texts = store.own_texts(vec![key(wanted)]).await?;
    store.erase_conversation(&key(wanted), &texts, Duration::ZERO, NOW).await
}

fn marker(question: &str) -> Marker {
    Marker {
        channel_id: "C1".into(),
        thread_ts: "1.1".into(),
        question: question.into(),
        scope: None,
        reason: None,
        pending_since: 7,
        mentioned_user_ids: vec!["U9".into()],
        asker_user_id: Some("U1".into()),
        tried: PriorAttempts::default(),
        apart: None,
        exchange: vec![],
        asked_by: None,
        answered_by: None,
        earlier: vec![],
    }
}

/// A turn about zebras: with receipts, an image, a question to a contact, and an edit afterwards.
async fn talk_of_zebras(store: &Store) -> OpenTurn {
    let reply_to = ReplyTo { channel: "C1".into(), thread_ts: Some("1.1".into()) };
    let asked = Inbound { reply_to, text: "a zebra?".into(), ts: "1.1".into(), ..inbound(KEY, "Ev1") };
    let open = ask(store, store.accept(&asked, NOW).await.unwrap().unwrap()).await;
    let image = StoredImage { sha256: ImageId::of(b"zebra"), bytes: b"zebra".as_slice().into() };
    store.keep_attached(&open, open.live.revision, &asked.attached, vec![image]).await.unwrap();
    let mut receipts = Receipts::default();
    let reduced = receipts.keep("less of the zebra");
    let with = receipt(0, &mut receipts, vec![Reference::AddedReduced(0, reduced)]);
    receipts.push(with);
    let escalation = Some(EscalationUpdate::Asked(FrontName::Slack, marker("which zebra?")));
    let recorded = Recorded { receipts, escalation, ..recorded("a zebra?", "the zebra has stripes") };
    store.record(open.turn, recorded, NOW).await.unwrap();
    store.finish(open.turn, vec![(0, Some("1.2".into()))], vec![], NOW).await.unwrap();
    open
}

#[tokio::test]
async fn of_an_erased_conversation_no_word_is_left_and_others_keep_theirs() {
    let home = home();
    let store = open(&home);
    let open = talk_of_zebras(&store).await;
    let other = say(&store, OTHER, "Ev2", "a giraffe?", "it is tall").await;
    assert_eq!(columns_with(&home, "zebra"), [("message", "blocks"), ("text", "body"), ("escalation", "marker")]);

    let erased = erase(&store, KEY).await.unwrap();
    assert_eq!(erased, ErasedConversation { messages: 2, parked: 0, asked: 1 });
    assert_eq!(columns_with(&home, "zebra"), []);
    assert_eq!(found(&store, open.session, "zebra").await, [0; 0]);
    for of_it in ["message", "archive", "receipt"] {
        let left = number(&home, &format!("SELECT count(*) FROM {of_it} WHERE session_id = {}", open.session));
        assert_eq!(left, 0, "{of_it}");
    }
    assert_eq!(number(&home, "SELECT count(*) FROM image"), 0);
    assert!(store.receipts_of_turn(open.turn).await.unwrap().is_empty());
    // What counts stays: that there was a turn.
    assert_eq!(number(&home, "SELECT count(*) FROM turn WHERE answered_at IS NOT NULL"), 2);
    let keys: Vec<String> = store.sessions().await.unwrap().iter().map(|session| session.key.to_string()).collect();
    assert_eq!(keys, [OTHER]);
    assert_eq!(found(&store, other, "giraffe").await, [0]);

    // It can be continued, and erased again.
    let session = say(&store, KEY, "Ev3", "a lion?", "it roars").await;
    assert_eq!(session, open.session);
    assert_eq!(found(&store, session, "lion").await, [0]);
    assert_eq!(erase(&store, KEY).await.unwrap().messages, 2);
    assert_eq!(erase(&store, KEY).await.unwrap(), ErasedConversation::default(), "there is nothing left");
}

#[tokio::test]
async fn a_text_that_another_conversation_refers_to_stays_for_it() {
    let home = home();
    let store = open(&home);
    for (wanted, event) in [(KEY, "Ev1"), (OTHER, "Ev2")] {
        let open = ask(&store, accept(&store, wanted, event).await).await;
        let mut receipts = Receipts::default();
        let own = receipts.keep(format!("only of {event}"));
        let with = receipt(0, &mut receipts, vec![Reference::AddedReduced(0, own)]);
        receipts.push(with);
        store.record(open.turn, Recorded { receipts, ..recorded("q", "a") }, NOW).await.unwrap();
        store.finish(open.turn, vec![(0, None)], vec![], NOW).await.unwrap();
    }
    erase(&store, KEY).await.unwrap();
    let is_stored = async |text: &str| store.text(&Digest::of(text)).await.unwrap().is_some();
    assert!(!is_stored("only of Ev1").await);
    for shared in ["only of Ev2", "3 turns are not shown", "You are a help desk."] {
        assert!(is_stored(shared).await, "{shared}");
    }
}

#[tokio::test]
async fn a_conversation_that_waits_for_an_answer_is_not_erased_and_one_with_parked_messages_is() {
    let home = home();
    let store = open(&home);
    let inbox = accept(&store, KEY, "Ev1").await;
    assert_eq!(erase(&store, KEY).await, Err(StoreError::Unanswered(key(KEY))));
    store.park(inbox, "a test", vec![], NOW).await.unwrap();
    assert_eq!(erase(&store, KEY).await, Err(StoreError::Unanswered(key(KEY))), "the person does not know it yet");
    store.parked_told(inbox).await.unwrap();
    assert_eq!(erase(&store, KEY).await.unwrap(), ErasedConversation { messages: 0, parked: 1, asked: 0 });
    assert_eq!(store.parked().await.unwrap().len(), 0);
    assert_eq!(columns_with(&home, "question"), []);
    assert_eq!(erase(&store, OTHER).await, Err(StoreError::UnknownSession(key(OTHER))));
}

#[tokio::test]
async fn only_conversations_in_which_nobody_has_written_for_so_long_are_too_old() {
    let home = home();
    let store = open(&home);
    say(&store, KEY, "Ev1", "an old one", "indeed").await;
    let recent = Inbound { text: "a recent one".into(), ..inbound(OTHER, "Ev2") };
    store.accept(&recent, NOW + 5 * DAY_MS).await.unwrap();
    let idle = async |days: u32| store.idle_conversations(days, NOW + 10 * DAY_MS).await.unwrap();
    assert_eq!(idle(11).await, []);
    assert_eq!(idle(9).await, [key(KEY)]);
    assert_eq!(idle(4).await, [key(KEY), key(OTHER)]);
    erase(&store, KEY).await.unwrap();
    assert_eq!(idle(9).await, [], "what is erased is not too old again");
}

#[tokio::test]
async fn a_long_conversation_is_erased_in_pieces() {
    let home = home();
    let store = open(&home);
    let open = ask(&store, accept(&store, KEY, "Ev1").await).await;
    let messages = (0..1_201).map(|n| Entry::new(0, Message::user(format!("message {n}")))).collect();
    store.record(open.turn, Recorded { messages, ..recorded("", "") }, NOW).await.unwrap();
    store.finish(open.turn, vec![(0, None)], vec![], NOW).await.unwrap();
    assert_eq!(erase(&store, KEY).await.unwrap().messages, 1_201);
    assert_eq!(number(&home, "SELECT count(*) FROM message"), 0);
    assert_eq!(number(&home, "SELECT count(*) FROM live"), 0);
}
