//! Which escalation a message answers.

use std::time::Duration;

use pmk_core::{FrontName, ImageId};

use super::*;
use crate::{
    chat::{Addressing, DeletedAuthor, Deletion, Edit, MessageBody},
    escalation::{EarlierQuestion, EscalationRemark, Marker, PriorAttempts, PrivateConversation, Reading, Word},
    ledger::{Event, TaggedEvent},
};

pub(super) fn marker(contacts: &[&str]) -> Marker {
    Marker {
        channel_id: "C1".into(),
        thread_ts: "1.1".into(),
        question: "本月預算?".into(),
        scope: Some("erp".into()),
        reason: None,
        pending_since: 7,
        mentioned_user_ids: contacts.iter().map(|&id| id.to_owned()).collect(),
        asker_user_id: Some("U1".into()),
        tried: PriorAttempts::default(),
        apart: None,
        exchange: vec![],
        asked_by: None,
        answered_by: None,
        earlier: vec![],
    }
}

/// The same once it was asked, by the first turn of the store.
fn asked(contacts: &[&str]) -> Marker {
    Marker { asked_by: Some(TurnId::of(1)), ..marker(contacts) }
}

/// The same once an answer of U2 was taken.
fn answered(marker: Marker) -> Marker {
    Marker { answered_by: Some("U2".into()), ..marker }
}

async fn said(store: &Store, event_id: &str, user: &str, thread: Option<&str>) -> InboxId {
    let key = format!("slack:channel:C1{}", thread.map(|ts| format!(":{ts}")).unwrap_or_default());
    let reply_to = ReplyTo { channel: "C1".into(), thread_ts: thread.map(str::to_owned) };
    let message = Inbound { user: user.into(), reply_to, ..inbound(&key, event_id) };
    store.accept(&message, NOW).await.unwrap().expect("a new message")
}

/// A store in which a thread waits for U2 and U3.
async fn waiting(home: &Home) -> Store {
    let store = open(home);
    puts(&store, "Ev1", marker(&["U2", "U3"]), NOW).await;
    store
}

/// U1 has this put to contacts, at this time.
async fn puts(store: &Store, event_id: &str, marker: Marker, now: i64) -> TurnId {
    let asked = ask(store, said(store, event_id, "U1", None).await).await;
    let escalation = Some(EscalationUpdate::Asked(FrontName::Slack, marker));
    store.record(asked.turn, Recorded { escalation, ..recorded("q", "forwarded") }, now).await.unwrap();
    store.finish(asked.turn, vec![sent(0, None)], vec![], now).await.unwrap();
    asked.turn
}

/// What somebody has said in this turn about a question, to one contact or to all.
fn remark(user: &str, text: &str, open: &OpenTurn, to: Option<&str>) -> EscalationRemark {
    let to = to.map(str::to_owned);
    EscalationRemark { user_id: user.into(), text: text.into(), turn: Some(open.turn), to }
}

/// Whether a message is about a question that its author has asked, and that waits.
fn asks(open: &OpenTurn) -> bool {
    matches!(open.concern.as_deref(), Some(Concern::Asker(..)))
}

#[tokio::test]
async fn the_awaited_answer_is_absorbed_once() {
    let home = home();
    let store = waiting(&home).await;
    // Two contacts answer at the same time, and each attempt of the first one finds the escalation again.
    let (first, second) = (said(&store, "Ev2", "U2", Some("1.1")).await, said(&store, "Ev3", "U3", Some("1.1")).await);
    let absorbing = ask(&store, first).await;
    assert_eq!(absorbing.absorbs(), Some(&asked(&["U2", "U3"])));
    let claim = async |turn: &OpenTurn| store.claim_answer(turn, &asked(&[])).await.unwrap();
    assert!(claim(&absorbing).await);
    let late = ask(&store, second).await;
    assert!(late.absorbs().is_none() && !claim(&late).await);
    assert_eq!(ask(&store, first).await.absorbs(), Some(&answered(asked(&["U2", "U3"]))));
    assert!(claim(&absorbing).await, "it is still this turn's");
    store.record(absorbing.turn, recorded("reply", "answer"), NOW).await.unwrap();
    assert_eq!(store.escalations().await.unwrap(), []);
    assert!(!claim(&late).await);
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
        assert_eq!(open.absorbs(), None, "{event}");
        store.finish(open.turn, vec![], vec![], NOW).await.unwrap();
    }
    assert_eq!(store.escalations().await.unwrap(), [asked(&["U2", "U3"])]);
}

#[tokio::test]
async fn a_contact_who_is_ignored_leaves_the_thread_waiting() {
    let home = home();
    let store = waiting(&home).await;
    let ignored = ask(&store, said(&store, "Ev2", "U2", Some("1.1")).await).await;
    assert!(store.claim_answer(&ignored, &asked(&[])).await.unwrap());
    store.finish(ignored.turn, vec![], vec![], NOW).await.unwrap();
    assert!(ask(&store, said(&store, "Ev3", "U3", Some("1.1")).await).await.absorbs().is_some());
}

/// On PostgreSQL, no answer to a question could be parked or edited any more once somebody had said a NUL about it.
#[tokio::test]
async fn a_nul_in_what_was_said_about_a_question_kept_its_answer_from_being_parked() {
    let home = home();
    let store = open(&home);
    let open = ask(&store, said(&store, "Ev1", "U1", None).await).await;
    let exchange = vec![EscalationRemark { user_id: "U3".into(), text: "a\0b".into(), turn: None, to: None }];
    let escalation = Some(EscalationUpdate::Asked(FrontName::Slack, Marker { exchange, ..marker(&["U2", "U3"]) }));
    store.record(open.turn, Recorded { escalation, ..recorded("q", "forwarded") }, NOW).await.unwrap();
    store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();

    let answer = said(&store, "Ev2", "U2", Some("1.1")).await;
    let absorbing = ask(&store, answer).await;
    assert!(store.claim_answer(&absorbing, &asked(&[])).await.unwrap());
    store.park(answer, "a test", vec![], NOW).await.unwrap();
    let left = store.escalations().await.unwrap().remove(0);
    assert_eq!((left.answered_by.as_deref(), &*left.exchange[0].text), (None, "a\u{fffd}b"));
}

/// Regression: so it stayed where an earlier version had stored the NUL.
#[tokio::test]
async fn a_nul_that_an_earlier_version_had_stored_kept_an_answer_from_being_parked() {
    let home = home();
    let store = waiting(&home).await;
    let answer = said(&store, "Ev2", "U2", Some("1.1")).await;
    let absorbing = ask(&store, answer).await;
    assert!(store.claim_answer(&absorbing, &asked(&[])).await.unwrap());
    let with_nul = r#"UPDATE escalation SET marker = replace(marker, '"question":"', '"question":"\u0000')"#;
    super::asked(&home, |conn| conn.execute_batch(with_nul).unwrap());
    store.park(answer, "a test", vec![], NOW).await.unwrap();
    let left = store.escalations().await.unwrap().remove(0);
    assert_eq!(left.answered_by, None);
    assert!(left.question.starts_with(['\0', '\u{fffd}']), "{}", left.question);
}

#[tokio::test]
async fn a_marker_of_pmk_is_imported_once_and_never_over_our_own() {
    let home = home();
    let store = open(&home);
    assert!(store.import_escalation(FrontName::Slack, &marker(&["U2"])).await.unwrap());
    assert!(!store.import_escalation(FrontName::Slack, &marker(&["U9"])).await.unwrap());
    assert_eq!(store.escalations().await.unwrap(), [marker(&["U2"])]);
}

/// It had been forgotten after a day, or was kept with its words; and forgotten after all once something else had been
/// asked in its thread.
#[tokio::test]
async fn what_pmk_had_asked_waited_again_once_it_was_imported_a_day_after_its_end() {
    for again in [false, true] {
        let home = home();
        let store = open(&home);
        let pmks = Marker { question: "heliotrope?".into(), ..marker(&["U2"]) };
        assert!(store.import_escalation(FrontName::Slack, &pmks).await.unwrap());
        store.cancel_escalation("C1", "1.1", "han", NOW).await.unwrap().expect("it waits");
        if again {
            puts(&store, "Ev1", pmks.clone(), NOW).await;
            store.cancel_escalation("C1", "1.1", "han", NOW).await.unwrap().expect("it waits");
        }
        // Whenever something is asked, what ended more than a day ago is forgotten.
        let other = Marker { thread_ts: "2.2".into(), ..marker(&["U2"]) };
        let asked_by = Some(puts(&store, "Ev2", other.clone(), NOW + 25 * 60 * 60 * 1_000).await);
        is_gone(&home, "heliotrope");
        assert!(!store.import_escalation(FrontName::Slack, &pmks).await.unwrap(), "{again}");
        assert_eq!(store.escalations().await.unwrap(), [Marker { asked_by, ..other }], "{again}");
    }
}

#[tokio::test]
async fn where_a_message_goes_survives_a_crash() {
    let home = home();
    let store = open(&home);
    let inbox = said(&store, "Ev1", "U1", None).await;
    let asked = ask(&store, inbox).await;
    let elsewhere = Outgoing {
        speech: MessageBody { text: "<@U2> help".into(), pings: vec!["U2".into()] },
        thread_ts: Some("1.1".into()),
        to: Some("U2".into()),
        purpose: Purpose::Notice { atom: "---".into(), saved_in: None },
        offers: Offers::Opinion,
    };
    let parts = vec![Outgoing::reply("answer"), elsewhere.clone()];
    store.record(asked.turn, Recorded { parts, ..recorded("q", "a") }, NOW).await.unwrap();
    drop(store);
    let BeginOutcome::Deliver(answered) = open(&home).begin(inbox, None, Hold::Alone, NOW).await.unwrap() else {
        panic!("it has an answer")
    };
    assert_eq!(answered.parts[0].outgoing, Outgoing::reply("answer"));
    assert_eq!(answered.parts[1].outgoing, elsewhere);
}

#[tokio::test]
async fn what_is_no_answer_leaves_the_thread_waiting_with_what_was_said() {
    let home = home();
    let store = waiting(&home).await;
    for (event, user, word) in [("Ev2", "U2", Word::Question), ("Ev3", "U1", Word::Reply)] {
        let inbox = said(&store, event, user, Some("1.1")).await;
        let open = ask(&store, inbox).await;
        assert_eq!((open.absorbs().is_some(), asks(&open)), (user == "U2", user == "U1"), "{event}");
        store.read_as(&open, &Reading::of(word), vec![], NOW).await.unwrap();
        let again = ask(&store, inbox).await;
        assert_eq!(again.reading.as_deref(), Some(&Reading::of(word)), "read once");
        let words = remark(user, event, &open, None);
        let escalation = Some(EscalationUpdate::Said(FrontName::Slack, asked(&[]), words));
        store.record(open.turn, Recorded { escalation, ..recorded("q", "a") }, NOW).await.unwrap();
        store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    }
    let [waiting] = store.escalations().await.unwrap().try_into().unwrap();
    let said: Vec<&str> = waiting.exchange.iter().map(|said| &*said.text).collect();
    assert_eq!((said, waiting.mentioned_user_ids.len()), (vec!["Ev2", "Ev3"], 2));
}

#[tokio::test]
async fn an_operator_cancels_what_waits_and_nothing_else() {
    let home = home();
    let store = waiting(&home).await;
    assert_eq!(store.cancel_escalation("C1", "2.2", "han", NOW).await.unwrap(), None);
    let answering = ask(&store, said(&store, "Ev2", "U2", Some("1.1")).await).await;
    assert!(store.claim_answer(&answering, &asked(&[])).await.unwrap());
    assert_eq!(store.cancel_escalation("C1", "1.1", "han", NOW).await.unwrap(), None, "its answer is coming in");
    store.finish(answering.turn, vec![], vec![], NOW).await.unwrap();
    let cancelled = store.cancel_escalation("C1", "1.1", "han", NOW).await.unwrap();
    assert_eq!(cancelled, Some(asked(&["U2", "U3"])));
    assert_eq!(store.escalations().await.unwrap(), []);
}

/// A message to the bot in the direct message of this person.
pub(super) async fn told(store: &Store, event_id: &str, user: &str, thread: Option<&str>) -> InboxId {
    let key = format!("slack:dm:{user}{}", thread.map(|ts| format!(":{ts}")).unwrap_or_default());
    let reply_to = ReplyTo { channel: format!("D{user}"), thread_ts: thread.map(str::to_owned) };
    let message = Inbound { user: user.into(), reply_to, ..inbound(&key, event_id) };
    store.accept(&message, NOW).await.unwrap().expect("a new message")
}

/// A store in which U1 waits, in a direct message, for U2 and U3, who are about to be asked in direct messages of their
/// own: parts 1 and 2 of what this turn sends.
async fn asking_apart(home: &Home) -> (Store, TurnId, Marker) {
    let store = open(home);
    let asked = ask(&store, told(&store, "Ev1", "U1", None).await).await;
    let reply_to = asked.inbound.reply_to.clone();
    let apart = Some(PrivateConversation { key: asked.inbound.key.clone(), reply_to });
    let marker = Marker { channel_id: "DU1".into(), apart, ..marker(&["U2", "U3"]) };
    let to = |contact: &str| Outgoing {
        to: Some(contact.into()),
        purpose: Purpose::Escalation,
        ..Outgoing::reply("could you help?")
    };
    let parts = vec![Outgoing::reply("asked"), to("U2"), to("U3")];
    let escalation = Some(EscalationUpdate::Asked(FrontName::Slack, marker.clone()));
    store.record(asked.turn, Recorded { parts, escalation, ..recorded("q", "a") }, NOW).await.unwrap();
    (store, asked.turn, Marker { asked_by: Some(asked.turn), ..marker })
}

/// The same once they were asked.
pub(super) async fn waiting_apart(home: &Home) -> (Store, Marker) {
    let (store, turn, marker) = asking_apart(home).await;
    let sent = [(0, "9.0"), (1, "9.1"), (2, "9.2")].map(|(part, ts)| sent(part, Some(ts)));
    store.finish(turn, sent.to_vec(), vec![], NOW).await.unwrap();
    (store, marker)
}

#[tokio::test]
async fn a_question_waits_for_nobody_once_no_contact_can_be_reached_any_more() {
    for (first, waits) in [(Some("9.1"), true), (None, false)] {
        let home = home();
        let (store, turn, marker) = asking_apart(&home).await;
        assert!(!store.is_unreached(turn, 1).await.unwrap(), "the other contact may still be reached");
        for (part, ts) in [(0, Some("9.0")), (1, first)] {
            store.part_sent(turn, sent(part, ts), vec![], NOW).await.unwrap();
        }
        // A second attempt at the last part finds the same.
        for _ in 0..2 {
            assert_eq!(store.is_unreached(turn, 2).await.unwrap(), !waits);
            store.close_unreached(turn, 2, NOW).await.unwrap();
        }
        assert_eq!(store.escalations().await.unwrap(), if waits { vec![marker] } else { vec![] });
    }
}

#[tokio::test]
async fn contacts_who_are_asked_apart_are_known_by_the_message_that_asked_them() {
    let home = home();
    let (store, marker) = waiting_apart(&home).await;
    let asked = store.asked_apart(FrontName::Slack, &marker).await.unwrap();
    assert_eq!(asked, [("U2".to_owned(), Some("9.1".to_owned())), ("U3".to_owned(), Some("9.2".to_owned()))]);
    for (event, user, thread, absorbs, awaits) in [
        ("Ev2", "U2", Some("9.1"), true, false),
        ("Ev3", "U2", None, true, false),
        ("Ev4", "U2", Some("9.2"), false, false),
        ("Ev5", "U9", None, false, false),
        ("Ev6", "U1", None, false, true),
        ("Ev7", "U1", Some("8.8"), false, false),
    ] {
        let open = ask(&store, told(&store, event, user, thread).await).await;
        assert_eq!((open.absorbs().is_some(), asks(&open)), (absorbs, awaits), "{event}");
        store.finish(open.turn, vec![], vec![], NOW).await.unwrap();
    }
}

#[tokio::test]
async fn what_a_contact_answered_while_nobody_listened_was_not_found_if_they_write_in_threads_alone() {
    let home = home();
    let (store, _) = waiting_apart(&home).await;
    it_is(&home, NOW);
    let of_late =
        format!(r#"UPDATE escalation SET marker = replace(marker, '"pendingSince":7', '"pendingSince":{NOW}')"#);
    sql(&home).execute_batch(&of_late).unwrap();
    told(&store, "Ev2", "U2", Some("8.8")).await;
    let hour = 60 * 60 * 1_000;
    let outage =
        crate::store::Outage { since_ms: Some(NOW + hour), until_ms: NOW + 2 * hour, announce: None, read: true };
    store.came_back(outage).await.unwrap();
    let unread = store.unread(1_000).await.unwrap().conversations;
    let mut of_u2: Vec<String> = unread.iter().map(|unread| unread.key.to_string()).collect();
    of_u2.retain(|key| key.starts_with("slack:dm:U2"));
    assert_eq!(of_u2, ["slack:dm:U2", "slack:dm:U2:9.1", "slack:dm:U2:8.8"]);
}

#[tokio::test]
async fn an_answer_that_is_handed_on_is_the_askers_and_survives_a_crash() {
    let home = home();
    let (store, marker) = waiting_apart(&home).await;
    let first = ask(&store, told(&store, "Ev2", "U2", Some("9.1")).await).await;
    assert!(store.claim_answer(&first, &marker).await.unwrap());
    let second = ask(&store, told(&store, "Ev3", "U3", Some("9.2")).await).await;
    assert!(second.absorbs().is_some(), "it is read, so that they can be told");
    assert!(!store.claim_answer(&second, &marker).await.unwrap());
    let handed_on = Recorded { escalation: Some(EscalationUpdate::HandedOn), ..recorded("q", "a") };
    store.record(first.turn, handed_on, NOW).await.unwrap();
    store.finish(first.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    let answer = crate::store::handed_on(first.turn, &first.inbound, &marker).expect("it is asked apart");
    let inbox = store.accept(&answer, NOW).await.unwrap().expect("a new message");
    assert_eq!(store.accept(&answer, NOW).await.unwrap(), None, "handed on once");
    drop(store);
    let store = open(&home);
    for _ in 0..2 {
        let passing_on = ask(&store, inbox).await;
        assert_eq!(
            (passing_on.absorbs(), passing_on.inbound.key.to_string()),
            (Some(&answered(marker.clone())), "slack:dm:U1".into())
        );
    }
    let passing_on = ask(&store, inbox).await;
    store.record(passing_on.turn, recorded("q", "a"), NOW).await.unwrap();
    assert_eq!(store.escalations().await.unwrap(), []);
    let late = ask(&store, told(&store, "Ev4", "U3", Some("9.2")).await).await;
    assert!(late.absorbs().is_some(), "who answers late is told");
    assert!(!store.claim_answer(&late, &marker).await.unwrap());
}

/// What a contact's turn hands on to the asker.
pub(super) async fn handed_on(store: &Store, said: &OpenTurn, marker: &Marker) -> Inbound {
    assert!(store.claim_answer(said, marker).await.unwrap());
    let answer = crate::store::handed_on(said.turn, &said.inbound, marker).expect("it is asked apart");
    let parts = vec![Outgoing { purpose: Purpose::HandOn { answer: Box::new(answer.clone()) }, ..Outgoing::default() }];
    let handed_on = Recorded { parts, escalation: Some(EscalationUpdate::HandedOn), ..recorded("q", "a") };
    store.record(said.turn, handed_on, NOW).await.unwrap();
    store.finish(said.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    answer
}

/// Once, it was posted by the contact's own turn, while the answer waited for the model.
#[tokio::test]
async fn what_a_contact_added_to_an_answer_reached_the_asker_before_it() {
    let home = home();
    let (store, marker) = waiting_apart(&home).await;
    let said = ask(&store, told(&store, "Ev2", "U2", Some("9.1")).await).await;
    let answer = handed_on(&store, &said, &marker).await;
    let answer = store.accept(&answer, NOW).await.unwrap().expect("a new message");
    let more = wrote(&store, "U2", "5.5", "Correction").await;
    assert!(!store.claim_answer(&more, &marker).await.unwrap());
    let words = "U2 adds: heliotrope".to_owned();
    let adding = crate::store::addition(more.turn, &more.inbound, &marker, words.clone()).expect("it is asked apart");
    let hand_on = Purpose::HandOn { answer: Box::new(adding.clone()) };
    let parts = vec![Outgoing { purpose: hand_on, ..Outgoing::default() }];
    store.record(more.turn, Recorded { parts, messages: vec![], ..recorded("q", "a") }, NOW).await.unwrap();
    store.finish(more.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    let added = store.accept(&adding, NOW).await.unwrap().expect("a new message");
    let open = store.open_in(&"slack:dm:U1".parse().unwrap()).await.unwrap();
    assert_eq!(open.iter().map(|pending| pending.inbox).collect::<Vec<_>>(), [answer, added]);
    // It takes nothing from the answer, before and after that is passed on.
    let begun = ask(&store, added).await;
    assert_eq!((&begun.inbound.text, begun.absorbs()), (&words, Some(&answered(marker.clone()))));
    let passing_on = ask(&store, answer).await;
    assert_eq!(passing_on.absorbs(), Some(&answered(marker.clone())));
    store.record(passing_on.turn, recorded("q", "a"), NOW).await.unwrap();
    store.finish(passing_on.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    assert_eq!(store.escalations().await.unwrap(), []);
    assert!(ask(&store, added).await.absorbs().is_some());
    // Taken back, it makes nothing wait again.
    takes_back(&store, "U2", "5.5").await;
    is_gone(&home, "heliotrope");
    let deleted = ask(&store, added).await;
    assert_eq!(deleted.called_off, Some(CalledOff::Deleted));
    assert_eq!(store.reopened(&deleted.inbound).await.unwrap(), None);
    assert_eq!(store.escalations().await.unwrap(), []);
}

/// They read the number of the contact's turn in its id.
#[tokio::test]
async fn what_a_contact_had_added_to_an_answer_was_parked_by_hosts_of_the_version_before() {
    let home = home();
    let (store, marker) = waiting_apart(&home).await;
    let more = wrote(&store, "U2", "5.5", "Correction").await;
    let adding = crate::store::addition(more.turn, &more.inbound, &marker, "more".into()).expect("it is asked apart");
    let answer = crate::store::handed_on(more.turn, &more.inbound, &marker).expect("it is asked apart");
    assert!(crate::store::is_addition(&adding) && !crate::store::is_addition(&answer));
    let number = adding.event_id.strip_prefix(":answer:").expect("it is handed on").parse::<i64>();
    assert!(number.expect("a number") < 0, "no turn with this number has claimed the answer");
}

/// Begins the turn of a message that this person has written at this position, in their direct message.
pub(super) async fn wrote(store: &Store, user: &str, ts: &str, text: &str) -> OpenTurn {
    let reply_to = ReplyTo { channel: format!("D{user}"), thread_ts: None };
    let message = Inbound {
        user: user.into(),
        reply_to,
        text: text.into(),
        ts: ts.into(),
        ..inbound(&format!("slack:dm:{user}"), &format!("Ev{ts}"))
    };
    ask(store, store.accept(&message, NOW).await.unwrap().expect("a new message")).await
}

/// Deletes it.
async fn takes_back(store: &Store, user: &str, ts: &str) -> Changed {
    let deletion = Deletion { message: MessageRef::new(format!("D{user}"), ts), thread: None, of: DeletedAuthor::Us };
    store.delete(&deletion, Some(["(deleted)", "(no answer)"].map(str::to_owned)), NOW).await.unwrap()
}

fn is_gone(home: &Home, words: &str) {
    for text in ["message WHERE blocks", "inbox WHERE message", "outbox WHERE how", "escalation WHERE marker"] {
        assert_eq!(number(home, &format!("SELECT count(*) FROM {text} LIKE '%{words}%'")), 0, "{text}");
    }
}

#[tokio::test]
async fn an_answer_that_its_contact_had_deleted_stayed_in_the_conversation_of_the_asker() {
    let home = home();
    let (store, marker) = waiting_apart(&home).await;
    let said = wrote(&store, "U2", "5.5", "heliotrope").await;
    let answer = handed_on(&store, &said, &marker).await;
    let passing_on = ask(&store, store.accept(&answer, NOW).await.unwrap().expect("a new message")).await;
    store.record(passing_on.turn, recorded("They say: heliotrope", "It is the flower."), NOW).await.unwrap();
    store.finish(passing_on.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    let here = Changed::Here { key: "slack:dm:U2".parse().unwrap(), anew: true };
    assert_eq!(takes_back(&store, "U2", "5.5").await, here);
    is_gone(&home, "heliotrope");
    assert_eq!(live_texts(&store, "slack:dm:U1").await, ["q", "a", "(deleted)", "It is the flower."]);
    assert_eq!(takes_back(&store, "U2", "5.5").await, Changed::Nothing, "it was redelivered");
}

#[tokio::test]
async fn an_image_that_a_contact_had_sent_was_gone_once_their_conversation_was_erased() {
    let home = home();
    let (store, marker) = waiting_apart(&home).await;
    let said = wrote(&store, "U2", "5.5", "this one").await;
    let image = StoredImage { sha256: ImageId::of(b"heliotrope"), bytes: b"heliotrope".as_slice().into() };
    store.keep_attached(&said, said.live.revision, &said.inbound.attached, vec![image.clone()]).await.unwrap();
    let answer = handed_on(&store, &said, &marker).await;
    let passing_on = ask(&store, store.accept(&answer, NOW).await.unwrap().expect("a new message")).await;
    store.record(passing_on.turn, recorded("They say: this one", "It is the flower."), NOW).await.unwrap();
    store.finish(passing_on.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    let theirs = "slack:dm:U2".parse().unwrap();
    store.erase_conversation(&theirs, Erasing::Anyway, Duration::ZERO, NOW).await.unwrap();
    assert_eq!(store.images(vec![image.sha256.clone()]).await.unwrap(), [image]);
}

#[tokio::test]
async fn an_answer_that_its_contact_had_deleted_was_passed_on() {
    let home = home();
    let (store, marker) = waiting_apart(&home).await;
    let said = wrote(&store, "U2", "5.5", "heliotrope").await;
    let answer = handed_on(&store, &said, &marker).await;
    let inbox = store.accept(&answer, NOW).await.unwrap().expect("a new message");
    let begun = ask(&store, inbox).await;
    takes_back(&store, "U2", "5.5").await;
    is_gone(&home, "heliotrope");
    let stale = Recorded { revision: begun.live.revision, ..recorded("They say: heliotrope", "It is the flower.") };
    assert_eq!(store.record(begun.turn, stale, NOW).await, Err(StoreError::Changed));
    let deleted = ask(&store, inbox).await;
    assert_eq!((deleted.called_off, deleted.absorbs()), (Some(CalledOff::Deleted), None));
    store.finish(deleted.turn, vec![], vec![], NOW).await.unwrap();
    assert_eq!(store.escalations().await.unwrap(), std::slice::from_ref(&marker), "nobody has answered it");
    let other = ask(&store, told(&store, "Ev3", "U3", Some("9.2")).await).await;
    assert!(store.claim_answer(&other, &marker).await.unwrap(), "another answer is waited for");
}

#[tokio::test]
async fn what_was_deleted_of_what_was_said_about_a_question_was_passed_on_with_its_answer() {
    let home = home();
    let (store, marker) = waiting_apart(&home).await;
    for (user, ts, text) in [("U2", "5.5", "Which customer?"), ("U1", "6.6", "heliotrope"), ("U2", "7.7", "I see")] {
        let said = wrote(&store, user, ts, text).await;
        let words = remark(user, text, &said, None);
        let escalation = Some(EscalationUpdate::Said(FrontName::Slack, marker.clone(), words));
        let said_on = Recorded { escalation, messages: vec![], ..recorded("", "said") };
        store.record(said.turn, said_on, NOW).await.unwrap();
        store.finish(said.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    }
    takes_back(&store, "U1", "6.6").await;
    is_gone(&home, "heliotrope");
    let answering = ask(&store, told(&store, "Ev9", "U3", Some("9.2")).await).await;
    let answer = handed_on(&store, &answering, &marker).await;
    let inbox = store.accept(&answer, NOW).await.unwrap().expect("a new message");
    let texts = |open: &OpenTurn| {
        let marker = open.absorbs().expect("an answer");
        marker.exchange.iter().map(|said| said.text.clone()).collect::<Vec<_>>()
    };
    let begun = ask(&store, inbox).await;
    assert_eq!(texts(&begun), ["Which customer?", "I see"]);
    takes_back(&store, "U2", "7.7").await;
    let stale = Recorded { revision: begun.live.revision, ..recorded("q", "a") };
    assert_eq!(store.record(begun.turn, stale, NOW).await, Err(StoreError::Changed));
    assert_eq!(texts(&ask(&store, inbox).await), ["Which customer?"]);
}

#[tokio::test]
async fn what_a_contact_ordered_while_something_waited_for_them_was_read_as_an_answer() {
    let home = home();
    let (store, _) = waiting_apart(&home).await;
    for (ts, text, absorbs) in
        [("5.5", "verbose off", false), ("5.6", "/pmk help", false), ("5.7", "verbose it is", true)]
    {
        let open = wrote(&store, "U2", ts, text).await;
        assert_eq!(open.absorbs().is_some(), absorbs, "{text}");
        store.finish(open.turn, vec![], vec![], NOW).await.unwrap();
    }
}

/// An edit of this message.
fn edit(message: Inbound) -> Edit {
    let manner = Some(Addressing::Plain { names: vec![], answered: None });
    Edit { message, at: "9.9".into(), is_for_us: true, comes_alone: false, manner, lost_files: false }
}

#[tokio::test]
async fn a_question_that_was_changed_changed_the_answer_that_was_handed_on_to_it() {
    let home = home();
    let store = open(&home);
    let reply_to = ReplyTo { channel: "DU1".into(), thread_ts: None };
    let question = Inbound { reply_to: reply_to.clone(), ts: "1.1".into(), ..inbound("slack:dm:U1", "Ev1") };
    let asked = ask(&store, store.accept(&question, NOW).await.unwrap().expect("a new message")).await;
    let apart = Some(PrivateConversation { key: question.key.clone(), reply_to });
    let marker = Marker { channel_id: "DU1".into(), apart, ..marker(&["U2"]) };
    let to = Outgoing { to: Some("U2".into()), purpose: Purpose::Escalation, ..Outgoing::reply("could you help?") };
    let escalation = Some(EscalationUpdate::Asked(FrontName::Slack, marker.clone()));
    let outcome = TurnOutcome { asked_by: Some("U1".into()), ..TurnOutcome::default() };
    let forwarded = Recorded { parts: vec![Outgoing::reply("asked"), to], escalation, outcome, ..recorded("q", "a") };
    store.record(asked.turn, forwarded, NOW).await.unwrap();
    let sent = [(0, "9.0"), (1, "9.1")].map(|(part, ts)| sent(part, Some(ts)));
    store.finish(asked.turn, sent.to_vec(), vec![], NOW).await.unwrap();
    let marker = Marker { asked_by: Some(asked.turn), ..marker };
    let said = ask(&store, told(&store, "Ev2", "U2", Some("9.1")).await).await;
    let answer = handed_on(&store, &said, &marker).await;
    let inbox = store.accept(&answer, NOW).await.unwrap().expect("a new message");

    let corrected = Inbound { text: "How much, exactly?".into(), ..question };
    store.edit(&edit(corrected), NOW).await.unwrap();
    assert_eq!(ask(&store, inbox).await.inbound.text, answer.text);
    let again = store.again(("U1", false), &MessageRef::new("DU1", "1.1"), reaction("Ev3"), NOW).await.unwrap();
    let RegenerateOutcome::Taken(again) = again else { panic!("it is asked again: {again:?}") };
    assert_eq!(ask(&store, again.inbox).await.inbound.text, "How much, exactly?");
    let deletion = Deletion { message: MessageRef::new("DU1", "1.1"), thread: None, of: DeletedAuthor::Us };
    store.delete(&deletion, None, NOW).await.unwrap();
    let passed_on = ask(&store, inbox).await;
    assert_eq!((passed_on.inbound.text, passed_on.called_off), (answer.text, None));
}

#[tokio::test]
async fn an_answer_that_was_edited_into_none_ended_the_waiting() {
    let home = home();
    let store = waiting(&home).await;
    let key = "slack:channel:C1:1.1";
    let reply_to = ReplyTo { channel: "C1".into(), thread_ts: Some("1.1".into()) };
    let reply = Inbound { user: "U2".into(), reply_to, ts: "2.2".into(), ..inbound(key, "Ev2") };
    let inbox = store.accept(&reply, NOW).await.unwrap().expect("a new message");
    let absorbing = ask(&store, inbox).await;
    assert!(store.claim_answer(&absorbing, &asked(&[])).await.unwrap());
    store.edit(&edit(Inbound { text: "I will look later.".into(), ..reply }), NOW).await.unwrap();
    let later = ask(&store, inbox).await;
    assert!(later.absorbs().is_some());
    let noted = Recorded { revision: later.live.revision, ..recorded("later", "⏳") };
    store.record(later.turn, noted, NOW).await.unwrap();
    assert_eq!(store.escalations().await.unwrap(), [asked(&["U2", "U3"])], "it is waited for");
}

/// While the model read it, the message was edited, or deleted.
#[tokio::test]
async fn what_a_message_had_said_was_kept_as_its_reading_and_claimed_the_answer() {
    let home = home();
    let store = waiting(&home).await;
    let reply_to = ReplyTo { channel: "C1".into(), thread_ts: Some("1.1".into()) };
    let reply = Inbound { user: "U2".into(), reply_to, ts: "2.2".into(), ..inbound("slack:channel:C1:1.1", "Ev2") };
    let inbox = store.accept(&reply, NOW).await.unwrap().expect("a new message");
    let read_and_claimed = async |read: OpenTurn| {
        let heard = TaggedEvent::from(Event::EscalateHeard {
            actor: "U2".into(),
            channel_id: "C1".into(),
            thread_ts: "1.1".into(),
            word: Word::Answer.name(),
        });
        let kept = store.read_as(&read, &Reading::of(Word::Answer), vec![heard], NOW).await;
        (kept, store.claim_answer(&read, &asked(&[])).await)
    };
    let begun = ask(&store, inbox).await;
    store.edit(&edit(Inbound { text: "wait, let me check".into(), ..reply }), NOW).await.unwrap();
    assert_eq!(read_and_claimed(begun).await, (Err(StoreError::Changed), Err(StoreError::Changed)));
    let edited = ask(&store, inbox).await;
    assert_eq!((&*edited.inbound.text, &edited.reading), ("wait, let me check", &None));
    let other = said(&store, "Ev3", "U3", Some("1.1")).await;
    assert!(ask(&store, other).await.absorbs().is_some(), "it is still waited for");
    let deletion = Deletion { message: MessageRef::new("C1", "2.2"), thread: None, of: DeletedAuthor::Us };
    store.delete(&deletion, None, NOW).await.unwrap();
    assert_eq!(read_and_claimed(edited).await, (Err(StoreError::Changed), Err(StoreError::Changed)));
    let deleted = ask(&store, inbox).await;
    assert_eq!((deleted.called_off, deleted.reading), (Some(CalledOff::Deleted), None));
}

/// Once, it went to whoever had asked back last.
#[tokio::test]
async fn a_reply_under_the_question_back_of_one_contact_was_for_another() {
    let home = home();
    let (store, marker) = waiting_apart(&home).await;
    for (event, user, thread, back) in [("Ev2", "U2", "9.1", "7.1"), ("Ev3", "U3", "9.2", "7.2")] {
        let open = ask(&store, told(&store, event, user, Some(thread)).await).await;
        let words = remark(user, "which month?", &open, None);
        let escalation = Some(EscalationUpdate::Said(FrontName::Slack, marker.clone(), words));
        let to = Outgoing { to: Some("U1".into()), purpose: Purpose::PassedOn, ..Outgoing::reply("which month?") };
        store.record(open.turn, Recorded { parts: vec![to], escalation, ..recorded("q", "a") }, NOW).await.unwrap();
        store.finish(open.turn, vec![sent(0, Some(back))], vec![], NOW).await.unwrap();
    }
    let concern = async |event: &str, thread: Option<&str>| {
        let open = ask(&store, told(&store, event, "U1", thread).await).await;
        store.finish(open.turn, vec![], vec![], NOW).await.unwrap();
        match open.concern.as_deref() {
            Some(Concern::Asker(marker, to)) => (to.clone(), marker.asked_back_by().map(str::to_owned)),
            other => panic!("it is the asker's: {other:?}"),
        }
    };
    let [first, last] = ["U2", "U3"].map(|user| Some(user.to_owned()));
    assert_eq!(concern("Ev4", Some("7.1")).await, (first.clone(), last.clone()));
    assert_eq!(concern("Ev5", Some("7.2")).await, (last.clone(), last.clone()));
    assert_eq!(concern("Ev6", None).await, (None, last.clone()));
    let reply = ask(&store, told(&store, "Ev7", "U1", Some("7.2")).await).await;
    let words = remark("U1", "March", &reply, last.as_deref());
    let escalation = Some(EscalationUpdate::Said(FrontName::Slack, marker, words));
    store.record(reply.turn, Recorded { escalation, ..recorded("q", "a") }, NOW).await.unwrap();
    store.finish(reply.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    assert_eq!(concern("Ev8", None).await, (None, first), "the other one still waits for a reply");
}

/// A store in which U1 had asked U2 and U3, U2 has answered, and U4 is asked something else in the same thread.
async fn asked_twice(home: &Home) -> (Store, [Marker; 2]) {
    let (store, first) = waiting_apart(home).await;
    let answering = ask(&store, told(&store, "Ev2", "U2", Some("9.1")).await).await;
    assert!(store.claim_answer(&answering, &first).await.unwrap());
    store.record(answering.turn, recorded("q", "a"), NOW).await.unwrap();
    store.finish(answering.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    let again = ask(&store, told(&store, "Ev3", "U1", None).await).await;
    let secret = Marker { question: "Whose salary is cut?".into(), asked_by: None, ..first.clone() };
    let secret = Marker { mentioned_user_ids: vec!["U4".into()], reason: Some("secret".into()), ..secret };
    let to = Outgoing { to: Some("U4".into()), purpose: Purpose::Escalation, ..Outgoing::reply("whose salary?") };
    let escalation = Some(EscalationUpdate::Asked(FrontName::Slack, secret.clone()));
    let parts = vec![Outgoing::reply("asked"), to];
    store.record(again.turn, Recorded { parts, escalation, ..recorded("q", "a") }, NOW).await.unwrap();
    store.finish(again.turn, vec![sent(0, Some("9.8")), sent(1, Some("9.9"))], vec![], NOW).await.unwrap();
    let (asked_by, question, answered_by) = (first.asked_by.unwrap(), first.question.clone(), Some("U2".into()));
    let earlier = vec![EarlierQuestion { asked_by, question, answered_by }];
    (store, [first, Marker { asked_by: Some(again.turn), earlier, ..secret }])
}

#[tokio::test]
async fn who_had_answered_the_first_question_of_a_thread_could_not_correct_it_after_the_second() {
    let home = home();
    let (store, [first, _]) = asked_twice(&home).await;
    let correction = ask(&store, told(&store, "Ev4", "U2", Some("9.1")).await).await;
    let about = correction.absorbs().expect("it is about the first one");
    assert_eq!((&about.question, about.answered_by.as_deref()), (&first.question, Some("U2")));
    assert!(!store.claim_answer(&correction, about).await.unwrap());
}

/// Once, whoever had been asked about the first question of a thread was told of the second, and answered it.
#[tokio::test]
async fn a_second_question_of_a_thread_was_answered_by_those_who_were_asked_the_first() {
    let home = home();
    let (store, [first, second]) = asked_twice(&home).await;
    let apart = async |marker: &Marker| store.asked_apart(FrontName::Slack, marker).await.unwrap();
    assert_eq!(apart(&second).await, [("U4".to_owned(), Some("9.9".to_owned()))]);
    let late = ask(&store, told(&store, "Ev4", "U3", Some("9.2")).await).await;
    let about = late.absorbs().expect("who answers late is told");
    assert_eq!((&*about.question, &about.reason, about.asked_by), ("本月預算?", &None, first.asked_by));
    for stale in [about, &first] {
        assert!(!store.awaits_answer(late.turn, FrontName::Slack, stale).await.unwrap());
        assert!(!store.claim_answer(&late, stale).await.unwrap(), "it is answered");
    }
    store.finish(late.turn, vec![], vec![], NOW).await.unwrap();
    let talk = ask(&store, told(&store, "Ev5", "U3", None).await).await;
    assert_eq!(talk.absorbs(), None);
    store.finish(talk.turn, vec![], vec![], NOW).await.unwrap();
    let words = EscalationRemark { user_id: "U3".into(), text: "done".into(), turn: None, to: None };
    let escalation = Some(EscalationUpdate::Said(FrontName::Slack, first.clone(), words));
    let remark = ask(&store, told(&store, "Ev6", "U3", Some("9.2")).await).await;
    let stale = Recorded { escalation, ..recorded("q", "a") };
    assert_eq!(store.record(remark.turn, stale, NOW).await, Err(StoreError::Changed));
    store.finish(remark.turn, vec![], vec![], NOW).await.unwrap();
    assert_eq!(store.escalations().await.unwrap(), std::slice::from_ref(&second));
    let answering = ask(&store, told(&store, "Ev7", "U4", None).await).await;
    assert_eq!(answering.absorbs(), Some(&second));
    assert!(store.claim_answer(&answering, &second).await.unwrap());
}

#[tokio::test]
async fn a_question_that_is_being_answered_was_withdrawn_all_the_same() {
    let home = home();
    let (store, marker) = waiting_apart(&home).await;
    let needless = ask(&store, told(&store, "Ev2", "U1", None).await).await;
    let answering = ask(&store, told(&store, "Ev3", "U2", Some("9.1")).await).await;
    assert!(store.claim_answer(&answering, &marker).await.unwrap());
    let escalation = Some(EscalationUpdate::Withdrawn(FrontName::Slack, marker.clone()));
    let withdrawn = Recorded { escalation, ..recorded("never mind", "withdrawn") };
    assert_eq!(store.record(needless.turn, withdrawn, NOW).await, Err(StoreError::Changed));
    assert_eq!(ask(&store, InboxId(needless.turn.0)).await.concern, None);
    assert_eq!(store.escalations().await.unwrap(), [answered(marker)]);
}

#[tokio::test]
async fn an_answer_that_was_handed_on_to_nobody_kept_its_thread_waiting_for_ever() {
    let home = home();
    let (store, marker) = waiting_apart(&home).await;
    let said = ask(&store, told(&store, "Ev2", "U2", Some("9.1")).await).await;
    let answer = handed_on(&store, &said, &marker).await;
    let passing_on = ask(&store, store.accept(&answer, NOW).await.unwrap().expect("a new message")).await;
    assert_eq!(store.escalations().await.unwrap(), [answered(marker)]);
    store.finish(passing_on.turn, vec![], vec![], NOW).await.unwrap();
    assert_eq!(store.escalations().await.unwrap(), []);
}
