//! What comes with a message, where that changes after the message was sent.

use std::sync::Arc;

use pmk_core::{FrontName, ImageId, Message, Origin, Role};
use pmk_knowledge::reaction::ReactionVerdict;

use super::{
    changes::{at, deleted, edit, here, written},
    escalations::{handed_on, waiting_apart, wrote},
    *,
};
use crate::{
    chat::{Content, File, FileSkipReason, Quote, QuoteKind, Reattached},
    escalation::{EscalationRemark, Reading},
};

const KEY: &str = "slack:dm:U1";
const WORDS: Option<&str> = Some("(a question was here)");

fn file(name: &str, content: Content) -> File {
    let address = Some("https://files/a".into());
    File { id: None, name: name.into(), bytes: None, address, preview: None, content }
}

fn with(number: usize, files: Vec<File>) -> Inbound {
    let attached = Attachments { files, ..Attachments::default() };
    Inbound { attached, ..written(number, "what does it say?") }
}

/// A message whose file was deleted.
fn lost(number: usize) -> Reattached {
    let gone = file("F1", Content::Unread(FileSkipReason::Gone));
    Reattached { message: with(number, vec![gone]), lost_files: true }
}

/// Begins the turn of a message, and reads its file.
async fn read(store: &Store, number: usize) -> (InboxId, OpenTurn) {
    let message = with(number, vec![file("a.txt", Content::Awaited)]);
    let inbox = store.accept(&message, NOW).await.unwrap().expect("a new message");
    let begun = ask(store, inbox).await;
    keep(store, &begun).await.unwrap();
    (inbox, begun)
}

/// A file that says that the password is heliotrope.
fn password() -> Attachments {
    let text = Content::Text { text: "the password is heliotrope".into(), is_lossy: false };
    Attachments { files: vec![file("a.txt", text)], ..Attachments::default() }
}

/// Stores that the file says so, and an image.
async fn keep(store: &Store, begun: &OpenTurn) -> Result<(), StoreError> {
    let image = StoredImage { sha256: ImageId::of(b"heliotrope"), bytes: Arc::from(*b"heliotrope") };
    store.keep_attached(begun, begun.live.revision, &password(), vec![image]).await
}

/// The same once it was answered.
async fn answered(store: &Store, number: usize) {
    let (_, begun) = read(store, number).await;
    let mut recorded = Recorded { revision: begun.live.revision, ..recorded("what does it say?", "a password") };
    let attached = Message::text(Role::User, Origin::Attachment, "> the password is heliotrope");
    recorded.messages.insert(0, Entry::new(0, attached));
    store.record(begun.turn, recorded, NOW).await.unwrap();
    store.finish(begun.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
}

/// How many places still have what the file says.
fn left(home: &Home) -> i64 {
    const PLACES: [&str; 7] = [
        "message WHERE blocks",
        "inbox WHERE message",
        "inbox WHERE attached",
        "outbox WHERE how",
        "escalation WHERE marker",
        "proposal WHERE confirmation",
        "turn WHERE reading",
    ];
    let texts = PLACES.map(|place| number(home, &format!("SELECT count(*) FROM {place} LIKE '%heliotrope%'")));
    texts.iter().sum::<i64>() + number(home, "SELECT count(*) FROM image")
}

/// Begins the turn of a contact who has written this with the file.
async fn told(store: &Store, text: &str) -> OpenTurn {
    let mut said = wrote(store, "U2", "5.5", text).await;
    keep(store, &said).await.unwrap();
    said.inbound.attached = password();
    said
}

/// Ends the turn of a contact without the model.
async fn ends(store: &Store, turn: TurnId, purposes: Vec<Purpose>, escalation: Option<EscalationUpdate>) {
    let parts: Vec<Outgoing> =
        purposes.into_iter().map(|purpose| Outgoing { purpose, ..Outgoing::default() }).collect();
    let all = (0..).zip(&parts).map(|(part, _)| sent(part, Some(&format!("6.{part}")))).collect();
    store.record(turn, Recorded { parts, escalation, messages: vec![], ..recorded("", "") }, NOW).await.unwrap();
    store.finish(turn, all, vec![], NOW).await.unwrap();
}

/// The contact deletes the file. Nothing of it is left.
async fn takes_back(home: &Home, store: &Store, said: &OpenTurn) {
    let message = Inbound { attached: lost(1).message.attached, ..said.inbound.clone() };
    let lost = Reattached { message, lost_files: true };
    assert!(matches!(store.reattach(&lost, WORDS, NOW).await, Ok(Changed::Here { anew: false, .. })));
    assert_eq!(left(home), 0);
    assert_eq!(store.reattach(&lost, WORDS, NOW).await, Ok(Changed::Nothing), "it was redelivered");
}

/// Regression: Slack tells it by a message with the same text, in which nothing seemed to have changed.
#[tokio::test]
async fn a_file_that_was_deleted_stayed_in_the_window_and_in_the_archive() {
    let home = home();
    let store = open(&home);
    answered(&store, 1).await;
    assert_eq!(left(&home), 3);
    assert_eq!(store.reattach(&lost(1), None, NOW).await, Ok(Changed::Nothing), "what is deleted is to stay");
    assert_eq!(left(&home), 3);
    assert_eq!(store.reattach(&lost(1), WORDS, NOW).await, Ok(here(true)));
    assert_eq!(left(&home), 0);
    assert_eq!(live_texts(&store, KEY).await, ["(a question was here)", "what does it say?", "a password"]);
    assert_eq!(store.reattach(&lost(1), WORDS, NOW).await, Ok(Changed::Nothing), "it was redelivered");
    assert_eq!(store.reattach(&lost(2), WORDS, NOW).await, Ok(Changed::Unknown));
    assert_eq!(deleted(&store, &at(1)).await, here(true));
    assert_eq!(store.reattach(&lost(1), WORDS, NOW).await, Ok(Changed::Nothing), "its message is gone");
}

#[tokio::test]
async fn a_question_was_asked_with_a_file_that_was_deleted_meanwhile() {
    let home = home();
    let store = open(&home);
    let (inbox, begun) = read(&store, 1).await;
    assert_eq!(store.reattach(&lost(1), None, NOW).await, Ok(here(true)));
    assert_eq!(left(&home), 0);
    assert_eq!(keep(&store, &begun).await, Err(StoreError::Changed));
    let stale = Recorded { revision: begun.live.revision, ..recorded("what does it say?", "a password") };
    assert_eq!(store.record(begun.turn, stale, NOW).await, Err(StoreError::Changed));
    let anew = ask(&store, inbox).await;
    assert_eq!(anew.inbound.attached, lost(1).message.attached);
    assert_eq!(store.reattach(&lost(1), None, NOW).await, Ok(Changed::Nothing), "it was redelivered");
    let second = with(2, vec![file("a.txt", Content::Awaited)]);
    let second = store.accept(&second, NOW).await.unwrap().expect("a new message");
    assert_eq!(store.reattach(&lost(2), None, NOW).await, Ok(here(false)), "its turn has not begun");
    assert_eq!(ask(&store, second).await.inbound.attached, lost(2).message.attached);
}

/// Regression: whatever was being answered just then was given up, and answered anew.
#[tokio::test]
async fn a_file_that_was_never_read_had_the_turn_under_way_start_over_once_it_was_deleted() {
    let home = home();
    let store = open(&home);
    let unread = with(1, vec![file("a.pdf", Content::Unread(FileSkipReason::NoText))]);
    let unread = ask(&store, store.accept(&unread, NOW).await.unwrap().expect("a new message")).await;
    store.record(unread.turn, recorded("what does it say?", "I cannot read it"), NOW).await.unwrap();
    store.finish(unread.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    let next = store.accept(&written(2, "and then?"), NOW).await.unwrap().expect("a new message");
    let under_way = ask(&store, next).await;
    assert_eq!(store.reattach(&lost(1), WORDS, NOW).await, Ok(here(false)));
    let goes_on = Recorded { revision: under_way.live.revision, ..recorded("and then?", "nothing") };
    store.record(under_way.turn, goes_on, NOW).await.unwrap();
}

#[tokio::test]
async fn a_file_that_a_contact_had_deleted_was_passed_on_once_they_said_that_it_was_the_answer() {
    let home = home();
    let (store, marker) = waiting_apart(&home).await;
    let said = told(&store, "hmm").await;
    let proposal = Proposal::meant(said.turn, &said.inbound, marker);
    ends(&store, said.turn, vec![Purpose::Proposal], Some(EscalationUpdate::Unsure(proposal))).await;
    assert_eq!(left(&home), 3);
    takes_back(&home, &store, &said).await;
    let (user, message) = (said.inbound.user.clone(), MessageRef::new(&said.inbound.reply_to.channel, "6.0"));
    let yes = Verdict { user, message, says: ReactionVerdict::Approve, by: VerdictSource::Reaction };
    match store.judge_proposal(&yes, Ends::default(), NOW).await.unwrap() {
        Some(ProposalVerdict::Meant(answer)) => {
            assert_eq!((&*answer.text, &answer.attached), ("hmm", &lost(1).message.attached));
        }
        other => panic!("they have said so: {other:?}"),
    }
}

#[tokio::test]
async fn a_file_that_was_deleted_stayed_in_what_a_contact_had_said_about_a_question() {
    let home = home();
    let (store, marker) = waiting_apart(&home).await;
    let said = told(&store, "do you mean this one?").await;
    let text = "do you mean this one? the password is heliotrope".into();
    let remark = EscalationRemark { user_id: "U2".into(), text, turn: Some(said.turn), to: None };
    let remark = EscalationUpdate::Said(FrontName::Slack, marker.clone(), remark);
    ends(&store, said.turn, vec![Purpose::Reply], Some(remark)).await;
    assert_eq!(left(&home), 3);
    takes_back(&home, &store, &said).await;
    assert_eq!(store.escalations().await.unwrap(), [marker]);
}

#[tokio::test]
async fn a_file_that_was_deleted_stayed_in_the_reading_of_an_answer_and_in_its_atom() {
    let home = home();
    let (store, marker) = waiting_apart(&home).await;
    let said = told(&store, "see there").await;
    let read = r#"{"kind": "answer", "question": "which?", "summary": "heliotrope", "tags": []}"#;
    store.read_as(&said, &Reading::of_contact(read), vec![], NOW).await.unwrap();
    assert!(store.claim_answer(&said, &marker).await.unwrap());
    let answer = crate::store::handed_on(said.turn, &said.inbound, &marker).expect("it is asked apart");
    let notice = Purpose::Notice { atom: "the password is heliotrope".into(), saved_in: None };
    let parts = vec![Purpose::HandOn { answer: Box::new(answer.clone()) }, notice];
    ends(&store, said.turn, parts, Some(EscalationUpdate::HandedOn)).await;
    let passing_on = store.accept(&answer, NOW).await.unwrap().expect("a new message");
    assert_eq!(left(&home), 7);
    takes_back(&home, &store, &said).await;
    let passing_on = ask(&store, passing_on).await.inbound;
    assert_eq!((&*passing_on.text, &passing_on.attached), ("see there", &lost(1).message.attached));
}

#[tokio::test]
async fn a_file_that_was_deleted_went_out_with_what_its_contact_had_added_to_an_answer() {
    let home = home();
    let (store, marker) = waiting_apart(&home).await;
    handed_on(&store, &wrote(&store, "U2", "4.4", "wait").await, &marker).await;
    let more = told(&store, "see there").await;
    let words = "U2 adds: see there, the password is heliotrope".into();
    let adding = crate::store::addition(more.turn, &more.inbound, &marker, words).expect("it is asked apart");
    ends(&store, more.turn, vec![Purpose::HandOn { answer: Box::new(adding.clone()) }], None).await;
    let added = store.accept(&adding, NOW).await.unwrap().expect("a new message");
    let begun = ask(&store, added).await;
    assert_eq!(left(&home), 4);
    takes_back(&home, &store, &more).await;
    let stale = Recorded { revision: begun.live.revision, ..recorded("", "U2 adds") };
    assert_eq!(store.record(begun.turn, stale, NOW).await, Err(StoreError::Changed));
    assert_eq!(ask(&store, added).await.called_off, Some(CalledOff::Deleted));
}

/// Regression: it came a second after its message, with the same text.
#[tokio::test]
async fn the_preview_of_a_link_was_not_shown_with_a_question_that_waited() {
    let home = home();
    let store = open(&home);
    let unfolded = |number| {
        let quote = Quote { kind: QuoteKind::Aside, by: "Wiki".into(), text: "Plans".into(), is_cut: false };
        let mut message = with(number, vec![file("a.txt", Content::Awaited)]);
        message.attached.quotes.push(quote);
        Reattached { message, lost_files: false }
    };
    let waiting = store.accept(&with(1, vec![file("a.txt", Content::Awaited)]), NOW).await.unwrap().expect("new");
    let edited = store.accept(&written(2, "as it was"), NOW).await.unwrap().expect("new");
    store.edit(&edit(2, "as edited", 1), NOW).await.unwrap();
    let (begun, _) = read(&store, 3).await;
    for number in 1..=4 {
        let known = if number < 4 { Changed::Nothing } else { Changed::Unknown };
        assert_eq!(store.reattach(&unfolded(number), WORDS, NOW).await, Ok(known), "{number}");
    }
    assert_eq!(ask(&store, waiting).await.inbound.attached, unfolded(1).message.attached);
    assert!(ask(&store, edited).await.inbound.attached.is_empty(), "it was for other words");
    assert!(ask(&store, begun).await.inbound.attached.quotes.is_empty(), "its turn has begun");
}
