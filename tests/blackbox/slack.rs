//! The gateway over Slack's protocol, against a workspace that enforces Slack's rules.

use std::{collections::HashMap, time::Duration};

use pmk_stand_ins::{
    anthropic::{Anthropic, Behaviour},
    slack::{Fault, LATE, Message, Sent, Slack, SlackRules},
};
use serde_json::json;

use crate::{
    moments::Moments,
    support::{Home, PATIENCE, component, finish, until_async},
    workspace::{Gateway, command, is_of_presence, rules, rules_for_kills},
};

/// Exactly one final answer for each question once the gateway has ended, and no rule of Slack's was broken.
pub async fn each_is_answered_once(slack: &Slack, home: &Home, gateway: Gateway, asked: &[Sent]) {
    let mut channels: HashMap<&str, usize> = HashMap::new();
    for question in asked {
        *channels.entry(&question.channel).or_default() += 1;
    }
    for (channel, questions) in &channels {
        assert!(slack.await_replies(channel, *questions, PATIENCE).await, "{channel}: {:#?}", slack.replies(channel));
    }
    // None of them comes again, or waits for an answer of its own.
    for question in asked {
        assert!(slack.await_ack(&question.event_id, PATIENCE).await.is_some(), "{question:?}");
    }
    until_async("the end of all turns", || home.is_all_answered().then_some(())).await;
    gateway.await_ready().await;
    // A second answer that came late is there by then.
    assert!(gateway.terminate().success());
    for (channel, questions) in channels {
        let mut replies = slack.replies(channel);
        replies.retain(|reply| !is_of_presence(reply));
        assert_eq!(replies.len(), questions, "{channel}: {replies:#?}");
        assert!(slack.placeholders(channel).is_empty(), "{channel}: somebody still waits");
    }
    assert_eq!(slack.given_up(), Vec::<String>::new());
    assert_eq!(slack.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_in_dms_threads_and_channels_are_answered_once_each() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    let strict = component("strict");
    let gateway = Gateway::start(&home, &slack, &["--policy", &strict, "--window", "8000"]);
    assert!(slack.await_connected(PATIENCE).await);

    let mut asked = vec![slack.dm("U1", "The launch is on Friday.")];
    asked.push(slack.dm_in_thread("U1", "What about the thread?", Some(&asked[0].ts.clone())));
    asked.push(slack.mention("C1", "U2", "<@U0BOT> when is the launch?", None));
    for n in 0..40 {
        asked.push(slack.dm("U3", &format!("Question {n}: {}", "這個月的廣告預算分配比例需要再確認一次。".repeat(10))));
    }
    slack.redeliver(&asked[0].event_id);
    each_is_answered_once(&slack, &home, gateway, &asked).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_left_without_an_answer_when_the_gateway_is_killed() {
    let slack = Slack::start(rules_for_kills().unlimited()).await;
    let (home, mut moments) = (Home::new(), Moments::new());
    let mut asked = Vec::new();
    for round in 0..6 {
        let gateway = Gateway::start(&home, &slack, &[]);
        assert!(slack.await_connected(PATIENCE).await);
        asked.extend((0..10).map(|n| slack.dm(&format!("U{n}"), &format!("Question {round}.{n}"))));
        // The kills fall into different steps of the turns.
        moments.pass(Duration::from_millis(70)).await;
        gateway.kill();
    }
    let gateway = Gateway::start(&home, &slack, &[]);
    each_is_answered_once(&slack, &home, gateway, &asked).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_arrives_whole_in_parts_slack_takes() {
    let slack = Slack::start(rules().unlimited()).await;
    let anthropic = Anthropic::start().await;
    // The incident of specification 000: far over 4,000 bytes, and markup that must not ping anybody.
    let answer = format!("<!channel> {}", "預算分配比例 & more\n".repeat(1_500));
    anthropic.push(Behaviour::answer(&answer));
    let home = Home::new();
    let _gateway = Gateway::asking(&home, &slack, &anthropic, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    let asked = slack.dm("U1", "預算分配比例是什麼？");
    assert!(slack.await_replies(&asked.channel, 2, PATIENCE).await, "{:#?}", slack.replies(&asked.channel));
    let replies = slack.replies(&asked.channel);
    let whole: String = replies.iter().map(Message::shown).collect();
    let letters = |text: &str| text.replace('\u{2060}', "").split_whitespace().collect::<String>();
    assert_eq!(letters(&whole), letters(&answer));
    assert_eq!(slack.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn rate_limits_delay_an_answer_and_lose_none() {
    let slack = Slack::start(rules().without_statuses().unlimited()).await;
    let home = Home::new();
    let gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    slack.fault_times("chat.update", 2, Fault::RateLimited(1));
    let asked = [slack.dm("U1", "hello"), slack.dm("U2", "hello")];
    each_is_answered_once(&slack, &home, gateway, &asked).await;
    let updates = slack.calls("chat.update");
    assert!(updates.len() > 2, "two were refused: {updates:#?}");
    for refused in &updates[..2] {
        let later = updates.iter().find(|call| call.at > refused.at && call.body["ts"] == refused.body["ts"]);
        let later = later.unwrap_or_else(|| panic!("{refused:?} was not tried again: {updates:#?}"));
        assert!(later.at - refused.at >= Duration::from_secs(1), "{updates:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slack_that_is_down_for_a_while_gets_the_answers_later() {
    let slack = Slack::start(rules().without_statuses().unlimited()).await;
    let home = Home::new();
    let gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    slack.fault("chat.update", Fault::Status(500));
    let asked = [slack.dm("U1", "hello")];
    until_async("a few attempts", || (slack.call_count("chat.update") >= 3).then_some(())).await;
    assert!(slack.replies(&asked[0].channel).is_empty());
    slack.heal("chat.update");
    each_is_answered_once(&slack, &home, gateway, &asked).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_start_is_one_clear_line() {
    for (method, fault, wanted) in [
        ("auth.test", Fault::Error("invalid_auth"), "invalid_auth"),
        ("auth.test", Fault::Status(404), "404"),
        ("apps.connections.open", Fault::Error("not_allowed_token_type"), "not_allowed_token_type"),
        ("apps.connections.open", Fault::Garbage, "is not from Slack"),
    ] {
        let slack = Slack::start(rules()).await;
        slack.fault(method, fault.clone());
        let home = Home::new();
        let command = command(&home, &slack, &[]);
        let finished = tokio::task::spawn_blocking(move || finish(command, "")).await.expect("it is stopping");
        assert_eq!(finished.status.code(), Some(1), "{method} {fault:?}");
        let errors: Vec<&str> = finished.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(errors.len(), 1, "{}", finished.stderr);
        assert!(errors[0].contains(method) && finished.stderr.contains(wanted), "{}", finished.stderr);
        assert!(finished.stderr.contains("hint: "), "{}", finished.stderr);
        assert!(!finished.stderr.contains("stand-in"), "a token is in the log: {}", finished.stderr);
    }
}

/// Once, a Slack that had a bad moment while the gateway started ended it.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_outlasts_a_bad_moment_of_slacks() {
    let (slack, home) = (Slack::start(rules()).await, Home::new());
    slack.fault_times("auth.test", 2, Fault::Status(503));
    let _gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    until_async("a third try", || (slack.call_count("auth.test") >= 3).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_waits_for_slack_ends_when_it_is_asked_to() {
    let (slack, home) = (Slack::start(rules()).await, Home::new());
    slack.fault("auth.test", Fault::Status(503));
    let gateway = Gateway::start(&home, &slack, &[]);
    until_async("a second try", || (slack.call_count("auth.test") >= 2).then_some(())).await;
    assert!(gateway.terminate().success(), "it was asked to end before it gave up");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_files_text_is_answered_and_the_file_is_said_to_be_unread() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    let _gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    let channel = pmk_stand_ins::slack::dm_channel("U1");
    slack.send_event(serde_json::json!({
        "type": "message", "subtype": "file_share", "channel": channel, "channel_type": "im", "user": "U1",
        "ts": "1700000000.000900", "text": "see the attachment", "files": [{"id": "F1", "name": "plan.pdf"}],
    }));
    assert!(slack.await_replies(&channel, 1, PATIENCE).await);
    assert!(slack.replies(&channel)[0].text.contains("沒有讀取"), "{:?}", slack.replies(&channel));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_invalid_auth_in_mid_life_is_told_and_the_gateway_goes_on() {
    // A slow machine may acknowledge late.
    let slack = Slack::start(SlackRules::default().unlimited().expecting([LATE])).await;
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"language":"en","admins":["U9"]}"#);
    let gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_sockets(2, PATIENCE).await);
    slack.fault_times("apps.connections.open", 1, Fault::Error("invalid_auth"));
    slack.drop_oldest();
    let admin = pmk_stand_ins::slack::dm_channel("U9");
    assert!(slack.await_replies(&admin, 2, PATIENCE).await, "{:#?}", slack.messages(&admin));
    let mut told: Vec<String> = slack.replies(&admin).into_iter().map(|reply| reply.text).collect();
    // Two messages that were sent beside each other.
    told.sort_by_key(|text| !text.contains("invalid_auth"));
    assert!(told[0].contains("invalid_auth") && told[0].contains("hint: "), "{told:?}");
    assert!(told[1].contains("again"), "{told:?}");
    assert!(slack.await_sockets(2, PATIENCE).await);
    each_is_answered_once(&slack, &home, gateway, &[slack.dm("U1", "hello")]).await;
    let log = std::fs::read_to_string(home.path().join("stderr.log")).expect("the log");
    assert_eq!(log.lines().filter(|line| line.contains("refuses connections from this app")).count(), 1, "{log}");
    // The second socket may not have heard its hello yet when the first one goes: then there was a silence, too.
    let mut told = of_front(&home);
    told.retain(|event| event != "front.connected-again");
    assert_eq!(told, ["front.refused", "front.accepted"]);
    let audit = home.run(&["audit"], "").ok().stdout;
    assert!(audit.contains("1 time Slack refused the app or a token"), "{audit}");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_silence_one_line_says_how_long_it_was_and_what_came_late() {
    let retry_delays = [500, 1_000, 5_000].map(Duration::from_millis).to_vec();
    let rules = SlackRules { retry_delays, ..SlackRules::default().unlimited() };
    // A slow machine may acknowledge late.
    let slack = Slack::start(rules.expecting([LATE])).await;
    let home = Home::new();
    let gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_sockets(2, PATIENCE).await);
    slack.fault("link", Fault::Status(503));
    slack.drop_connections();
    assert!(slack.await_sockets(0, PATIENCE).await);
    let asked = slack.dm("U1", "hello?");
    assert!(slack.await_attempts(&asked.event_id, 1, PATIENCE).await.is_some());
    slack.heal("link");
    assert!(slack.await_sockets(2, PATIENCE).await);
    // On a slow machine a line before it says that nothing was late yet.
    let is_told = |line: &str| line.contains("Connected again, ") && line.ends_with(" ms deaf, 1 messages came late");
    until_async("the line", || gateway.log().lines().any(is_told).then_some(())).await;
    each_is_answered_once(&slack, &home, gateway, &[asked]).await;
    assert_eq!(of_front(&home), ["front.connected-again"]);
    let audit = home.run(&["audit"], "").ok().stdout;
    assert!(audit.contains("deaf, 1 messages late"), "{audit}");
}

/// Once, each connection that Slack closed because there were too many was followed by another one and a half seconds
/// later, for ever.
#[tokio::test(flavor = "multi_thread")]
async fn while_there_are_too_many_connections_others_are_opened_less_and_less_often() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    let gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_sockets(2, PATIENCE).await);
    slack.fault("hello", Fault::Error("too_many_websockets"));
    slack.disconnect("refresh_requested");
    let waits_s = |line: &str| {
        let (_, wait) = line.split_once("this app has too many; opening another in ")?;
        wait.split_once(" s")?.0.parse::<f64>().ok()
    };
    until_async("a long pause", || {
        gateway.log().lines().filter_map(waits_s).any(|seconds| seconds >= 4.0).then_some(())
    })
    .await;
    slack.heal("hello");
    assert!(slack.await_sockets(2, PATIENCE).await);
    each_is_answered_once(&slack, &home, gateway, &[slack.dm("U1", "hello")]).await;
}

/// What the ledger of a home tells of the way to people.
fn of_front(home: &Home) -> Vec<String> {
    let kinds = home.ledger().into_iter().filter_map(|event| event["type"].as_str().map(str::to_owned));
    kinds.filter(|kind| kind.starts_with("front.")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_changed_while_questions_run_and_each_is_answered_once() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    // One is written out, and the other in a file of its own.
    let bot = home.path().join("bot-token");
    let write = |app: &str, token: &str| {
        std::fs::write(&bot, token).expect("a file");
        let config = json!({"version": 1, "language": "zh-TW", "slack": {"appToken": app, "botToken": {"file": bot}}});
        home.write("gateway.json", config.to_string());
    };
    write(&slack.rules().app_token, &slack.rules().bot_token);
    let mut command = command(&home, &slack, &[]);
    command.env_remove("PMK_SLACK_APP_TOKEN").env_remove("PMK_SLACK_BOT_TOKEN");
    let gateway = Gateway::spawn(&home, command);
    assert!(slack.await_connected(PATIENCE).await);

    let mut asked = Vec::new();
    for round in 1..=3 {
        asked.extend((0..8).map(|n| slack.dm(&format!("U{n}"), &format!("Question {round}.{n}"))));
        let (app, token) = (format!("xapp-{round}"), format!("xoxb-{round}"));
        let opened = slack.call_count("apps.connections.open");
        // The operator is sometimes faster than Slack, and sometimes slower.
        if round % 2 == 0 {
            slack.rotate(&app, &token);
            write(&app, &token);
        } else {
            write(&app, &token);
            slack.rotate(&app, &token);
        }
        asked.extend((0..8).map(|n| slack.dm(&format!("U{n}"), &format!("Meanwhile {round}.{n}"))));
        until_async("a look at the token, and two connections by it", || {
            (slack.call_count("apps.connections.open") >= opened + 3).then_some(())
        })
        .await;
    }
    each_is_answered_once(&slack, &home, gateway, &asked).await;
    let log = std::fs::read_to_string(home.path().join("stderr.log")).expect("the log");
    assert!(log.contains("a new Slack token is in use from now on") && !log.contains("xoxb-1"), "{log}");
}

/// Once, an answer that was given at once called itself minutes late where this machine's clock was minutes ahead.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_in_time_is_not_late_by_another_clock() {
    for clock_ahead in [-400, 400] {
        let slack = Slack::start(SlackRules { clock_ahead, ..rules() }).await;
        let home = Home::new();
        let _gateway = Gateway::start(&home, &slack, &[]);
        assert!(slack.await_connected(PATIENCE).await);
        let reply = slack.await_reply(&slack.dm("U1", "hello"), PATIENCE).await.expect("a reply");
        assert!(!reply.text.starts_with(":alarm_clock:"), "{}", reply.text);
    }
}
