//! Where a question is a question, and where its answer goes.

use std::time::Duration;

use pmk_stand_ins::slack::{Fault, Message, Sent, SlackRules, dm_channel};
use serde_json::{Value, json};

use crate::{
    presence::age,
    support::{Home, PATIENCE, until_async},
    workspace::{Scene, rules},
};

/// A workspace, with this in the section `slack` of gateway.json.
async fn scene(slack: Value) -> Scene {
    scene_with(rules(), slack).await
}

async fn scene_with(rules: SlackRules, slack: Value) -> Scene {
    Scene::new(rules, &json!({"version": 1, "language": "en", "slack": slack, "blocklist": ["U9"]})).await
}

fn in_threads() -> Value {
    json!({"replyIn": "thread"})
}

/// The answer to this, in this thread or in none.
async fn answered(scene: &Scene, channel: &str, thread: Option<&str>, question: &str) -> Message {
    let is_it =
        |message: &Message| message.by_bot && message.thread_ts.as_deref() == thread && message.text.contains(question);
    let found = scene.slack.await_message(channel, PATIENCE, is_it).await;
    found.unwrap_or_else(|| panic!("no answer to {question}: {:#?}", scene.slack.messages(channel)))
}

fn store(home: &Home) -> rusqlite::Connection {
    rusqlite::Connection::open(home.path().join("gateway/pmk-host.db")).expect("the store")
}

/// It is acknowledged, and nothing of it is kept: what is to be answered is stored before that.
async fn passes_by(scene: &Scene, sent: &Sent) {
    assert!(scene.slack.await_ack(&sent.event_id, PATIENCE).await.is_some(), "{sent:?}");
    let stored = "SELECT count(*) FROM inbox WHERE ts = ?1";
    let stored: i64 = store(&scene.home).query_row(stored, [&sent.ts], |row| row.get(0)).expect("a count");
    assert_eq!(stored, 0, "{sent:?}");
}

fn conversations(home: &Home) -> Vec<String> {
    let store = store(home);
    let mut keys = store.prepare("SELECT key FROM session ORDER BY id").expect("a statement");
    keys.query_map([], |row| row.get(0)).expect("rows").map(|key| key.expect("a key")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mention_is_answered_in_the_channel_or_in_the_thread_that_it_begins() {
    for (slack, in_thread) in [(json!({}), false), (in_threads(), true)] {
        let scene = scene(slack).await;
        let _gateway = scene.start().await;
        let first = scene.slack.mention("C1", "U1", "When is the launch?", None);
        let second = scene.slack.mention("C1", "U2", "Where is the car park?", None);
        let thread = |asked: &Sent| in_thread.then(|| asked.ts.clone());
        answered(&scene, "C1", thread(&first).as_deref(), "When is the launch?").await;
        answered(&scene, "C1", thread(&second).as_deref(), "Where is the car park?").await;
        let within = scene.slack.mention("C1", "U1", "And at what time?", Some(&first.ts));
        answered(&scene, "C1", Some(&first.ts), "And at what time?").await;
        scene.slack.redeliver(&within.event_id);
        // Direct messages stay as they are.
        scene.slack.dm("U1", "Hello by myself.");
        let dm = dm_channel("U1");
        let greeted = answered(&scene, &dm, None, "Hello by myself.").await;
        scene.slack.dm_in_thread("U1", "And in its thread.", Some(&greeted.ts));
        answered(&scene, &dm, Some(&greeted.ts), "And in its thread.").await;

        let mut keys = conversations(&scene.home);
        let mut expected = vec![format!("slack:channel:C1:{}", first.ts), "slack:dm:U1".to_owned()];
        expected.push(format!("slack:dm:U1:{}", greeted.ts));
        expected.push(if in_thread {
            format!("slack:channel:C1:{}", second.ts)
        } else {
            "slack:channel:C1".to_owned()
        });
        keys.sort();
        expected.sort();
        assert_eq!(keys, expected);
        assert_eq!(scene.slack.replies("C1").len(), 3, "{:#?}", scene.slack.messages("C1"));
        scene.behaved();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_goes_on_without_a_mention_until_somebody_else_writes() {
    let scene = scene(in_threads()).await;
    let gateway = scene.start().await;
    let slack = &scene.slack;
    passes_by(&scene, &slack.write("C1", "U2", "what a canteen", None)).await;
    let asked = slack.mention("C1", "U1", "When is the launch?", None);
    let thread = Some(asked.ts.as_str());
    answered(&scene, "C1", thread, "When is the launch?").await;
    slack.write("C1", "U1", "And where?", thread);
    answered(&scene, "C1", thread, "And where?").await;

    // Somebody else is spoken to, nobody has written, and who is blocked does not count.
    passes_by(&scene, &slack.write("C1", "U1", "<@U2> were you not there?", thread)).await;
    let in_thread = |more: Value| {
        let mut event = json!({"type": "message", "channel": "C1", "channel_type": "channel", "thread_ts": asked.ts,
            "user": "U2", "text": "beep", "ts": "2000000000.000100", "event_ts": "2000000000.000100"});
        event.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        event
    };
    for nobodys in [
        json!({"bot_id": "B2"}),
        json!({"subtype": "bot_message", "bot_id": "B2", "user": null}),
        json!({"subtype": "message_changed", "message": in_thread(json!({}))}),
        json!({"subtype": "message_deleted", "deleted_ts": asked.ts}),
    ] {
        let event = slack.send_event(in_thread(nobodys));
        assert!(slack.await_ack(&event, PATIENCE).await.is_some());
    }
    passes_by(&scene, &slack.write("C1", "U9", "let me in", thread)).await;
    slack.write("C1", "U1", "Who told you?", thread);
    answered(&scene, "C1", thread, "Who told you?").await;

    passes_by(&scene, &slack.write("C1", "U2", "It was the canteen.", thread)).await;
    passes_by(&scene, &slack.write("C1", "U1", "Was it?", thread)).await;
    passes_by(&scene, &slack.write("C1", "U2", "So they say.", thread)).await;
    // In a thread of somebody else a mention is a question, and no more than that.
    slack.mention("C1", "U2", "Was it so?", thread);
    answered(&scene, "C1", thread, "Was it so?").await;
    passes_by(&scene, &slack.write("C1", "U2", "I knew it.", thread)).await;
    slack.mention("C1", "U1", "Are you sure?", thread);
    answered(&scene, "C1", thread, "Are you sure?").await;
    slack.write("C1", "U1", "Quite sure?", thread);
    answered(&scene, "C1", thread, "Quite sure?").await;

    assert_eq!(slack.replies("C1").len(), 6, "{:#?}", slack.messages("C1"));
    assert!(gateway.terminate().success());
    scene.behaved();
    // What people write to each other is their own.
    let mut kept = std::fs::read(scene.home.path().join("stderr.log")).expect("the log");
    for file in std::fs::read_dir(scene.home.path().join("gateway")).expect("a folder") {
        kept.extend(std::fs::read(file.expect("a file").path()).unwrap_or_default());
    }
    let kept = String::from_utf8_lossy(&kept);
    assert!(kept.contains("Quite sure?") && !kept.contains("canteen") && !kept.contains("were you not there"));
}

/// Regression: two apps that mention each other went on for ever, at the model's price.
#[tokio::test(flavor = "multi_thread")]
async fn apps_that_mention_each_other_end_after_twenty_answers_and_people_beside_them_are_answered() {
    let scene = scene(in_threads()).await;
    let gateway = scene.start().await;
    let slack = &scene.slack;
    for round in 0..20 {
        let asked = slack.mention_by_app("C1", "U77", &format!("And round {round}?"));
        answered(&scene, "C1", Some(&asked.ts), &format!("And round {round}?")).await;
    }
    for round in 20..22 {
        slack.mention_by_app("C1", "U77", &format!("And round {round}?"));
        let bounded = scene.home.await_events("app.bounded", round - 19);
        let last = bounded.last().expect("an event");
        assert_eq!((&last["actor"], &last["of"], &last["most"]), (&json!("U77"), &json!("person"), &json!(20)));
    }
    let asked = slack.mention("C1", "U1", "When is the launch?", None);
    answered(&scene, "C1", Some(&asked.ts), "When is the launch?").await;
    // Once, a command of a person who writes through an app was not carried out, although it costs no model.
    let ordered = slack.mention_by_app("C1", "U77", "/pmk frob");
    answered(&scene, "C1", Some(&ordered.ts), "There is no command `frob`").await;
    assert!(gateway.terminate().success());
    assert_eq!(slack.replies("C1").len(), 22, "{:#?}", slack.messages("C1"));
    assert_eq!(scene.anthropic.requests().len(), 21, "the model is not asked either");
    let log = std::fs::read_to_string(scene.home.path().join("stderr.log")).expect("the log");
    assert!(log.contains("if two bots answer each other, put one on the `blocklist`"), "{log}");
    scene.behaved();
}

/// Once, who had begun a thread was followed there whoever else had written in it before the mention.
#[tokio::test(flavor = "multi_thread")]
async fn who_has_not_been_alone_in_a_thread_before_the_mention_is_not_followed_there() {
    let scene = scene(json!({})).await;
    let gateway = scene.start().await;
    let slack = &scene.slack;
    let root = slack.talk("C1", "U1", "a topic", None);
    slack.talk("C1", "U2", "a word of somebody else", Some(&root.ts));
    slack.mention("C1", "U1", "When is the launch?", Some(&root.ts));
    answered(&scene, "C1", Some(&root.ts), "When is the launch?").await;
    passes_by(&scene, &slack.write("C1", "U1", "Was it so?", Some(&root.ts))).await;
    // Alone with it, and with others who are no people.
    let alone = slack.talk("C1", "U1", "another topic", None);
    slack.talk_with("C1", "B77", "beep", Some(&alone.ts), json!({"bot_id": "B77"}));
    slack.mention("C1", "U1", "Where is it?", Some(&alone.ts));
    answered(&scene, "C1", Some(&alone.ts), "Where is it?").await;
    slack.write("C1", "U1", "And at what time?", Some(&alone.ts));
    answered(&scene, "C1", Some(&alone.ts), "And at what time?").await;
    assert_eq!(slack.replies("C1").len(), 3, "{:#?}", slack.messages("C1"));
    assert!(gateway.terminate().success());
    scene.behaved();
}

/// Events keep no order: the word of somebody else may come before the mention that was written before it.
#[tokio::test(flavor = "multi_thread")]
async fn a_mention_that_comes_after_a_later_word_of_somebody_else_is_not_followed() {
    let scene = scene(in_threads()).await;
    let gateway = scene.start().await;
    let slack = &scene.slack;
    let root = slack.mention("C1", "U1", "When is the launch?", None);
    let thread = Some(root.ts.as_str());
    answered(&scene, "C1", thread, "When is the launch?").await;
    passes_by(&scene, &slack.write("C1", "U2", "Tomorrow, I think.", thread)).await;
    let late = slack.talk("C1", "U1", "<@U0BOT> is it?", thread);
    passes_by(&scene, &slack.write("C1", "U2", "It is.", thread)).await;
    slack.send_event(json!({"type": "app_mention", "channel": "C1", "user": "U1", "text": "<@U0BOT> is it?",
        "ts": late.ts, "event_ts": late.ts, "thread_ts": root.ts, "parent_user_id": "U1"}));
    answered(&scene, "C1", thread, "is it?").await;
    passes_by(&scene, &slack.write("C1", "U1", "Well then.", thread)).await;
    assert_eq!(slack.replies("C1").len(), 2, "{:#?}", slack.messages("C1"));
    assert!(gateway.terminate().success());
    scene.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn where_threads_are_not_followed_every_question_needs_a_mention() {
    let scene = scene(json!({"replyIn": "thread", "followThreads": false})).await;
    let _gateway = scene.start().await;
    let asked = scene.slack.mention("C1", "U1", "When is the launch?", None);
    answered(&scene, "C1", Some(&asked.ts), "When is the launch?").await;
    passes_by(&scene, &scene.slack.write("C1", "U1", "And where?", Some(&asked.ts))).await;
    scene.slack.mention("C1", "U1", "Where is it?", Some(&asked.ts));
    answered(&scene, "C1", Some(&asked.ts), "Where is it?").await;
    scene.behaved();
}

/// In the way of a kill: one as it stands in a store, and one after which what was written is read back.
#[tokio::test(flavor = "multi_thread")]
async fn it_goes_on_following_after_a_kill_and_reads_back_what_it_has_missed() {
    let scene = scene(in_threads()).await;
    let slack = &scene.slack;
    let gateway = scene.start().await;
    let asked = slack.mention("C1", "U1", "When is the launch?", None);
    let other = slack.mention("C1", "U2", "When is lunch?", None);
    let (thread, others) = (Some(asked.ts.as_str()), Some(other.ts.as_str()));
    answered(&scene, "C1", thread, "When is the launch?").await;
    answered(&scene, "C1", others, "When is lunch?").await;
    gateway.kill();
    assert!(slack.await_sockets(0, PATIENCE).await);
    let gateway = scene.start().await;
    slack.write("C1", "U1", "And where?", thread);
    answered(&scene, "C1", thread, "And where?").await;
    scene.home.await_events("gateway.online", 2);
    gateway.kill();
    assert!(slack.await_sockets(0, PATIENCE).await);

    age(&scene.home, Duration::from_secs(10 * 60));
    slack.talk("C1", "U1", "Is there cake?", thread);
    slack.talk("C1", "U1", "And tea?", thread);
    slack.talk("C1", "U3", "Noon, as ever.", others);
    slack.talk("C1", "U2", "Thank you, and what is there?", others);
    let begun = slack.talk("C1", "U4", "<@U0BOT> who is on call?", None);
    let gateway = scene.start().await;
    answered(&scene, "C1", thread, "Is there cake?").await;
    answered(&scene, "C1", thread, "And tea?").await;
    answered(&scene, "C1", Some(&begun.ts), "who is on call?").await;
    let caught_up = scene.home.await_events("gateway.caught-up", 1).remove(0);
    assert_eq!((&caught_up["conversations"], &caught_up["messages"]), (&json!(3), &json!(3)));
    // Both threads, and the new one, are as if nobody had been away.
    passes_by(&scene, &slack.write("C1", "U2", "Nobody?", others)).await;
    slack.write("C1", "U4", "Tonight, I mean.", Some(&begun.ts));
    answered(&scene, "C1", Some(&begun.ts), "Tonight, I mean.").await;
    assert_eq!(slack.replies("C1").len(), 7, "{:#?}", slack.messages("C1"));
    assert!(gateway.terminate().success());
    scene.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_group_a_mention_is_a_question_however_often_it_comes() {
    for (slack, group_mentions) in [(in_threads(), false), (in_threads(), true), (json!({}), true)] {
        let in_thread = slack != json!({});
        let scene = scene_with(SlackRules { group_mentions, ..rules() }, slack).await;
        let _gateway = scene.start().await;
        for group in ["C5", "G5"] {
            scene.slack.is_group(group);
            let asked = scene.slack.mention(group, "U1", "When is the launch?", None);
            let thread = in_thread.then_some(asked.ts.as_str());
            answered(&scene, group, thread, "When is the launch?").await;
            passes_by(&scene, &scene.slack.write(group, "U1", "That is soon.", None)).await;
            scene.slack.mention(group, "U1", "Is it?", Some(&asked.ts));
            answered(&scene, group, Some(&asked.ts), "Is it?").await;
            scene.slack.write(group, "U1", "And where?", Some(&asked.ts));
            answered(&scene, group, Some(&asked.ts), "And where?").await;
            passes_by(&scene, &scene.slack.write(group, "U2", "At the pier.", Some(&asked.ts))).await;
            passes_by(&scene, &scene.slack.write(group, "U1", "Which one?", Some(&asked.ts))).await;
            assert_eq!(scene.slack.replies(group).len(), 3, "{:#?}", scene.slack.messages(group));
        }
        scene.behaved();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_opens_the_direct_message_is_shown_what_to_begin_with() {
    let prompts = json!([{"title": "Who is on call?", "message": "Who is on call tonight?"}]);
    let scene = scene(json!({"suggestedPrompts": prompts})).await;
    let gateway = scene.start().await;
    let opens = async |user: &str, tab: &str| {
        let event = scene.slack.open_home(user, tab);
        assert!(scene.slack.await_ack(&event, PATIENCE).await.is_some(), "{user}");
    };
    opens("U9", "messages").await;
    opens("U3", "home").await;
    opens("U1", "messages").await;
    until_async("the prompts", || scene.slack.suggested("U1").filter(|shown| json!(shown) == prompts)).await;
    scene.slack.fault("assistant.threads.setSuggestedPrompts", Fault::Error("missing_scope"));
    opens("U2", "messages").await;
    let calls = || scene.slack.call_count("assistant.threads.setSuggestedPrompts");
    until_async("a try", || (calls() == 2).then_some(())).await;
    for user in ["U1", "U2"] {
        opens(user, "messages").await;
    }
    // They are shown in the order of the opening.
    scene.slack.heal("assistant.threads.setSuggestedPrompts");
    opens("U4", "messages").await;
    until_async("the prompts", || scene.slack.suggested("U4")).await;
    assert_eq!(calls(), 3);
    assert_eq!(conversations(&scene.home), [""; 0]);
    assert!(!gateway.log().contains("setSuggestedPrompts"), "{}", gateway.log());
    assert!(gateway.terminate().success());
    scene.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_prompts_nobody_is_shown_any_and_without_a_scope_a_mention_does_it() {
    let lacking = ["assistant:write", "channels:history", "mpim:history"];
    let scene = scene_with(rules().without_scopes(&lacking), in_threads()).await;
    let gateway = scene.start().await;
    for scope in lacking {
        let line = format!("the Slack bot token has no scope `{scope}`: ");
        assert!(gateway.log().contains(&line), "{}", gateway.log());
    }
    let opened = scene.slack.open_home("U1", "messages");
    assert!(scene.slack.await_ack(&opened, PATIENCE).await.is_some());
    let asked = scene.slack.mention("C1", "U1", "When is the launch?", None);
    answered(&scene, "C1", Some(&asked.ts), "When is the launch?").await;
    let untold = scene.slack.write("C1", "U1", "And where?", Some(&asked.ts));
    assert_eq!(untold.event_id, "", "the app is not told");
    scene.slack.mention("C1", "U1", "Where is it?", Some(&asked.ts));
    answered(&scene, "C1", Some(&asked.ts), "Where is it?").await;
    assert_eq!(scene.slack.replies("C1").len(), 2);
    assert!(scene.slack.calls("assistant.threads.setSuggestedPrompts").is_empty());
    scene.behaved();
}
