//! The app in Slack: its manifest, and what is said where the token may do less.

use pmk_stand_ins::slack::{ALL_EVENTS, ALL_SCOPES, Slack};
use serde_json::json;

use crate::{
    support::{Home, PATIENCE, finish},
    workspace::{Gateway, command, rules},
};

/// Every method, event and envelope that the stand-in knows is Slack's; it refuses what a scope is missing for.
#[test]
fn the_manifest_asks_for_what_the_gateway_uses_and_nothing_else() {
    let home = Home::new();
    let shown = home.run(&["slack", "manifest"], "").ok();
    let manifest = shown.json();
    assert_eq!(manifest["oauth_config"]["scopes"]["bot"], json!(ALL_SCOPES));
    assert_eq!(manifest["settings"]["event_subscriptions"]["bot_events"], json!(ALL_EVENTS));
    insta::assert_snapshot!(format!("{}2>{}", shown.stdout, shown.stderr));
    let silent = home.run(&["--json", "slack", "manifest"], "").ok();
    assert_eq!((silent.stdout, silent.stderr), (shown.stdout, String::new()));
}

/// Once, a missing scope showed as a bot that answers nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_scope_that_nothing_goes_without_is_named_at_the_start() {
    let slack = Slack::start(rules().without_scopes(&["chat:write", "im:history", "files:write"])).await;
    let home = Home::new();
    let refused = command(&home, &slack, &[]);
    let refused = tokio::task::spawn_blocking(move || finish(refused, "")).await.expect("it is stopping");
    assert_eq!(refused.status.code(), Some(1));
    let said: Vec<&str> = refused.stderr.lines().filter(|line| !line.contains(" INFO ")).collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scope_that_something_goes_without_is_told_and_no_error() {
    let slack = Slack::start(rules().without_scopes(&["files:write", "channels:history"])).await;
    let home = Home::new();
    let gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    assert!(slack.await_reply(&slack.dm("U1", "hello"), PATIENCE).await.is_some());
    for scope in ["files:write", "channels:history"] {
        let line = format!("the Slack bot token has no scope `{scope}`: ");
        assert!(gateway.log().contains(&line), "{}", gateway.log());
    }
    assert!(gateway.terminate().success());
}
