//! What a turn archives before its end.

use pmk_core::{CapVerdict, Language, Origin, Role};

use super::*;
use crate::ledger::Event;

const KEY: &str = "slack:dm:U1";

#[tokio::test]
async fn a_seed_is_archived_whole_and_shown_as_the_cap_says() {
    let home = home();
    let store = open(&home);
    let opened = ask(&store, accept(&store, KEY, "Ev1").await).await;
    let pair = [
        Message::text(Role::User, Origin::Seed, "知識".repeat(500)),
        Message::text(Role::Assistant, Origin::SeedAck, "了解"),
    ];
    let verdict = CapVerdict::Shorten { head: 100, tail: 0 };
    let capped = |original_chars, capped_chars| {
        let (actor, kind) = ("U1".to_owned(), Origin::Seed.name());
        Event::MessageCapped { actor, kind, original_chars, capped_chars }.into()
    };
    let cap = (verdict, Language::TraditionalChinese);
    let entries = store.seed(opened.session, pair.clone(), cap, capped, NOW).await.unwrap();
    assert_eq!(entries.len(), 2);
    // An attempt that began after a kill would find the seed there, and note nothing of it.
    let noted = "SELECT count(*) FROM event WHERE line LIKE '%message.capped%' AND line LIKE '%1000%'";
    assert_eq!(number(&home, noted), 1);
    let shown = store.session_messages(&KEY.parse().unwrap(), false).await.unwrap();
    assert_eq!(shown[0].entry.source(), &pair[0]);
    let text = shown[0].entry.message.plain_text();
    assert!(text.contains(&format!("id m{}", entries[0].entry.id)) && text.chars().count() < 200, "{text}");
    assert_eq!(*shown[1].entry.message, pair[1]);
    assert_eq!(shown[0].entry.tokens, entries[0].entry.tokens);
}

#[tokio::test]
async fn what_an_abandoned_attempt_produced_is_forgotten_and_a_finished_ones_stays() {
    let home = home();
    let store = open(&home);
    let inbox = accept(&store, KEY, "Ev1").await;
    let first = ask(&store, inbox).await;
    let produced = [Message::user("q"), Message::assistant("looking"), Message::user("found")];
    store.archive(first.session, first.turn, &produced, NOW).await.unwrap();
    // The process dies here; the turn begins again.
    let again = ask(&store, inbox).await;
    assert_eq!(number(&home, "SELECT count(*) FROM message"), 0);
    let ids = store.archive(again.session, again.turn, &produced, NOW).await.unwrap();
    let mut messages: Vec<Entry> = ids.iter().zip(produced).map(|(&id, message)| Entry::new(id, message)).collect();
    messages.push(Entry::new(0, Message::assistant("answer")));
    store.record(again.turn, Recorded { messages, ..recorded("", "") }, NOW).await.unwrap();
    assert_eq!(live_texts(&store, KEY).await, ["q", "looking", "found", "answer"]);
    assert_eq!(number(&home, "SELECT count(*) FROM message"), 4);
}
