//! Questions to contacts that change, or end, while something is made of them.

use pmk_core::FrontName;

use super::{
    escalations::{marker, waiting_apart, wrote},
    *,
};
use crate::escalation::{EscalationRemark, Marker};

/// Both had looked whether something waits in the thread before either was stored: who had answered the first one was told
/// that it was not needed any more.
#[tokio::test]
async fn a_question_that_waits_was_erased_by_another_conversation_that_asks_in_its_thread() {
    let home = home();
    let store = open(&home);
    let outside = ask(&store, accept(&store, "slack:dm:U1", "Ev1").await).await;
    let inside = ask(&store, accept(&store, "slack:dm:U1:1.1", "Ev2").await).await;
    let puts = async |open: &OpenTurn, question: &str| {
        let marker = Marker { question: question.into(), ..marker(&["U2"]) };
        let escalation = Some(EscalationUpdate::Asked(FrontName::Slack, marker));
        store.record(open.turn, Recorded { escalation, ..recorded("q", "asked") }, NOW).await
    };
    assert_eq!(puts(&outside, "whose?").await, Ok(()));
    assert_eq!(puts(&inside, "which?").await, Err(StoreError::Changed));
    assert!(store.is_waiting(FrontName::Slack, "C1", "1.1").await.unwrap(), "so the next attempt asks nobody");

    let reply_to = ReplyTo { channel: "C1".into(), thread_ts: Some("1.1".into()) };
    let reply = Inbound { user: "U2".into(), reply_to, ..inbound("slack:channel:C1:1.1", "Ev3") };
    let answering = ask(&store, store.accept(&reply, NOW).await.unwrap().expect("a new message")).await;
    let about = answering.absorbs().expect("it is waited for");
    assert_eq!((&*about.question, about.asked_by), ("whose?", Some(outside.turn)));
    assert!(store.claim_answer(&answering, about).await.unwrap());
    assert_eq!(puts(&inside, "which?").await, Err(StoreError::Changed), "its answer is coming in");
    store.record(answering.turn, recorded("q", "answer"), NOW).await.unwrap();
    assert_eq!(puts(&inside, "which?").await, Ok(()));
    assert_eq!(store.escalations().await.unwrap()[0].question, "which?");
}

/// Regression: it was posted to people who had been told that they need not answer any more.
#[tokio::test]
async fn a_reply_about_a_question_that_had_ended_meanwhile_was_passed_on() {
    let home = home();
    let (store, marker) = waiting_apart(&home).await;
    let reply = wrote(&store, "U1", "5.5", "March").await;
    assert!(matches!(reply.concern.as_deref(), Some(Concern::Asker(..))), "{:?}", reply.concern);
    store.cancel_escalation("DU1", "1.1", "han", NOW).await.unwrap().expect("it waits");
    let words =
        EscalationRemark { user_id: "U1".into(), text: "March".into(), turn: Some(reply.turn), to: Some("U2".into()) };
    let escalation = Some(EscalationUpdate::Said(FrontName::Slack, marker, words));
    let parts = vec![Outgoing { to: Some("U2".into()), purpose: Purpose::PassedOn, ..Outgoing::reply("March") }];
    let passed_on = Recorded { parts, escalation, messages: vec![], ..recorded("", "") };
    assert_eq!(store.record(reply.turn, passed_on, NOW).await, Err(StoreError::Changed));
    let posted = format!("SELECT count(*) FROM outbox WHERE turn_id = {}", reply.turn);
    assert_eq!(number(&home, &posted), 0);
    assert_eq!(ask(&store, InboxId(reply.turn.0)).await.concern, None, "it is talk");
}
