//! What is acknowledged is worked on, and what cannot be answered is parked and told, over Slack's protocol.

use std::time::Duration;

use pmk_stand_ins::{
    anthropic::{Anthropic, Behaviour},
    slack::{Fault, Sent, Slack, dm_channel},
};

use crate::{
    moments::Moments,
    slack::each_is_answered_once,
    support::{Home, PATIENCE},
    workspace::{Gateway, rules, rules_for_kills},
};

/// Rounds of 60 messages that a dead socket interrupts, where `PMK_TEST_CUTS` names no other number.
const ROUNDS: usize = 6;

/// Once, the future that stored a message and then queued it died with its socket, in between: the message was
/// acknowledged when it came again, and lay in the inbox until a restart.
#[tokio::test(flavor = "multi_thread")]
async fn messages_whose_socket_is_cut_while_they_are_stored_are_all_answered() {
    let slack = Slack::start(rules_for_kills().unlimited()).await;
    let (home, mut moments) = (Home::new(), Moments::new());
    let gateway = Gateway::start(&home, &slack, &[]);
    let mut asked: Vec<Sent> = Vec::new();
    let rounds = std::env::var("PMK_TEST_CUTS").map_or(ROUNDS, |rounds| rounds.parse().expect("a number"));
    for round in 0..rounds {
        assert!(slack.await_connected(PATIENCE).await);
        asked.extend((0..60).map(|n| slack.dm(&format!("U{n}"), &format!("Question {round}.{n}"))));
        moments.pass(Duration::from_millis(20)).await;
        slack.drop_connections();
    }
    each_is_answered_once(&slack, &home, gateway, &asked).await;
    assert!(home.ledger().iter().all(|event| event["type"] != "queue.swept"), "the sweep had to find some");
}

/// Once, an answer that Slack refuses for a reason that does not pass was tried every 30 s for ever, and the
/// conversation with it.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_cannot_be_delivered_is_parked_told_and_taken_up_again() {
    let slack = Slack::start(rules().without_statuses().unlimited()).await;
    let home = Home::new();
    home.write("gateway.json", r#"{"version": 1, "language": "en", "model": "sim", "admins": ["UADMIN"]}"#);
    let gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    slack.fault("chat.update", Fault::Error("missing_scope"));
    let asked = slack.dm("U1", "The launch is on Friday.");
    assert!(slack.await_replies(&dm_channel("UADMIN"), 1, PATIENCE).await, "the admins are told");
    // The placeholder cannot be replaced by the notice either, and nobody believes that it was.
    assert_eq!(home.run(&["--json", "sessions", "parked"], "").ok().json()[0]["told"], false);
    slack.heal("chat.update");
    let told = slack.await_reply(&asked, PATIENCE).await.expect("the person is told");
    assert!(told.text.contains("It is kept (the admins have been told) and will be answered"), "{}", told.text);
    let notice = slack.replies(&dm_channel("UADMIN")).remove(0).text;
    assert!(notice.contains("`pmk-host sessions retry slack:dm:U1`"), "{notice}");

    let next = slack.dm("U1", "When is the launch?");
    let answer = slack.await_reply(&next, PATIENCE).await.expect("the conversation goes on");
    assert!(answer.text.contains("Friday"), "{}", answer.text);

    let parked = home.run(&["--json", "sessions", "parked"], "").ok().json();
    assert_eq!((&parked[0]["key"], &parked[0]["told"]), (&"slack:dm:U1".into(), &true.into()), "{parked}");
    assert!(parked[0]["why"].as_str().is_some_and(|why| why.contains("missing_scope")), "{parked}");
    let audit = home.run(&["audit"], "").ok().stdout;
    assert!(audit.contains("1 message is parked: `sessions parked` lists it"), "{audit}");

    home.run(&["sessions", "retry", "slack:dm:U1"], "").ok();
    let late =
        slack.await_message(&asked.channel, PATIENCE, |message| message.ts == told.ts && message.text != told.text);
    assert!(late.await.is_some(), "the answer takes the notice's place");
    assert_eq!(home.run(&["--json", "sessions", "parked"], "").ok().json(), serde_json::json!([]));
    assert!(gateway.terminate().success());
}

/// Once, the notice took the place of the part that had arrived, and a retry brought only the others.
#[tokio::test(flavor = "multi_thread")]
async fn what_has_arrived_of_an_answer_stays_when_the_rest_is_parked() {
    let slack = Slack::start(rules().unlimited().without_statuses()).await;
    let anthropic = Anthropic::start().await;
    let answer: String = (0..600).map(|n| format!("Line {n} of the answer.\n")).collect();
    anthropic.push(Behaviour::answer(&answer));
    let home = Home::new();
    home.write("gateway.json", r#"{"version": 1, "language": "en"}"#);
    let gateway = Gateway::asking(&home, &slack, &anthropic, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    // The placeholder is posted; what comes after the first part is not.
    slack.fault_after("chat.postMessage", 1, 4, Fault::Error("invalid_auth"));
    let asked = slack.dm("U1", "all of it, please");
    let is_notice = |message: &pmk_stand_ins::slack::Message| message.text.contains("It is kept and will be answered");
    assert!(
        slack.await_message(&asked.channel, PATIENCE, is_notice).await.is_some(),
        "{:#?}",
        slack.messages(&asked.channel)
    );
    assert!(slack.replies(&asked.channel)[0].text.starts_with("Line 0 of"), "{:#?}", slack.replies(&asked.channel));
    home.run(&["sessions", "retry", "--all"], "").ok();
    let last = |message: &pmk_stand_ins::slack::Message| message.shown().contains("Line 599 of");
    assert!(slack.await_message(&asked.channel, PATIENCE, last).await.is_some());
    let parts = slack.replies(&asked.channel).into_iter().filter(|message| !is_notice(message));
    let whole: String = parts.map(|part| part.shown()).collect::<Vec<_>>().join("\n");
    let missing: Vec<usize> = (0..600).filter(|n| !whole.contains(&format!("Line {n} of"))).collect();
    assert_eq!(missing, Vec::<usize>::new());
    assert!(gateway.terminate().success());
}

/// Once, a question that cannot be read back was tried every 30 s for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_question_does_not_stop_its_conversation() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    home.write("gateway.json", r#"{"version": 1, "language": "en", "model": "sim", "admins": ["UADMIN"]}"#);
    // One that an earlier run has stored and not answered.
    slack.fault("chat.postMessage", Fault::Status(500));
    let gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    let damaged = slack.dm("U1", "this one will be damaged");
    assert!(slack.await_ack(&damaged.event_id, PATIENCE).await.is_some());
    gateway.kill();
    let store = rusqlite::Connection::open(home.path().join("gateway/pmk-host.db")).expect("the store");
    store.execute("UPDATE inbox SET message = substr(message, 1, 20)", []).expect("damage");
    drop(store);
    slack.heal("chat.postMessage");

    let gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    let next = slack.dm("U1", "hello");
    assert!(slack.await_reply(&next, PATIENCE).await.is_some(), "{}", gateway.log());
    assert!(slack.await_replies(&dm_channel("UADMIN"), 1, PATIENCE).await, "the admins are told");
    let listed = home.run(&["sessions", "parked"], "").ok().stdout;
    assert!(listed.contains("slack:dm:U1") && listed.contains("is damaged"), "{listed}");
}
