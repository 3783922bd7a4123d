//! What survives `kill -9`.

use std::collections::HashMap;

use serde_json::Value;

use crate::support::{Home, Running, component, question};

const QUESTIONS: usize = 200;

/// Kills after this many lines of output, again and again, so that the kills fall into every step.
const KILLS: [usize; 8] = [1, 7, 20, 33, 60, 90, 140, 222];

fn say_all(gateway: &mut Running, questions: &[String]) {
    for line in questions {
        if !gateway.say(line) {
            return;
        }
    }
}

#[test]
fn every_question_is_answered_however_often_the_gateway_is_killed() {
    let home = Home::new();
    let strict = component("strict");
    let questions: Vec<String> = (0..QUESTIONS)
        .map(|n| question(&format!("Ev{n}"), &format!("Question {n}: {}", "a fact to remember, ".repeat(20))))
        .collect();
    let start = || Running::start(home.command(&["run", "--policy", &strict, "--model", "sim", "--window", "8000"]));
    let mut printed: Vec<Value> = Vec::new();

    for kill_after in KILLS {
        let mut gateway = start();
        say_all(&mut gateway, &questions);
        printed.extend((0..kill_after).map_while(|_| gateway.next()));
        printed.extend(gateway.kill());
    }

    let mut gateway = start();
    say_all(&mut gateway, &questions);
    let (status, rest) = gateway.end();
    assert!(status.success());
    printed.extend(rest);

    let mut replies: HashMap<String, Vec<String>> = HashMap::new();
    for line in printed.iter().filter(|line| line["type"] == "reply") {
        let event = line["event_id"].as_str().expect("an event id").to_owned();
        replies.entry(event).or_default().push(line["text"].as_str().expect("a text").to_owned());
    }
    assert_eq!(replies.len(), QUESTIONS, "a question was lost");
    for (event, texts) in &replies {
        assert!(texts.iter().all(|text| text == &texts[0]), "{event} was answered twice: {texts:?}");
        assert!(texts.len() <= 1 + KILLS.len(), "{event} was printed {} times", texts.len());
    }
    let turns: usize = printed.iter().filter(|line| line["type"] == "turn").count();
    assert!(turns >= QUESTIONS, "{turns}");

    // What was answered is in the session once, in order.
    let sessions = home.run(&["--json", "sessions", "list"], "").ok().json();
    assert_eq!(sessions[0]["turns"], QUESTIONS);
}

#[test]
fn unfinished_work_goes_on_at_once() {
    let home = Home::new();
    let mut gateway = Running::start(home.command(&["run", "--model", "sim"]));
    for n in 0..50 {
        gateway.say(&question(&format!("Ev{n}"), "hello"));
    }
    gateway.next_of("accepted");
    let mut printed = gateway.kill();
    // Whoever waited until the dead process's leases are over would wait for ever.
    let database = rusqlite::Connection::open(home.path().join("gateway/pmk-host.db")).expect("the database");
    let held = database.execute("UPDATE session SET lease_owner = 'the dead', lease_until = 4102444800000", []);
    assert_eq!(held, Ok(1));
    drop(database);
    let (status, rest) = Running::start(home.command(&["run", "--model", "sim"])).end();
    assert!(status.success());
    printed.extend(rest);
    let accepted = |line: &&Value| line["type"] == "accepted" && line.get("duplicate").is_none();
    for line in printed.iter().filter(accepted) {
        let event = &line["event_id"];
        let answered = printed.iter().any(|other| other["type"] == "reply" && other["event_id"] == *event);
        assert!(answered, "{event} was accepted and never answered");
    }
}
