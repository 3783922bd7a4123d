//! What comes in from outside is looked at where it comes in: ids from Slack, files that an operator names, texts
//! that others wrote.

use pmk_stand_ins::slack::{Slack, dm_channel};
use serde_json::{Value, json};

use crate::{
    support::{Home, PATIENCE, until_async},
    workspace::{Gateway, rules},
};

/// Once, `thread_ts: "1 2"` was stored under a key that nobody could read back, and the next start said that the
/// store was damaged.
#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_id_is_refused_at_slacks_door() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    let gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    let said = json!({
        "type": "message", "channel": dm_channel("U1"), "channel_type": "im", "user": "U1",
        "ts": "1700000000.000100", "text": "a secret",
    });
    for (field, id) in [
        ("thread_ts", "1 2"),
        ("thread_ts", "1700000000.000100:2"),
        ("thread_ts", ""),
        ("thread_ts", "1\u{1b}[2J"),
        ("user", "U1:1700000000.000100"),
        ("channel", "D1\u{202e}"),
        ("ts", &"1".repeat(1_000)),
    ] {
        let mut event = said.clone();
        event[field] = id.into();
        let event = slack.send_event(event);
        assert!(slack.await_ack(&event, PATIENCE).await.is_some(), "{field} {id:?} would come again");
    }
    let asked = slack.dm("U1", "hello");
    assert!(slack.await_reply(&asked, PATIENCE).await.is_some(), "{}", gateway.log());

    let sessions = home.run(&["--json", "sessions", "list"], "").ok().json();
    let keys: Vec<&Value> = sessions.as_array().expect("a list").iter().map(|session| &session["key"]).collect();
    assert_eq!(keys, ["slack:dm:U1"], "nothing else is stored");
    until_async("seven events", || (home.events("front.malformed").len() == 7).then_some(())).await;
    let fields: Vec<Value> = home.events("front.malformed").iter().map(|event| event["field"].clone()).collect();
    assert_eq!(fields, ["thread_ts", "thread_ts", "thread_ts", "thread_ts", "user", "channel", "ts"]);
    let audit = home.run(&["audit"], "").ok().stdout;
    assert!(audit.contains("7 events of the front had an id that is none"), "{audit}");
    assert!(gateway.log().contains("WARN") && !gateway.log().contains("a secret"), "{}", gateway.log());
    assert!(gateway.terminate().success());
}
