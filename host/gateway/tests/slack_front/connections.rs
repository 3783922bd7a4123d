//! Connections that end in ways that are not a connection's ordinary end.

use super::*;

/// What Slack's refusals and their end were told as.
fn refusals(rig: &Rig) -> Vec<String> {
    let told = rig.notices().into_iter().filter_map(|notice| match notice {
        Notice::Refused(Refusal { what, hint, .. }) => Some(format!("{what}; {hint}")),
        Notice::Accepted { .. } => Some("accepted".to_owned()),
        Notice::ConnectedAgain { .. } | Notice::MayHaveMissed { .. } | Notice::Malformed { .. } => None,
    });
    told.collect()
}

#[tokio::test]
async fn one_invalid_auth_in_mid_life_ends_nothing() {
    let rig = Rig::start().await;
    let opened = rig.slack.call_count("apps.connections.open");
    rig.slack.fault_times("apps.connections.open", 1, Fault::Error("invalid_auth"));
    rig.slack.disconnect("warning");
    until("two successors, and the one that was refused", || {
        rig.slack.call_count("apps.connections.open") >= opened + 3
    })
    .await;
    let sent = rig.slack.dm("U1", "still there?");
    assert!(rig.slack.await_ack(&sent.event_id, SOON).await.is_some());
    let told = refusals(&rig);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].starts_with("`apps.connections.open` with the app token (xapp-…) failed: Slack says `invalid_auth`; ")
    );
    assert!(told.iter().any(|told| told == "accepted"), "{told:?}");
    rig.finish().await;
}

#[tokio::test]
async fn a_revoked_token_leaves_the_other_connection_working() {
    let rig = Rig::start().await;
    rig.slack.fault("apps.connections.open", Fault::Error("token_revoked"));
    let opened = rig.slack.call_count("apps.connections.open");
    rig.slack.drop_oldest();
    until("several refusals", || rig.slack.call_count("apps.connections.open") >= opened + 3).await;
    let sent = rig.slack.dm("U1", "still there?");
    assert!(rig.slack.await_ack(&sent.event_id, SOON).await.is_some());
    let told = refusals(&rig);
    assert_eq!(told.len(), 1, "once for all refusals: {told:?}");
    assert!(told[0].contains("App-Level Tokens"), "{told:?}");
    rig.slack.heal("apps.connections.open");
    assert!(rig.slack.await_sockets(2, SOON).await, "it kept trying");
    rig.finish().await;
}

#[tokio::test]
async fn socket_mode_switched_off_and_on_again_ends_nothing() {
    let rig = Rig::start().await;
    rig.slack.fault("apps.connections.open", Fault::Error("link_disabled"));
    rig.slack.disconnect("link_disabled");
    assert!(rig.slack.await_sockets(0, SOON).await);
    rig.slack.heal("apps.connections.open");
    assert!(rig.slack.await_sockets(2, SOON).await, "it kept trying");
    let sent = rig.slack.dm("U1", "back again?");
    assert!(rig.slack.await_ack(&sent.event_id, SOON).await.is_some());
    let told = refusals(&rig);
    assert!(told[0].starts_with("Slack ended Socket Mode: `link_disabled`; "), "{told:?}");
    assert_eq!(told[1..], ["accepted"]);
    rig.finish().await;
}

#[tokio::test]
async fn a_half_open_connection_is_replaced_while_the_other_goes_on() {
    let rig = Rig::start().await;
    let opened = rig.slack.call_count("apps.connections.open");
    rig.slack.freeze_oldest();
    let sent: Vec<_> = (0..6).map(|n| rig.slack.dm(&format!("U{n}"), "hello?")).collect();
    until("a new connection", || rig.slack.call_count("apps.connections.open") > opened).await;
    assert!(rig.slack.await_sockets(3, SOON).await, "Slack does not know yet that one of them is dead");
    rig.slack.drop_oldest();
    for sent in &sent {
        assert!(rig.slack.await_ack(&sent.event_id, SOON).await.is_some(), "{sent:?}");
    }
    assert_eq!(rig.messages().len(), 6);
    rig.finish().await;
}

#[tokio::test]
async fn a_connection_that_slack_closes_is_closed_by_both() {
    let rig = Rig::start().await;
    // So that no successor is there before the end.
    rig.slack.fault("apps.connections.open", Fault::Status(503));
    rig.slack.disconnect("warning");
    assert!(rig.slack.await_sockets(0, SOON).await);
    assert_eq!(rig.slack.unanswered_ends(), 0);
    rig.slack.heal("apps.connections.open");
    assert!(rig.slack.await_sockets(2, SOON).await, "it kept trying");
    rig.finish().await;
}

/// Regression: a process that ended before it was connected again had told nobody what it may have missed.
#[tokio::test]
async fn a_silence_was_told_only_after_its_end() {
    let rig = Rig::impatient().await;
    let (channel, after) = ("C1".into(), "1.0".into());
    let everything =
        BackfillRequest { channel, thread_ts: None, after, read_apart: vec![], most_threads: 50, is_last: false };
    rig.slack.fault("apps.connections.open", Fault::Status(503));
    rig.slack.drop_connections();
    until("it is told while it goes on", || !rig.missing().is_empty()).await;
    let read = rig.front.look_back(&everything).await;
    assert!(matches!(read, Err(FrontError::Transient { .. })), "more may be missed: {read:?}");
    rig.slack.heal("apps.connections.open");
    assert!(rig.slack.await_sockets(2, SOON).await);
    until("it is told at its end", || rig.missing().len() >= 2).await;
    assert!(rig.missing().iter().all(|ms| *ms >= GIVEN_UP.as_millis()), "{:?}", rig.missing());
    assert!(rig.front.look_back(&everything).await.is_ok());
    rig.finish().await;
}

/// Regression: what Slack had given up sending while nothing could be stored was never looked for; and not either if
/// anything else came meanwhile that stores nothing, such as a reaction.
#[tokio::test]
async fn what_could_not_be_stored_for_long_was_never_looked_for() {
    let rig = Rig::impatient().await;
    let greeting = rig.slack.dm("U1", "hello");
    assert!(rig.slack.await_ack(&greeting.event_id, SOON).await.is_some());
    rig.mood(Mood::Full);
    rig.slack.dm("U1", "lost");
    until("Slack gives up", || rig.slack.given_up().len() == 1).await;
    let reaction = rig.slack.react_to("U1", &greeting, "tada");
    assert!(rig.slack.await_ack(&reaction, SOON).await.is_some());
    tokio::time::sleep(GIVEN_UP).await;
    rig.mood(Mood::Storing);
    let sent = rig.slack.dm("U1", "stored");
    assert!(rig.slack.await_ack(&sent.event_id, SOON).await.is_some());
    assert!(rig.missing().iter().any(|ms| *ms >= GIVEN_UP.as_millis()), "{:?}", rig.missing());
    rig.stop.cancel();
    rig.listening.await.expect("no panic").expect("an orderly end");
}
