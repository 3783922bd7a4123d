//! The chat as a person at a terminal meets it, on a real pseudo-terminal.

use pmk_stand_ins::anthropic::{Anthropic, Behaviour};
use serde_json::json;

use crate::{support::Home, terminal::Terminal};

#[test]
fn every_pasted_line_is_answered() {
    let home = Home::new();
    let mut terminal = Terminal::start(home.command(&["run", "--model", "sim"]));
    // Typed ahead, before the first prompt, then pasted in one go at a prompt.
    terminal.type_in(b"one\ntwo\nthree\n");
    terminal.wait_for("standard：", 3);
    terminal.type_in(b"four\rfive\rsix\r");
    terminal.wait_for("standard：", 6);
    assert!(terminal.end().success());
    let shown = home.run(&["sessions", "show", "console:dm:U1"], "").ok().stdout;
    let asked: Vec<&str> = shown.lines().map(str::trim).filter(|line| line.chars().all(char::is_alphabetic)).collect();
    assert_eq!(asked, ["one", "two", "three", "four", "five", "six"], "{shown}");
}

#[test]
fn help_is_no_question() {
    let home = Home::new();
    let mut terminal = Terminal::start(home.command(&["run", "--model", "sim"]));
    terminal.type_in(b"/help\r");
    terminal.wait_for("/quit      離開", 1);
    assert!(terminal.end().success());
    let sessions = home.run(&["--json", "sessions", "list"], "").ok().json();
    assert_eq!(sessions, serde_json::json!([]));
}

#[test]
fn a_question_that_waits_for_a_word_gets_it() {
    let home = Home::new();
    let config = json!({"version": 1, "language": "en", "tools": "fenced", "escalation": {"default": ["U0IT"]}});
    home.write("gateway.json", config.to_string());
    let anthropic = Anthropic::start_blocking();
    anthropic.when("hello", Behaviour::answer("```escalate\nquestion: May the auditors see the payroll?\n```"));
    let mut terminal = Terminal::start(home.asking(&anthropic, &[]));
    terminal.type_in(b"/yes\r");
    terminal.wait_for("Nothing is waiting for your decision", 1);
    terminal.type_in(b"hello\r");
    terminal.wait_for("may I ask the people who know this", 1);
    terminal.type_in(b"/yes\r");
    terminal.wait_for("could you help with a question", 1);
    assert!(terminal.end().success());
    assert_eq!(home.events("escalate.triggered").len(), 1);
}

#[test]
fn a_terminal_speaks_json_lines_when_told_to() {
    let home = Home::new();
    let mut terminal = Terminal::start(home.command(&["run", "--model", "sim", "--json"]));
    terminal.type_in(b"{\"text\":\"hello\",\"event_id\":\"Ev1\"}\n");
    terminal.wait_for("\"type\":\"turn\"", 1);
    assert!(terminal.screen.contains("\"type\":\"accepted\""), "{}", terminal.screen);
    assert!(!terminal.screen.contains('›'), "{}", terminal.screen);
    assert!(terminal.end().success());
}

/// A home of a person who reads English.
fn english() -> Home {
    let home = Home::new();
    home.write("gateway.json", json!({"version": 1, "language": "en"}).to_string());
    home
}

#[test]
fn four_lines_say_what_there_is_and_nothing_of_it_is_a_question() {
    let home = english();
    let mut terminal = Terminal::start(home.command(&["run", "--model", "sim", "--policy", "strict"]));
    terminal.wait_for("/quit leaves", 1);
    let opening: Vec<&str> = terminal.screen.lines().take(4).map(str::trim_end).collect();
    insta::assert_snapshot!(opening.join("\n"));
    terminal.type_in(b"/hlep\r");
    terminal.wait_for("Unknown command /hlep", 1);
    terminal.type_in(b"/policy\r");
    terminal.wait_for("• strict 1.0.0", 1);
    terminal.type_in(b"/context\r");
    terminal.wait_for("In view: 0 messages", 1);
    terminal.type_in(b"hello\r");
    terminal.wait_for("strict: ", 1);
    terminal.type_in(b"/context\r");
    terminal.wait_for("In view: 2 messages", 1);
    terminal.type_in(b"exit\r");
    assert!(terminal.wait().success());
    let shown = home.run(&["sessions", "show", "console:dm:U1"], "").ok().stdout;
    assert!(shown.contains("hello") && !shown.contains("hlep") && !shown.contains("/context"), "{shown}");
}

/// Regression: all of them were put to the model as questions.
#[test]
fn a_command_with_a_word_too_many_is_no_question() {
    let home = english();
    let mut terminal = Terminal::start(home.command(&["run", "--model", "sim"]));
    terminal.wait_for("›", 1);
    let commands = ["/context 3", "/policy surplus", "/yes please", "/quit now"];
    for (times, command) in (1..).zip(commands) {
        terminal.type_in(format!("{command}\r").as_bytes());
        terminal.wait_for("Unexpected argument", times);
    }
    terminal.type_in(b"/\r");
    terminal.wait_for("Unknown command /;", 1);
    terminal.type_in(b"/tmp is full\r");
    terminal.wait_for("standard: ", 1);
    terminal.type_in(b"exit\r");
    assert!(terminal.wait().success());
    let shown = home.run(&["sessions", "show", "console:dm:U1"], "").ok().stdout;
    assert!(shown.contains("/tmp is full"), "{shown}");
    assert!(!["/context", "surplus", "/yes", "/quit"].iter().any(|word| shown.contains(word)), "{shown}");
}

#[test]
fn ctrl_c_empties_a_line_and_twice_leaves() {
    let home = english();
    let mut terminal = Terminal::start(home.command(&["run", "--model", "sim"]));
    terminal.wait_for("›", 1);
    terminal.type_in(b"never sent\x03");
    terminal.wait_for("Press Ctrl-C again to leave", 1);
    terminal.type_in(b"hello\r");
    terminal.wait_for("standard: ", 1);
    assert!(terminal.press_until_it_ends(b"\x03").success());
    let shown = home.run(&["sessions", "show", "console:dm:U1"], "").ok().stdout;
    assert!(shown.contains("hello") && !shown.contains("never"), "{shown}");
}

#[test]
fn a_chat_whose_gateway_was_stopped_by_somebody_else_ended_without_a_word() {
    let home = english();
    let mut terminal = Terminal::start(home.command(&["run", "--model", "sim"]));
    terminal.wait_for("›", 1);
    terminal.type_in(b"hello\r");
    terminal.wait_for("standard: ", 1);
    terminal.type_in(b"half a line");
    terminal.wait_for("half a line", 1);
    home.run(&["stop"], "").ok();
    terminal.wait_for("The gateway is being stopped: what you are typing will not be sent", 1);
    assert!(terminal.wait().success());
    terminal.read_until_its_end();
    // Once, the shell got a terminal without echo.
    assert!(terminal.shows_typing());
    assert_eq!(terminal.lines().last().map(String::as_str), Some(""), "{:?}", terminal.screen);
}

/// Regression: the keyboard was prompted again, and the program ended with the terminal set for editing.
#[test]
fn leaving_a_chat_left_the_terminal_without_echo() {
    for leaves in ["/quit\r", "exit\r"] {
        let home = english();
        let mut terminal = Terminal::start(home.command(&["run", "--model", "sim"]));
        terminal.wait_for("›", 1);
        terminal.type_in(leaves.as_bytes());
        assert!(terminal.wait().success());
        terminal.read_until_its_end();
        assert!(terminal.shows_typing());
        assert!(terminal.screen.ends_with('\n'), "{:?}", terminal.screen);
    }
}

#[test]
fn what_a_chat_is_told_of_had_the_words_of_the_log_behind_its_hint() {
    let home = english();
    let mut terminal = Terminal::start(home.command(&["run", "--model", "sim"]));
    terminal.wait_for("›", 1);
    home.run(&["policy", "use", "nosuch"], "");
    terminal.wait_for("by=\"command\"", 1);
    let told = terminal.screen.split("by=\"command\"").nth(1).unwrap_or_default().to_owned();
    assert!(told.contains("hint: "), "{}", terminal.screen);
    assert!(terminal.press_until_it_ends(b"\x03").success());
}

#[test]
fn a_slow_model_is_told_of_and_its_markdown_is_shown_as_what_it_means() {
    let home = english();
    let anthropic = Anthropic::start_blocking();
    let text = "**Done** :white_check_mark:\n\n- one &#27;[2J\n- `two`";
    let (answer, gate) = Behaviour::gated(text);
    anthropic.when("hello", answer);
    let mut terminal = Terminal::start(home.asking(&anthropic, &[]));
    terminal.type_in(b"hello\r");
    terminal.wait_for("⏳ the model has not answered yet (3 s)", 1);
    gate.add_permits(4);
    terminal.wait_for("✅", 1);
    terminal.wait_for("• one \u{fffd}[2J", 1);
    terminal.wait_for("standard: ", 1);
    assert!(!terminal.screen.contains("**"), "{}", terminal.screen);
    assert!(terminal.end().success());
}

/// Whatever the model calls it, `A` is on the screen before `C` is made, and nothing is there twice.
#[test]
fn an_answer_is_shown_while_it_is_made_and_once() {
    let home = english();
    let anthropic = Anthropic::start_blocking();
    let text = "First of all.\n\nThen **this** :gear:\n\n```mra\nnot an answer\n\nof any kind\n```\n\nAt last.";
    let (answer, gate) = Behaviour::gated(text);
    anthropic.when("hello", answer);
    let mut terminal = Terminal::start(home.asking(&anthropic, &[]));
    terminal.type_in(b"hello\r");
    gate.add_permits(2);
    terminal.wait_for("First of all.", 1);
    assert!(!terminal.screen.contains("At last."), "{}", terminal.screen);
    gate.add_permits(2);
    terminal.wait_for("At last.", 1);
    terminal.wait_for("standard: ", 1);
    for once in ["First of all.", "Then", "At last."] {
        assert_eq!(terminal.screen.matches(once).count(), 1, "{once}: {}", terminal.screen);
    }
    assert!(terminal.end().success());
}
