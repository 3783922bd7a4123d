//! The screens that a newcomer sees, on terminals of 80 and 40 columns, in both languages: no word is torn, no line is longer than
//! the terminal is wide, and none begins with what may not begin one.

use std::net::TcpListener;

use serde_json::json;
use unicode_width::UnicodeWidthStr;

use crate::{
    support::{Home, finish},
    terminal::Terminal,
};

const COLUMNS: [u16; 2] = [80, 40];
/// What is shown while something takes its time, which is up to the machine.
const WAITED_FOR: [&str; 4] = ["checking what", "正在詢問", "compiling `", "正在編譯"];
const LANGUAGES: [&str; 2] = ["en", "zh-TW"];

/// A home of a person who reads this.
fn home(language: &str) -> Home {
    let home = Home::new();
    home.write("gateway.json", json!({"version": 1, "language": language}).to_string());
    home
}

/// Lines that a terminal shows as they are. What has no place to be broken at may be longer.
fn hold(lines: &[String], columns: u16, what: &str) {
    for line in lines {
        let longest = line.split_whitespace().map(UnicodeWidthStr::width).max().unwrap_or(0);
        let is_address = longest > usize::from(columns) / 2 && line.contains(['/', '`']);
        assert!(line.width() <= usize::from(columns) || is_address, "{what} at {columns}: {line}");
        let first = line.trim_start().chars().next();
        assert!(!first.is_some_and(|c| "，。；：！？、」』）".contains(c)), "{what} at {columns}: {line}");
    }
}

/// The words of a text in their order, whatever the time and the machine; those of Chinese as one.
fn words(text: &str) -> Vec<String> {
    let text: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let text = text.replace("000", "0").replace("00", "0");
    if text.contains(|c| ('\u{3400}'..='\u{9fff}').contains(&c)) {
        return vec![text.split_whitespace().collect()];
    }
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn what_commands_print_is_broken_at_words_and_nowhere_else() {
    for language in LANGUAGES {
        let home = home(language);
        home.run(&["run", "--model", "sim"], "").ok();
        for arguments in [
            &["status"][..],
            &["doctor", "--offline"],
            &["plan", "--history", "nowhere.json", "--budget", "8000"],
            &["run", "--policy", "nowhere.wasm"],
            &["slack", "manifest"],
        ] {
            let command = || {
                let mut command = home.command(arguments);
                command.env("TERM", "xterm");
                command
            };
            let piped = finish(command(), "");
            let whole = words(&format!("{}{}", piped.stdout, piped.stderr));
            for columns in COLUMNS {
                let (status, lines) = Terminal::of_columns(columns, command()).until_its_end();
                assert_eq!(status.code(), piped.status.code(), "{arguments:?}");
                let what = format!("{language} {arguments:?}");
                // What is pasted elsewhere is one piece.
                let is_told = |line: &String| {
                    !line.trim_start().starts_with(['"', '{', '}'])
                        && !WAITED_FOR.iter().any(|waits| line.contains(waits))
                };
                let lines: Vec<String> = lines.into_iter().filter(is_told).collect();
                hold(&lines, columns, &what);
                if arguments[0] != "slack" {
                    assert_eq!(words(&lines.join("\n")), whole, "{what} at {columns}");
                }
            }
        }
    }
}

#[test]
fn the_demo_loses_no_fact_on_a_narrow_terminal() {
    for (language, facts) in [
        ("en", ["refused once · recovered (trim)", "16 turns left out", "harbor-4417"]),
        ("zh-TW", ["拒收 1 次 · 已復原（裁切）", "略去 16 輪", "harbor-4417"]),
    ] {
        for columns in COLUMNS {
            for arguments in
                [&["demo", "--seconds", "1", "--language", language][..], &["demo", "--plain", "--language", language]]
            {
                let mut command = Home::cold().command(arguments);
                command.env("TERM", "xterm");
                let (status, lines) = Terminal::of_columns(columns, command).until_its_end();
                assert!(status.success());
                // What is drawn anew goes from line to line as the terminal's own edge has it: only its end is lines.
                let begins = lines.iter().position(|line| line.starts_with(['✗', '✓'])).unwrap_or(0);
                hold(&lines[begins..], columns, &format!("{arguments:?}"));
                let shown = |fact: &&str| lines.iter().any(|line| line.contains(*fact)) || arguments[1] == "--plain";
                assert!(facts.iter().all(shown), "{columns}: {lines:#?}");
            }
        }
    }
}

#[test]
fn the_chat_fits_a_narrow_terminal() {
    for (language, last) in [("en", "limit was used"), ("zh-TW", "用掉模型")] {
        for columns in COLUMNS {
            let home = home(language);
            let mut command = home.command(&["run", "--model", "sim"]);
            command.env("TERM", "xterm");
            let mut terminal = Terminal::of_columns(columns, command);
            terminal.wait_for("›", 1);
            terminal.type_in(b"/help\r");
            terminal.wait_for(last, 1);
            terminal.type_in("再見\r".as_bytes());
            terminal.wait_for("standard", 2);
            hold(&terminal.lines(), columns, language);
            assert!(terminal.end().success());
        }
    }
}

/// Once, a line of the log was written over the prompt, in English, and the prompt was gone.
#[test]
fn a_warning_stands_above_the_prompt_in_the_language_of_the_chat() {
    for (language, warning) in [
        ("en", "warning: gateway.json has changed but cannot be used"),
        ("zh-TW", "警告：gateway.json 有變更，但無法使用"),
    ] {
        let home = home(language);
        let mut command = home.command(&["run", "--model", "sim"]);
        command.env("TERM", "xterm");
        let mut terminal = Terminal::start(command);
        terminal.wait_for("›", 1);
        home.write("gateway.json", "{");
        // The file is looked at when somebody asks.
        terminal.type_in(b"hello\r");
        terminal.wait_for(warning, 1);
        terminal.wait_for("a stand-in for a model", 1);
        assert!(!terminal.screen.contains("WARN"), "{}", terminal.screen);
        // It is to be typed at again.
        terminal.type_in("再見\r".as_bytes());
        terminal.wait_for("standard", 3);
        assert!(terminal.end().success());
    }
}

/// Where nobody answers, it is shown that something is waited for.
#[test]
fn a_doctor_who_waits_says_so() {
    for (language, waits) in [("en", "checking what a gateway needs"), ("zh-TW", "正在檢查閘道需要的一切")] {
        let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", silent.local_addr().expect("an address"));
        let home = home(language);
        let mut command = home.command(&["doctor", "--model", "anthropic-api"]);
        command.env("TERM", "xterm").env("ANTHROPIC_API_KEY", "sk-1").env("ANTHROPIC_BASE_URL", address);
        let mut terminal = Terminal::start(command);
        terminal.wait_for(waits, 1);
    }
}
