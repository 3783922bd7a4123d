//! What survives `kill -9`.

use std::{collections::HashMap, time::Duration};

use pmk_stand_ins::anthropic::Anthropic;
use serde_json::Value;

use crate::{
    moments::Moments,
    support::{Home, Running, answers, component, of_type, question},
};

const QUESTIONS: usize = 200;

/// Kills after this many lines of output, again and again, so that the kills fall into every step.
const KILLS: [usize; 8] = [1, 7, 20, 33, 60, 90, 140, 222];

/// How often it is killed at some moment, what is said to it each time, and how long it lives on from its first answer.
const ROUNDS: usize = 8;
const A_ROUND: usize = 20;
const LONGEST_LIFE: Duration = Duration::from_millis(120);

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

    let answered = answers(&printed);
    assert_eq!(answered.len(), QUESTIONS, "a question was lost");
    for (event, times) in answered {
        assert!(times <= 1 + KILLS.len(), "{event} was printed {times} times");
    }
    let turns: usize = printed.iter().filter(|line| line["type"] == "turn").count();
    assert!(turns >= QUESTIONS, "{turns}");

    // So does the ledger have it: what it tells is stored with the turn.
    assert_eq!(home.events("turn.processed").len(), QUESTIONS);

    // What was answered is in the session once, in order.
    let sessions = home.run(&["--json", "sessions", "list"], "").ok().json();
    assert_eq!(sessions[0]["turns"], QUESTIONS);
}

/// The file is written after the store: whenever the process is killed, it is brought to agree.
#[test]
fn a_kill_at_any_moment_leaves_one_line_in_the_ledger_for_each_turn() {
    let mut moments = Moments::new();
    let home = Home::new();
    let strict = component("strict");
    let start = || Running::start(home.command(&["run", "--policy", &strict, "--model", "sim", "--window", "8000"]));
    let said: Vec<String> = (0..ROUNDS * A_ROUND)
        .map(|n| question(&format!("Ev{n}"), &format!("Question {n}: {}", "a fact to remember, ".repeat(20))))
        .map(|line| line.replace("\"U1\"", &format!("\"U{}\"", line.len() % 3)))
        .collect();
    for round in said.chunks(A_ROUND) {
        let mut gateway = start();
        say_all(&mut gateway, round);
        gateway.next_of("turn");
        moments.pass_blocking(LONGEST_LIFE);
        gateway.kill();
    }
    let mut gateway = start();
    say_all(&mut gateway, &said);
    let (status, _) = gateway.end();
    assert!(status.success());

    let sessions = home.run(&["--json", "sessions", "list"], "").ok().json();
    let turns: HashMap<&str, u64> = sessions
        .as_array()
        .expect("a list")
        .iter()
        .map(|session| (session["key"].as_str().expect("a key"), session["turns"].as_u64().expect("a number")))
        .collect();
    assert_eq!(turns.values().sum::<u64>(), (ROUNDS * A_ROUND) as u64);
    let mut told: HashMap<String, u64> = HashMap::new();
    for event in home.events("turn.processed") {
        *told.entry(event["session"].as_str().expect("a session").to_owned()).or_default() += 1;
    }
    assert_eq!(told.iter().map(|(key, turns)| (key.as_str(), *turns)).collect::<HashMap<_, _>>(), turns);
    let store = rusqlite::Connection::open(home.path().join("gateway/pmk-host.db")).expect("the database");
    let waiting: i64 = store.query_row("SELECT count(*) FROM event", [], |row| row.get(0)).expect("a number");
    assert_eq!(waiting, 0, "all of it is in the file");
    assert!(!home.events("context.pruned").is_empty(), "the policy had something to drop");
}

#[test]
fn unfinished_work_goes_on_at_once() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    // Nothing is finished before the kill.
    anthropic.hold();
    let mut gateway = Running::start(home.asking(&anthropic, &[]));
    for n in 0..50 {
        gateway.say(&question(&format!("Ev{n}"), "hello"));
    }
    let mut printed = vec![gateway.next_of("accepted")];
    printed.extend(gateway.kill());
    assert_eq!(of_type(&printed, "reply"), [] as [&Value; 0]);
    anthropic.release();
    // Whoever waited until the dead process's leases are over would wait for ever.
    let database = rusqlite::Connection::open(home.path().join("gateway/pmk-host.db")).expect("the database");
    let held = database.execute("UPDATE session SET lease_owner = 'the dead', lease_until = 4102444800000", []);
    assert_eq!(held, Ok(1));
    drop(database);
    let (status, rest) = Running::start(home.asking(&anthropic, &[])).end();
    assert!(status.success());
    printed.extend(rest);
    let accepted = |line: &&Value| line["type"] == "accepted" && line.get("duplicate").is_none();
    for line in printed.iter().filter(accepted) {
        let event = &line["event_id"];
        let answered = printed.iter().any(|other| other["type"] == "reply" && other["event_id"] == *event);
        assert!(answered, "{event} was accepted and never answered");
    }
}
