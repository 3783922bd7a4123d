//! What people change about messages that they have sent: edits, deletions, stop and again.

use std::time::Duration;

use pmk_stand_ins::{
    anthropic::{Behaviour, Recorded},
    slack::{Fault, Message, Sent, SlackRules, Upload, dm_channel},
};
use serde_json::{Value, json};

use crate::{
    support::{Home, PATIENCE, Running, is_alive, question, replies, until, until_async},
    workspace::{Scene, rules, rules_for_kills},
};

const QUESTION: &str = "When is the launch?";

async fn scene(more: Value) -> Scene {
    scene_at(rules(), more).await
}

/// The same, where Slack has these rules.
async fn scene_at(rules: SlackRules, more: Value) -> Scene {
    let mut config = json!({"version": 1, "language": "en", "presence": {"broadcast": false, "readMissed": false}});
    config.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    Scene::new(rules, &config).await
}

/// Waits until the model was asked so often; what it was asked last.
async fn asked(scene: &Scene, times: usize) -> Recorded {
    until_async("a request", || scene.anthropic.requests().get(times - 1).cloned()).await
}

/// Waits until Slack knows that this was taken in.
async fn taken(scene: &Scene, event_id: &str) {
    assert!(scene.slack.await_ack(event_id, PATIENCE).await.is_some(), "{event_id}");
}

async fn answers(scene: &Scene, channel: &str, count: usize) -> Vec<Message> {
    assert!(scene.slack.await_replies(channel, count, PATIENCE).await, "{:#?}", scene.slack.messages(channel));
    let replies = scene.slack.replies(channel);
    assert_eq!(replies.len(), count, "{replies:#?}");
    assert_eq!(scene.slack.placeholders(channel), [], "somebody still waits");
    replies
}

/// All that is known of a conversation.
fn shown(home: &Home, key: &str) -> String {
    home.run(&["sessions", "show", key, "--full"], "").ok().stdout
}

/// Nothing of this text is in the store's files of a conversation any more, wherever it may be found by.
pub fn is_gone(scene: &Scene, key: &str, text: &str) {
    let shown = shown(&scene.home, key);
    assert!(!shown.contains(text), "{shown}");
    let path = scene.home.path().join("gateway/pmk-host.db");
    let db = rusqlite::Connection::open(path).expect("the store");
    for place in [
        "message WHERE blocks",
        "live WHERE replacement",
        "inbox WHERE message",
        "inbox WHERE edited",
        "text WHERE body",
    ] {
        let sql = format!("SELECT count(*) FROM {place} LIKE '%{text}%'");
        let count: i64 = db.query_row(&sql, [], |row| row.get(0)).expect("a count");
        assert_eq!(count, 0, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_waits_or_is_being_answered_is_asked_as_edited() {
    let scene = scene(json!({})).await;
    let gateway = scene.start().await;
    scene.anthropic.hold();
    let first = scene.slack.dm("U1", "one");
    asked(&scene, 1).await;
    let second = scene.slack.dm("U1", "two");
    taken(&scene, &second.event_id).await;
    let waiting = scene.slack.edit(&second, "two, as edited");
    taken(&scene, &waiting[0]).await;
    // A link that unfolds is no edit.
    let unfolded = scene.slack.unfold(&first);
    taken(&scene, &unfolded).await;
    let edited = scene.slack.edit(&first, "one, as edited");
    assert_eq!(asked(&scene, 2).await.question(), "one, as edited");
    scene.slack.redeliver(&edited[0]);
    scene.anthropic.release();
    let replies = answers(&scene, &first.channel, 2).await;
    let texts: Vec<&str> = replies.iter().map(|reply| reply.text.as_str()).collect();
    assert_eq!(texts, ["You said: one, as edited", "You said: two, as edited"]);
    assert_eq!(scene.anthropic.requests().len(), 3, "the old words are not asked again, nor is what only unfolded");
    assert_eq!(scene.home.await_events("message.edited", 2).len(), 2);
    assert!(gateway.terminate().success());
    scene.behaved();
}

/// The others of its batch were left to the sweep.
#[tokio::test(flavor = "multi_thread")]
async fn a_collected_question_that_becomes_a_command_leaves_no_other_unanswered() {
    let scene = scene(json!({"queue": {"mode": "collect", "debounceMs": 1500}})).await;
    let gateway = scene.start().await;
    scene.anthropic.hold();
    let first = scene.slack.dm("U1", "one");
    asked(&scene, 1).await;
    let waiting = ["two", "three", "verbose off"].map(|text| scene.slack.dm("U1", text));
    for sent in &waiting {
        taken(&scene, &sent.event_id).await;
    }
    scene.anthropic.release();
    assert!(scene.slack.await_reply(&first, PATIENCE).await.is_some());
    // The command among them is answered first, and that takes a while.
    let calls = scene.slack.call_count("chat.postMessage");
    scene.slack.fault("chat.postMessage", Fault::Slow(Duration::from_secs(2)));
    until("the command is being answered", || (scene.slack.call_count("chat.postMessage") > calls).then_some(()));
    let edited = scene.slack.edit(&waiting[1], "verbose full");
    taken(&scene, &edited[0]).await;
    let replies = answers(&scene, &first.channel, 4).await;
    assert!(replies.iter().any(|reply| reply.text == "You said: two"), "{replies:#?}");
    assert!(scene.home.events("queue.swept").is_empty());
    assert!(gateway.terminate().success());
    scene.behaved();
}

/// A further attempt told only of its own.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_attempt_had_cost_was_lost_when_its_question_was_edited() {
    let scene = hanging().await;
    let gateway = scene.start().await;
    let sent = scene.slack.dm("U1", QUESTION);
    running(&scene).await;
    scene.slack.edit(&sent, "something else");
    assert_eq!(answers(&scene, &sent.channel, 1).await[0].text, "Something else, then.");
    let processed = scene.home.await_events("turn.processed", 1);
    let spent = scene.home.events("token.usage");
    assert_eq!((processed.len(), spent.len(), scene.anthropic.requests().len()), (1, 2, 2), "{spent:?}");
    let told = |name: &str| spent.iter().filter_map(|line| line[name].as_i64()).sum::<i64>();
    let db = rusqlite::Connection::open(scene.home.path().join("gateway/pmk-host.db")).expect("the store");
    let sums = "SELECT sum(input_tokens), sum(output_tokens) FROM turn";
    let stored: (i64, i64) = db.query_row(sums, [], |row| Ok((row.get(0)?, row.get(1)?))).expect("figures");
    assert_eq!(stored, (told("inputTokens"), told("outputTokens")));
    assert!(gateway.terminate().success());
    scene.behaved();
}

/// Regression: nobody was told, as the attempt that answered had cut nothing.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_cut_before_a_question_was_edited_is_said_with_its_answer() {
    let scene = scene(json!({})).await;
    let gateway = scene.start().await;
    for n in 0..4 {
        scene.slack.dm("U1", &format!("Fact {n}. {}", "filler ".repeat(150)));
        asked(&scene, n + 1).await;
    }
    answers(&scene, &dm_channel("U1"), 4).await;
    scene.anthropic.push(Behaviour::error(400, "invalid_request_error", "prompt is too long"));
    scene.anthropic.push(Behaviour::Silence);
    let sent = scene.slack.dm("U1", "one");
    asked(&scene, 6).await;
    scene.slack.edit(&sent, "two");
    let told = answers(&scene, &sent.channel, 5).await.pop().expect("an answer").text;
    assert_eq!(told, ":scissors: The conversation was too long; 3 older turns were left out\n\nYou said: two");
    assert_eq!(scene.home.await_events("context.force-pruned", 1).len(), 1);
    assert!(gateway.terminate().success());
    scene.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_channel_the_mention_that_comes_once_more_is_the_edit() {
    let scene = scene(json!({})).await;
    let gateway = scene.start().await;
    scene.anthropic.hold();
    let mention = scene.slack.mention("C1", "U1", "one", None);
    asked(&scene, 1).await;
    scene.slack.edit(&mention, "<@U0BOT> two");
    assert_eq!(asked(&scene, 2).await.question(), "two");
    scene.anthropic.release();
    assert_eq!(answers(&scene, "C1", 1).await[0].text, "You said: two");
    // What was talk among people becomes a question.
    let talk = scene.slack.talk("C1", "U2", "what do you think?", None);
    scene.slack.edit(&talk, "<@U0BOT> what do you think?");
    assert_eq!(answers(&scene, "C1", 2).await[1].text, "You said: what do you think?");
    assert!(gateway.terminate().success());
    scene.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_survives_a_kill_and_the_old_words_are_not_answered() {
    let config = json!({"version": 1, "language": "en", "presence": {"broadcast": false, "readMissed": false}});
    let scene = Scene::new(rules_for_kills(), &config).await;
    let gateway = scene.start().await;
    scene.anthropic.hold();
    let sent = scene.slack.dm("U1", "old words");
    asked(&scene, 1).await;
    let edited = scene.slack.edit(&sent, "new words");
    taken(&scene, &edited[0]).await;
    gateway.kill();
    scene.anthropic.release();
    let gateway = scene.start().await;
    assert_eq!(answers(&scene, &sent.channel, 1).await[0].text, "You said: new words");
    assert!(gateway.terminate().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_before_its_answer_gets_none() {
    let scene = scene(json!({})).await;
    let gateway = scene.start().await;
    scene.anthropic.hold();
    let first = scene.slack.dm("U1", "a secret");
    asked(&scene, 1).await;
    let second = scene.slack.dm("U1", "another secret");
    taken(&scene, &second.event_id).await;
    let third = scene.slack.dm("U1", QUESTION);
    taken(&scene, &third.event_id).await;
    // One waits behind another, of the other the answer is being made.
    for sent in [&second, &first] {
        let event = scene.slack.take_back(sent).expect("an event");
        taken(&scene, &event).await;
    }
    scene.anthropic.release();
    let replies = answers(&scene, &third.channel, 1).await;
    assert_eq!(replies[0].text, format!("You said: {QUESTION}"));
    let requests = scene.anthropic.requests();
    assert_eq!(requests.len(), 2);
    assert!(!requests[1].body.to_string().contains("secret"), "{}", requests[1].body);
    is_gone(&scene, "slack:dm:U1", "secret");
    let deleted = scene.home.await_events("message.deleted", 2);
    assert!(deleted.iter().all(|event| event["waiting"] == true), "{deleted:#?}");
    assert!(gateway.terminate().success());
    scene.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_after_its_answer_leaves_no_trace() {
    let scene = scene(json!({})).await;
    let gateway = scene.start().await;
    scene.anthropic.push(Behaviour::answer("Noted."));
    let told = scene.slack.dm("U1", "The password is heliotrope.");
    let replies = answers(&scene, &told.channel, 1).await;
    let event = scene.slack.take_back(&told).expect("an event");
    taken(&scene, &event).await;
    scene.slack.redeliver(&event);
    scene.slack.dm("U1", QUESTION);
    answers(&scene, &told.channel, 2).await;
    let request = scene.anthropic.requests()[1].body.to_string();
    assert!(!request.contains("heliotrope") && request.contains("(this message was deleted)"), "{request}");
    is_gone(&scene, "slack:dm:U1", "heliotrope");
    // An admin of the workspace deletes an answer.
    let event = scene.slack.remove(&replies[0]).expect("an event");
    taken(&scene, &event).await;
    scene.slack.dm("U1", "And where?");
    answers(&scene, &told.channel, 2).await;
    until_async("a request", || (scene.anthropic.requests().len() >= 3).then_some(())).await;
    let request = scene.anthropic.requests()[2].body.to_string();
    assert!(!request.contains("Noted.") && request.contains("(this answer was deleted)"), "{request}");
    let deleted = scene.home.await_events("message.deleted", 2);
    assert_eq!(deleted.iter().map(|event| &event["what"]).collect::<Vec<_>>(), ["question", "answer"]);
    assert!(gateway.terminate().success());
    scene.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_stays_where_the_operator_says_so() {
    let scene = scene(json!({"slack": {"followDeletes": false}})).await;
    let gateway = scene.start().await;
    let told = scene.slack.dm("U1", "The password is heliotrope.");
    answers(&scene, &told.channel, 1).await;
    let event = scene.slack.take_back(&told).expect("an event");
    taken(&scene, &event).await;
    assert!(shown(&scene.home, "slack:dm:U1").contains("heliotrope"));
    assert!(gateway.terminate().success());
    scene.behaved();
}

/// A scene whose `mra` says who it is and never ends.
async fn hanging() -> Scene {
    hanging_at(rules()).await
}

async fn hanging_at(rules: SlackRules) -> Scene {
    let scene = scene_at(rules, json!({})).await;
    let script = "cd \"$(dirname \"$1\")\"; echo $$ > new; mv new \"$1\"; sleep 1000";
    let command = ["sh", "-c", script, "mra", &scene.home.path().join("pid").display().to_string()];
    let config = json!({"version": 1, "language": "en", "admins": ["U7"], "mra": {"command": command},
                        "presence": {"broadcast": false, "readMissed": false}});
    scene.home.write("gateway.json", config.to_string());
    let looks = json!({"repo": "erp", "question": "where is the date of the launch?"});
    let calls = vec![("mra_ask".to_owned(), looks)];
    scene.anthropic.when(QUESTION, Behaviour::Calls { text: "Let me look into the code.".into(), calls });
    scene.anthropic.when("something else", Behaviour::answer("Something else, then."));
    scene
}

/// Waits until `mra` runs; its number.
async fn running(scene: &Scene) -> String {
    let pid = until_async("mra", || std::fs::read_to_string(scene.home.path().join("pid")).ok()).await;
    assert!(is_alive(pid.trim()));
    pid.trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_ends_what_is_under_way_and_the_next_question_is_answered() {
    let scene = hanging().await;
    let gateway = scene.start().await;
    let sent = scene.slack.dm("U1", QUESTION);
    let mra = running(&scene).await;
    let next = scene.slack.dm("U1", "something else");
    taken(&scene, &next.event_id).await;
    scene.slack.dm("U1", "Stop.");
    let replies = answers(&scene, &sent.channel, 2).await;
    let texts: Vec<&str> = replies.iter().map(|reply| reply.text.as_str()).collect();
    assert_eq!(texts, ["Let me look into the code.\n\n:raised_hand: Stopped", "Something else, then."]);
    until("the end of mra", || (!is_alive(&mra)).then_some(()));
    assert_eq!(scene.home.await_events("turn.stopped", 1)[0]["actor"], "U1");
    // Nothing is under way: then it is a message like any other.
    scene.anthropic.when("stop", Behaviour::answer("There is nothing to stop."));
    scene.slack.dm("U1", "stop");
    assert_eq!(answers(&scene, &sent.channel, 3).await[2].text, "There is nothing to stop.");
    assert!(gateway.terminate().success());
    scene.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_came_late_stopped_what_was_asked_after_it() {
    let scene = scene(json!({})).await;
    let gateway = scene.start().await;
    scene.anthropic.hold();
    let sent = scene.slack.dm("U1", "one");
    asked(&scene, 1).await;
    let (seconds, micros) = sent.ts.split_once('.').expect("a ts");
    let before = format!("{}.{micros}", seconds.parse::<u64>().expect("seconds") - 60);
    let late = scene.slack.send_event(json!({
        "type": "message", "channel": sent.channel, "channel_type": "im", "user": "U1", "text": "stop",
        "ts": before, "event_ts": before,
    }));
    taken(&scene, &late).await;
    scene.anthropic.release();
    let replies = answers(&scene, &sent.channel, 2).await;
    let texts: Vec<&str> = replies.iter().map(|reply| reply.text.as_str()).collect();
    assert_eq!(texts, ["You said: one", "You said: stop"]);
    assert!(gateway.terminate().success());
    scene.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reaction_stops_too_and_only_for_the_asker_and_admins() {
    let scene = hanging_at(rules().without_statuses()).await;
    let gateway = scene.start().await;
    let sent = scene.slack.mention("C1", "U1", QUESTION, None);
    let mra = running(&scene).await;
    let by_another = scene.slack.react_to("U2", &sent, "octagonal_sign");
    taken(&scene, &by_another).await;
    assert!(is_alive(&mra));
    let placeholder = scene.slack.placeholders("C1").remove(0);
    scene.slack.react("U7", &placeholder, "black_square_for_stop");
    assert!(answers(&scene, "C1", 1).await[0].text.ends_with("Stopped"));
    until("the end of mra", || (!is_alive(&mra)).then_some(()));
    assert_eq!(scene.home.await_events("turn.stopped", 1)[0]["actor"], "U7");
    assert!(gateway.terminate().success());
    scene.behaved();
}

/// Once, it had no effect, and `sessions retry` had the question answered days later.
#[tokio::test(flavor = "multi_thread")]
async fn a_reaction_stops_a_parked_question_too() {
    let scene = scene_at(rules_for_kills(), json!({})).await;
    let gateway = scene.start().await;
    scene.anthropic.hold();
    let sent = scene.slack.dm("U1", QUESTION);
    asked(&scene, 1).await;
    gateway.kill();
    let db = rusqlite::Connection::open(scene.home.path().join("gateway/pmk-host.db")).expect("the store");
    db.execute("UPDATE inbox SET parked_at = 1, parked_why = 'a bug', parked_told = 1", []).expect("it is parked");
    drop(db);
    scene.anthropic.release();
    let gateway = scene.start().await;
    scene.slack.react_to("U1", &sent, "octagonal_sign");
    assert!(answers(&scene, &sent.channel, 1).await[0].text.ends_with("Stopped"));
    assert_eq!(scene.home.run(&["--json", "sessions", "parked"], "").ok().json(), json!([]));
    assert_eq!(scene.anthropic.requests().len(), 1, "the model is not asked again");
    assert!(gateway.terminate().success());
    scene.behaved();
}

/// A scene whose `mra` counts how often it runs, and has found something once it may.
async fn searching() -> Scene {
    let scene = scene(json!({})).await;
    let script = "cd \"$1\"; echo run >> runs; while [ ! -e go ]; do sleep 0.02; done; echo 'It is in launch.rb.'";
    let command = ["sh", "-c", script, "mra", &scene.home.path().display().to_string()];
    let config = json!({"version": 1, "language": "en", "mra": {"command": command},
                        "presence": {"broadcast": false, "readMissed": false}});
    scene.home.write("gateway.json", config.to_string());
    let looks = json!({"repo": "erp", "question": "where is the date of the launch?"});
    scene.anthropic.when(QUESTION, Behaviour::calls([("mra_ask", looks)]));
    scene.anthropic.when("It is in launch.rb.", Behaviour::answer("On Friday."));
    scene.anthropic.when("an earlier one", Behaviour::answer("Earlier."));
    scene
}

/// Once, whoever stopped a question of theirs that waited behind somebody else's had the turn of that begun anew, as often
/// as they liked; and so had who wanted an old question asked again.
#[tokio::test(flavor = "multi_thread")]
async fn what_others_do_about_questions_that_wait_leaves_the_turn_under_way_alone() {
    let scene = searching().await;
    let gateway = scene.start().await;
    let earlier = scene.slack.mention("C1", "U2", "an earlier one", None);
    answers(&scene, "C1", 1).await;
    scene.home.await_events("turn.processed", 1);
    scene.slack.mention("C1", "U1", QUESTION, None);
    let runs = || std::fs::read_to_string(scene.home.path().join("runs")).ok();
    until_async("mra", runs).await;
    let waits = async |text: &str| {
        let sent = scene.slack.mention("C1", "U2", text, None);
        taken(&scene, &sent.event_id).await;
        sent
    };
    let first = waits("one that waits").await;
    let edited = scene.slack.edit(&first, "<@U0BOT> one that waits, as edited");
    taken(&scene, edited.last().expect("an event")).await;
    scene.slack.react_to("U2", &first, "octagonal_sign");
    scene.home.await_events("turn.stopped", 1);
    waits("one more").await;
    waits("stop").await;
    scene.home.await_events("turn.stopped", 2);
    let third = waits("a third").await;
    let gone = scene.slack.take_back(&third).expect("an event");
    taken(&scene, &gone).await;
    scene.slack.react_to("U2", &earlier, "repeat");
    scene.home.await_events("turn.again", 1);
    scene.home.write("go", "");
    // The two that were stopped say so.
    let replies = answers(&scene, "C1", 5).await;
    let count = |text: &str| replies.iter().filter(|reply| reply.text == text).count();
    assert_eq!((count("On Friday."), count("Earlier.")), (1, 2), "{replies:#?}");
    assert_eq!(runs().as_deref(), Some("run\n"), "its turn was begun anew");
    assert_eq!(scene.anthropic.requests().len(), 4);
    assert!(gateway.terminate().success());
    scene.behaved();
}

/// In a group a mention that an edit adds comes as nothing else: nobody answered it.
#[tokio::test(flavor = "multi_thread")]
async fn in_a_group_an_edit_that_adds_the_mention_makes_it_a_question_once() {
    for group_mentions in [false, true] {
        let scene = scene_at(SlackRules { group_mentions, ..rules() }, json!({})).await;
        let gateway = scene.start().await;
        scene.slack.is_group("G5");
        let talk = scene.slack.write("G5", "U1", "what do you think?", None);
        taken(&scene, &talk.event_id).await;
        for event in scene.slack.edit(&talk, "<@U0BOT> what do you think?") {
            taken(&scene, &event).await;
        }
        assert_eq!(answers(&scene, "G5", 1).await[0].text, "You said: what do you think?");
        scene.slack.mention("G5", "U1", "and now?", None);
        assert_eq!(answers(&scene, "G5", 2).await[1].text, "You said: and now?");
        assert!(gateway.terminate().success());
        scene.behaved();
    }
}

/// Once, the answer began with how late it was, counted from when the message was written without the mention.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_what_became_a_question_by_an_edit_was_called_late() {
    let scene = scene(json!({})).await;
    let gateway = scene.start().await;
    let talk = scene.slack.talked(Duration::from_secs(3 * 3_600), "C1", "U1", "what do you think?", None);
    for event in scene.slack.edit(&talk, "<@U0BOT> what do you think?") {
        taken(&scene, &event).await;
    }
    assert_eq!(answers(&scene, "C1", 1).await[0].text, "You said: what do you think?");
    assert!(gateway.terminate().success());
    scene.behaved();
}

/// Once, it was asked in its old words where the edit came first: only what mentions the bot was kept for it.
#[tokio::test(flavor = "multi_thread")]
async fn in_a_followed_thread_an_edit_that_comes_before_its_message_counts() {
    let scene = scene(json!({})).await;
    let gateway = scene.start().await;
    let root = scene.slack.talk("C1", "U1", "a topic", None);
    scene.slack.mention("C1", "U1", "and now?", Some(&root.ts));
    answers(&scene, "C1", 1).await;
    // Slack knows of it, and the gateway not yet.
    let late = scene.slack.talk("C1", "U1", "the old words", Some(&root.ts));
    let edited = scene.slack.edit(&late, "the new words");
    taken(&scene, &edited[0]).await;
    scene.slack.send_event(json!({
        "type": "message", "channel": "C1", "channel_type": "channel", "user": "U1", "text": "the old words",
        "ts": late.ts, "event_ts": late.ts, "thread_ts": root.ts, "parent_user_id": "U1",
    }));
    assert_eq!(answers(&scene, "C1", 2).await[1].text, "You said: the new words");
    assert!(gateway.terminate().success());
    scene.behaved();
}

/// Once, each deletion in each channel that the bot is in was a row in the store.
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_concerns_nobody_is_not_stored() {
    let scene = scene(json!({})).await;
    let gateway = scene.start().await;
    let asked_in = scene.slack.mention("C1", "U1", "and now?", None);
    answers(&scene, "C1", 1).await;
    let elsewhere = scene.slack.talk("C2", "U1", "among people", None);
    let in_thread = scene.slack.talk("C1", "U2", "to somebody else", Some(&asked_in.ts));
    // Slack knows of it, and the gateway not yet.
    let for_us = scene.slack.talk("C2", "U1", "<@U0BOT> a question", None);
    for sent in [&elsewhere, &in_thread, &for_us] {
        let event = scene.slack.take_back(sent).expect("an event");
        taken(&scene, &event).await;
    }
    let path = scene.home.path().join("gateway/pmk-host.db");
    let db = rusqlite::Connection::open(path).expect("the store");
    let mut kept = db.prepare("SELECT ts FROM early_change").expect("a statement");
    let kept: Vec<String> = kept.query_map([], |row| row.get(0)).expect("rows").map(|ts| ts.expect("a ts")).collect();
    assert_eq!(kept, [for_us.ts]);
    assert!(gateway.terminate().success());
    scene.behaved();
}

/// The word works in the console as well.
#[test]
fn stop_ends_a_turn_of_the_console() {
    let home = Home::new();
    home.write("gateway.json", json!({"version": 1, "language": "zh-TW"}).to_string());
    let anthropic = pmk_stand_ins::anthropic::Anthropic::start_blocking();
    anthropic.hold();
    let mut gateway = Running::start(home.asking(&anthropic, &[]));
    assert!(gateway.say(&question("Ev1", QUESTION)));
    until("a request", || (!anthropic.requests().is_empty()).then_some(()));
    assert!(gateway.say(&question("Ev2", "停")));
    let reply = gateway.next_of("reply");
    assert_eq!((&reply["event_id"], &reply["text"]), (&json!("Ev1"), &json!(":raised_hand: 已停止")));
    let (status, lines) = gateway.end();
    assert!(status.success());
    assert_eq!(replies(&lines), [] as [&str; 0]);
}

/// Once, a script that waited for the end of each message waited for ever for that of `stop`.
#[test]
fn a_stop_that_works_never_came_to_an_end_of_its_own() {
    let home = Home::new();
    let anthropic = pmk_stand_ins::anthropic::Anthropic::start_blocking();
    anthropic.hold();
    let mut gateway = Running::start(home.asking(&anthropic, &[]));
    assert!(gateway.say(&question("Ev1", QUESTION)));
    until("a request", || (!anthropic.requests().is_empty()).then_some(()));
    assert!(gateway.say(&question("Ev2", "stop")));
    let (status, lines) = gateway.end();
    assert!(status.success());
    let of_the_word: Vec<_> = lines.iter().filter(|line| line["event_id"] == "Ev2").collect();
    let [accepted, turn] = &of_the_word[..] else { panic!("two lines: {lines:#?}") };
    assert_eq!(accepted["type"], "accepted");
    assert_eq!(**turn, json!({"type": "turn", "event_id": "Ev2", "session": "console:dm:U1", "command": "stop"}));
}

/// It was told to be stopped, though it had been carried out, and what it said went to the model with the next question.
#[test]
fn an_order_that_was_carried_out_was_said_to_be_stopped() {
    let home = Home::new();
    home.write("gateway.json", json!({"version": 1, "language": "en", "admins": ["U1"]}).to_string());
    let mut gateway = Running::start(home.command(&["run", "--model", "sim"]));
    for (order, stop) in [("Ev1", "Ev2"), ("Ev3", "Ev4"), ("Ev5", "Ev6")] {
        let both = [question(order, "/pmk admin admins add <@U5>"), question(stop, "stop")].join("\n");
        assert!(gateway.say(&both));
        let reply = loop {
            let reply = gateway.next_of("reply");
            if reply["event_id"] == order {
                break reply;
            }
        };
        assert!(reply["text"].as_str().is_some_and(|text| text.contains("U5")), "{reply}");
    }
    gateway.end();
    let shown = home.run(&["sessions", "show", "console:dm:U1"], "").stdout;
    assert!(!shown.contains("admins add"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failure_a_reaction_takes_the_question_up_once() {
    let scene = scene(json!({})).await;
    let gateway = scene.start().await;
    scene.anthropic.push(Behaviour::error(401, "authentication_error", "invalid x-api-key"));
    let sent = scene.slack.dm("U1", QUESTION);
    let excuse = answers(&scene, &sent.channel, 1).await.remove(0);
    assert!(excuse.text.starts_with(":x:"), "{}", excuse.text);
    scene.home.await_events("turn.processed", 1);
    let event = scene.slack.react("U1", &excuse, "repeat");
    assert_eq!(answers(&scene, &sent.channel, 2).await[1].text, format!("You said: {QUESTION}"));
    scene.slack.redeliver(&event);
    until_async("a second delivery", || {
        (scene.slack.acks().iter().filter(|ack| ack.event_id == event).count() == 2).then_some(())
    })
    .await;
    // A later question shows that nothing came of it.
    scene.slack.dm("U1", "and where?");
    assert_eq!(answers(&scene, &sent.channel, 3).await[2].text, "You said: and where?");
    assert_eq!(scene.anthropic.requests().len(), 3);
    assert_eq!(scene.home.await_events("turn.again", 1).len(), 1);
    assert!(gateway.terminate().success());
    scene.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answered_question_is_asked_again_as_it_was_edited() {
    let scene = scene(json!({})).await;
    let gateway = scene.start().await;
    let sent: Sent = scene.slack.dm("U1", "When is the lunch?");
    answers(&scene, &sent.channel, 1).await;
    let edited = scene.slack.edit(&sent, QUESTION);
    taken(&scene, &edited[0]).await;
    assert_eq!(scene.anthropic.requests().len(), 1, "nobody wants it answered again yet");
    scene.home.await_events("turn.processed", 1);
    scene.slack.react_to("U1", &sent, "arrows_counterclockwise");
    assert_eq!(answers(&scene, &sent.channel, 2).await[1].text, format!("You said: {QUESTION}"));
    let request = scene.anthropic.requests()[1].body.to_string();
    assert!(!request.contains("lunch"), "the old words and their answer have left the window: {request}");
    assert!(shown(&scene.home, "slack:dm:U1").contains("lunch"), "the archive keeps them");
    assert!(gateway.terminate().success());
    scene.behaved();
}

/// Once, only the text of an answered question was erased, and what came with it stayed in the window.
#[tokio::test(flavor = "multi_thread")]
async fn with_a_question_goes_what_came_with_it() {
    let scene = scene(json!({})).await;
    let gateway = scene.start().await;
    let file = Upload::new("notes.txt", "text/plain", "the password is heliotrope");
    let sent = scene.slack.dm_with_file("U1", "what does it say?", file);
    answers(&scene, &sent.channel, 1).await;
    assert!(asked(&scene, 1).await.body.to_string().contains("heliotrope"));
    scene.home.await_events("turn.processed", 1);
    scene.slack.take_back(&sent);
    scene.home.await_events("message.deleted", 1);
    scene.slack.dm("U1", "and now?");
    let next = asked(&scene, 2).await.body.to_string();
    assert!(next.contains("and now?") && !next.contains("heliotrope"), "{next}");
    assert!(!shown(&scene.home, "slack:dm:U1").contains("heliotrope"));
    answers(&scene, &sent.channel, 2).await;
    assert!(gateway.terminate().success());
    scene.behaved();
}

/// Once, a question that was asked again had lost its file.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_asked_again_with_what_came_with_it() {
    let scene = scene(json!({})).await;
    let gateway = scene.start().await;
    scene.anthropic.push(Behaviour::error(401, "authentication_error", "invalid x-api-key"));
    let file = Upload::new("notes.txt", "text/plain", "the launch is on Friday");
    let sent = scene.slack.dm_with_file("U1", "sum it up", file);
    let excuse = answers(&scene, &sent.channel, 1).await.remove(0);
    scene.home.await_events("turn.processed", 1);
    scene.slack.react("U1", &excuse, "repeat");
    answers(&scene, &sent.channel, 2).await;
    let again = asked(&scene, 2).await.body.to_string();
    assert!(again.contains("sum it up") && again.contains("the launch is on Friday"), "{again}");
    assert!(gateway.terminate().success());
    scene.behaved();
}

/// Once, in threads of channels it waited behind the answer that it was to end.
#[tokio::test(flavor = "multi_thread")]
async fn stop_ends_an_answer_in_a_thread_with_a_mention_and_where_it_is_followed() {
    for with_mention in [true, false] {
        let scene = hanging().await;
        let gateway = scene.start().await;
        let root = scene.slack.talk("C1", "U1", "a topic", None);
        let sent = scene.slack.mention("C1", "U1", QUESTION, Some(&root.ts));
        let mra = running(&scene).await;
        match with_mention {
            true => scene.slack.mention("C1", "U1", "stop", Some(&root.ts)),
            false => scene.slack.write("C1", "U1", "stop", Some(&root.ts)),
        };
        until("the end of mra", || (!is_alive(&mra)).then_some(()));
        assert!(answers(&scene, &sent.channel, 1).await[0].text.ends_with("Stopped"));
        scene.home.await_events("turn.stopped", 1);
        assert_eq!(scene.home.await_events("turn.processed", 1)[0]["command"], "stop");
        assert!(gateway.terminate().success());
        scene.behaved();
    }
}

/// Their own words are in the thread, whosever answer they stop.
#[tokio::test(flavor = "multi_thread")]
async fn who_stops_an_answer_by_a_mention_did_not_count_as_somebody_else_in_the_thread() {
    let scene = hanging().await;
    let gateway = scene.start().await;
    let root = scene.slack.talk("C1", "U1", "a topic", None);
    scene.slack.mention("C1", "U1", QUESTION, Some(&root.ts));
    running(&scene).await;
    scene.slack.mention("C1", "U7", "stop", Some(&root.ts));
    assert!(answers(&scene, "C1", 1).await[0].text.ends_with("Stopped"));
    scene.slack.write("C1", "U1", "something else, all by itself", Some(&root.ts));
    scene.slack.mention("C1", "U1", "something else", Some(&root.ts));
    assert_eq!(answers(&scene, "C1", 2).await.len(), 2);
    let asked = scene.anthropic.requests();
    assert!(!asked.iter().any(|request| request.body.to_string().contains("all by itself")), "{asked:#?}");
    assert!(gateway.terminate().success());
    scene.behaved();
}

/// Once, its thread went on saying for an hour that an answer was on its way, and what was shown of it stayed.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_an_answer_whose_question_is_deleted_while_it_is_made() {
    let scene = scene(json!({})).await;
    let gateway = scene.start().await;
    let text = "A paragraph of an answer.\n\n".repeat(20);
    let (answer, gate) = Behaviour::gated(text);
    scene.anthropic.when(QUESTION, answer);
    gate.add_permits(1);
    let root = scene.slack.talk("C1", "U1", "a topic", None);
    let sent = scene.slack.mention("C1", "U1", QUESTION, Some(&root.ts));
    let grows = |message: &Message| message.streaming_since.is_some();
    assert!(scene.slack.await_message("C1", PATIENCE, grows).await.is_some());
    scene.slack.take_back(&sent);
    until_async("the end of what was shown", || {
        (!scene.slack.messages("C1").iter().any(|message| message.by_bot)).then_some(())
    })
    .await;
    until_async("the end of the status", || scene.slack.statuses("C1").last()?.status.is_empty().then_some(())).await;
    assert!(gateway.terminate().success());
    scene.behaved();
}
