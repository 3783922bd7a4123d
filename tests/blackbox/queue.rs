//! Messages that come faster than answers.

use pmk_stand_ins::{
    anthropic::{Anthropic, Behaviour, Recorded},
    slack::{Fault, Message, Upload, dm_channel},
};
use serde_json::{Value, json};

use crate::{
    knowledge::team::{ASKER, CHANNEL, ENGLISH, Team},
    support::{Home, PATIENCE, Running, of_type, question, stand_in, until, until_async},
    workspace::{Gateway, Scene, rules},
};

/// A gateway that asks this model, with this queue.
fn gateway(home: &Home, anthropic: &Anthropic, queue: Value) -> Running {
    home.write("gateway.json", json!({"version": 1, "queue": queue}).to_string());
    Running::start(home.asking(anthropic, &[]))
}

/// Says something, and waits until that is in the queue.
fn say(gateway: &mut Running, event: &str, text: &str) {
    assert!(gateway.say(&question(event, text)));
    assert_eq!(gateway.next_of("accepted")["event_id"], event);
}

/// Waits until the model was asked so often; what it was asked last.
fn asked(anthropic: &Anthropic, times: usize) -> String {
    until("a request", || anthropic.requests().get(times - 1).map(Recorded::said_now))
}

#[test]
fn one_after_the_other_unless_told_otherwise() {
    let home = Home::new();
    let input: Vec<String> = (0..3).map(|n| question(&format!("Ev{n}"), "hello")).collect();
    let lines = home.run(&["run", "--model", "sim:delay=50"], &input.join("\n")).ok().lines();
    let replies = of_type(&lines, "reply");
    assert_eq!(replies.len(), 3);
    assert!(replies.iter().all(|reply| reply.get("event_ids").is_none()));
}

#[test]
fn collected_messages_get_one_reply_that_names_them_all() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    let mut gateway = gateway(&home, &anthropic, json!({"mode": "collect", "debounceMs": 1}));
    anthropic.hold();
    say(&mut gateway, "Ev0", "first");
    asked(&anthropic, 1);
    // What comes while an answer is made waits and is answered together.
    for (event, text) in
        [("Ev1", "The code is heliotrope."), ("Ev2", "Never mind the weather."), ("Ev3", "What is the code?")]
    {
        say(&mut gateway, event, text);
    }
    anthropic.release();
    assert_eq!(gateway.next_of("reply").get("event_ids"), None);
    let reply = gateway.next_of("reply");
    assert_eq!(reply["event_ids"], json!(["Ev1", "Ev2", "Ev3"]));
    assert_eq!(reply["event_id"], "Ev3");
    let said = asked(&anthropic, 2);
    assert!(["heliotrope", "weather", "What is"].iter().all(|text| said.contains(text)), "{said}");
    // A redelivery of any of them is known.
    assert!(gateway.say(&question("Ev1", "The code is heliotrope.")));
    assert_eq!(gateway.next_of("accepted")["duplicate"], true);
    anthropic.hold();
    say(&mut gateway, "Ev4", "second");
    asked(&anthropic, 3);
    say(&mut gateway, "Ev5", "third");
    say(&mut gateway, "Ev6", "fourth");
    anthropic.release();
    assert_eq!(gateway.next_of("reply").get("event_ids"), None);
    assert_eq!(gateway.next_of("reply")["event_ids"], json!(["Ev5", "Ev6"]));
    let (status, _) = gateway.end();
    assert!(status.success());
    let shown = home.run(&["sessions", "list", "--json"], "").ok().json();
    assert_eq!(shown[0]["turns"], 7, "every question is answered: {shown:#}");
}

/// The last of them kept the ids of those whom it mentioned.
#[tokio::test(flavor = "multi_thread")]
async fn a_collected_message_beside_a_question_that_waits_lost_the_names_in_it() {
    const OTHER: &str = "U7";
    let team = Team::new(&ENGLISH, "auto").await;
    team.configure(|config| config["queue"] = json!({"mode": "collect", "debounceMs": 1}));
    team.slack.named("U2", "Ann Lee", "");
    team.anthropic.when("When is lunch?", Behaviour::answer("At noon."));
    team.anthropic.when("And tomorrow?", Behaviour::answer("The same."));
    team.anthropic.when("still awaited", Behaviour::answer(r#"{"kind":"other"}"#));
    let gateway = team.connect().await;
    let (asked, _) = team.escalate().await;
    let said = |words: &str| team.anthropic.requests().iter().map(Recorded::said_now).find(|said| said.contains(words));
    team.anthropic.hold();
    team.slack.mention(CHANNEL, OTHER, "When is lunch?", Some(&asked.ts));
    until_async("the first question", || said("When is lunch?")).await;
    for (user, text) in [(OTHER, "And tomorrow?"), (ASKER, "Will <@U2> be there?")] {
        let more = team.slack.mention(CHANNEL, user, text, Some(&asked.ts));
        assert!(team.slack.await_ack(&more.event_id, PATIENCE).await.is_some());
    }
    team.anthropic.release();
    let both = until_async("the others", || said("And tomorrow?")).await;
    let wanted = format!("{OTHER}: And tomorrow?\n\n{ASKER}: Will @Ann Lee (U2) be there?");
    assert!(both.contains(&wanted), "{both}");
    team.message("answer", |message| message.by_bot && message.text == "The same.").await;
    assert!(gateway.terminate().success());
    team.behaved();
}

/// All were told that they were too long.
#[test]
fn a_collected_message_that_is_too_long_takes_no_other_along() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    let queue = json!({"mode": "collect", "debounceMs": 1});
    home.write("gateway.json", json!({"version": 1, "queue": queue}).to_string());
    let mut gateway = Running::start(home.asking(&anthropic, &["--window", "8000"]));
    anthropic.hold();
    say(&mut gateway, "Ev0", "first");
    asked(&anthropic, 1);
    say(&mut gateway, "Ev1", "The code is heliotrope.");
    say(&mut gateway, "Ev2", &"all that was ever said ".repeat(3_000));
    say(&mut gateway, "Ev3", "What is the code?");
    anthropic.release();
    assert_eq!(gateway.next_of("reply")["event_id"], "Ev0");
    let replies = ["Ev1", "Ev2", "Ev3"].map(|event| {
        let reply = gateway.next_of("reply");
        assert_eq!((&reply["event_id"], reply.get("event_ids")), (&json!(event), None), "{reply}");
        reply["text"].as_str().expect("a text").to_owned()
    });
    assert!(replies[1].contains("token"), "{replies:?}");
    assert!([&replies[0], &replies[2]].iter().all(|text| !text.contains("token")), "{replies:?}");
    assert!(asked(&anthropic, 3).contains("What is the code?"));
    assert_eq!(anthropic.requests().len(), 3, "what cannot fit is not sent");
    assert!(gateway.end().0.success());
}

/// The admins were told of a failure, and the ledger had one.
#[test]
fn messages_that_are_too_long_together_fail_nobody_when_each_is_answered_by_itself() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    let queue = json!({"mode": "collect", "debounceMs": 1});
    home.write("gateway.json", json!({"version": 1, "admins": ["U0ADMIN"], "queue": queue}).to_string());
    let mut gateway = Running::start(home.asking(&anthropic, &[]));
    for event in ["EvA", "EvB", "EvC"] {
        say(&mut gateway, event, &"what was said long ago ".repeat(60));
        gateway.next_of("reply");
    }
    anthropic.set_window(6_000);
    anthropic.hold();
    say(&mut gateway, "Ev0", "first");
    asked(&anthropic, 4);
    ["Ev1", "Ev2"].iter().for_each(|event| say(&mut gateway, event, &"all that was ever said ".repeat(500)));
    anthropic.release();
    let (status, lines) = gateway.end();
    assert!(status.success());
    let replies = of_type(&lines, "reply");
    assert_eq!(replies.iter().map(|reply| &reply["event_id"]).collect::<Vec<_>>(), ["Ev0", "Ev1", "Ev2"], "{lines:#?}");
    assert!(replies.iter().all(|reply| !reply["text"].as_str().expect("a text").starts_with(":x:")), "{replies:#?}");
    assert!(anthropic.requests().iter().any(|request| request.refused.is_some()), "they are too long together");
    assert!(of_type(&lines, "notice").is_empty(), "{lines:#?}");
    let cuts = ["context.recovery_failed", "context.force-pruned", "context.compacted", "context.rotated"];
    assert!(cuts.iter().all(|kind| home.events(kind).is_empty()), "{:#?}", home.ledger());
}

/// Once, what the model had refused was neither in the ledger nor in the figures of an experiment.
#[test]
fn an_overflow_of_messages_that_are_then_asked_one_by_one_was_counted_nowhere() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    let arms = json!([{"name": "a"}, {"name": "b", "weight": 0}]);
    let experiment = json!({"name": "t", "start": "2026-01-01T00:00:00Z", "control": "a", "arms": arms});
    let queue = json!({"mode": "collect", "debounceMs": 1});
    home.write("gateway.json", json!({"version": 1, "queue": queue, "experiment": experiment}).to_string());
    let mut gateway = Running::start(home.asking(&anthropic, &[]));
    anthropic.set_window(6_000);
    anthropic.hold();
    say(&mut gateway, "Ev0", "first");
    asked(&anthropic, 1);
    ["Ev1", "Ev2"].iter().for_each(|event| say(&mut gateway, event, &"all that was ever said ".repeat(550)));
    anthropic.release();
    let (status, lines) = gateway.end();
    assert!(status.success());
    assert_eq!(of_type(&lines, "reply").len(), 3, "{lines:#?}");
    let refused = anthropic.requests().iter().filter(|request| request.refused.is_some()).count();
    assert!(refused > 0, "they are too long together");
    for kind in ["context.exceeded", "queue.context_overflow.detected"] {
        assert_eq!(home.events(kind).len(), refused, "{kind}: {:#?}", home.ledger());
    }
    let status = home.run(&["--json", "experiment", "status"], "").ok().json();
    assert_eq!(status["arms"][0]["overflowed"], 1, "the first of them bears it: {status:#}");
}

/// Each of them was shown that an answer is made.
#[test]
fn collected_messages_that_are_stopped_get_one_reply_that_names_them_all() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    let mut gateway = gateway(&home, &anthropic, json!({"mode": "collect", "debounceMs": 1}));
    anthropic.hold();
    say(&mut gateway, "Ev0", "first");
    asked(&anthropic, 1);
    ["Ev1", "Ev2"].iter().for_each(|event| say(&mut gateway, event, "and more"));
    say(&mut gateway, "Ev3", "stop");
    assert_eq!(gateway.next_of("reply").get("event_ids"), None);
    asked(&anthropic, 2);
    say(&mut gateway, "Ev4", "stop");
    let reply = gateway.next_of("reply");
    assert_eq!((&reply["event_id"], &reply["event_ids"]), (&json!("Ev2"), &json!(["Ev1", "Ev2"])), "{reply}");
    let (status, _) = gateway.end();
    assert!(status.success());
}

#[test]
fn steering_shows_the_model_at_once_what_comes_while_it_looks_something_up() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    let script = home.write("mra.script", "wait more\nout It is in the budget worker.");
    let mra = json!({"command": stand_in("mra", &script)});
    home.write(
        "gateway.json",
        json!({"version": 1, "mra": mra, "queue": {"mode": "steer", "debounceMs": 10}}).to_string(),
    );
    anthropic.push(Behaviour::calls([("mra_ask", json!({"repo": "erp", "question": "where?"}))]));
    anthropic.push(Behaviour::answer("In the budget worker, and only for May."));
    let mut gateway = Running::start(home.asking(&anthropic, &[]));
    say(&mut gateway, "Ev0", "Where is it computed?");
    asked(&anthropic, 1);
    ["Ev1", "Ev2"].iter().for_each(|event| say(&mut gateway, event, &format!("{event}: only for May")));
    home.write("more", "");
    let reply = gateway.next_of("reply");
    assert_eq!(reply["event_ids"], json!(["Ev0", "Ev1", "Ev2"]), "in the order they came");
    let said = asked(&anthropic, 2);
    assert!(
        said.contains("budget worker") && said.contains("Ev1: only for May") && said.contains("Ev2: only"),
        "{said}"
    );
    assert!(gateway.end().0.success());
}

/// Regression: the person was told that they are not shown, and the turn under way went on showing them.
#[test]
fn tool_calls_that_were_hidden_meanwhile_were_shown_until_the_end_of_the_turn() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    let script = home.write("mra.script", "wait more\nout It is in the budget worker.");
    let mra = json!({"command": stand_in("mra", &script)});
    let queue = json!({"mode": "steer", "debounceMs": 10});
    home.write("gateway.json", json!({"version": 1, "mra": mra, "queue": queue}).to_string());
    for question in ["where?", "since when?"] {
        anthropic.push(Behaviour::calls([("mra_ask", json!({"repo": "erp", "question": question}))]));
    }
    anthropic.push(Behaviour::answer("In the budget worker."));
    let mut gateway = Running::start(home.asking(&anthropic, &[]));
    say(&mut gateway, "Ev0", "verbose summary");
    assert_eq!(gateway.next_of("reply")["event_id"], "Ev0");
    say(&mut gateway, "Ev1", "Where is it computed?");
    asked(&anthropic, 1);
    say(&mut gateway, "Ev2", "verbose off");
    home.write("more", "");
    let (status, lines) = gateway.end();
    assert!(status.success());
    let replies = of_type(&lines, "reply");
    assert_eq!(replies.iter().map(|reply| &reply["event_id"]).collect::<Vec<_>>(), ["Ev2", "Ev1"], "{lines:#?}");
    assert_eq!(anthropic.requests().len(), 3);
    let is_call = |notice: &&Value| notice["text"].as_str().is_some_and(|text| text.contains("mra ask erp"));
    let shown = of_type(&lines, "notice").into_iter().filter(is_call).count();
    assert_eq!(shown, 1, "the one that was over by then: {lines:#?}");
}

/// It was cut to what the window had left, nobody was told, and it counted as answered.
#[test]
fn a_steered_message_that_the_window_has_no_room_for_waits_for_the_next_turn() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    let script = home.write("mra.script", "wait more\nout It is in the budget worker.");
    let mra = json!({"command": stand_in("mra", &script)});
    std::fs::create_dir(home.path().join("docs")).expect("a folder");
    home.write("docs/team.md", "We count what is left of a budget. ".repeat(200));
    let config =
        json!({"version": 1, "mra": mra, "defaultIngest": "dir:docs", "queue": {"mode": "steer", "debounceMs": 10}});
    home.write("gateway.json", config.to_string());
    anthropic.push(Behaviour::calls([("mra_ask", json!({"repo": "erp", "question": "where?"}))]));
    anthropic.push(Behaviour::answer("In the budget worker."));
    let mut gateway = Running::start(home.asking(&anthropic, &["--window", "8000"]));
    say(&mut gateway, "Ev0", &"Where is it computed? ".repeat(100));
    asked(&anthropic, 1);
    say(&mut gateway, "Ev1", &format!("{}Only the end counts.", "all that was ever said ".repeat(700)));
    say(&mut gateway, "Ev2", "and thanks");
    home.write("more", "");
    let reply = gateway.next_of("reply");
    assert_eq!((&reply["event_id"], reply.get("event_ids")), (&json!("Ev0"), None), "{reply}");
    assert_eq!(gateway.next_of("reply")["event_ids"], json!(["Ev1", "Ev2"]));
    let whole = asked(&anthropic, 3);
    assert!(whole.contains("Only the end counts.") && whole.matches("ever said").count() == 700, "{whole}");
    assert!(gateway.end().0.success());
}

/// Regression: the model was asked without it, or with its beginning only, and it counted as answered all the same.
#[test]
fn a_steered_message_that_a_refusal_left_no_room_for_was_never_answered() {
    // In the stand-in's tokens: Ev1 has 4,036.
    for (room, is_answered) in [(4_400, true), (300, false)] {
        let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
        let found = "what the budget worker does ".repeat(400);
        let script = home.write("mra.script", format!("wait more\nout {found}"));
        let mra = json!({"command": stand_in("mra", &script)});
        let queue = json!({"mode": "steer", "debounceMs": 10});
        home.write("gateway.json", json!({"version": 1, "language": "en", "mra": mra, "queue": queue}).to_string());
        anthropic.push(Behaviour::calls([("mra_ask", json!({"repo": "erp", "question": "where?"}))]));
        anthropic.push(Behaviour::answer("In the budget worker."));
        anthropic.push(Behaviour::answer("It does."));
        let mut gateway = Running::start(home.asking(&anthropic, &[]));
        say(&mut gateway, "Ev0", "Where is it computed?");
        asked(&anthropic, 1);
        say(&mut gateway, "Ev1", &format!("{}Only the end counts.", "all that was ever said ".repeat(700)));
        anthropic.name_no_numbers();
        anthropic.set_window(anthropic.requests()[0].prompt_tokens + room);
        home.write("more", "");
        let reply = gateway.next_of("reply");
        assert_eq!((&reply["event_id"], reply.get("event_ids")), (&json!("Ev0"), None), "{reply}");
        assert!(reply["text"].as_str().is_some_and(|text| text.ends_with("In the budget worker.")), "{reply}");
        let reply = gateway.next_of("reply");
        assert_eq!((&reply["event_id"], reply.get("event_ids")), (&json!("Ev1"), None), "{reply}");
        let text = reply["text"].as_str().expect("a text");
        assert_eq!(text.starts_with(":x: This message is too long"), !is_answered, "{text}");
        let whole = anthropic.requests().last().map(Recorded::said_now).unwrap_or_default();
        assert_eq!(whole.matches("ever said").count(), if is_answered { 700 } else { 0 }, "{whole}");
        assert!(gateway.end().0.success());
    }
}

/// A gateway under `steer` whose model has asked `mra`, which waits for the file `more`, and gives these answers after
/// that; and how large its first request was.
async fn searching_while_steered(answers: &[&str]) -> (Scene, Gateway, u64) {
    let scene = Scene::new(rules(), &json!({"version": 1})).await;
    let script = scene.home.write("mra.script", "wait more\nout It is in the budget worker.");
    let config = json!({
        "version": 1, "language": "en", "presence": {"broadcast": false}, "mra": {"command": stand_in("mra", &script)},
        "queue": {"mode": "steer", "debounceMs": 10},
    });
    scene.home.write("gateway.json", config.to_string());
    let gateway = scene.start().await;
    scene.anthropic.push(Behaviour::calls([("mra_ask", json!({"repo": "erp", "question": "where?"}))]));
    answers.iter().for_each(|answer| scene.anthropic.push(Behaviour::answer(*answer)));
    scene.slack.dm("U1", "Where is it computed?");
    let asked = || scene.anthropic.requests().first().map(|request| request.prompt_tokens);
    let first = until_async("the question", asked).await;
    (scene, gateway, first)
}

/// The file was not named, and where it had come without a word, nothing was said at all.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_read_was_steered_in_and_never_mentioned() {
    let (scene, gateway, _) = searching_while_steered(&["In the budget worker, and only for May."]).await;
    for (text, name) in [("only for May", "report.pdf"), ("", "plan.pdf")] {
        let more = scene.slack.dm_with_file("U1", text, Upload::new(name, "application/pdf", "%PDF"));
        assert!(scene.slack.await_ack(&more.event_id, PATIENCE).await.is_some());
    }
    scene.home.write("more", "");
    for (name, said) in [("report.pdf", "only for May."), ("plan.pdf", "I found no text to read in this message")] {
        let named = format!("Not read: `{name}` (not text)");
        let is_named = |message: &Message| message.text.contains(&named);
        let told = scene.slack.await_message(&dm_channel("U1"), PATIENCE, is_named).await.expect("an answer").text;
        assert!(told.contains(said) && told.matches("Not read").count() == 1, "{told}");
    }
    assert_eq!(scene.anthropic.requests().len(), 2, "there was nothing to ask about the second file");
    assert!(gateway.terminate().success());
    scene.behaved();
}

/// Regression: it counted as answered if the request had the message and no longer its file; and what could not be read,
/// and what was shortened, was told with both answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_steered_message_whose_file_a_refusal_left_no_room_for_was_never_answered() {
    let (scene, gateway, first) = searching_while_steered(&["In the budget worker.", "It does."]).await;
    // Longer than an attachment may be; and of what is left, a refusal leaves 4,000 characters at first.
    let log = Upload::new("log.txt", "text/plain", "all that was ever said ".repeat(2_000));
    let files = vec![log, Upload::new("plan.pdf", "application/pdf", "%PDF")];
    let more = scene.slack.dm_with_files("U1", "and does this log say so?", files);
    assert!(scene.slack.await_ack(&more.event_id, PATIENCE).await.is_some());
    scene.anthropic.name_no_numbers();
    scene.anthropic.set_window(first + 900);
    scene.home.write("more", "");
    for said in ["In the budget worker.", "It does."] {
        let is_said = |message: &Message| message.text.contains(said);
        assert!(scene.slack.await_message(&dm_channel("U1"), PATIENCE, is_said).await.is_some(), "{said}");
    }
    let last = scene.anthropic.requests().last().map(|request| request.body.to_string()).unwrap_or_default();
    assert!(last.contains("does this log say so?") && last.contains("ever said"), "{last}");
    assert!(gateway.terminate().success());
    let mut told = scene.slack.messages(&dm_channel("U1"));
    told.retain(|message| message.text.contains("Not read: `plan.pdf`"));
    assert!(told.len() == 1 && told[0].text.contains("It does."), "{told:#?}");
    let ledger = scene.home.ledger();
    let capped: Vec<&Value> = ledger.iter().filter(|event| event["type"] == "message.capped").collect();
    assert_eq!(capped.len(), 1, "{capped:#?}");
    assert_eq!(scene.slack.violations(), Vec::<String>::new());
}

/// Regression: the turn under way was given up, and what it had looked up was lost, if Slack did not accept for a moment
/// what concerned another message.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_was_given_up_because_slack_failed_on_a_message_that_was_steered_in() {
    let scene = Scene::new(rules().without_statuses(), &json!({"version": 1})).await;
    let script = scene.home.write("mra.script", "wait more\nout It is in the nightly job.");
    let config = json!({
        "version": 1, "language": "en", "presence": {"broadcast": false}, "mra": {"command": stand_in("mra", &script)},
        "queue": {"mode": "steer", "debounceMs": 10},
    });
    scene.home.write("gateway.json", config.to_string());
    let gateway = scene.start().await;
    scene.anthropic.push(Behaviour::calls([("mra_ask", json!({"repo": "erp", "question": "where?"}))]));
    scene.anthropic.push(Behaviour::answer("In the budget worker."));
    scene.slack.dm("U1", "Where is it computed?");
    // From here on only the reply to the command is a new message.
    let is_shown = async |text: &str| {
        let shown = scene.slack.await_message(&dm_channel("U1"), PATIENCE, |message| message.text.contains(text)).await;
        assert!(shown.is_some(), "{text}: {:#?}", scene.slack.messages(&dm_channel("U1")));
    };
    is_shown("Looking into erp").await;
    let ordered = scene.slack.dm("U1", "/pmk frob");
    assert!(scene.slack.await_ack(&ordered.event_id, PATIENCE).await.is_some());
    scene.slack.fault_times("chat.postMessage", 1, Fault::Status(503));
    scene.home.write("more", "");
    is_shown("In the budget worker.").await;
    is_shown("There is no command `frob`").await;
    let asked = scene.anthropic.requests();
    assert_eq!(asked.len(), 2);
    assert!(asked[1].body.to_string().contains("It is in the nightly job."), "{}", asked[1].body);
    assert!(gateway.terminate().success());
    scene.behaved();
}

#[test]
fn a_kill_while_several_wait_or_are_answered_together_loses_none() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    // So long that no machine is too slow to say all three before it is over.
    let waiting = json!({"mode": "collect", "debounceMs": 60_000});
    anthropic.hold();
    let mut first = gateway(&home, &anthropic, waiting);
    // The first is asked at once, the others wait for it.
    say(&mut first, "Ev0", "hello 0");
    asked(&anthropic, 1);
    (1..3).for_each(|n| say(&mut first, &format!("Ev{n}"), &format!("hello {n}")));
    first.kill();
    assert_eq!(anthropic.requests().len(), 1);

    // What was left is queued in one go at the start.
    let queue = json!({"mode": "collect", "debounceMs": 1_000});
    let second = gateway(&home, &anthropic, queue.clone());
    let said = asked(&anthropic, 2);
    assert!((0..3).all(|n| said.contains(&format!("hello {n}"))), "{said}");
    second.kill();

    anthropic.release();
    let (status, lines) = gateway(&home, &anthropic, queue).end();
    assert!(status.success());
    let replies = of_type(&lines, "reply");
    assert_eq!(replies.len(), 1, "{lines:#?}");
    assert_eq!(replies[0]["event_ids"], json!(["Ev0", "Ev1", "Ev2"]));
}

#[test]
fn a_queue_that_makes_no_sense_is_refused() {
    let home = Home::new();
    for (queue, wanted) in [
        (json!({"mode": "random"}), "random"),
        (json!({"mode": "collect", "most": 0}), "`queue.most` is 0"),
        (json!({"debounceMs": 100_000}), "`queue.debounceMs` is 100000"),
    ] {
        home.write("gateway.json", json!({"version": 1, "queue": queue}).to_string());
        let finished = home.run(&["run", "--model", "sim"], "");
        assert_eq!(finished.status.code(), Some(1));
        assert!(finished.stderr.contains(wanted), "{}", finished.stderr);
    }
}

#[test]
fn a_direct_message_keeps_no_more_turns_than_allowed_and_a_channel_does() {
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"historyTurns":2}"#);
    let long = |n: usize| format!("Number {n}: {}", "filler ".repeat(60));
    let dm: Vec<String> = (0..6).map(|n| question(&format!("Ev{n}"), &long(n))).collect();
    let channel = (0..6).map(|n| json!({"channel": "C1", "event_id": format!("C{n}"), "text": long(n)}).to_string());
    let input: Vec<String> = dm.into_iter().chain(channel).collect();
    home.run(&["run", "--model", "sim"], &input.join("\n")).ok();
    let sessions = home.run(&["sessions", "list", "--json"], "").ok().json();
    let live = |key: &str| {
        let found = sessions.as_array().expect("a list").iter().find(|session| session["key"] == key).cloned();
        found.unwrap_or_default()["live_messages"].as_u64().expect("a count")
    };
    assert_eq!(live("console:dm:U1"), 6, "two turns and the newest: {sessions:#}");
    assert_eq!(live("console:channel:C1"), 12);
}
