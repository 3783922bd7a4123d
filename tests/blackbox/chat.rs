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
    terminal.wait_for("standard: ", 3);
    terminal.type_in(b"four\rfive\rsix\r");
    terminal.wait_for("standard: ", 6);
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
    terminal.wait_for("Ctrl-D  leave", 1);
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
    terminal.wait_for("nothing waits for your word", 1);
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
