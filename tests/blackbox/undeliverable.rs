//! Answers that Slack does not take where they were asked for: each reaches who asked, or is parked and delivered once it is taken.

use std::sync::Arc;

use pmk_stand_ins::{
    anthropic::Behaviour,
    slack::{Fault, Message, Sent, Slack, dm_channel},
};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::{
    changes::is_gone,
    knowledge::team::mentions,
    posting::{ROOT, paragraphs},
    support::{PATIENCE, until_async},
    workspace::{Scene, rules, rules_for_kills},
};

async fn scene() -> Scene {
    let settings = json!({"version": 1, "language": "en", "admins": ["U0BOSS"], "slack": {"stream": "off"}});
    Scene::new(rules(), &settings).await
}

/// What the bot shows in a channel, but for placeholders.
fn shown(slack: &Slack, channel: &str) -> Vec<String> {
    slack.replies(channel).iter().map(Message::shown).filter(|shown| !shown.contains(":hourglass")).collect()
}

/// A question in a channel, asked while the model is held.
async fn asked(scene: &Scene, text: &str) -> Sent {
    scene.anthropic.hold();
    scene.anthropic.push(Behaviour::answer("On **Friday**."));
    let asked = scene.slack.mention("C1", "U1", text, None);
    until_async("a request", || (scene.anthropic.requests().len() == 1).then_some(())).await;
    asked
}

/// Checks that who asks in a channel gets the answer in person where Slack refuses it like this.
async fn goes_to_who_asked(refuse: impl FnOnce(&Slack)) {
    let scene = scene().await;
    let _gateway = scene.start().await;
    asked(&scene, "When is the launch?").await;
    refuse(&scene.slack);
    scene.anthropic.release();
    scene.home.await_events("turn.processed", 1);
    let told = shown(&scene.slack, &dm_channel("U1"));
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].contains("> When is the launch?") && told[0].contains("On **Friday**."), "{told:#?}");
    assert_eq!(shown(&scene.slack, "C1"), [] as [&str; 0]);
    assert!(scene.home.events("turn.parked").is_empty());
    scene.behaved();
}

/// Once, it was lost, and nobody was told.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_its_channel_does_not_take_goes_to_who_asked() {
    goes_to_who_asked(|slack| slack.keep_out("C1")).await;
}

/// Once, it was taken for a token that Slack no longer accepts: the answer was parked, and the notice of that tried in vain
/// every ten seconds for ever.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_for_a_channel_that_the_bot_may_not_write_in_goes_to_who_asked() {
    goes_to_who_asked(|slack| slack.fault_times("chat.postMessage", 1, Fault::Error("no_permission"))).await;
}

/// A question in a thread whose answer grows there; the rest of it comes once the gate is opened.
async fn answer_growing(scene: &Scene) -> Arc<Semaphore> {
    let (answer, gate) = Behaviour::gated(paragraphs(30));
    scene.anthropic.push(answer);
    scene.slack.mention("C1", "U1", "Tell me.", Some(ROOT));
    gate.add_permits(1);
    let grows = |message: &Message| message.by_bot && message.streaming_since.is_some();
    assert!(scene.slack.await_message("C1", PATIENCE, grows).await.is_some());
    gate
}

/// Regression: what had grown in the channel was to be completed in the direct message, where Slack knows no such message.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_in_person_was_to_end_a_stream_that_is_in_a_channel() {
    let scene = Scene::new(rules(), &json!({"version": 1, "language": "en"})).await;
    let _gateway = scene.start().await;
    let gate = answer_growing(&scene).await;
    scene.slack.keep_out("C1");
    gate.add_permits(3);
    scene.home.await_events("turn.processed", 1);
    let told = shown(&scene.slack, &dm_channel("U1"));
    assert!(told.len() == 1 && told[0].contains("Paragraph 29"), "{told:#?}");
    scene.behaved();
}

/// Regression: the beginning of an answer that was parked stayed for ever where Slack could not delete it at once.
#[tokio::test(flavor = "multi_thread")]
async fn the_beginning_of_a_parked_answer_stayed_where_it_could_not_be_deleted_at_once() {
    let scene = Scene::new(rules(), &json!({"version": 1, "language": "en"})).await;
    let _gateway = scene.start().await;
    let gate = answer_growing(&scene).await;
    let methods = ["chat.stopStream", "chat.update", "chat.postMessage"];
    for method in methods {
        scene.slack.fault(method, Fault::Error("is_archived"));
    }
    scene.slack.fault_times("chat.delete", 1, Fault::Status(500));
    gate.add_permits(3);
    scene.home.await_events("turn.parked", 1);
    for method in methods {
        scene.slack.heal(method);
    }
    is_told(&scene).await;
    let left = shown(&scene.slack, "C1");
    assert!(left.len() == 1 && left[0].contains("cannot be answered yet"), "{left:#?}");
    scene.behaved();
}

/// Once, of a message that was not where its question is nobody knew that it was an answer.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_in_person_could_be_neither_asked_again_nor_voted_on_nor_erased() {
    let scene = scene().await;
    let gateway = scene.start().await;
    asked(&scene, "When is the launch?").await;
    scene.slack.keep_out("C1");
    scene.anthropic.release();
    scene.home.await_events("turn.processed", 1);
    let mine = dm_channel("U1");
    let first = scene.slack.replies(&mine).remove(0);
    scene.slack.react("U1", &first, "+1");
    let vote = scene.home.await_events("signal.reaction", 1).remove(0);
    assert_eq!((&vote["actor"], &vote["session"]), (&json!("U1"), &json!("slack:channel:C1")));
    scene.anthropic.push(Behaviour::answer("On **Monday**."));
    scene.slack.react("U1", &first, "repeat");
    scene.home.await_events("turn.processed", 2);
    let second = scene.slack.replies(&mine).remove(1);
    assert!(second.shown().contains("On **Monday**."), "{second:#?}");
    // What was asked before a restart is not known from memory.
    assert!(gateway.terminate().success());
    let _gateway = scene.start().await;
    for (message, text) in [(&second, "Monday"), (&first, "Friday")] {
        let event = scene.slack.remove(message).expect("an event");
        assert!(scene.slack.await_ack(&event, PATIENCE).await.is_some());
        is_gone(&scene, "slack:channel:C1", text);
    }
    assert_eq!(scene.home.await_events("message.deleted", 2)[0]["what"], "answer");
    scene.behaved();
}

/// Once, only who had written last was told.
#[tokio::test(flavor = "multi_thread")]
async fn what_several_asked_together_goes_to_each_of_them() {
    let queue = json!({"mode": "collect", "debounceMs": 1});
    let settings = json!({"version": 1, "language": "en", "slack": {"stream": "off"}, "queue": queue});
    // Each is told who asked what.
    let scene = Scene::new(rules().expecting(["U2", "U3"].map(mentions)), &settings).await;
    let _gateway = scene.start().await;
    // Those who write in one thread talk in one conversation.
    let root = scene.slack.mention("C1", "U1", "hello", None);
    scene.home.await_events("turn.processed", 1);
    scene.anthropic.hold();
    for answer in ["On **Friday**.", "In **Taipei**."] {
        scene.anthropic.push(Behaviour::answer(answer));
    }
    let questions = [("U1", "When is the launch?"), ("U2", "Where is it?"), ("U3", "And where do we meet?")];
    for (user, text) in questions {
        let sent = scene.slack.mention("C1", user, text, Some(&root.ts));
        assert!(scene.slack.await_ack(&sent.event_id, PATIENCE).await.is_some(), "{user}");
        until_async("a request", || (scene.anthropic.requests().len() == 2).then_some(())).await;
    }
    scene.slack.keep_out("C1");
    scene.anthropic.release();
    scene.home.await_events("turn.processed", 3);
    assert!(shown(&scene.slack, &dm_channel("U1"))[0].contains("On **Friday**."));
    for user in ["U2", "U3"] {
        let told = shown(&scene.slack, &dm_channel(user));
        assert_eq!(told.len(), 1, "{user}: {told:#?}");
        let parts = ["> <@U2>: Where is it?", "> <@U3>: And where do we meet?", "In *Taipei*."];
        assert!(parts.iter().all(|part| told[0].contains(part)), "{told:#?}");
    }
    assert_eq!(shown(&scene.slack, "C1").len(), 1, "the answer to `hello`");
    // It is the answer wherever it stands.
    for (count, user) in ["U2", "U3"].into_iter().enumerate() {
        let told = scene.slack.replies(&dm_channel(user)).remove(0);
        scene.slack.react(user, &told, "-1");
        assert_eq!(scene.home.await_events("signal.reaction", count + 1)[count]["actor"], user);
    }
    scene.slack.remove(&scene.slack.replies(&dm_channel("U3"))[0]);
    scene.home.await_events("message.deleted", 1);
    is_gone(&scene, &format!("slack:channel:C1:{}", root.ts), "Taipei");
    scene.behaved();
}

/// Once, an error that nobody had listed was the end of an answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_that_nobody_knows_is_waited_out() {
    let scene = scene().await;
    let _gateway = scene.start().await;
    asked(&scene, "When is the launch?").await;
    scene.slack.fault_times("chat.postMessage", 10, Fault::Error("flux_capacitor_empty"));
    scene.anthropic.release();
    scene.home.await_events("turn.processed", 1);
    assert_eq!(shown(&scene.slack, "C1"), ["On **Friday**."]);
    assert_eq!(shown(&scene.slack, &dm_channel("U1")), [] as [&str; 0]);
    scene.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_nobody_can_be_given_is_parked_and_delivered_later_without_asking_again() {
    let scene = scene().await;
    let _gateway = scene.start().await;
    asked(&scene, "When is the launch?").await;
    for method in ["chat.postMessage", "chat.update"] {
        scene.slack.fault(method, Fault::Error("is_archived"));
    }
    scene.anthropic.release();
    scene.home.await_events("turn.parked", 1);
    let parked = scene.home.run(&["sessions", "parked"], "").ok().stdout;
    assert!(parked.contains("is_archived"), "{parked}");
    for method in ["chat.postMessage", "chat.update"] {
        scene.slack.heal(method);
    }
    scene.home.run(&["sessions", "retry", "--all"], "").ok();
    scene.home.await_events("turn.processed", 1);
    let answers = shown(&scene.slack, "C1").into_iter().filter(|shown| shown.contains("Friday")).count();
    assert_eq!((answers, scene.anthropic.requests().len()), (1, 1));
    scene.behaved();
}

/// Once, of two questions that were answered together, the one without an answer of its own was said to be thought about
/// until the other was taken up again.
#[tokio::test(flavor = "multi_thread")]
async fn where_an_answer_to_two_questions_is_parked_nobody_is_said_to_be_thinking() {
    let queue = json!({"mode": "collect", "debounceMs": 1});
    let settings = json!({"version": 1, "language": "en", "queue": queue});
    let scene = Scene::new(rules_for_kills().without_statuses(), &settings).await;
    let gateway = scene.start().await;
    let dm = dm_channel("U1");
    let waits = |count: usize| (scene.slack.placeholders(&dm).len() == count).then_some(());
    scene.anthropic.hold();
    scene.slack.dm("U1", "When is the launch?");
    until_async("a placeholder", || waits(1)).await;
    until_async("a request", || (scene.anthropic.requests().len() == 1).then_some(())).await;
    let other = scene.slack.dm("U1", "And where?");
    assert!(scene.slack.await_ack(&other.event_id, PATIENCE).await.is_some());
    gateway.kill();
    let _gateway = scene.start().await;
    until_async("another placeholder", || waits(2)).await;
    until_async("a request for both", || (scene.anthropic.requests().len() == 2).then_some(())).await;
    let methods = ["chat.postMessage", "chat.update"];
    for method in methods {
        scene.slack.fault(method, Fault::Error("is_archived"));
    }
    scene.anthropic.push(Behaviour::answer("On **Friday**, here."));
    scene.anthropic.release();
    scene.home.await_events("turn.parked", 1);
    until_async("nobody waits", || waits(0)).await;
    for method in methods {
        scene.slack.heal(method);
    }
    scene.home.run(&["sessions", "retry", "--all"], "").ok();
    scene.home.await_events("turn.processed", 1);
    assert_eq!(shown(&scene.slack, &dm).len(), 1, "{:#?}", scene.slack.messages(&dm));
    assert_eq!(scene.home.events("turn.parked").len(), 1);
    assert_eq!(scene.slack.violations(), Vec::<String>::new());
}

/// Once, while an organization had withdrawn its keys from the whole workspace, each question was parked at once, and
/// nobody was ever told.
#[tokio::test(flavor = "multi_thread")]
async fn while_all_of_a_workspace_is_locked_answers_wait() {
    let scene = scene().await;
    let gateway = scene.start().await;
    asked(&scene, "When is the launch?").await;
    for method in ["chat.postMessage", "chat.update"] {
        scene.slack.fault(method, Fault::Error("ekm_access_denied"));
    }
    scene.anthropic.release();
    until_async("it waits", || gateway.log().contains("the turn is delayed and will be retried").then_some(())).await;
    for method in ["chat.postMessage", "chat.update"] {
        scene.slack.heal(method);
    }
    scene.home.await_events("turn.processed", 1);
    assert_eq!(shown(&scene.slack, "C1"), ["On **Friday**."]);
    assert_eq!(shown(&scene.slack, &dm_channel("U1")), [] as [&str; 0]);
    assert_eq!(scene.home.events("turn.parked"), [] as [serde_json::Value; 0]);
    assert!(gateway.log().contains("ekm_access_denied"), "{}", gateway.log());
    scene.behaved();
}

/// Of an app that is locked out as a whole, one place is enough to tell.
#[tokio::test(flavor = "multi_thread")]
async fn while_slack_locks_the_app_itself_an_answer_in_a_direct_message_waits() {
    an_answer_in_a_direct_message_waits_out(&["chat.postMessage", "chat.update", "auth.test"]).await;
}

/// Once, whoever asked in a direct message while a workspace was locked, and nobody did anywhere else, was never told
/// anything: there is no other place to tell them in.
#[tokio::test(flavor = "multi_thread")]
async fn who_asked_alone_in_a_direct_message_of_a_locked_workspace_was_never_told() {
    an_answer_in_a_direct_message_waits_out(&["chat.postMessage", "chat.update"]).await;
}

/// Checks that a direct message is answered in the end if these methods are locked meanwhile.
async fn an_answer_in_a_direct_message_waits_out(methods: &[&'static str]) {
    let scene = scene().await;
    let gateway = scene.start().await;
    scene.anthropic.hold();
    scene.anthropic.push(Behaviour::answer("On **Friday**."));
    scene.slack.dm("U1", "When is the launch?");
    until_async("a request", || (scene.anthropic.requests().len() == 1).then_some(())).await;
    for method in methods {
        scene.slack.fault(method, Fault::Error("ekm_access_denied"));
    }
    scene.anthropic.release();
    until_async("it waits", || gateway.log().contains("the turn is delayed and will be retried").then_some(())).await;
    for method in methods {
        scene.slack.heal(method);
    }
    scene.home.await_events("turn.processed", 1);
    assert_eq!(shown(&scene.slack, &dm_channel("U1")), ["On **Friday**."]);
    assert_eq!(scene.home.events("turn.parked"), [] as [serde_json::Value; 0]);
    scene.behaved();
}

/// Once, whom their channel kept out never heard that their question was parked.
#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_be_told_where_they_asked_that_their_question_is_parked_is_told_in_person() {
    let scene = scene().await;
    let _gateway = scene.start().await;
    asked(&scene, "When is the launch?").await;
    scene.slack.fault("chat.postMessage", Fault::Error("token_revoked"));
    scene.anthropic.release();
    scene.home.await_events("turn.parked", 1);
    scene.slack.keep_out("C1");
    scene.slack.heal("chat.postMessage");
    assert!(scene.slack.await_replies(&dm_channel("U1"), 1, PATIENCE).await, "nobody tells them");
    let told = shown(&scene.slack, &dm_channel("U1"));
    assert!(told[0].contains("> When is the launch?") && told[0].contains("cannot be answered yet"), "{told:#?}");
    assert!(told[0].starts_with(":incoming_envelope: This is about what you asked"), "it is no answer: {told:#?}");
}

/// Waits until whoever asked is told that their question is parked.
async fn is_told(scene: &Scene) {
    until_async("somebody is told", || {
        let parked = scene.home.run(&["--json", "sessions", "parked"], "").ok().json();
        parked[0]["told"].as_bool().filter(|told| *told)
    })
    .await;
}

/// Checks that who asked in C1 is told once, in this channel, that their question is parked, where Slack's answer to the
/// notice is lost.
async fn is_told_once(channel: &str, make_way: impl FnOnce(&Slack)) {
    let scene = Scene::new(rules(), &json!({"version": 1, "language": "en", "slack": {"stream": "off"}})).await;
    let _gateway = scene.start().await;
    asked(&scene, "When is the launch?").await;
    scene.slack.fault("chat.postMessage", Fault::Error("token_revoked"));
    scene.anthropic.release();
    scene.home.await_events("turn.parked", 1);
    make_way(&scene.slack);
    until_async("the answer to the notice is lost", || (scene.slack.lost("chat.postMessage") > 0).then_some(())).await;
    is_told(&scene).await;
    let told = shown(&scene.slack, channel);
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].contains("cannot be answered yet"), "{told:#?}");
}

/// Once, each sweep told them once more.
#[tokio::test(flavor = "multi_thread")]
async fn where_the_answer_to_a_notice_was_lost_it_was_posted_again_and_again() {
    is_told_once("C1", |slack| slack.fault_times("chat.postMessage", 1, Fault::Lost)).await;
}

/// The same in a direct message.
#[tokio::test(flavor = "multi_thread")]
async fn where_the_answer_to_a_notice_in_person_was_lost_it_was_posted_again_and_again() {
    let lose = |slack: &Slack| {
        slack.keep_out("C1");
        slack.fault_after("chat.postMessage", 1, 1, Fault::Lost);
    };
    is_told_once(&dm_channel("U1"), lose).await;
}

/// Once, what Slack carried out a moment after the gateway was killed was posted a second time.
#[tokio::test(flavor = "multi_thread")]
async fn what_slack_carries_out_after_a_kill_is_not_posted_again() {
    let settings = json!({"version": 1, "language": "en", "slack": {"stream": "off"}});
    let scene = Scene::new(rules_for_kills(), &settings).await;
    let gateway = scene.start().await;
    scene.anthropic.push(Behaviour::answer("On **Friday**."));
    scene.slack.fault_times("chat.postMessage", 1, Fault::Late);
    scene.slack.dm("U1", "When is the launch?");
    until_async("the post", || (scene.slack.call_count("chat.postMessage") == 1).then_some(())).await;
    gateway.kill();
    let _gateway = scene.start().await;
    scene.home.await_events("turn.processed", 1);
    assert_eq!(shown(&scene.slack, &dm_channel("U1")), ["On **Friday**."]);
    assert_eq!(scene.slack.violations(), Vec::<String>::new());
}
