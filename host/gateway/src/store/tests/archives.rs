//! The archive: messages are found at once, only within their conversation, and also after a migration.

use pmk_core::{Archive, Origin, Role};
use pmk_search::MemoryArchive;

use super::*;
use crate::store::{StoreArchive, archive};

pub(in crate::store::tests) const KEY: &str = "slack:dm:U1";

/// A turn in which these words are said.
pub(in crate::store::tests) async fn say(
    store: &Store,
    key: &str,
    event_id: &str,
    question: &str,
    answer: &str,
) -> SessionId {
    let inbox = accept(store, key, event_id).await;
    let open = ask(store, inbox).await;
    let recorded = Recorded { revision: open.live.revision, ..recorded(question, answer) };
    store.record(open.turn, recorded, NOW).await.unwrap();
    store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    open.session
}

/// The archive with everything recorded so far.
async fn archive_now(store: &Store, session: SessionId) -> StoreArchive {
    let length = store.read(move |conn| archive::length(conn, session)).await.unwrap();
    store.archive_of(session, length)
}

/// Returns the numbers of the messages found, on a thread that may block.
pub(in crate::store::tests) async fn found(store: &Store, session: SessionId, query: &str) -> Vec<u32> {
    let (archive, query) = (archive_now(store, session).await, query.to_owned());
    let search = move || archive.search(&query, 9, &|_| true).into_iter().map(|found| found.number).collect();
    tokio::task::spawn_blocking(search).await.unwrap()
}

#[tokio::test]
async fn a_turn_is_found_as_soon_as_it_is_recorded_and_in_its_conversation_alone() {
    let home = home();
    let store = open(&home);
    let session = say(&store, KEY, "Ev1", "會議改到週五", "好的").await;
    let other = say(&store, "slack:dm:U2", "Ev2", "會議取消了", "noted").await;
    assert_eq!(found(&store, session, "會議是哪天").await, [0]);
    assert_eq!(found(&store, other, "會議是哪天").await, [0]);
    let earlier = archive_now(&store, session).await;
    say(&store, KEY, "Ev3", "lunch?", "會議之後").await;
    assert_eq!(found(&store, session, "會議是哪天").await.len(), 2);
    let (length, at_that_time) =
        tokio::task::spawn_blocking(move || (earlier.len(), earlier.read(0..9).len())).await.unwrap();
    assert_eq!((length, at_that_time), (2, 2), "a turn does not see what is recorded after it began");
}

#[tokio::test]
async fn what_an_attempt_left_behind_is_not_found() {
    let home = home();
    let store = open(&home);
    let inbox = accept(&store, KEY, "Ev1").await;
    let turn = ask(&store, inbox).await;
    let left = [Message::user("an unfinished budget"), Message::assistant("so far")];
    store.archive(turn.session, turn.turn, &left, NOW).await.unwrap();
    assert_eq!(found(&store, turn.session, "budget").await, [0]);
    let again = ask(&store, inbox).await;
    assert_eq!(found(&store, turn.session, "budget").await, Vec::<u32>::new());
    store.record(again.turn, recorded("the margin", "fine"), NOW).await.unwrap();
    assert_eq!(found(&store, turn.session, "margin").await, [0], "its numbers are used again");
}

/// Once, whatever was found behind such a gap was another message than the one that was read.
#[tokio::test]
async fn a_summary_between_two_attempts_at_a_turn_shifted_the_numbers_of_all_messages_after_it() {
    let home = home();
    let store = open(&home);
    say(&store, KEY, "Ev1", "apples", "pears").await;
    let inbox = accept(&store, KEY, "Ev2").await;
    let turn = ask(&store, inbox).await;
    let left = [Message::user("plums"), Message::assistant("so far")];
    store.archive(turn.session, turn.turn, &left, NOW).await.unwrap();
    let summary = Message::text(Role::User, Origin::Summary, "fruit was talked about");
    let fold =
        FoldEdit { first: 0, last: 1, summary: Some(summary), dropped_turns: 0, marker_template: None, revision: 0 };
    store.fold(turn.session, fold, vec![], NOW).await.unwrap();
    let again = ask(&store, inbox).await;
    store.record(again.turn, recorded("the budget", "forty"), NOW).await.unwrap();
    let [number] = found(&store, turn.session, "budget").await[..] else { panic!("one message") };
    let archive = archive_now(&store, turn.session).await;
    let read = tokio::task::spawn_blocking(move || archive.read(number..number + 1)).await.unwrap();
    let texts: Vec<(u32, String)> = read.iter().map(|(at, read)| (*at, read.message.plain_text())).collect();
    assert_eq!(texts, [(number, "the budget".to_owned())]);
}

#[tokio::test]
async fn what_nobody_said_is_not_found() {
    let home = home();
    let store = open(&home);
    let session = say(&store, KEY, "Ev1", "apples", "pears").await;
    let summary = Message::text(Role::User, Origin::Summary, "the budget was talked about");
    let fold =
        FoldEdit { first: 0, last: 1, summary: Some(summary), dropped_turns: 0, marker_template: None, revision: 0 };
    store.fold(session, fold, vec![], NOW).await.unwrap();
    assert_eq!(found(&store, session, "budget").await, Vec::<u32>::new());
    assert_eq!(found(&store, session, "apples").await, [0]);
}

#[tokio::test]
async fn a_conversation_that_comes_in_is_found_too() {
    let home = home();
    let store = open(&home);
    say(&store, KEY, "Ev1", "the budget is 40,000", "noted").await;
    let dump = store.dump(&KEY.parse().unwrap()).await.unwrap();
    let elsewhere = super::home();
    let store = open(&elsewhere);
    store.restore(dump, false, NOW).await.unwrap();
    let session = say(&store, KEY, "Ev2", "and the margin?", "12 %").await;
    assert_eq!(found(&store, session, "budget").await, [0]);
    assert_eq!(found(&store, session, "margin").await, [2]);
}

#[tokio::test]
async fn the_store_ranks_as_the_archive_in_memory_does() {
    const WORDS: [&str; 12] =
        ["budget", "預算", "會議", "margin", "launch", "週五", "done", "erp", "the table", "好的", "lunch", "report"];
    let mut rng = pmk_core::testing::Rng::new(7);
    let home = home();
    let store = open(&home);
    let memory = MemoryArchive::default();
    let mut session = None;
    for at in 0..60 {
        let mut words = |most| (0..=rng.below(most)).map(|_| rng.pick(&WORDS)).collect::<Vec<_>>().join(" ");
        let (question, answer) = (words(9), words(20));
        session = Some(say(&store, KEY, &format!("Ev{at}"), &question, &answer).await);
        // Messages of other conversations make no difference.
        say(&store, "slack:dm:U2", &format!("Other{at}"), "budget budget", &"lunch ".repeat(at as usize)).await;
        memory.record(Entry::new(at * 2, Message::user(question)));
        memory.record(Entry::new(at * 2 + 1, Message::assistant(answer)));
    }
    for query in ["budget report", "週五的會議", "lunch 預算 erp", "nothing of it"] {
        let expected: Vec<u32> = memory.search(query, 9, &|_| true).into_iter().map(|found| found.number).collect();
        assert_eq!(found(&store, session.unwrap(), query).await, expected, "{query}");
        // Also the fuel a policy pays for a search: a decision costs the same wherever it is reproduced.
        let archive = store.archive_of(session.unwrap(), 120);
        let stored = tokio::task::spawn_blocking(move || archive.look_for(query, 9, &|_| true)).await.unwrap();
        let took = |matches: pmk_core::Matches| (matches.terms, matches.documents, matches.places);
        assert_eq!(took(stored), took(memory.look_for(query, 9, &|_| true)), "{query}");
    }
}
