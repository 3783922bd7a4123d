//! The console as a script drives it.

use std::{
    collections::{HashMap, HashSet},
    io::Write,
    process::Stdio,
};

use pmk_stand_ins::anthropic::{Anthropic, Behaviour};
use serde_json::json;

use crate::support::{Home, component, finish, of_type, question};

/// 200 turns of a few hundred characters, Chinese and English in turn, so that 8,000 tokens are far too
/// few for all of them.
fn conversation() -> Vec<String> {
    (0..200)
        .map(|n| {
            let filler = if n % 2 == 0 {
                "這個月的廣告預算分配比例需要再確認一次，請財務部門與行銷部門一起討論。".repeat(4)
            } else {
                "The budget worker chains call this path once a day and writes its totals back. ".repeat(4)
            };
            question(&format!("Ev{n}"), &format!("Question {n}: {filler}"))
        })
        .collect()
}

#[test]
fn two_hundred_turns_stay_within_a_small_window() {
    let home = Home::new();
    let input = conversation().join("\n");
    let strict = component("strict");
    let finished = home.run(&["run", "--policy", &strict, "--model", "sim", "--window", "8000"], &input).ok();
    let lines = finished.lines();

    let mut replies: HashMap<&str, u32> = HashMap::new();
    for reply in of_type(&lines, "reply") {
        *replies.entry(reply["event_id"].as_str().expect("an event id")).or_default() += 1;
    }
    assert_eq!(replies.len(), 200);
    assert!(replies.values().all(|&count| count == 1));

    let turns = of_type(&lines, "turn");
    assert_eq!(turns.len(), 200);
    let number = |turn: &serde_json::Value, pointer: &str| {
        turn.pointer(pointer).and_then(serde_json::Value::as_u64).unwrap_or_else(|| panic!("{pointer} in {turn}"))
    };
    for turn in &turns {
        assert!(number(turn, "/tokens/after") <= number(turn, "/tokens/limit"), "{turn}");
        assert!(number(turn, "/tokens/limit") < 8_000, "{turn}");
        assert_eq!(turn["policy"]["name"], "strict");
        assert_eq!(turn["calls"], 1, "nothing over the window was sent: {turn}");
        assert_eq!(turn["rungs"], json!([]));
    }
    let dropped: u64 = turns.iter().map(|turn| number(turn, "/turns_dropped")).sum();
    assert!(dropped > 150, "{dropped}");
    assert!(finished.stderr.contains("pruned session: dropped "), "{}", finished.stderr);
}

#[test]
fn a_duplicate_is_accepted_and_not_answered_again() {
    let home = Home::new();
    let line = question("Ev1", "你好");
    let lines = home.run(&["run", "--model", "sim"], &format!("{line}\n{line}\n")).ok().lines();
    let accepted = of_type(&lines, "accepted");
    assert_eq!(accepted.len(), 2);
    assert_eq!(accepted[0].get("duplicate"), None);
    assert_eq!(accepted[1]["duplicate"], true);
    assert_eq!(of_type(&lines, "reply").len(), 1);
}

#[test]
fn accepted_comes_before_the_reply() {
    let home = Home::new();
    let lines = home.run(&["run", "--model", "sim"], &format!("{}\n", question("Ev1", "hello"))).ok().lines();
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    assert_eq!(kinds, ["accepted", "reply", "turn"]);
}

#[test]
fn bad_lines_are_told_and_the_rest_is_answered() {
    let home = Home::new();
    let input = format!("{{\n{}\n[]\n{{\"type\":\"dance\"}}\n", question("Ev1", "hello"));
    let lines = home.run(&["run", "--model", "sim"], &input).ok().lines();
    let errors = of_type(&lines, "error");
    assert_eq!(errors.iter().map(|error| error["line"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(3), Some(4)]);
    assert!(errors.iter().all(|error| error["hint"].is_string()));
    assert_eq!(of_type(&lines, "reply").len(), 1);
}

#[test]
fn a_bad_line_is_told_in_our_own_words() {
    let home = Home::new();
    let input = [
        "{\"text\":".to_owned(),
        r#"["message","Ev1","U1","D1",null,"hello"]"#.to_owned(),
        r#"{"event_id":"Ev2","text":7}"#.to_owned(),
        r#"{"event_id":"Ev3","user":"","text":"hello"}"#.to_owned(),
        r#"{"event_id":"Ev4","user":"U1:1.1","text":"hello"}"#.to_owned(),
        format!(r#"{{"event_id":"Ev5","text":"{}"}}"#, "x".repeat(2 << 20)),
        question("Ev6", "hello"),
    ]
    .join("\n");
    let lines = home.run(&["run", "--model", "sim"], &input).ok().lines();
    let errors: Vec<String> = of_type(&lines, "error").iter().map(|error| format!("{error:#}\n")).collect();
    insta::assert_snapshot!(errors.concat());
    assert_eq!(of_type(&lines, "reply").len(), 1);
}

#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    let home = Home::new();
    let mut command = home.command(&["run", "--model", "sim"]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("the full device");
    command.env_remove("LANG").stdin(Stdio::piped()).stdout(full).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    writeln!(stdin, "{}", question("Ev1", "hello")).expect("the input is written");
    drop(stdin);
    let output = child.wait_with_output().expect("it is stopping");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("error: cannot write to standard output: ") && stderr.contains("hint: "), "{stderr}");
    assert_eq!(of_type(&home.run(&["run", "--model", "sim"], "").ok().lines(), "reply").len(), 1);
}

#[test]
fn threads_do_not_see_each_other() {
    let home = Home::new();
    let message = |event: &str, thread: &str, text: &str| {
        json!({"user": "U1", "channel": "D1", "thread_ts": thread, "text": text, "event_id": event}).to_string()
    };
    let input = [
        message("Ev1", "1.1", "The launch code is heliotrope."),
        message("Ev2", "2.2", "What is the launch code?"),
        message("Ev3", "1.1", "What is the launch code?"),
    ]
    .join("\n");
    let lines = home.run(&["run", "--model", "sim"], &input).ok().lines();
    let reply = |event: &str| {
        let found = of_type(&lines, "reply").into_iter().find(|reply| reply["event_id"] == event);
        found.and_then(|reply| reply["text"].as_str()).expect("a reply").to_owned()
    };
    assert!(!reply("Ev2").contains("heliotrope"), "{}", reply("Ev2"));
    assert!(reply("Ev3").contains("heliotrope"), "{}", reply("Ev3"));
}

#[test]
fn a_message_larger_than_the_window_gets_an_honest_answer_and_the_next_one_works() {
    let home = Home::new();
    let input = [question("Ev1", &"預算".repeat(8_000)), question("Ev2", "hello")].join("\n");
    let lines = home.run(&["run", "--model", "sim", "--window", "8000"], &input).ok().lines();
    let replies = of_type(&lines, "reply");
    let text = replies[0]["text"].as_str().expect("a text");
    assert!(text.starts_with(":x: 這則訊息太長") && text.contains("token"), "{text}");
    assert!(!replies[1]["text"].as_str().expect("a text").starts_with(":x:"), "{}", replies[1]);
    assert_eq!(of_type(&lines, "turn")[0]["calls"], 0);
}

#[test]
fn a_message_too_large_alone_costs_the_conversation_nothing() {
    let home = Home::new();
    let input = [
        question("Ev1", "The launch code is heliotrope."),
        question("Ev2", &"預算".repeat(8_000)),
        question("Ev3", "What is the launch code?"),
    ]
    .join("\n");
    let lines = home.run(&["run", "--model", "sim", "--window", "8000"], &input).ok().lines();
    let last = of_type(&lines, "reply")[2]["text"].as_str().expect("a text");
    assert!(last.contains("heliotrope"), "{last}");
    let processed: Vec<_> = home.ledger().into_iter().filter(|event| event["type"] == "turn.processed").collect();
    let sent = processed.iter().map(|event| event["tokensSent"].as_u64() > Some(0));
    assert_eq!(sent.collect::<Vec<_>>(), [true, false, true], "what was never sent cost nothing");
}

#[test]
fn a_budget_of_one_token_still_answers() {
    let home = Home::new();
    let strict = component("strict");
    let mut command = home.command(&["run", "--policy", &strict, "--model", "sim"]);
    command.env("PMK_MAX_SESSION_TOKENS", "1");
    let input: Vec<String> = (0..30).map(|n| question(&format!("Ev{n}"), &format!("Number {n}"))).collect();
    let lines = crate::support::finish(command, &input.join("\n")).ok().lines();
    assert_eq!(of_type(&lines, "reply").len(), 30);
    let dropped: u64 = of_type(&lines, "turn").iter().filter_map(|turn| turn["turns_dropped"].as_u64()).sum();
    assert_eq!(dropped, 19, "ten turns and the new message stay");
}

#[test]
fn the_ledger_speaks_pmks_language_and_holds_no_text() {
    let home = Home::new();
    home.run(&["run", "--model", "sim"], &question("Ev1", "heliotrope")).ok();
    let ledger = home.ledger();
    let kinds: Vec<&str> = ledger.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!(kinds, ["gateway.online", "token.usage", "turn.processed", "gateway.offline"]);
    assert_eq!(ledger[2]["actor"], "U1");
    assert!(ledger.iter().all(|event| !event.to_string().contains("heliotrope")));
}

#[cfg(unix)]
#[test]
fn state_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::cold();
    home.run(&["run", "--model", "sim"], &question("Ev1", "hello")).ok();
    let mut folders = vec![home.path().join("gateway")];
    while let Some(folder) = folders.pop() {
        assert_eq!(folder.metadata().expect("the folder").permissions().mode() & 0o777, 0o700, "{}", folder.display());
        for entry in std::fs::read_dir(&folder).expect("the folder") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let mode = path.metadata().expect("the file").permissions().mode() & 0o777;
                assert_eq!(mode, 0o600, "{}", path.display());
            }
        }
    }
}

#[test]
fn a_second_run_on_one_home_is_refused() {
    let home = Home::new();
    let mut first = crate::support::Running::start(home.command(&["run", "--model", "sim"]));
    assert!(first.say(&question("Ev1", "hello")));
    first.next_of("turn");
    let second = home.run(&["run", "--model", "sim"], "");
    assert_eq!(second.status.code(), Some(1));
    assert!(second.stderr.contains(&first.pid().to_string()), "{}", second.stderr);
    assert!(second.stderr.contains("hint: "), "{}", second.stderr);
    assert!(first.end().0.success());
}

#[test]
fn a_blocked_user_is_ignored_and_others_are_served() {
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"model":"sim","blocklist":["U9"]}"#);
    let input = [
        json!({"user": "U9", "channel": "D9", "text": "hello", "event_id": "Ev1"}).to_string(),
        question("Ev2", "hello"),
    ]
    .join("\n");
    let lines = home.run(&["run"], &input).ok().lines();
    let answered: Vec<&serde_json::Value> =
        of_type(&lines, "reply").into_iter().map(|reply| &reply["event_id"]).collect();
    assert_eq!(answered, ["Ev2"]);
}

/// Regression: all of them had the same ids, so a program that reads them took each for the first, printed again.
#[test]
fn notices_to_admins_could_not_be_told_from_each_other() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    home.write("gateway.json", r#"{"version":1,"admins":["U0ADMIN","U0OTHER"]}"#);
    anthropic.when("hello", Behaviour::error(401, "authentication_error", "invalid x-api-key"));
    anthropic.when("and now?", Behaviour::answer("here I am"));
    let questions = [("Ev1", "hello"), ("Ev2", "hello"), ("Ev3", "and now?")].map(|(id, text)| question(id, text));
    let lines = finish(home.asking(&anthropic, &[]), &questions.join("\n")).ok().lines();
    let of_admins = |notice: &&serde_json::Value| notice["channel"] == "U0ADMIN" || notice["channel"] == "U0OTHER";
    let notices: Vec<&serde_json::Value> = of_type(&lines, "notice").into_iter().filter(of_admins).collect();
    assert_eq!(notices.len(), 4, "that the model refuses, and that it answers again: {notices:#?}");
    let different = |key: &str| {
        let ids = notices.iter().filter_map(|notice| notice[key].as_str()).filter(|id| id.starts_with(':'));
        ids.collect::<HashSet<&str>>().len()
    };
    assert_eq!((different("event_id"), different("ts")), (4, 4), "{notices:#?}");
}
