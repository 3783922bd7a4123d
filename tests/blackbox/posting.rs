//! How an answer reaches people in Slack: a status while it is made, then a message, or a stream that becomes it; and all of
//! that at Slack's limits. Through kills: [`kills`](crate::kills).

use std::time::Duration;

use pmk_stand_ins::{
    anthropic::Behaviour,
    slack::{BOT_USER, Fault, Message, Sent, Slack, SlackRules},
};
use serde_json::json;

use crate::{
    support::{Home, PATIENCE, until_async},
    workspace::{Gateway, Scene, rules, rules_for_kills},
};

/// Where a thread begins.
pub const ROOT: &str = "1700000000.000100";

async fn scene(rules: SlackRules) -> Scene {
    Scene::new(rules, &json!({"version": 1, "language": "en", "limits": {"slackCallSeconds": 4}})).await
}

/// One in which nothing is streamed.
async fn scene_at_once(rules: SlackRules) -> Scene {
    Scene::new(rules, &json!({"version": 1, "language": "en", "slack": {"stream": "off"}})).await
}

/// What people see there, once the turn is over, and that nothing says any more that an answer is being made.
async fn seen(scene: &Scene, asked: &Sent, turns: usize) -> Vec<String> {
    until_async("the end of the turn", || (scene.home.events("turn.processed").len() >= turns).then_some(())).await;
    scene.behaved();
    let is_clear = || scene.slack.statuses(&asked.channel).last().is_none_or(|shown| shown.status.is_empty());
    until_async("an empty status", || is_clear().then_some(())).await;
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
    assert_eq!(scene.slack.call_count("chat.update"), 0, "nothing is edited");
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
        assert!(scene.slack.call_count("assistant.threads.setStatus") <= 1, "one refusal is enough");
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

/// Once, what had gone in pieces in a placeholder's place went out again after a kill between two of them.
#[tokio::test(flavor = "multi_thread")]
async fn pieces_in_a_placeholders_place_were_posted_again_after_a_kill_between_two_of_them() {
    let scene = scene(rules_for_kills().without_statuses()).await;
    scene.anthropic.push(Behaviour::answer(paragraphs(250)));
    scene.slack.fault_times("chat.update", 1, Fault::Error("invalid_blocks"));
    // The placeholder and the second piece are posted, and of the third nobody hears.
    scene.slack.fault_after("chat.postMessage", 2, 1, Fault::Stall);
    let gateway = scene.start().await;
    let asked = scene.slack.dm("U1", "tell me");
    until_async("the third piece", || (scene.slack.calls("chat.postMessage").len() == 3).then_some(())).await;
    gateway.kill();
    let _gateway = scene.start().await;
    let seen = seen(&scene, &asked, 1).await;
    assert_eq!(seen.len(), 3, "{seen:#?}");
    let seen = seen.join("\n");
    let repeated: Vec<usize> = (0..250).filter(|n| seen.matches(&format!("Paragraph {n} has")).count() != 1).collect();
    assert_eq!(repeated, [0; 0]);
}

/// Another app may set any metadata, and read what others have set.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_app_had_marked_as_the_answer_was_taken_for_it_and_nobody_was_answered() {
    let scene = scene_at_once(rules_for_kills()).await;
    scene.anthropic.push(Behaviour::answer("On Friday."));
    scene.slack.fault_times("chat.postMessage", 1, Fault::Stall);
    let gateway = scene.start().await;
    let asked = scene.slack.mention("C1", "U1", "when?", Some(ROOT));
    let posted = || scene.slack.calls("chat.postMessage").pop();
    let tag = until_async("the post of the answer", posted).await.body["metadata"].clone();
    assert!(tag["event_payload"]["part"] == "0", "{tag}");
    let echo = json!({"bot_id": "B77", "metadata": tag});
    scene.slack.talk_with("C1", "B77", "an echo", Some(ROOT), echo);
    gateway.kill();
    let _gateway = scene.start().await;
    assert_eq!(seen(&scene, &asked, 1).await, ["On Friday."]);
}

/// Each question has one answer, no rule of Slack's was broken, and nothing had to be said twice or edited.
async fn each_is_answered_by_one_post(slack: &Slack, asked: &[Sent]) {
    for question in asked {
        assert!(slack.await_reply(question, PATIENCE).await.is_some(), "{question:?}");
    }
    assert_eq!((slack.call_count("chat.postMessage"), slack.call_count("chat.update")), (asked.len(), 0));
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
pub fn paragraphs(count: usize) -> String {
    (0..count).map(|n| format!("Paragraph {n} has **something** to say.\n\n")).collect::<String>().trim_end().to_owned()
}

fn grows(message: &Message) -> bool {
    message.by_bot && message.streaming_since.is_some()
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
    assert_eq!(scene.slack.call_count("chat.startStream"), 1);
    let last = scene.slack.replies("C1").remove(0);
    assert!(last.metadata.is_some() && last.streaming_since.is_none(), "{last:#?}");
    assert_eq!(scene.slack.call_count("chat.update"), 0);
}

/// Regression: Slack was told that the reader is of the bot's workspace.
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_to_somebody_of_another_workspace_did_not_grow() {
    let scene = scene(rules()).await;
    scene.slack.belongs_to("U1", "T0THEIRS");
    let _gateway = scene.start().await;
    let asked = answer_growing(&scene, &paragraphs(30)).await;
    assert_eq!(seen(&scene, &asked, 1).await, [paragraphs(30)]);
    let begun = scene.slack.calls("chat.startStream");
    assert!(begun.len() == 1 && begun[0].body["recipient_team_id"] == "T0THEIRS", "{begun:?}");
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
        assert_eq!(scene.slack.call_count("chat.delete"), 0, "{method} {fault:?}");
    }
}

/// Regression: the message stood still until the model was done.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_stopped_growing_at_the_first_piece_that_a_limit_put_off() {
    let (start, append) = ("chat.startStream", "chat.appendStream");
    for (put_off, tries) in
        [(start, [(start, 1), (start, 2), (append, 1)]), (append, [(start, 1), (append, 1), (append, 2)])]
    {
        let scene = scene(rules()).await;
        let _gateway = scene.start().await;
        let (answer, gate) = Behaviour::gated(paragraphs(40));
        scene.anthropic.push(answer);
        scene.slack.fault_times(put_off, 1, Fault::RateLimited(1));
        let asked = scene.slack.mention("C1", "U1", "tell me", Some(ROOT));
        for (method, count) in tries {
            gate.add_permits(1);
            until_async(method, || (scene.slack.call_count(method) == count).then_some(())).await;
        }
        gate.add_permits(1);
        assert_eq!(seen(&scene, &asked, 1).await, [paragraphs(40)], "{put_off}");
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
    assert_eq!(scene.slack.call_count("chat.startStream"), 1);
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

/// Nobody is led elsewhere, not even for a moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_looked_like_another_address_was_streamed() {
    let scene = scene(rules()).await;
    let link = |link: &str| format!("{}\n\nSee {link}.\n\n{}", paragraphs(8), paragraphs(8));
    let _gateway = scene.start().await;
    let asked = answer_growing(&scene, &link("[https://a.example](https://b.example)")).await;
    assert_eq!(seen(&scene, &asked, 1).await, [link("https://a.example (<https://b.example>)")]);
    for method in ["chat.startStream", "chat.appendStream", "chat.stopStream"] {
        let calls = scene.slack.calls(method);
        assert!(calls.iter().all(|call| !call.body.to_string().contains("b.example")), "{calls:?}");
    }
}

/// Once, nobody was given an answer before Slack had said something about the status.
#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_hangs_holds_up_no_answer() {
    let config = json!({"version": 1, "language": "en", "limits": {"slackCallSeconds": 3_600}});
    let scene = Scene::new(rules(), &config).await;
    let _gateway = scene.start().await;
    scene.slack.fault("assistant.threads.setStatus", Fault::Stall);
    let asked = scene.slack.mention("C1", "U1", "hello", Some(ROOT));
    assert_eq!(seen(&scene, &asked, 1).await.len(), 1);
}

/// Once, the status stood on for two minutes under an answer that had taken the place of its beginning: an edit posts nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_edited_while_its_answer_grows_has_one_answer_and_no_status() {
    let scene = scene(rules()).await;
    let _gateway = scene.start().await;
    let (first, gate) = Behaviour::gated(paragraphs(20));
    scene.anthropic.push(first);
    let asked = scene.slack.mention("C1", "U1", "tell me", Some(ROOT));
    gate.add_permits(1);
    until_async("a stream", || (!scene.slack.calls("chat.startStream").is_empty()).then_some(())).await;
    scene.anthropic.when("tell me all", Behaviour::answer("All of it."));
    scene.slack.edit(&asked, &format!("<@{BOT_USER}> tell me all"));
    assert_eq!(seen(&scene, &asked, 1).await, ["All of it."]);
    assert_eq!(scene.slack.call_count("chat.startStream"), 1);
}

/// Once, an answer waited without end for its turn to close the stream that showed it; and what was taken away then was
/// forgotten by a kill.
#[tokio::test(flavor = "multi_thread")]
async fn where_a_limit_lets_no_stream_be_closed_the_answer_is_posted_and_the_stream_is_gone_by_its_end() {
    let scene = scene(rules()).await;
    let _gateway = scene.start().await;
    scene.slack.fault_times("chat.stopStream", 1, Fault::RateLimited(30));
    scene.slack.fault_times("chat.delete", 1, Fault::Slow(Duration::from_millis(700)));
    let asked = answer_growing(&scene, &paragraphs(30)).await;
    assert_eq!(seen(&scene, &asked, 1).await, [paragraphs(30)]);
    assert_eq!((scene.slack.call_count("chat.delete"), scene.slack.call_count("chat.update")), (1, 0));
}

/// Once, the beginning of an answer stayed above the whole one, for ever: Slack had not said that it was begun, and what
/// could not be looked for just then counted as not there.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_which_nobody_had_heard_stayed_beside_its_answer() {
    for failures in [1, 2] {
        let scene = scene(rules()).await;
        let _gateway = scene.start().await;
        let (answer, gate) = Behaviour::gated(paragraphs(30));
        scene.anthropic.push(answer);
        scene.slack.fault_times("chat.startStream", 1, Fault::Lost);
        let asked = scene.slack.mention("C1", "U1", "tell me", Some(ROOT));
        gate.add_permits(1);
        until_async("a stream", || (!scene.slack.calls("chat.startStream").is_empty()).then_some(())).await;
        scene.slack.fault_times("conversations.replies", failures, Fault::Status(500));
        gate.add_permits(3);
        assert_eq!(seen(&scene, &asked, 1).await, [paragraphs(30)], "{failures}");
    }
}

/// Each attempt to find what was shown before discarded an answer that was ready.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_was_made_again_for_as_long_as_what_was_shown_before_a_crash_could_not_be_looked_for() {
    let scene = scene(rules()).await;
    let gateway = scene.start().await;
    let (answer, gate) = Behaviour::gated(paragraphs(30));
    (0..2).for_each(|_| scene.anthropic.push(answer.clone()));
    scene.anthropic.push(Behaviour::answer("at last"));
    let asked = scene.slack.mention("C1", "U1", "tell me", Some(ROOT));
    gate.add_permits(1);
    assert!(scene.slack.await_message("C1", PATIENCE, grows).await.is_some());
    gateway.kill();
    // What has grown so far is found, and then a message shows that an answer is being made.
    scene.slack.fault("assistant.threads.setStatus", Fault::Error("invalid_thread_ts"));
    let gateway = scene.start().await;
    let waits = |message: &Message| message.by_bot && message.streaming_since.is_none();
    assert!(scene.slack.await_message("C1", PATIENCE, waits).await.is_some());
    let store = rusqlite::Connection::open(scene.home.path().join("gateway/pmk-host.db")).expect("the store");
    let is_stored = || store.query_row("SELECT 1 FROM turn WHERE placeholder IS NOT NULL", [], |_| Ok(())).ok();
    until_async("a second request", || scene.anthropic.requests().get(1).and_then(|_| is_stored())).await;
    gateway.kill();
    scene.slack.fault_times("conversations.replies", 3, Fault::Status(500));
    let _gateway = scene.start().await;
    assert_eq!(seen(&scene, &asked, 1).await, ["at last"]);
    assert_eq!(scene.anthropic.requests().len(), 3);
}

/// Slack lets twenty streams be closed a minute.
#[tokio::test(flavor = "multi_thread")]
async fn no_more_answers_grow_than_can_be_closed() {
    let scene = scene(rules()).await;
    let _gateway = scene.start().await;
    let ask = |number: usize, answer: Behaviour| {
        scene.anthropic.when(format!("number {number:02}"), answer);
        let root = scene.slack.talk("C1", "U1", "a topic", None);
        scene.slack.mention("C1", "U1", &format!("number {number:02}"), Some(&root.ts));
    };
    let started = || scene.slack.call_count("chat.startStream");
    let ended = || scene.home.events("turn.processed").len();
    let mut gates = vec![];
    for number in 0..15 {
        let (answer, gate) = Behaviour::gated(paragraphs(20));
        ask(number, answer);
        gate.add_permits(1);
        gates.push(gate);
    }
    until_async("streams", || (started() == 15).then_some(())).await;
    // Two more could grow for seconds, and end before any of these.
    (15..17).for_each(|number| ask(number, Behaviour::slow(paragraphs(20), Duration::from_millis(900))));
    until_async("two ends", || (ended() == 2).then_some(())).await;
    assert_eq!(started(), 15);
    gates.iter().for_each(|gate| gate.add_permits(3));
    until_async("all ends", || (ended() == 17).then_some(())).await;
    assert_eq!(started(), 15);
    let answers = scene.slack.replies("C1");
    assert!(answers.len() == 17 && answers.iter().all(|answer| answer.shown() == paragraphs(20)), "{answers:#?}");
    scene.behaved();
}

/// Once, every answer that had grown was posted a second time and its stream deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_whose_end_takes_no_buttons_ends_without_and_the_next_is_not_tried_with() {
    let config = json!({"version": 1, "language": "en", "slack": {"feedback": "on"}});
    let scene = Scene::new(rules(), &config).await;
    let _gateway = scene.start().await;
    scene.slack.fault_times("chat.stopStream", 1, Fault::Error("invalid_blocks"));
    for turn in 1..=2 {
        let asked = answer_growing(&scene, &paragraphs(30)).await;
        assert_eq!(seen(&scene, &asked, turn).await, vec![paragraphs(30); turn]);
    }
    let ends: Vec<bool> =
        scene.slack.calls("chat.stopStream").iter().map(|call| call.body.get("blocks").is_some()).collect();
    assert_eq!(ends, [true, false, false]);
    assert_eq!((scene.slack.call_count("chat.postMessage"), scene.slack.call_count("chat.delete")), (0, 0));
}

/// Once, who pressed Slack's own stop was given the whole answer, and a reaction to the answer itself stopped nothing.
#[tokio::test(flavor = "multi_thread")]
async fn who_stops_an_answer_that_grows_by_slacks_button_or_a_reaction_gets_no_more_of_it() {
    for by_reaction in [false, true] {
        let scene = scene(rules()).await;
        let _gateway = scene.start().await;
        let (answer, gate) = Behaviour::gated(paragraphs(40));
        scene.anthropic.push(answer);
        let asked = scene.slack.mention("C1", "U1", "tell me", Some(ROOT));
        gate.add_permits(1);
        let growing = scene.slack.await_message("C1", PATIENCE, grows).await.expect("a stream");
        if by_reaction {
            until_async("the stop", || {
                scene.slack.react("U1", &growing, "black_square_for_stop");
                (!scene.home.events("turn.stopped").is_empty()).then_some(())
            })
            .await;
        } else {
            scene.slack.stop_stream(&growing);
            gate.add_permits(1);
        }
        let seen = seen(&scene, &asked, 1).await;
        assert!(seen.len() == 1 && seen[0].ends_with("Stopped"), "{by_reaction}: {seen:#?}");
        assert!(!seen[0].contains("Paragraph 39"), "{by_reaction}: {seen:#?}");
        assert_eq!(scene.home.events("turn.stopped")[0]["actor"], "U1");
    }
}

/// Regression: the whole answer took the place of what was stopped, as Slack says so only where more is added.
#[tokio::test(flavor = "multi_thread")]
async fn who_stops_an_answer_by_slacks_button_while_it_shows_nothing_new_gets_no_more_of_it() {
    let scene = scene(rules()).await;
    let _gateway = scene.start().await;
    let code = "print(1)\n".repeat(200);
    let (answer, gate) = Behaviour::gated(format!("{}\n\n```python\n{code}```\n\nThe end.", paragraphs(4)));
    scene.anthropic.push(answer);
    let asked = scene.slack.mention("C1", "U1", "tell me", Some(ROOT));
    gate.add_permits(1);
    let growing = scene.slack.await_message("C1", PATIENCE, grows).await.expect("a stream");
    scene.slack.stop_stream(&growing);
    gate.add_permits(3);
    let seen = seen(&scene, &asked, 1).await;
    assert!(seen.len() == 1 && seen[0].starts_with("Paragraph 0") && seen[0].ends_with("Stopped"), "{seen:#?}");
    assert!(!seen[0].contains("print") && !seen[0].contains("The end"), "{seen:#?}");
    assert_eq!((scene.slack.call_count("chat.appendStream"), scene.home.events("turn.stopped").len()), (0, 0));
}

/// Regression: what had been shown so far stood there as the whole first message, and said that it was stopped, and the
/// next message went on somewhere behind that and said so again.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_that_was_stopped_had_a_gap_and_two_ends() {
    let scene = scene(rules()).await;
    let _gateway = scene.start().await;
    let (answer, gate) = Behaviour::gated(paragraphs(640));
    scene.anthropic.push(answer);
    let asked = scene.slack.mention("C1", "U1", "tell me", Some(ROOT));
    gate.add_permits(1);
    let growing = scene.slack.await_message("C1", PATIENCE, grows).await.expect("a stream");
    scene.slack.stop_stream(&growing);
    gate.add_permits(1);
    let seen = seen(&scene, &asked, 1).await;
    assert_eq!(seen.len(), 2, "{seen:#?}");
    let dense = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<Vec<_>>();
    let (shown, whole) = (dense(&seen.concat()), dense(&paragraphs(640)));
    let said = shown.iter().zip(&whole).take_while(|(shown, said)| shown == said).count();
    let end: String = shown[said..].iter().collect();
    assert!(end.ends_with("Stopped") && end.len() <= ":raised_hand:Stopped".len(), "{end}");
}

/// Regression: after a restart nobody knew any more what had been shown of an answer that is parked, and it stayed for
/// ever.
#[tokio::test(flavor = "multi_thread")]
async fn the_beginning_of_a_parked_answer_stayed_after_a_restart() {
    let scene = scene(rules_for_kills()).await;
    let gateway = scene.start().await;
    let (answer, gate) = Behaviour::gated(paragraphs(30));
    scene.anthropic.push(answer);
    scene.slack.mention("C1", "U1", "tell me", Some(ROOT));
    gate.add_permits(1);
    assert!(scene.slack.await_message("C1", PATIENCE, grows).await.is_some());
    let methods = ["chat.stopStream", "chat.update", "chat.postMessage"];
    for method in methods {
        scene.slack.fault(method, Fault::Error("is_archived"));
    }
    scene.slack.fault("chat.delete", Fault::Status(500));
    gate.add_permits(3);
    scene.home.await_events("turn.parked", 1);
    gateway.kill();
    for method in methods.into_iter().chain(["chat.delete"]) {
        scene.slack.heal(method);
    }
    let _gateway = scene.start().await;
    let says_so = |message: &Message| message.by_bot && message.shown().contains("cannot be answered yet");
    assert!(scene.slack.await_message("C1", PATIENCE, says_so).await.is_some());
    let left = scene.slack.replies("C1");
    assert!(left.len() == 1 && left[0].metadata.is_some(), "{left:#?}");
    scene.behaved();
}

/// Once, after a restart every question was looked for in the history before the model was asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_only_had_a_status_is_not_looked_for_after_a_restart() {
    let scene = scene(rules()).await;
    let gateway = scene.start().await;
    scene.anthropic.hold();
    let asked = scene.slack.dm("U1", "hello");
    until_async("a request", || (!scene.anthropic.requests().is_empty()).then_some(())).await;
    gateway.kill();
    scene.anthropic.release();
    let _gateway = scene.start().await;
    assert_eq!(seen(&scene, &asked, 1).await.len(), 1);
    assert_eq!(scene.slack.call_count("conversations.history"), 0);
}
