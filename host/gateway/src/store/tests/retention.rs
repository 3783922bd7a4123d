//! Conversations that are erased as a whole.

use std::time::Duration;

use pmk_core::{FrontName, ImageId, SessionKey};

use super::{
    archives::{found, say},
    changes::{answered, edit},
    escalations::marker,
    receipts::receipt,
    *,
};
use crate::{
    escalation::Marker,
    store::{retention::BODIES, sql::params},
};

const KEY: &str = "slack:channel:C1:1.1";
const OTHER: &str = "slack:dm:U1";
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Every column that may hold what people or the model have said.
const SAID: [(&str, &str); 13] = [
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
    ("early_change", "text"),
];

/// The columns in which a word is stored.
pub(super) fn columns_with(home: &Home, word: &str) -> Vec<(&'static str, &'static str)> {
    let holds = |(table, column): &(&str, &str)| {
        number(home, &format!("SELECT count(*) FROM {table} WHERE {column} LIKE '%{word}%'")) > 0
    };
    SAID.into_iter().filter(holds).collect()
}

pub(super) fn key(key: &str) -> SessionKey {
    key.parse().unwrap()
}

async fn erase(store: &Store, wanted: &str) -> Result<usize, StoreError> {
    let erased = store.erase_conversation(&key(wanted), Erasing::Anyway, Duration::ZERO, NOW).await?;
    store.erase_receipts(&[erased]).await?;
    Ok(erased.messages)
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
    let escalation =
        Some(EscalationUpdate::Asked(FrontName::Slack, Marker { question: "which zebra?".into(), ..marker(&["U9"]) }));
    let recorded = Recorded { receipts, escalation, ..recorded("a zebra?", "the zebra has stripes") };
    store.record(open.turn, recorded, NOW).await.unwrap();
    store.finish(open.turn, vec![sent(0, Some("1.2"))], vec![], NOW).await.unwrap();
    open
}

/// How many receipts a turn has.
fn receipts_of(home: &Home, turn: TurnId) -> i64 {
    number(home, &format!("SELECT count(*) FROM receipt WHERE turn_id = {turn}"))
}

#[tokio::test]
async fn of_an_erased_conversation_no_word_is_left_and_others_keep_theirs() {
    let home = home();
    let store = open(&home);
    let open = talk_of_zebras(&store).await;
    let other = say(&store, OTHER, "Ev2", "a giraffe?", "it is tall").await;
    assert_eq!(columns_with(&home, "zebra"), [("message", "blocks"), ("text", "body"), ("escalation", "marker")]);

    assert_eq!(erase(&store, KEY).await, Err(StoreError::AwaitsContact(key(KEY))));
    assert_eq!(columns_with(&home, "zebra").len(), 3, "nothing was erased");
    assert!(store.cancel_escalation("C1", "1.1", "U1", NOW).await.unwrap().is_some());
    assert_eq!(erase(&store, KEY).await, Ok(2));
    assert_eq!(columns_with(&home, "zebra"), []);
    assert_eq!(found(&store, open.session, "zebra").await, [0; 0]);
    for of_it in ["message", "archive", "receipt"] {
        let left = number(&home, &format!("SELECT count(*) FROM {of_it} WHERE session_id = {}", open.session));
        assert_eq!(left, 0, "{of_it}");
    }
    assert_eq!(number(&home, "SELECT count(*) FROM image"), 0);
    // What counts stays: that there was a turn.
    assert_eq!(number(&home, "SELECT count(*) FROM turn WHERE answered_at IS NOT NULL"), 2);
    let keys: Vec<String> = store.sessions().await.unwrap().iter().map(|session| session.key.to_string()).collect();
    assert_eq!(keys, [OTHER]);
    assert_eq!(found(&store, other, "giraffe").await, [0]);

    // It can be continued, and erased again.
    let session = say(&store, KEY, "Ev3", "a lion?", "it roars").await;
    assert_eq!(session, open.session);
    assert_eq!(found(&store, session, "lion").await, [0]);
    assert_eq!(erase(&store, KEY).await, Ok(2));
    assert_eq!(erase(&store, KEY).await, Ok(0), "there is nothing left");
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
        store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    }
    erase(&store, KEY).await.unwrap();
    let is_stored = async |text: &str| store.text(&Digest::of(text)).await.unwrap().is_some();
    assert!(!is_stored("only of Ev1").await);
    for shared in ["only of Ev2", "3 turns are not shown", "You are a help desk."] {
        assert!(is_stored(shared).await, "{shared}");
    }
}

/// A turn of this conversation asks a contact in a direct message, about this thread.
async fn asks_apart(store: &Store, wanted: &str, event: &str, thread_ts: &str) {
    let open = ask(store, accept(store, wanted, event).await).await;
    let marker = Marker { thread_ts: thread_ts.into(), ..marker(&["U9"]) };
    let escalation = Some(EscalationUpdate::Asked(FrontName::Slack, marker));
    let parts = vec![Outgoing { purpose: Purpose::Escalation, to: Some("U9".into()), ..Outgoing::reply("which?") }];
    store.record(open.turn, Recorded { escalation, parts, ..recorded("q", "a") }, NOW).await.unwrap();
    store.finish(open.turn, vec![sent(0, Some("1.2"))], vec![], NOW).await.unwrap();
}

/// What a thread was last asked led to them no more, but their messages were still taken for answers.
#[tokio::test]
async fn who_had_been_asked_about_a_thread_before_stayed_once_what_it_was_last_asked_was_erased() {
    let home = home();
    let store = open(&home);
    for (wanted, event) in [(OTHER, "Ev1"), (KEY, "Ev2")] {
        asks_apart(&store, wanted, event, "1.1").await;
        assert!(store.cancel_escalation("C1", "1.1", "U1", NOW).await.unwrap().is_some());
    }
    erase(&store, KEY).await.unwrap();
    assert_eq!(number(&home, "SELECT count(*) FROM asked_apart"), 0);
}

/// Only the question led to the row, and that was gone.
#[tokio::test]
async fn whom_an_erased_question_had_been_put_to_was_kept_for_good() {
    let home = home();
    let store = open(&home);
    for (wanted, event) in [(KEY, "Ev1"), (OTHER, "Ev2")] {
        asks_apart(&store, wanted, event, event).await;
    }
    assert_eq!(number(&home, "SELECT count(*) FROM asked_apart"), 2);
    assert!(store.cancel_escalation("C1", "Ev1", "U1", NOW).await.unwrap().is_some());
    erase(&store, KEY).await.unwrap();
    assert_eq!(number(&home, "SELECT count(*) FROM asked_apart WHERE thread_ts = 'Ev1'"), 0);
    assert_eq!(number(&home, "SELECT count(*) FROM asked_apart"), 1, "the other still waits");
}

/// Only a turn of ours led to the row.
#[tokio::test]
async fn what_pmk_had_asked_was_kept_when_its_conversation_was_erased() {
    let home = home();
    let store = open(&home);
    let places = [(KEY, "C1", "1.1"), (OTHER, "D1", "Ev2"), ("slack:channel:C2:2.2", "C2", "3.3")];
    for (number, (wanted, channel, thread_ts)) in (1..).zip(places) {
        say(&store, wanted, &format!("Ev{number}"), "a question", "an answer").await;
        let (channel_id, thread_ts) = (channel.into(), thread_ts.into());
        let asked = Marker { channel_id, thread_ts, question: "which zebra?".into(), ..marker(&["U9"]) };
        assert!(store.import_escalation(FrontName::Slack, &asked).await.unwrap());
    }
    for (wanted, channel, thread_ts) in &places[..2] {
        assert_eq!(erase(&store, wanted).await, Err(StoreError::AwaitsContact(key(wanted))));
        assert!(store.cancel_escalation(channel, thread_ts, "han", NOW).await.unwrap().is_some());
        assert_eq!(erase(&store, wanted).await, Ok(2));
    }
    assert_eq!(erase(&store, places[2].0).await, Ok(2), "it was asked in another thread");
    assert_eq!(number(&home, "SELECT count(*) FROM escalation WHERE marker LIKE '%zebra%'"), 1);
    assert_eq!(number(&home, "SELECT count(*) FROM escalation WHERE marker LIKE '%zebra%' AND thread_ts = '3.3'"), 1);
    assert!(!store.import_escalation(FrontName::Slack, &marker(&["U9"])).await.unwrap(), "it does not wait again");
}

/// With `sessions.keepDays` that was once an hour.
#[tokio::test]
async fn receipts_that_refer_to_nothing_that_was_said_were_read_with_the_others() {
    let home = home();
    let store = open(&home);
    let open = ask(&store, accept(&store, KEY, "Ev1").await).await;
    let mut receipts = Receipts::default();
    let said = receipts.keep("what was said");
    let mut plain = receipt(0, &mut receipts, vec![Reference::Whole(1), Reference::Whole(2), Reference::Whole(7)]);
    plain.before.marker = None;
    let plan = plain.plan.as_mut().unwrap();
    plan.replaced.clear();
    plan.marker = None;
    let ways: [fn(&mut Receipt, Digest); 7] = [
        |of, text| of.before.messages.push(Reference::Text { text }),
        |of, text| of.before.messages.push(Reference::Reduced(3, text)),
        |of, text| of.before.marker = Some(text),
        |of, text| of.background = Some(text),
        |of, text| of.plan.as_mut().unwrap().replaced.push((0, text)),
        |of, text| of.plan.as_mut().unwrap().marker = Some((text, 1)),
        |of, text| of.plan.as_mut().unwrap().recall = Some(text),
    ];
    for (call, refer) in (1..).zip(ways) {
        let mut referring = Receipt { call, ..plain.clone() };
        refer(&mut referring, said.clone());
        receipts.push(referring);
    }
    receipts.push(plain);
    store.record(open.turn, Recorded { receipts, ..recorded("q", "a") }, NOW).await.unwrap();
    let mut calls: Vec<u32> = asked(&home, |conn| {
        let mut statement = conn.prepare_cached(BODIES).unwrap();
        let bodies = statement.query_map(params![open.session.0, 0_i64, i64::MAX], |row| row.get::<_, String>(0));
        bodies.unwrap().map(|body| serde_json::from_str::<Receipt>(&body.unwrap()).unwrap().call).collect()
    });
    calls.sort_unstable();
    assert_eq!(calls, [1, 2, 3, 4, 5, 6, 7]);
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
    assert_eq!(store.erase_conversation(&key(KEY), Erasing::Anyway, Duration::ZERO, NOW).await.unwrap().parked, 1);
    assert_eq!(store.parked().await.unwrap().len(), 0);
    assert_eq!(columns_with(&home, "question"), []);
    assert_eq!(erase(&store, OTHER).await, Err(StoreError::UnknownSession(key(OTHER))));
}

#[tokio::test]
async fn only_conversations_in_which_nobody_has_written_for_so_long_are_too_old() {
    let home = home();
    let store = open(&home);
    it_is(&home, NOW);
    say(&store, KEY, "Ev1", "an old one", "indeed").await;
    it_is(&home, NOW + 5 * DAY_MS);
    let recent = store.accept(&inbound(OTHER, "Ev2"), NOW + 5 * DAY_MS).await.unwrap().unwrap();
    it_is(&home, NOW + 10 * DAY_MS);
    let idle = async |days: u32| store.idle_conversations(days, NOW + 10 * DAY_MS).await.unwrap();
    assert_eq!(idle(11).await, []);
    assert_eq!(idle(9).await, [key(KEY)]);
    assert_eq!(idle(4).await, [key(KEY)], "the recent one is not answered yet");
    let open = ask(&store, recent).await;
    store.record(open.turn, recorded("q", "a"), NOW).await.unwrap();
    store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    assert_eq!(idle(4).await, [key(KEY), key(OTHER)]);
    erase(&store, KEY).await.unwrap();
    assert_eq!(idle(9).await, [], "what is erased is not too old again");
}

/// A conversation whose erasure was interrupted before its receipts looked as if nothing was left of it.
#[tokio::test]
async fn what_an_interruption_left_is_erased_by_the_next_attempt() {
    let home = home();
    let store = open(&home);
    it_is(&home, NOW);
    let turn = talk_of_zebras(&store).await;
    it_is(&home, NOW + 2 * DAY_MS);
    assert!(store.cancel_escalation("C1", "1.1", "U1", NOW).await.unwrap().is_some());
    store.erase_conversation(&key(KEY), Erasing::Anyway, Duration::ZERO, NOW).await.unwrap();
    assert_eq!(receipts_of(&home, turn.turn), 1);
    assert_eq!(store.idle_conversations(1, NOW + 2 * DAY_MS).await.unwrap(), [key(KEY)]);
    let again = Erasing::Idle { days: 1 };
    let again = store.erase_conversation(&key(KEY), again, Duration::ZERO, NOW + 2 * DAY_MS).await.unwrap();
    assert_eq!(again.messages, 0);
    store.erase_receipts(&[again]).await.unwrap();
    assert_eq!(columns_with(&home, "zebra"), []);
    assert_eq!(store.idle_conversations(1, NOW + 2 * DAY_MS).await.unwrap(), []);
}

/// What went on in the conversation meanwhile keeps its receipts and their texts.
#[tokio::test]
async fn a_turn_that_begins_before_the_receipts_are_erased_keeps_its_own() {
    let home = home();
    let store = open(&home);
    let with_receipt = async |event: &str| {
        let open = ask(&store, accept(&store, OTHER, event).await).await;
        let mut receipts = Receipts::default();
        let own = receipts.keep(format!("only of {event}"));
        let with = receipt(0, &mut receipts, vec![Reference::AddedReduced(0, own)]);
        receipts.push(with);
        let recorded = Recorded { receipts, revision: open.live.revision, ..recorded("q", "a") };
        store.record(open.turn, recorded, NOW).await.unwrap();
        store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
        open.turn
    };
    with_receipt("Ev1").await;
    let erased = store.erase_conversation(&key(OTHER), Erasing::Anyway, Duration::ZERO, NOW).await.unwrap();
    let since = with_receipt("Ev2").await;
    store.erase_receipts(&[erased]).await.unwrap();
    assert_eq!(number(&home, "SELECT count(*) FROM receipt"), 1);
    assert_eq!(receipts_of(&home, since), 1);
    let is_stored = async |text: &str| store.text(&Digest::of(text)).await.unwrap().is_some();
    assert!(!is_stored("only of Ev1").await);
    assert!(is_stored("only of Ev2").await && is_stored("3 turns are not shown").await);
}

/// The turn found the text stored, and its receipt led to nothing once the text was erased.
#[tokio::test]
async fn a_text_that_another_conversation_has_begun_to_use_meanwhile_was_erased() {
    let home = home();
    let store = open(&home);
    it_is(&home, NOW);
    let answer = async |open: OpenTurn, of: &str, now_ms: i64| {
        let mut receipts = Receipts::default();
        let own = receipts.keep(format!("only of {of}"));
        let with = receipt(0, &mut receipts, vec![Reference::AddedReduced(0, own)]);
        receipts.push(with);
        store.record(open.turn, Recorded { receipts, ..recorded("q", "a") }, now_ms).await.unwrap();
        store.finish(open.turn, vec![sent(0, None)], vec![], now_ms).await.unwrap();
    };
    // Both have been asked before: one is waiting for its answer, in the other nobody has written for long.
    let waiting = ask(&store, accept(&store, OTHER, "Ev1").await).await;
    answer(ask(&store, accept(&store, KEY, "Ev2").await).await, "Ev2", NOW).await;
    asked(&home, |conn| conn.execute_batch("UPDATE session SET active_at = 1").unwrap());
    let erased = store.erase_conversation(&key(KEY), Erasing::Anyway, Duration::ZERO, NOW).await.unwrap();
    let own = store.own_texts(&[erased]).await.unwrap();
    for text in ["only of Ev2", "3 turns are not shown", "{n} turns are not shown"] {
        assert!(own.texts.contains(&Digest::of(text)), "{text}");
    }
    // By the clock of a host that is behind.
    answer(waiting, "Ev1", NOW - 2 * 60 * 60 * 1_000).await;
    store.erase_own(own).await.unwrap();
    let is_stored = async |text: &str| store.text(&Digest::of(text)).await.unwrap().is_some();
    assert!(is_stored("3 turns are not shown").await && is_stored("{n} turns are not shown").await);
    assert!(is_stored("only of Ev1").await && !is_stored("only of Ev2").await);
    assert_eq!(number(&home, "SELECT count(*) FROM receipt"), 1);

    // And one in which somebody writes only now.
    let erased = store.erase_conversation(&key(OTHER), Erasing::Anyway, Duration::ZERO, NOW).await.unwrap();
    let own = store.own_texts(&[erased]).await.unwrap();
    assert!(own.texts.contains(&Digest::of("3 turns are not shown")));
    answer(ask(&store, accept(&store, "slack:dm:U3", "Ev3").await).await, "Ev3", NOW).await;
    store.erase_own(own).await.unwrap();
    assert!(is_stored("3 turns are not shown").await && !is_stored("only of Ev1").await);
}

/// A process that had stored a text took it for stored although another process had erased it.
#[tokio::test]
async fn a_text_that_another_process_has_erased_is_stored_again() {
    let home = home();
    let [store, other] = [open(&home), open(&home)];
    for (wanted, event) in [(KEY, "Ev1"), (OTHER, "Ev2")] {
        let open = ask(&store, accept(&store, wanted, event).await).await;
        let mut receipts = Receipts::default();
        let with = receipt(0, &mut receipts, vec![]);
        receipts.push(with);
        store.record(open.turn, Recorded { receipts, ..recorded("q", "a") }, NOW).await.unwrap();
        store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
        let is_stored = async |text: &str| other.text(&Digest::of(text)).await.unwrap().is_some();
        assert!(is_stored("3 turns are not shown").await && is_stored("You are a help desk.").await, "{event}");
        erase(&other, wanted).await.unwrap();
        assert!(!is_stored("3 turns are not shown").await && is_stored("You are a help desk.").await, "{event}");
    }
}

/// A front sends an event again for minutes, and an edit that came again brought back what was erased meanwhile.
#[tokio::test]
async fn an_edit_that_comes_again_brings_back_nothing_that_was_erased() {
    let home = home();
    let store = open(&home);
    answered(&store, 1, "a zebra?", "it has stripes", 0).await;
    let edited = edit(1, "a striped zebra?", 1);
    assert!(matches!(store.edit(&edited, NOW).await, Ok(Changed::Here { .. })));
    erase(&store, OTHER).await.unwrap();
    assert_eq!(store.edit(&edited, NOW).await, Ok(Changed::Nothing));
    assert_eq!(columns_with(&home, "zebra"), []);
    // What is written since is kept.
    assert!(matches!(store.edit(&edit(1, "a lion?", 2), NOW).await, Ok(Changed::Here { .. })));
    assert_eq!(columns_with(&home, "lion"), [("inbox", "edited")]);
}

#[tokio::test]
async fn a_contacts_answer_and_an_edit_are_content_too() {
    let home = home();
    let store = open(&home);
    it_is(&home, NOW);
    let open = ask(&store, accept(&store, OTHER, "Ev1").await).await;
    it_is(&home, NOW + 2 * DAY_MS);
    store.record(open.turn, Recorded { messages: vec![], ..recorded("", "") }, NOW).await.unwrap();
    store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    let idle = async || store.idle_conversations(1, NOW + 2 * DAY_MS).await.unwrap();
    for holds in ["UPDATE turn SET reading = 'x'", "UPDATE inbox SET edited = 'x'", "UPDATE outbox SET how = 'x'"] {
        assert_eq!(idle().await, [], "before {holds}");
        asked(&home, |conn| conn.execute_batch(holds).unwrap());
        assert_eq!(idle().await, [key(OTHER)], "{holds}");
        erase(&store, OTHER).await.unwrap();
    }
    assert_eq!(idle().await, []);
}

/// Listed as idle, a conversation was erased minutes later although somebody had written in it meanwhile.
#[tokio::test]
async fn a_conversation_in_which_somebody_writes_again_is_kept() {
    let home = home();
    let store = open(&home);
    it_is(&home, NOW);
    say(&store, KEY, "Ev1", "an old one", "indeed").await;
    let later = NOW + 10 * DAY_MS;
    it_is(&home, later);
    assert_eq!(store.idle_conversations(9, later).await.unwrap(), [key(KEY)]);
    let again = store.accept(&inbound(KEY, "Ev2"), later).await.unwrap().unwrap();
    let turn = ask(&store, again).await;
    let recorded = Recorded { revision: turn.live.revision, ..recorded("q", "a") };
    store.record(turn.turn, recorded, later).await.unwrap();
    store.finish(turn.turn, vec![sent(0, None)], vec![], later).await.unwrap();
    let erased = store.erase_conversation(&key(KEY), Erasing::Idle { days: 9 }, Duration::ZERO, later).await;
    assert_eq!(erased, Err(StoreError::NotIdle(key(KEY))));
    assert_eq!(number(&home, "SELECT count(*) FROM message"), 4);
}

/// Each host erases what is too old, and each noted it.
#[tokio::test]
async fn what_another_host_had_erased_meanwhile_was_counted_again() {
    let home = home();
    let [store, other] = [open(&home), open(&home)];
    it_is(&home, NOW);
    let turn = talk_of_zebras(&store).await;
    assert!(store.cancel_escalation("C1", "1.1", "U1", NOW).await.unwrap().is_some());
    let later = NOW + 10 * DAY_MS;
    it_is(&home, later);
    assert_eq!(store.idle_conversations(9, later).await.unwrap(), [key(KEY)]);
    let erase =
        async |by: &Store| by.erase_conversation(&key(KEY), Erasing::Idle { days: 9 }, Duration::ZERO, later).await;
    assert!(erase(&other).await.unwrap().had_content());
    let again = erase(&store).await.unwrap();
    assert!(!again.had_content());
    store.erase_receipts(&[again]).await.unwrap();
    assert_eq!(receipts_of(&home, turn.turn), 0);
    assert!(!erase(&other).await.unwrap().had_content(), "that nothing is left is no failure");
}

/// What was written while the gateway was down is read back only after the start.
#[tokio::test]
async fn a_conversation_that_is_still_to_be_read_back_is_not_idle() {
    let home = home();
    let store = open(&home);
    it_is(&home, NOW);
    say(&store, KEY, "Ev1", "an old one", "indeed").await;
    it_is(&home, NOW + 10 * DAY_MS);
    asked(&home, |conn| conn.execute_batch("UPDATE session SET read_from = '1.0'").unwrap());
    assert_eq!(store.idle_conversations(1, NOW + 10 * DAY_MS).await.unwrap(), []);
    asked(&home, |conn| conn.execute_batch("UPDATE session SET read_from = NULL").unwrap());
    assert_eq!(store.idle_conversations(1, NOW + 10 * DAY_MS).await.unwrap(), [key(KEY)]);
}

#[tokio::test]
async fn a_long_conversation_is_erased_in_pieces() {
    let home = home();
    let store = open(&home);
    let open = ask(&store, accept(&store, KEY, "Ev1").await).await;
    let messages = (0..1_201).map(|n| Entry::new(0, Message::user(format!("message {n}")))).collect();
    store.record(open.turn, Recorded { messages, ..recorded("", "") }, NOW).await.unwrap();
    store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    assert_eq!(erase(&store, KEY).await, Ok(1_201));
    assert_eq!(number(&home, "SELECT count(*) FROM message"), 0);
    assert_eq!(number(&home, "SELECT count(*) FROM live"), 0);
}
