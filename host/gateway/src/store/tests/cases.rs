//! What belongs to a case, and that it is stored.

use pmk_core::FrontName;

use super::*;
use crate::case::{Case, CaseId, ImportedCase, Note, NoteKind, Order};

fn order(channel: &str, event: &str) -> Order {
    Order { front: FrontName::Slack, channel: channel.into(), user: "U1".into(), event_id: event.into() }
}

async fn opened(store: &Store, channel: &str, event: &str) -> Case {
    match store.open_case(&order(channel, event), &format!("title {event}"), NOW).await.unwrap() {
        Opened::Case { case, again: false } => case,
        other => panic!("expected a new case, got {other:?}"),
    }
}

fn note(words: &str) -> Note {
    Note::new(NoteKind::Hypothesis, words).unwrap()
}

/// An answer that belongs to a case and adds these notes.
fn answer(case: CaseId, event: &str, notes: &[&str]) -> Recorded {
    let notes = notes.iter().map(|words| note(words)).collect();
    let case = Some(CaseEntry { case, user: Some("U1".into()), asked_at_ms: NOW - 5, notes });
    Recorded { case, ..recorded(&format!("question {event}"), &format!("answer {event}")) }
}

/// A whole turn that belongs to a case.
async fn turn_of(store: &Store, key: &str, event: &str, notes: &[&str]) {
    let inbox = accept(store, key, event).await;
    let open = ask(store, inbox).await;
    store.record(open.turn, answer(open.case.expect("a case"), event, notes), NOW).await.unwrap();
    store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
}

/// The authors and texts of a case's messages.
async fn said(store: &Store, case: CaseId) -> Vec<(String, Option<String>)> {
    let messages = store.case_messages(case).await.unwrap();
    messages.into_iter().map(|kept| (kept.message.plain_text(), kept.user)).collect()
}

fn texts(case: &Case) -> Vec<&str> {
    case.notes.iter().map(|kept| kept.note.text.as_str()).collect()
}

#[tokio::test]
async fn what_is_asked_in_the_channel_belongs_to_its_case_threads_too() {
    let home = home();
    let store = open(&home);
    let case = opened(&store, "C1", "Ev0").await;
    for (event, key, belongs) in [
        ("Ev1", "slack:channel:C1", true),
        ("Ev2", "slack:channel:C1:17.01", true),
        ("Ev3", "slack:channel:C2", false),
        ("Ev4", "slack:dm:C1", false),
        ("Ev5", "console:channel:C1", false),
    ] {
        let inbox = accept(&store, key, event).await;
        assert_eq!(ask(&store, inbox).await.case, belongs.then_some(case.id), "{key}");
    }
    // The turn got its case when it began: neither closing the case nor another attempt changes that.
    assert!(store.close_case(&order("C1", "Ev6"), NOW).await.unwrap().is_some());
    drop(store);
    let store = open(&home);
    let pending = store.open_work().await.unwrap().pending;
    assert_eq!(ask(&store, pending[0].inbox).await.case, Some(case.id));
    let later = accept(&store, "slack:channel:C1", "Ev7").await;
    assert_eq!(ask(&store, later).await.case, None);
}

#[tokio::test]
async fn question_answer_and_notes_are_kept_with_the_turn_or_not_at_all() {
    let home = home();
    let store = open(&home);
    let case = opened(&store, "C1", "Ev0").await.id;
    let inbox = accept(&store, "slack:channel:C1", "Ev1").await;
    let turn = ask(&store, inbox).await.turn;
    // A part of the turn that cannot be stored: nothing of it is stored.
    let nowhere = Recorded { messages: vec![Entry::new(99, Message::user("q"))], ..answer(case, "Ev1", &["cache"]) };
    assert!(store.record(turn, nowhere, NOW).await.is_err());
    let kept = store.case(case).await.unwrap().unwrap();
    assert_eq!((kept.notes.len(), kept.messages), (0, 0));

    store.record(turn, answer(case, "Ev1", &["cache", "Cache!", "DNS"]), NOW).await.unwrap();
    assert!(store.record(turn, answer(case, "Ev1", &["again"]), NOW).await.is_err(), "it has its answer");
    drop(store);
    let store = open(&home);
    let kept = store.case(case).await.unwrap().unwrap();
    assert_eq!(texts(&kept), ["cache", "DNS"]);
    let messages = store.case_messages(case).await.unwrap();
    assert_eq!(kept.notes[0].message, Some(messages[1].id), "it comes from this answer");
    let asked = ("question Ev1".to_owned(), Some("U1".to_owned()));
    assert_eq!(said(&store, case).await, [asked, ("answer Ev1".to_owned(), None)]);
    assert_eq!((messages[0].at_ms, messages[1].at_ms), (NOW - 5, NOW));
}

#[tokio::test]
async fn a_question_that_got_no_answer_is_kept_as_one() {
    let home = home();
    let store = open(&home);
    let case = opened(&store, "C1", "Ev0").await.id;
    let inbox = accept(&store, "slack:channel:C1", "Ev1").await;
    let turn = ask(&store, inbox).await.turn;
    let messages = vec![Entry::new(0, Message::user("q"))];
    let failed = Recorded { messages, keep_live: false, ..answer(case, "Ev1", &[]) };
    store.record(turn, failed, NOW).await.unwrap();
    assert_eq!(said(&store, case).await, [("q".to_owned(), Some("U1".to_owned()))]);
}

#[tokio::test]
async fn two_answers_that_note_the_same_note_it_once() {
    let home = home();
    let store = open(&home);
    let case = opened(&store, "C1", "Ev0").await.id;
    turn_of(&store, "slack:channel:C1", "Ev1", &["the cache is stale"]).await;
    turn_of(&store, "slack:channel:C1:17.01", "Ev2", &["The cache is **stale**.", "DNS"]).await;
    let kept = store.case(case).await.unwrap().unwrap();
    assert_eq!((texts(&kept), kept.messages), (vec!["the cache is stale", "DNS"], 4));
}

/// Regression: the first of them only was stored.
#[tokio::test]
async fn notes_that_differ_in_a_sign_are_both_kept() {
    let home = home();
    let store = open(&home);
    let case = opened(&store, "C1", "Ev0").await.id;
    let notes = ["C++ 的客戶端逾時", "C# 的客戶端逾時", "1.5 秒", "15 秒"];
    turn_of(&store, "slack:channel:C1", "Ev1", &notes).await;
    assert_eq!(texts(&store.case(case).await.unwrap().unwrap()), notes);
}

/// What an older program has stored is known by another form.
#[tokio::test]
async fn a_note_of_an_older_program_is_the_same_note() {
    let home = home();
    let store = open(&home);
    let case = opened(&store, "C1", "Ev0").await.id;
    turn_of(&store, "slack:channel:C1", "Ev1", &["the cache is stale"]).await;
    let older = "UPDATE case_note SET spelling = 'thecacheisstale'";
    store.write(move |conn| Ok(conn.execute(older, [])?)).await.unwrap();
    turn_of(&store, "slack:channel:C1", "Ev2", &["The cache is stale.", "DNS"]).await;
    assert_eq!(texts(&store.case(case).await.unwrap().unwrap()), ["the cache is stale", "DNS"]);
}

#[tokio::test]
async fn a_reset_and_a_parked_question_leave_a_case_whole() {
    let home = home();
    let store = open(&home);
    let case = opened(&store, "C1", "Ev0").await.id;
    turn_of(&store, "slack:channel:C1", "Ev1", &["cache"]).await;
    let before = (store.case(case).await.unwrap(), store.case_messages(case).await.unwrap());
    store.reset(&"slack:channel:C1".parse().unwrap(), NOW).await.unwrap();
    assert_eq!((store.case(case).await.unwrap(), store.case_messages(case).await.unwrap()), before);

    let inbox = accept(&store, "slack:channel:C1", "Ev2").await;
    let begun = ask(&store, inbox).await;
    store.park(inbox, "the disk is full", vec![], NOW).await.unwrap();
    store.close_case(&order("C1", "Ev3"), NOW).await.unwrap();
    store.unpark(None, NOW).await.unwrap();
    let again = ask(&store, inbox).await;
    assert_eq!((again.turn, again.case), (begun.turn, Some(case)));
    store.record(again.turn, answer(case, "Ev2", &[]), NOW).await.unwrap();
    assert_eq!(said(&store, case).await.len(), 4);
}

/// Moves all conversations of a channel from one store to another.
async fn moved(from: &Store, to: &Store) -> Vec<Restored> {
    let mut restored = vec![];
    for session in from.sessions().await.unwrap() {
        let dump = from.dump(&session.key).await.unwrap();
        restored.push(to.restore(dump, true, NOW + 9).await.unwrap());
    }
    restored
}

#[tokio::test]
async fn a_case_moves_with_its_conversations_and_twice_is_once() {
    let (here, there) = (home(), home());
    let (from, to) = (open(&here), open(&there));
    let done = opened(&from, "C1", "Ev0").await.id;
    turn_of(&from, "slack:channel:C1", "Ev1", &["cache"]).await;
    from.close_case(&order("C1", "Ev2"), NOW + 1).await.unwrap();
    let case = opened(&from, "C1", "Ev3").await.id;
    turn_of(&from, "slack:channel:C1:17.01", "Ev4", &["DNS"]).await;
    turn_of(&from, "slack:channel:C1", "Ev5", &["disk"]).await;

    // The numbers are taken there.
    opened(&to, "C9", "Ev9").await;
    for _ in 0..2 {
        moved(&from, &to).await;
        let cases = to.cases_of(FrontName::Slack, "C1").await.unwrap();
        assert_eq!(cases.len(), 2, "{cases:?}");
        for (was, is) in [(case, &cases[0]), (done, &cases[1])] {
            let was = from.case(was).await.unwrap().unwrap();
            assert_eq!((&was.title, &was.opened_by, &was.closed), (&is.title, &is.opened_by, &is.closed));
            let (mut before, mut after) = (texts(&was), texts(is));
            before.sort_unstable();
            after.sort_unstable();
            assert_eq!(before, after);
            assert_eq!(said(&from, was.id).await, said(&to, is.id).await);
            let sources: Vec<i64> = to.case_messages(is.id).await.unwrap().iter().map(|message| message.id).collect();
            assert!(is.notes.iter().all(|kept| kept.message.is_some_and(|id| sources.contains(&id))), "{is:?}");
        }
    }
}

/// Regression: after a case with the greatest number of all, no case could be opened any more.
#[tokio::test]
async fn a_case_with_the_greatest_number_was_the_last_that_could_be_opened() {
    let (here, there) = (home(), home());
    let (from, to) = (open(&here), open(&there));
    opened(&from, "C1", "Ev0").await;
    turn_of(&from, "slack:channel:C1", "Ev1", &["cache"]).await;
    let mut dump = from.dump(&"slack:channel:C1".parse().unwrap()).await.unwrap();
    dump.cases[0].number = i64::MAX;
    to.restore(dump, false, NOW).await.unwrap();
    let next = opened(&to, "C2", "Ev2").await.id;
    assert!(next.0 < 100, "{next:?}");
}

#[tokio::test]
async fn of_two_open_cases_the_one_that_comes_in_is_closed() {
    let (here, there) = (home(), home());
    let (from, to) = (open(&here), open(&there));
    opened(&from, "C1", "Ev0").await;
    turn_of(&from, "slack:channel:C1", "Ev1", &["cache"]).await;
    let other = opened(&to, "C1", "Ev9").await;
    assert_eq!(moved(&from, &to).await.iter().map(|restored| restored.cases_closed).sum::<usize>(), 1);
    let cases = to.cases_of(FrontName::Slack, "C1").await.unwrap();
    assert_eq!((cases[0].id, &cases[1].closed, cases[1].messages), (other.id, &Some((NOW + 9, None)), 2));
}

#[tokio::test]
async fn an_imported_case_is_taken_over_once() {
    let home = home();
    let store = open(&home);
    let imported = || ImportedCase {
        front: FrontName::Slack,
        channel: "C1".into(),
        title: "login".into(),
        opened_by: None,
        opened_at_ms: Some(5),
        notes: vec![note("cache"), note("Cache")],
    };
    let case = store.import_case(imported(), NOW).await.unwrap().expect("it is new");
    assert_eq!((texts(&case), case.opened_at_ms, case.notes[0].message), (vec!["cache"], 5, None));
    assert_eq!(store.import_case(imported(), NOW).await.unwrap().expect_err("it is there").id, case.id);
    store.close_case(&order("C1", "Ev1"), NOW).await.unwrap();
    assert_eq!(store.import_case(imported(), NOW).await.unwrap().expect_err("it is closed here").id, case.id);
    let other = opened(&store, "C1", "Ev2").await;
    let later = ImportedCase { opened_at_ms: Some(6), ..imported() };
    assert_eq!(store.import_case(later, NOW).await.unwrap().expect_err("another is open").id, other.id);
}

#[tokio::test]
async fn a_case_that_did_not_say_when_it_was_opened_was_opened_again_after_it_was_closed() {
    let home = home();
    let store = open(&home);
    let imported = || ImportedCase {
        front: FrontName::Slack,
        channel: "C1".into(),
        title: "title Ev1".into(),
        opened_by: None,
        opened_at_ms: None,
        notes: vec![note("cache")],
    };
    // A case of the same title that was opened here is another one.
    opened(&store, "C1", "Ev1").await;
    store.close_case(&order("C1", "Ev2"), NOW).await.unwrap();
    let case = store.import_case(imported(), NOW).await.unwrap().expect("it is new");
    assert_eq!((case.opened_at_ms, case.notes[0].at_ms), (NOW, NOW));
    store.close_case(&order("C1", "Ev3"), NOW).await.unwrap();
    assert_eq!(store.import_case(imported(), NOW + 9).await.unwrap().expect_err("it is closed here").id, case.id);
}
