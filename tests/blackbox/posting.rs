//! How an answer reaches people in Slack: a status while it is made, then a message, or a stream that becomes it; and all of
//! that at Slack's limits, and through kills.

use std::time::Duration;

use pmk_stand_ins::{
    anthropic::{Anthropic, Behaviour},
    slack::{Fault, Message, Sent, Slack, SlackRules},
};
use serde_json::json;

use crate::{
    moments::Moments,
    support::{Home, PATIENCE, until_async},
    workspace::{Gateway, Scene, rules, rules_for_kills, violations_but_lateness},
};

/// Where a thread begins.
const ROOT: &str = "1700000000.000100";

async fn scene(rules: SlackRules) -> Scene {
    Scene::new(rules, &json!({"version": 1, "language": "en", "limits": {"slackCallSeconds": 4}})).await
}

/// One in which nothing is streamed.
async fn scene_at_once(rules: SlackRules) -> Scene {
    Scene::new(rules, &json!({"version": 1, "language": "en", "slack": {"stream": "off"}})).await
}

/// What people see there, once the turn is over.
async fn seen(scene: &Scene, asked: &Sent, turns: usize) -> Vec<String> {
    until_async("the end of the turn", || (scene.home.events("turn.processed").len() >= turns).then_some(())).await;
    scene.behaved();
    let in_thread = |message: &&Message| message.by_bot && message.thread_ts == asked.thread_ts;
    scene.slack.messages(&asked.channel).iter().filter(in_thread).map(Message::shown).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_is_shown_and_the_answer_is_a_message_of_its_own() {
    let scene = scene_at_once(rules()).await;
    scene.anthropic.push(Behaviour::answer("**Friday**, says the plan.\n\n| a | b |\n|---|---|\n| 1 | 2 |"));
    let _gateway = scene.start().await;
    let asked = scene.slack.mention("C1", "U1", "when?", Some(ROOT));
    let seen = seen(&scene, &asked, 1).await;
    assert_eq!(seen, ["**Friday**, says the plan.\n\n| a | b |\n|---|---|\n| 1 | 2 |"]);
    let reply = scene.slack.replies("C1").remove(0);
    assert!(reply.text.starts_with("*Friday*, says the plan."), "a text stands for it: {}", reply.text);
    let shown: Vec<(String, Vec<String>)> =
        scene.slack.statuses("C1").into_iter().map(|shown| (shown.status, shown.lines)).collect();
    let at_work = ("is working on it…".to_owned(), vec!["Thinking…".to_owned()]);
    assert_eq!(shown, [at_work, (String::new(), vec![])], "the answer takes it away");
    assert_eq!(scene.slack.calls("chat.update").len(), 0, "nothing is edited");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_an_answer_is_not_in_a_thread_its_status_is_taken_away() {
    let scene = scene(rules()).await;
    let _gateway = scene.start().await;
    let asked = scene.slack.dm("U1", "hello");
    assert_eq!(seen(&scene, &asked, 1).await.len(), 1);
    until_async("an empty status", || {
        let shown = scene.slack.statuses(&asked.channel);
        (shown.last()?.status.is_empty() && shown.iter().all(|shown| shown.thread_ts == asked.ts)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_slack_takes_no_status_or_the_past_cannot_be_read_a_placeholder_is_replaced() {
    for rules in [rules().without_statuses(), rules().without_scopes(&["groups:history"])] {
        let scene = scene(rules).await;
        let _gateway = scene.start().await;
        for turn in 1..=2 {
            let asked = scene.slack.mention("C1", "U1", "hello", Some(ROOT));
            assert_eq!(seen(&scene, &asked, turn).await.len(), turn);
        }
        let replies = scene.slack.replies("C1");
        let waiting = |reply: &Message| reply.history == [":hourglass_flowing_sand: Thinking…"];
        assert!(replies.iter().all(waiting), "{replies:#?}");
        assert!(scene.slack.calls("assistant.threads.setStatus").len() <= 1, "one refusal is enough");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_slack_refuses_goes_as_text() {
    let scene = scene(rules()).await;
    scene.anthropic.push(Behaviour::answer("**Friday**"));
    let _gateway = scene.start().await;
    scene.slack.fault_times("chat.postMessage", 1, Fault::Error("invalid_blocks"));
    let asked = scene.slack.dm("U1", "when?");
    assert_eq!(seen(&scene, &asked, 1).await, ["*Friday*"]);
}

/// Each question has one answer, no rule of Slack's was broken, and nothing had to be said twice or edited.
async fn each_is_answered_by_one_post(slack: &Slack, asked: &[Sent]) {
    for question in asked {
        assert!(slack.await_reply(question, PATIENCE).await.is_some(), "{question:?}");
    }
    assert_eq!((slack.calls("chat.postMessage").len(), slack.calls("chat.update").len()), (asked.len(), 0));
    assert_eq!(slack.violations(), Vec::<String>::new());
}

/// Once, answers queued behind the 50 edits a minute that Slack takes of a whole workspace: of 120 people the median waited for
/// 54 s, the last for 144 s. How long they wait now: `cargo bench --workspace --bench rush`.
#[tokio::test(flavor = "multi_thread")]
async fn no_limit_of_slacks_stands_before_the_answers_to_a_hundred_and_twenty_people() {
    let slack = Slack::start(SlackRules { ack_deadline: PATIENCE, ..SlackRules::default() }).await;
    let home = Home::new();
    let _gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    let asked: Vec<Sent> = (0..120).map(|person| slack.dm(&format!("U{person}"), "hello")).collect();
    each_is_answered_by_one_post(&slack, &asked).await;
}

/// Slack takes five posts in five seconds into a channel, whatever threads they go to: none is refused, as none is sent
/// before there is room for it.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_answers_into_one_channel_none_is_refused() {
    let slack = Slack::start(SlackRules { ack_deadline: PATIENCE, ..SlackRules::default() }).await;
    let home = Home::new();
    let _gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    let asks = |number: usize| {
        let root = slack.talk("C1", &format!("U{number}"), "a topic", None);
        slack.mention("C1", &format!("U{number}"), "hello", Some(&root.ts))
    };
    let asked: Vec<Sent> = (0..12).map(asks).collect();
    each_is_answered_by_one_post(&slack, &asked).await;
}

/// An answer in so many paragraphs.
fn paragraphs(count: usize) -> String {
    (0..count).map(|n| format!("Paragraph {n} has **something** to say.\n\n")).collect::<String>().trim_end().to_owned()
}

/// The model's answer comes in four pieces, of which the second comes once the first is shown, and the others after that.
async fn answer_growing(scene: &Scene, text: &str) -> Sent {
    let (answer, gate) = Behaviour::gated(text);
    scene.anthropic.push(answer);
    let asked = scene.slack.mention("C1", "U1", "tell me", Some(ROOT));
    for method in ["chat.startStream", "chat.appendStream"] {
        let before = scene.slack.calls(method).len();
        gate.add_permits(1);
        let is_tried = || (scene.slack.calls(method).len() > before).then_some(());
        until_async(method, is_tried).await;
    }
    gate.add_permits(2);
    asked
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_thread_an_answer_grows_while_it_is_made() {
    let scene = scene(rules()).await;
    let _gateway = scene.start().await;
    let asked = answer_growing(&scene, &paragraphs(40)).await;
    assert_eq!(seen(&scene, &asked, 1).await, [paragraphs(40)]);
    assert_eq!(scene.slack.calls("chat.startStream").len(), 1);
    let last = scene.slack.replies("C1").remove(0);
    assert!(last.metadata.is_some() && last.streaming_since.is_none(), "{last:#?}");
    assert_eq!(scene.slack.calls("chat.update").len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_dies_becomes_the_whole_answer() {
    for (method, fault) in [
        ("chat.appendStream", Fault::StreamOver),
        ("chat.appendStream", Fault::RateLimited(30)),
        ("chat.stopStream", Fault::StreamOver),
        ("chat.stopStream", Fault::Status(500)),
        // Once, a stream whose end was carried out and not confirmed was deleted, and the answer with it.
        ("chat.stopStream", Fault::Lost),
    ] {
        let scene = scene(rules()).await;
        let _gateway = scene.start().await;
        scene.slack.fault_times(method, 1, fault.clone());
        let asked = answer_growing(&scene, &paragraphs(30)).await;
        assert_eq!(seen(&scene, &asked, 1).await, [paragraphs(30)], "{method} {fault:?}");
        // By the end of another turn there all is done that the first has left to do.
        scene.anthropic.push(Behaviour::answer("And more."));
        let more = scene.slack.mention("C1", "U1", "and?", Some(ROOT));
        assert_eq!(seen(&scene, &more, 2).await, [paragraphs(30), "And more.".to_owned()], "{method} {fault:?}");
        assert_eq!(scene.slack.calls("chat.delete").len(), 0, "{method} {fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_stream_can_be_begun_the_answer_comes_whole() {
    let scene = scene(SlackRules { streams: false, ..rules() }).await;
    let _gateway = scene.start().await;
    let (answer, gate) = Behaviour::gated(paragraphs(30));
    scene.anthropic.push(answer);
    let asked = scene.slack.mention("C1", "U1", "tell me", Some(ROOT));
    gate.add_permits(1);
    until_async("a try", || (!scene.slack.calls("chat.startStream").is_empty()).then_some(())).await;
    gate.add_permits(3);
    assert_eq!(seen(&scene, &asked, 1).await, [paragraphs(30)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_streams_keep_no_tag_there_is_no_second_one() {
    let scene = scene(SlackRules { stream_metadata: false, ..rules() }).await;
    let _gateway = scene.start().await;
    let asked = answer_growing(&scene, &paragraphs(20)).await;
    assert_eq!(seen(&scene, &asked, 1).await, [paragraphs(20)]);
    scene.anthropic.push(Behaviour::slow(paragraphs(20), Duration::from_millis(900)));
    let asked = scene.slack.mention("C1", "U1", "tell me", Some(ROOT));
    assert_eq!(seen(&scene, &asked, 2).await, vec![paragraphs(20); 2]);
    assert_eq!(scene.slack.calls("chat.startStream").len(), 1);
}

/// Nobody sees a directive, not even for a moment.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_from_a_fence_on_is_streamed() {
    let scene = scene(rules()).await;
    let answer = format!("{}\n\n```python\nprint(1)\n```\n\nThe end.", paragraphs(20));
    let _gateway = scene.start().await;
    let asked = answer_growing(&scene, &answer).await;
    assert_eq!(seen(&scene, &asked, 1).await, [answer]);
    for method in ["chat.startStream", "chat.appendStream"] {
        for call in scene.slack.calls(method) {
            assert!(!call.body["markdown_text"].as_str().expect("a text").contains("```"), "{call:?}");
        }
    }
}

/// Where a kill falls: at which call, and whether Slack carries it out.
const CALLS: [&str; 7] = [
    "assistant.threads.setStatus",
    "chat.postMessage",
    "chat.update",
    "chat.startStream",
    "chat.appendStream",
    "chat.stopStream",
    "conversations.replies",
];

/// How often; `PMK_KILLS=1000` for a night's worth.
fn kills() -> usize {
    std::env::var("PMK_KILLS").ok().map_or(16, |kills| kills.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_step_of_posting_leaves_one_whole_answer() {
    let mut moments = Moments::new();
    for round in 0..kills() {
        let method = *CALLS.get(moments.below(CALLS.len())).expect("one of them");
        let fault = if moments.below(2) == 0 { Fault::Stall } else { Fault::Lost };
        let spared = moments.below(2);
        let (statuses, count) = (moments.below(3) > 0, 4 + moments.below(12));
        let what = format!("round {round}: {method} {fault:?} after {spared}, statuses {statuses}, {count} paragraphs");
        one_kill(method, fault, spared, statuses, count, &what).await;
    }
}

async fn one_kill(method: &str, fault: Fault, spared: usize, statuses: bool, count: usize, what: &str) {
    let rules = SlackRules { statuses, ..rules_for_kills() };
    let slack = Slack::start(rules.unlimited()).await;
    let (home, anthropic) = (Home::new(), Anthropic::start().await);
    home.write("gateway.json", r#"{"version":1,"language":"en"}"#);
    let answer = paragraphs(count);
    anthropic.when("tell me", Behaviour::slow(answer.clone(), Duration::from_millis(900)));
    let gateway = Gateway::asking(&home, &slack, &anthropic, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    let is_carried_out = fault == Fault::Lost;
    slack.fault_after(method, spared, 1, fault);
    let before = slack.calls(method).len();
    let asked = slack.mention("C1", "U1", "tell me", Some(ROOT));
    // It may not come so far: then it is killed after the answer.
    until_async(what, || {
        let is_met = match is_carried_out {
            true => slack.lost(method) > 0,
            false => slack.calls(method).len() > before + spared,
        };
        (is_met || !home.events("turn.processed").is_empty()).then_some(())
    })
    .await;
    gateway.kill();
    slack.heal(method);
    let _gateway = Gateway::asking(&home, &slack, &anthropic, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    until_async(what, || (!home.events("turn.processed").is_empty()).then_some(())).await;
    let in_thread = |message: &&Message| message.by_bot && message.thread_ts == asked.thread_ts;
    let seen: Vec<String> = slack.messages("C1").iter().filter(in_thread).map(Message::shown).collect();
    assert_eq!(seen, [answer], "{what}");
    assert_eq!(violations_but_lateness(&slack), Vec::<String>::new(), "{what}");
}
