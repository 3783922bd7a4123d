//! Messages that come faster than answers.

use pmk_stand_ins::anthropic::{Anthropic, Behaviour};
use serde_json::{Value, json};

use crate::support::{Home, Running, of_type, question, stand_in};

fn gateway(home: &Home, queue: Value) -> Running {
    home.write("gateway.json", json!({"version": 1, "model": "sim:delay=400", "queue": queue}).to_string());
    Running::start(home.command(&["run"]))
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
    let home = Home::new();
    let mut gateway = gateway(&home, json!({"mode": "collect", "debounceMs": 150}));
    for (event, text) in
        [("Ev0", "The code is heliotrope."), ("Ev1", "Never mind the weather."), ("Ev2", "What is the code?")]
    {
        assert!(gateway.say(&question(event, text)));
    }
    let reply = gateway.next_of("reply");
    assert_eq!(reply["event_ids"], json!(["Ev0", "Ev1", "Ev2"]));
    assert_eq!(reply["event_id"], "Ev2");
    // A redelivery of any of them is known.
    assert!(gateway.say(&question("Ev1", "Never mind the weather.")));
    assert_eq!(gateway.next_of("accepted")["duplicate"], true);
    // What comes while an answer is made waits and is answered together, too.
    assert!(gateway.say(&question("Ev3", "first")));
    gateway.next_of("accepted");
    std::thread::sleep(std::time::Duration::from_millis(350));
    assert!(gateway.say(&question("Ev4", "second")) && gateway.say(&question("Ev5", "third")));
    assert_eq!(gateway.next_of("reply").get("event_ids"), None);
    assert_eq!(gateway.next_of("reply")["event_ids"], json!(["Ev4", "Ev5"]));
    let (status, _) = gateway.end();
    assert!(status.success());
    let shown = home.run(&["sessions", "list", "--json"], "").ok().json();
    assert_eq!(shown[0]["turns"], 6, "every question is answered: {shown:#}");
}

#[test]
fn steering_shows_the_model_at_once_what_comes_while_it_looks_something_up() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    let script = home.write("mra.script", "sleep 600\nout It is in the budget worker.");
    let mra = json!({"command": stand_in("mra", &script)});
    home.write(
        "gateway.json",
        json!({"version": 1, "mra": mra, "queue": {"mode": "steer", "debounceMs": 10}}).to_string(),
    );
    anthropic.push(Behaviour::calls([("mra_ask", json!({"repo": "erp", "question": "where?"}))]));
    anthropic.push(Behaviour::answer("In the budget worker, and only for May."));
    let mut gateway = Running::start(home.asking(&anthropic, &[]));
    assert!(gateway.say(&question("Ev0", "Where is it computed?")));
    gateway.next_of("accepted");
    while anthropic.requests().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    ["Ev1", "Ev2"].iter().for_each(|event| assert!(gateway.say(&question(event, &format!("{event}: only for May")))));
    let reply = gateway.next_of("reply");
    assert_eq!(reply["event_ids"], json!(["Ev0", "Ev1", "Ev2"]), "in the order they came");
    let said = anthropic.requests()[1].said_now();
    assert!(
        said.contains("budget worker") && said.contains("Ev1: only for May") && said.contains("Ev2: only"),
        "{said}"
    );
    assert!(gateway.end().0.success());
}

#[test]
fn a_kill_while_several_are_answered_together_loses_none() {
    let home = Home::new();
    let mut gateway = gateway(&home, json!({"mode": "collect", "debounceMs": 100}));
    (0..3).for_each(|n| assert!(gateway.say(&question(&format!("Ev{n}"), "hello"))));
    (0..3).for_each(|_| drop(gateway.next_of("accepted")));
    std::thread::sleep(std::time::Duration::from_millis(300));
    gateway.kill();
    let lines = home.run(&["run"], "").ok().lines();
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
