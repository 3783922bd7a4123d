//! What was said while the gateway was away.

use std::time::Duration;

use pmk_stand_ins::slack::{Fault, Message, Sent, Slack, dm_channel};

use serde_json::json;

use super::{MINUTE, age, made_good, online, talking_with};
use crate::{
    moments::Moments,
    support::{Home, PATIENCE, until_async},
    workspace::{Gateway, Scene, rules},
};

/// What the bot has answered to a message that it read back, and to no other.
fn answers(slack: &Slack, asked: &Sent) -> Vec<String> {
    let id = format!("missed-{}-{}", asked.channel, asked.ts);
    let of_it = |reply: &Message| {
        reply.metadata.as_ref().is_some_and(|metadata| metadata["event_payload"]["event_id"] == id.as_str())
    };
    slack.replies(&asked.channel).into_iter().filter(of_it).map(|reply| reply.text).collect()
}

async fn answered(slack: &Slack, asked: &Sent) {
    until_async("an answer", || (!answers(slack, asked).is_empty()).then_some(())).await;
}

/// The count of what was read back, once it was.
fn caught_up(home: &Home) -> (u64, u64, u64) {
    let event = home.await_events("gateway.caught-up", 1).remove(0);
    let count = |key: &str| event[key].as_u64().expect("a count");
    (count("conversations"), count("messages"), count("unreadable"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_in_a_long_outage_is_answered_once_and_says_how_late() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    let gateway = talking_with(&home, &slack, &["U1", "U2", "U9"]).await;
    let thread = slack.mention("C1", "U1", "a thread?", None);
    assert!(slack.await_reply(&thread, PATIENCE).await.is_some());
    let in_thread = slack.mention("C1", "U1", "in here", Some(&thread.ts));
    assert!(slack.await_reply(&in_thread, PATIENCE).await.is_some());
    gateway.kill();
    age(&home, 10 * MINUTE);
    home.write("gateway.json", r#"{"version":1,"language":"en","blocklist":["U9"]}"#);

    let ago = |minutes: u32, channel: &str, user: &str, text: &str, thread: Option<&str>| {
        // In the middle of what is rounded to these minutes, however long all this takes.
        slack.talked(minutes * MINUTE - MINUTE * 2 / 5, channel, user, text, thread)
    };
    let (dm, dm2, dm9) = (dm_channel("U1"), dm_channel("U2"), dm_channel("U9"));
    let late = ago(7, &dm, "U1", "Is anybody there?", None);
    let taken_back = ago(6, &dm2, "U2", "Never mind.", None);
    slack.take_back(&taken_back);
    ago(6, &dm9, "U9", "Let me in.", None);
    ago(6, "C1", "U3", "talk that is not for the bot", None);
    let open = ago(6, "C1", "U3", "<@U0BOT> who is on call?", None);
    let settled = ago(5, "C1", "U4", "<@U0BOT> when is lunch?", None);
    ago(5, "C1", "U5", "at noon", Some(&settled.ts));
    let threaded = slack.talk("C1", "U1", "<@U0BOT> and what then?", Some(&thread.ts));
    let fresh = slack.talk(&dm2, "U2", "A fresh question.", None);

    let _gateway = Gateway::start(&home, &slack, &[]);
    for asked in [&late, &open, &threaded, &fresh] {
        answered(&slack, asked).await;
    }
    let (_, messages, unreadable) = caught_up(&home);
    assert_eq!((messages, unreadable), (4, 0));
    let answer = answers(&slack, &late).remove(0);
    assert!(answer.starts_with(":alarm_clock: This answer is about 7 minutes late\n"), "{answer}");
    assert!(!answers(&slack, &fresh)[0].contains("late"));
    // Slack sends one of them again after all.
    let again = slack.send_event(json!({
        "type": "message", "channel": dm2, "channel_type": "im", "user": "U2", "ts": fresh.ts, "text": "A fresh question.",
    }));
    assert!(slack.await_ack(&again, PATIENCE).await.is_some());
    let last = slack.dm("U2", "The last one.");
    assert!(slack.await_reply(&last, PATIENCE).await.is_some());
    for asked in [&late, &open, &threaded, &fresh] {
        assert_eq!(answers(&slack, asked).len(), 1, "{:#?}", slack.messages(&asked.channel));
    }
    // The greeting, the fresh one and the last one, and nothing to what came again.
    let is_answer = |reply: &&Message| !reply.text.starts_with([':']);
    assert_eq!(slack.replies(&dm2).iter().filter(is_answer).count(), 3, "{:#?}", slack.messages(&dm2));
    assert_eq!(answers(&slack, &taken_back), [] as [&str; 0]);
    assert_eq!(slack.replies(&dm9).iter().filter(|reply| reply.text.contains("Let me in")).count(), 0);
    let lunch = slack.replies("C1").into_iter().filter(|reply| reply.text.contains("lunch"));
    assert_eq!(lunch.count(), 0, "somebody else has answered");
}

/// Regression: of threads, only those were read in which the gateway had been asked before, and nothing told of the others;
/// and a question seemed answered by who asked the bot another one in its thread.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_first_asked_in_a_thread_during_an_outage_was_never_found() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    let gateway = talking_with(&home, &slack, &["U1"]).await;
    let greeting = slack.mention("C1", "U1", "hello", None);
    assert!(slack.await_reply(&greeting, PATIENCE).await.is_some());
    gateway.kill();
    age(&home, 10 * MINUTE);

    let ago = |minutes: u32, user: &str, text: &str, thread: Option<&str>| {
        slack.talked(minutes * MINUTE, "C1", user, text, thread)
    };
    // Older than anything that is read back.
    let alert = ago(25 * 60, "U2", "deploy fails", None);
    let topic = ago(8, "U2", "deploy fails again", None);
    let question = ago(8, "U3", "<@U0BOT> who is on call?", None);
    let below = slack.replies(&dm_channel("U1")).remove(0);
    let asked = [
        ago(7, "U1", "<@U0BOT> why?", Some(&alert.ts)),
        ago(7, "U1", "<@U0BOT> why again?", Some(&topic.ts)),
        ago(6, "U4", "<@U0BOT> and tomorrow?", Some(&question.ts)),
        slack.talk(&dm_channel("U1"), "U1", "What do you mean?", Some(&below.ts)),
        question,
    ];
    let _gateway = Gateway::start(&home, &slack, &[]);
    for asked in &asked {
        answered(&slack, asked).await;
    }
    assert_eq!(caught_up(&home), (2, 5, 0));
    for asked in &asked {
        assert_eq!(answers(&slack, asked).len(), 1, "{:#?}", slack.messages(&asked.channel));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_read_back_after_a_short_outage_and_each_conversation_once_after_a_long_one() {
    let slack = Slack::start(rules().without_statuses().unlimited()).await;
    let home = Home::new();
    talking_with(&home, &slack, &["U1"]).await.kill();
    age(&home, 2 * MINUTE);
    talking_with(&home, &slack, &["U1"]).await.kill();
    assert_eq!(slack.call_count("conversations.history"), 0);
    age(&home, 10 * MINUTE);
    let gateway = Gateway::start(&home, &slack, &[]);
    assert_eq!(caught_up(&home), (1, 0, 0));
    gateway.kill();
    let gateway = talking_with(&home, &slack, &["U1"]).await;
    assert!(gateway.terminate().success());
    assert_eq!(slack.call_count("conversations.history"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_scope_is_missing_it_does_without() {
    let slack = Slack::start(rules().unlimited().without_scopes(&["channels:history"])).await;
    let home = Home::new();
    let gateway = talking_with(&home, &slack, &["U1"]).await;
    for channel in ["C1", "C2"] {
        assert!(slack.await_reply(&slack.mention(channel, "U1", "hello", None), PATIENCE).await.is_some());
    }
    gateway.kill();
    slack.keep_out("C2");
    age(&home, 10 * MINUTE);
    slack.talked(7 * MINUTE, "C1", "U1", "<@U0BOT> cannot be read", None);
    let open = slack.talked(7 * MINUTE, &dm_channel("U1"), "U1", "Can be read.", None);
    let gateway = Gateway::start(&home, &slack, &[]);
    answered(&slack, &open).await;
    assert_eq!(caught_up(&home), (1, 1, 2));
    assert!(gateway.log().contains("missing_scope"), "{}", gateway.log());
    let asked = slack.dm("U1", "hello again");
    assert!(slack.await_reply(&asked, PATIENCE).await.is_some());
    assert!(gateway.terminate().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slack_that_is_asked_too_often_is_asked_again_when_it_says() {
    let slack = Slack::start(rules().without_statuses().unlimited()).await;
    let home = Home::new();
    talking_with(&home, &slack, &["U1"]).await.kill();
    age(&home, 10 * MINUTE);
    let open = slack.talked(7 * MINUTE, &dm_channel("U1"), "U1", "Is anybody there?", None);
    slack.fault_times("conversations.history", 1, Fault::RateLimited(1));
    let _gateway = Gateway::start(&home, &slack, &[]);
    answered(&slack, &open).await;
    assert_eq!(caught_up(&home), (1, 1, 0));
}

/// Regression: of the conversations after one that Slack could not serve, none was read back for as long as that lasted.
#[tokio::test(flavor = "multi_thread")]
async fn one_conversation_that_slack_could_not_serve_kept_all_others_from_being_read_back() {
    let slack = Slack::start(rules().without_statuses().unlimited()).await;
    let home = Home::new();
    talking_with(&home, &slack, &["U1", "U2"]).await.kill();
    age(&home, 10 * MINUTE);
    let open = ["U1", "U2"].map(|user| slack.talked(7 * MINUTE, &dm_channel(user), user, "Is anybody there?", None));
    slack.fault_times("conversations.history", 1, Fault::Error("internal_error"));
    let _gateway = Gateway::start(&home, &slack, &[]);
    for asked in &open {
        answered(&slack, asked).await;
    }
    let read = slack.calls("conversations.history");
    assert_ne!(read[0].body["channel"], read[1].body["channel"], "the other one was not read next");
}

/// Regression: where the gateway only knows threads of a channel, one failure to read the channel lost what was asked
/// there: its threads were read, and with them went what told that anything was to be read.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_missed_in_a_channel_was_lost_if_slack_could_not_return_it_at_once() {
    let slack = Slack::start(rules().without_statuses().unlimited()).await;
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"slack":{"replyIn":"thread"}}"#);
    let gateway = talking_with(&home, &slack, &[]).await;
    slack.mention("C1", "U1", "a thread?", None);
    home.await_events("turn.processed", 1);
    gateway.kill();
    age(&home, 10 * MINUTE);
    let open = slack.talked(7 * MINUTE, "C1", "U2", "<@U0BOT> who is on call?", None);
    slack.fault_times("conversations.history", 1, Fault::Error("internal_error"));
    let _gateway = Gateway::start(&home, &slack, &[]);
    answered(&slack, &open).await;
    assert!(slack.call_count("conversations.history") >= 2, "the first one has failed");
}

/// Regression: with each attempt to read a thread that Slack could not return, its whole channel was read again, and
/// counted again.
#[tokio::test(flavor = "multi_thread")]
async fn the_channel_of_a_thread_that_slack_could_not_return_was_read_from_its_beginning_and_counted_each_time() {
    let slack = Slack::start(rules().without_statuses().unlimited()).await;
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"slack":{"replyIn":"thread"}}"#);
    let gateway = talking_with(&home, &slack, &[]).await;
    let thread = slack.mention("C1", "U1", "a thread?", None);
    home.await_events("turn.processed", 1);
    gateway.kill();
    age(&home, 10 * MINUTE);
    let open = slack.talk("C1", "U1", "<@U0BOT> and what then?", Some(&thread.ts));
    slack.fault("conversations.replies", Fault::Error("internal_error"));
    let gateway = Gateway::start(&home, &slack, &[]);
    let has_failed = || gateway.log().contains("cannot read what was missed there now").then_some(());
    until_async("a thread that is not returned", has_failed).await;
    slack.heal("conversations.replies");
    answered(&slack, &open).await;
    let counted = home.await_events("gateway.caught-up", 2);
    let conversations: Vec<_> = counted.iter().map(|event| event["conversations"].as_u64()).collect();
    assert_eq!(conversations, [Some(1), Some(1)], "the channel, then the thread");
    let read = slack.calls("conversations.history");
    let oldest = |at: usize| read[at].body["oldest"].as_str().expect("a time");
    assert!(oldest(1) > oldest(0), "{read:?}");
}

/// The home of a gateway that has answered a mention in C1, and has been away for ten minutes.
async fn away_from_a_channel(slack: &Slack) -> Home {
    let home = Home::new();
    let gateway = talking_with(&home, slack, &[]).await;
    let greeting = slack.mention("C1", "U1", "hello", None);
    assert!(slack.await_reply(&greeting, PATIENCE).await.is_some());
    home.await_events("turn.processed", 1);
    gateway.kill();
    age(&home, 10 * MINUTE);
    home
}

/// Regression: a thread that Slack could not return kept the whole channel from being read back.
#[tokio::test(flavor = "multi_thread")]
async fn one_thread_that_slack_could_not_return_kept_its_channel_from_being_read_back() {
    let slack = Slack::start(rules().without_statuses().unlimited()).await;
    let home = away_from_a_channel(&slack).await;
    for _ in 0..4 {
        let topic = slack.talked(8 * MINUTE, "C1", "U2", "deploy fails", None);
        slack.talked(7 * MINUTE, "C1", "U2", "again", Some(&topic.ts));
    }
    let open = slack.talked(7 * MINUTE, "C1", "U3", "<@U0BOT> who is on call?", None);
    slack.fault("conversations.replies", Fault::Error("internal_error"));
    let _gateway = Gateway::start(&home, &slack, &[]);
    answered(&slack, &open).await;
    let is_cut = || home.events("gateway.caught-up").iter().any(|event| event["cut"] == 1).then_some(());
    until_async("a conversation that is given up in part", is_cut).await;
}

/// Regression: a thread that Slack could not return twice in a row was given up at once.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_missed_in_a_thread_was_lost_if_slack_could_not_return_it_for_a_moment() {
    let slack = Slack::start(rules().without_statuses().unlimited()).await;
    let home = away_from_a_channel(&slack).await;
    let topic = slack.talked(8 * MINUTE, "C1", "U2", "deploy fails", None);
    let open = slack.talked(7 * MINUTE, "C1", "U3", "<@U0BOT> why?", Some(&topic.ts));
    slack.fault_times("conversations.replies", 2, Fault::Error("internal_error"));
    let _gateway = Gateway::start(&home, &slack, &[]);
    answered(&slack, &open).await;
}

/// Regression: a bot token that was refused at that moment was the end of reading back, for every conversation.
#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_read_back_with_a_refused_token_was_given_up_for_good() {
    let slack = Slack::start(rules().without_statuses().unlimited()).await;
    let home = Home::new();
    // Otherwise Slack would accept the token for a notice.
    home.write("gateway.json", r#"{"version":1,"presence":{"broadcast":false}}"#);
    talking_with(&home, &slack, &["U1", "U2"]).await.kill();
    age(&home, 10 * MINUTE);
    let open = ["U1", "U2"].map(|user| slack.talked(7 * MINUTE, &dm_channel(user), user, "Is anybody there?", None));
    slack.fault("conversations.history", Fault::Error("token_revoked"));
    let gateway = Gateway::start(&home, &slack, &[]);
    until_async("a refusal", || gateway.log().contains("cannot read what was missed there now").then_some(())).await;
    slack.heal("conversations.history");
    for asked in &open {
        answered(&slack, asked).await;
    }
    assert_eq!(caught_up(&home), (2, 2, 0));
}

/// Regression: whoever had asked something in an outage got no answer until everybody had been told that it is over, which
/// takes minutes.
#[tokio::test(flavor = "multi_thread")]
async fn who_had_asked_something_waited_until_everybody_was_told_that_it_is_back() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"limits":{"slackCallSeconds":600}}"#);
    let gateway = talking_with(&home, &slack, &["U1"]).await;
    assert!(gateway.terminate().success());
    age(&home, 10 * MINUTE);
    let open = slack.talked(7 * MINUTE, &dm_channel("U1"), "U1", "Is anybody there?", None);
    slack.fault("chat.update", Fault::Stall);
    let _gateway = Gateway::start(&home, &slack, &[]);
    answered(&slack, &open).await;
}

/// Regression: of more conversations than a first few hundred, nothing was read, and nothing said so.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_in_the_last_of_many_conversations_was_left_out_in_silence() {
    let slack = Slack::start(rules().without_statuses().unlimited()).await;
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"language":"en","admins":["U0ADMIN"]}"#);
    talking_with(&home, &slack, &["U1"]).await.kill();
    let store = rusqlite::Connection::open(home.path().join("gateway/pmk-host.db")).expect("the store");
    // Each more recent than that; as they are no places that the bot is in, none is read.
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1002)
         INSERT INTO session (key, channel, created_at, active_at)
         SELECT 'slack:channel:C' || i || ':1.000001', 'C' || i, s.created_at, s.active_at + i FROM n, session s";
    store.execute(many, []).expect("many");
    drop(store);
    age(&home, 10 * MINUTE);
    let open = slack.talked(7 * MINUTE, &dm_channel("U1"), "U1", "Is anybody there?", None);
    let gateway = Gateway::start(&home, &slack, &[]);
    answered(&slack, &open).await;
    let caught_up = home.await_events("gateway.caught-up", 1).remove(0);
    // A thread and its channel are read each, of 1,000 the direct message and 499 threads.
    assert_eq!(caught_up["leftOut"], 503, "{caught_up}");
    let left_out = |message: &Message| message.text.contains("503 conversations are not read back");
    assert!(slack.await_message(&dm_channel("U0ADMIN"), PATIENCE, left_out).await.is_some());
    assert!(gateway.log().contains("503 are too many"), "{}", gateway.log());
}

/// Regression: of a conversation with very many messages, the oldest were not read, and nobody was told.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_before_very_many_messages_was_left_out_in_silence() {
    let slack = Slack::start(rules().without_statuses().unlimited()).await;
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"language":"en","admins":["U0ADMIN"]}"#);
    let gateway = talking_with(&home, &slack, &["U1"]).await;
    let asked = slack.mention("C1", "U1", "hello", None);
    assert!(slack.await_reply(&asked, PATIENCE).await.is_some());
    gateway.kill();
    age(&home, 10 * MINUTE);
    for _ in 0..4_001 {
        slack.talked(7 * MINUTE, "C1", "U2", "talk that is not for the bot", None);
    }
    let gateway = Gateway::start(&home, &slack, &[]);
    let is_cut = |message: &Message| message.text.contains("one conversation was not read back completely");
    assert!(slack.await_message(&dm_channel("U0ADMIN"), PATIENCE, is_cut).await.is_some());
    assert_eq!(home.await_events("gateway.caught-up", 1)[0]["cut"], 1);
    assert!(gateway.log().contains("this conversation cannot be read back completely"), "{}", gateway.log());
}

/// Regression: with the threads of the day before, the messages of a busy day took the place of what was missed.
#[tokio::test(flavor = "multi_thread")]
async fn the_messages_of_the_day_before_took_the_place_of_what_was_missed() {
    let slack = Slack::start(rules().without_statuses().unlimited()).await;
    let home = Home::new();
    let gateway = talking_with(&home, &slack, &["U1"]).await;
    let asked = slack.mention("C1", "U1", "hello", None);
    assert!(slack.await_reply(&asked, PATIENCE).await.is_some());
    gateway.kill();
    age(&home, 10 * MINUTE);
    for _ in 0..2_001 {
        slack.talked(30 * 60 * MINUTE, "C1", "U2", "talk of the day before", None);
    }
    let open = slack.talked(7 * MINUTE, "C1", "U3", "<@U0BOT> who is on call?", None);
    let _gateway = Gateway::start(&home, &slack, &[]);
    answered(&slack, &open).await;
    assert_eq!(home.await_events("gateway.caught-up", 1)[0]["cut"], 0);
}

/// Once, the heart waited until everything was read back, which takes minutes: the gateway seemed to be down, and took
/// itself for one whose machine had slept. The beat comes half a minute after the start, whatever this machine does.
#[tokio::test(flavor = "multi_thread")]
async fn its_heart_beats_while_it_reads_back() {
    let slack = Slack::start(rules().without_statuses().unlimited()).await;
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"limits":{"slackCallSeconds":600}}"#);
    talking_with(&home, &slack, &["U1"]).await.kill();
    age(&home, 10 * MINUTE);
    slack.fault("conversations.history", Fault::Stall);
    let _gateway = Gateway::start(&home, &slack, &[]);
    until_async("it reads back", || (!slack.calls("conversations.history").is_empty()).then_some(())).await;
    let beat = || std::fs::read_to_string(home.path().join("gateway/heartbeat")).expect("a heartbeat");
    let first = beat();
    until_async("a beat", || (beat() != first).then_some(())).await;
    assert_eq!(home.events("gateway.caught-up").len(), 0, "it still waits for Slack");
}

/// Once, a backup that was restored on another machine, which does not know when the gateway last stored something, had
/// direct messages answered again that had been answered since the backup.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_since_the_backup_is_not_answered_again_on_another_machine() {
    let slack = Slack::start(rules().unlimited()).await;
    let (home, other) = (Home::new(), Home::new());
    talking_with(&home, &slack, &["U1"]).await.kill();
    let backup = home.path().join("backup.db");
    let backup = backup.to_str().expect("a path");
    home.run(&["store", "backup", backup], "").ok();
    let gateway = talking_with(&home, &slack, &["U1"]).await;
    let long = slack.dm("U1", &"What is in this page? ".repeat(300));
    assert!(slack.await_reply(&long, PATIENCE).await.is_some());
    assert!(gateway.terminate().success());
    other.run(&["store", "restore", backup], "").ok();

    let dm = dm_channel("U1");
    let all = || slack.replies(&dm).into_iter().filter(|reply| !reply.text.starts_with(':')).count();
    let before = all();
    let open = slack.talk(&dm, "U1", "Is anybody there?", None);
    let _gateway = Gateway::start(&other, &slack, &[]);
    answered(&slack, &open).await;
    assert_eq!(caught_up(&other), (1, 1, 0));
    assert_eq!(all(), before + 1, "{:#?}", slack.messages(&dm));
}

/// Regression: the gateway that had run there once, before anybody wrote to it, was taken for that of the backup.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_start_on_another_machine_kept_what_was_missed_from_being_read_back() {
    let slack = Slack::start(rules().unlimited()).await;
    let (home, other) = (Home::new(), Home::new());
    talking_with(&home, &slack, &["U1"]).await.kill();
    let backup = home.path().join("backup.db");
    let backup = backup.to_str().expect("a path");
    home.run(&["store", "backup", backup], "").ok();
    assert!(talking_with(&other, &slack, &[]).await.terminate().success());
    let open = slack.talk(&dm_channel("U1"), "U1", "Is anybody there?", None);
    other.run(&["store", "restore", backup], "").ok();
    for sign in ["heartbeat", "shutdown", "store.restored"] {
        assert!(!other.path().join("gateway").join(sign).exists(), "{sign}");
    }
    let _gateway = Gateway::start(&other, &slack, &[]);
    answered(&slack, &open).await;
    assert_eq!(caught_up(&other), (1, 1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_while_it_reads_back_loses_nothing_and_repeats_nothing() {
    let slack = Slack::start(rules().unlimited()).await;
    let (home, mut moments) = (Home::new(), Moments::new());
    let users = ["U1", "U2", "U3"];
    talking_with(&home, &slack, &users).await.kill();
    age(&home, 10 * MINUTE);
    let asked = users.map(|user| {
        [7, 6].map(|minutes| {
            slack.talked(minutes * MINUTE, &dm_channel(user), user, &format!("Missed {minutes} of {user}."), None)
        })
    });
    for _ in 0..4 {
        let gateway = Gateway::start(&home, &slack, &[]);
        moments.pass(Duration::from_millis(400)).await;
        gateway.kill();
    }
    let gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    made_good(&home).await;
    for asked in asked.as_flattened() {
        answered(&slack, asked).await;
    }
    // One before it may have done all of that; only this one listens for signals.
    let is_ready = || home.run(&["status", "--json"], "").json()["phase"] == "ready";
    until_async("it is ready", || is_ready().then_some(())).await;
    assert!(gateway.terminate().success());
    for asked in asked.as_flattened() {
        assert_eq!(answers(&slack, asked).len(), 1, "{:#?}", slack.messages(&asked.channel));
    }
}

/// Once, a command from a direct message between two people, of which the bot is no part, took the place of that with the
/// bot: what was asked there during an outage was not found, and counted as read.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_elsewhere_kept_a_direct_message_from_being_read_back() {
    let slack = Slack::start(rules().unlimited()).await;
    slack.keep_out("D0TWO");
    let home = Home::new();
    let gateway = talking_with(&home, &slack, &["U1"]).await;
    let command = slack.slash("U1", "D0TWO", "help");
    assert!(slack.await_ack(&command, PATIENCE).await.is_some());
    assert!(slack.await_replies(&dm_channel("U1"), 2, PATIENCE).await, "where the bot is, it is answered");
    gateway.kill();
    age(&home, 10 * MINUTE);
    let open = slack.talked(7 * MINUTE, &dm_channel("U1"), "U1", "Is anybody there?", None);
    let _gateway = Gateway::start(&home, &slack, &[]);
    answered(&slack, &open).await;
    assert_eq!(caught_up(&home), (1, 1, 0));
}

/// Once, a stop that was said while nobody was there stopped nothing, and the model was asked what it means.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_was_found_by_reading_back_stopped_nothing() {
    let scene = Scene::new(rules(), &json!({"version": 1, "language": "en"})).await;
    let gateway = scene.start().await;
    let in_dm = scene.slack.dm("U1", "hello");
    let root = scene.slack.mention("C1", "U2", "a thread?", None);
    let in_thread = scene.slack.mention("C1", "U2", "in here", Some(&root.ts));
    for asked in [&in_dm, &root, &in_thread] {
        assert!(scene.slack.await_reply(asked, PATIENCE).await.is_some());
    }
    gateway.kill();
    age(&scene.home, 10 * MINUTE);
    scene.anthropic.hold();
    let dm = dm_channel("U1");
    let asked = [
        scene.slack.talked(7 * MINUTE, &dm, "U1", "Is anybody there?", None),
        scene.slack.talk("C1", "U2", "<@U0BOT> and then?", Some(&root.ts)),
    ];
    let stops = [
        scene.slack.talked(6 * MINUTE, &dm, "U1", "stop", None),
        scene.slack.talk("C1", "U2", "<@U0BOT> stop", Some(&root.ts)),
    ];
    let _gateway = scene.start().await;
    for asked in &asked {
        answered(&scene.slack, asked).await;
        let answers = answers(&scene.slack, asked);
        assert!(answers.len() == 1 && answers[0].ends_with(":raised_hand: Stopped"), "{answers:?}");
    }
    assert_eq!(scene.home.await_events("turn.stopped", 2).len(), 2);
    scene.anthropic.release();
    made_good(&scene.home).await;
    for stop in &stops {
        assert_eq!(answers(&scene.slack, stop), [] as [&str; 0]);
    }
}

/// Once, a gateway that was killed while Slack could not be reached had heard everything, by its fresh heartbeat: what was
/// asked before it had been unreachable for four minutes was not found by the next one.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_in_the_silence_before_a_kill_was_lost() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    let gateway = talking_with(&home, &slack, &["U1"]).await;
    let silence = home.path().join("gateway/silence");
    slack.fault("link", Fault::Status(503));
    slack.drop_connections();
    std::fs::remove_file(&silence).expect("it was not connected at the start");
    until_async("a beat in the silence", || silence.exists().then_some(())).await;
    gateway.kill();
    // As if it had gone on for minutes before that, but not for four.
    let since = jiff::Timestamp::now() - jiff::SignedDuration::from_mins(5);
    home.write("gateway/silence", format!("{since}\n"));
    let open = slack.talked(4 * MINUTE, &dm_channel("U1"), "U1", "Is anybody there?", None);
    slack.heal("link");
    let gateway = Gateway::start(&home, &slack, &[]);
    answered(&slack, &open).await;
    assert_eq!(caught_up(&home), (1, 1, 0));
    assert!(gateway.terminate().success());
    assert_eq!(online(&home).last(), Some(&("fast-recovery".into(), false)), "nobody is told");
}
