//! The chat as a person at a terminal meets it, on a real pseudo-terminal.

use std::{
    fs::File,
    io::{Read, Write},
    process::{Child, Command, ExitStatus},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::Instant,
};

use nix::pty::{OpenptyResult, openpty};
use pmk_stand_ins::anthropic::{Anthropic, Behaviour};
use serde_json::json;

use crate::support::{Home, PATIENCE, exit};

/// Ctrl-D.
const END: &[u8] = b"\x04";

/// A program on a terminal of its own.
struct Terminal {
    child: Child,
    keyboard: File,
    output: Receiver<Vec<u8>>,
    screen: String,
}

impl Terminal {
    fn start(mut command: Command) -> Terminal {
        let OpenptyResult { master, slave } = openpty(None, None).expect("a pseudo-terminal");
        let copy = || slave.try_clone().expect("a copy");
        let child = command.stdin(copy()).stdout(copy()).stderr(copy()).spawn().expect("the program starts");
        // Only the program has the terminal now, so that its end is seen.
        drop((command, slave));
        let mut display = File::from(master.try_clone().expect("a copy"));
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(length @ 1..) = display.read(&mut chunk) {
                if sender.send(chunk[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal { child, keyboard: File::from(master), output, screen: String::new() }
    }

    fn type_in(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).expect("the terminal takes keys");
    }

    /// Waits until the screen has shown this text so many times.
    fn wait_for(&mut self, text: &str, times: usize) {
        let start = Instant::now();
        while self.screen.matches(text).count() < times {
            let left = PATIENCE.saturating_sub(start.elapsed());
            match self.output.recv_timeout(left) {
                Ok(chunk) => self.screen.push_str(&String::from_utf8_lossy(&chunk)),
                Err(RecvTimeoutError::Timeout) => panic!("no `{text}` {times} times in: {}", self.screen),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended without `{text}`: {}", self.screen),
            }
        }
    }

    fn end(mut self) -> ExitStatus {
        self.type_in(END);
        exit(&mut self.child)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

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
