//! `sessions`: what operators see of conversations, and do to them.

use serde_json::json;

use crate::support::{Home, component, question};

const KEY: &str = "console:dm:U1";

/// A home in which turns were dropped.
fn pruned() -> Home {
    let home = Home::new();
    let questions: Vec<String> = (0..14).map(|n| question(&format!("Ev{n}"), &format!("Number {n}"))).collect();
    let mut command = home.command(&["run", "--policy", &component("strict"), "--model", "sim"]);
    command.env("PMK_MAX_SESSION_TOKENS", "1");
    crate::support::finish(command, &questions.join("\n")).ok();
    home
}

#[test]
fn the_marker_of_dropped_turns_is_shown() {
    let home = pruned();
    let shown = home.run(&["sessions", "show", KEY], "").ok().stdout;
    assert!(shown.starts_with("- marker ("), "{shown}");
    assert!(shown.contains("  (此處省略 3 輪較舊的對話以節省 context)\n"), "{shown}");
    let document = home.run(&["--json", "sessions", "show", KEY], "").ok().json();
    assert_eq!(document["marker"], json!({"turns": 3, "text": "(此處省略 3 輪較舊的對話以節省 context)"}));
    let full = home.run(&["sessions", "show", KEY, "--full"], "").ok().stdout;
    assert!(full.contains("Number 0\n") && !full.contains("此處省略"), "{full}");
}

#[test]
fn an_empty_window_says_so() {
    let home = pruned();
    let reset = home.run(&["sessions", "reset", KEY], "").ok();
    assert!(reset.stderr.contains("starts over; its 22 messages stay in the archive"), "{}", reset.stderr);
    let again = home.run(&["sessions", "reset", KEY], "").ok();
    assert_eq!(again.stderr, format!("`{KEY}` was already empty\n"));
    let shown = home.run(&["sessions", "show", KEY], "").ok();
    assert_eq!(shown.stdout, "");
    assert!(
        shown.stderr.contains("would see nothing of")
            && shown.stderr.contains("\n  hint: show the archive with `--full`"),
        "{}",
        shown.stderr
    );
}

/// One turn was "1 turns".
#[test]
fn of_one_turn_is_spoken_as_of_one() {
    let home = Home::new();
    home.run(&["run", "--model", "sim"], &question("Ev1", "Number 1")).ok();
    let to = |turn| home.run(&["sessions", "reset", KEY, "--to-turn", turn], "").ok().stderr;
    assert_eq!(to("1"), format!("`{KEY}` has 1 turn, and it stays\n"));
    assert_eq!(to("0"), format!("`{KEY}` is back at turn 0; 1 turn (2 messages) stays in the archive\n"));
    assert_eq!(to("0"), format!("`{KEY}` has no turns\n"));
}

/// Once, `show` numbered nothing, `show --full --turns` counted other turns than `--to-turn`, and a number beyond the last was
/// `has 2 turns, and all stay`.
#[test]
fn the_number_of_a_turn_to_go_back_to_was_nowhere_to_be_seen() {
    let home = pruned();
    let numbers = |more: &[&str]| -> Vec<String> {
        let shown = home.run(&[&["sessions", "show", KEY], more].concat(), "").ok().stdout;
        shown.lines().filter_map(|line| line.strip_prefix("# ").map(str::to_owned)).collect()
    };
    let live = numbers(&[]);
    assert_eq!(live.first().map(String::as_str), Some("live turn 1"));
    assert_eq!(live.last(), Some(&format!("live turn {}", live.len())));
    let all = numbers(&["--full"]);
    assert!(all.len() > live.len() && all[0] == "turn 1, no longer live", "{all:?}");
    assert_eq!(all.last(), Some(&format!("turn {}, live turn {}", all.len(), live.len())));
    let to = |turn: usize| home.run(&["sessions", "reset", KEY, "--to-turn", &turn.to_string()], "");
    let refused = to(live.len() + 1);
    assert_eq!(refused.status.code(), Some(1));
    let expected = format!("error: the live turns of `{KEY}` end at {}, so it cannot go back to turn ", live.len());
    assert!(refused.stderr.starts_with(&expected), "{}", refused.stderr);
    assert_eq!(numbers(&[]), live);
    to(live.len() - 1).ok();
    assert_eq!(numbers(&[]), live[..live.len() - 1]);
    let messages = home.run(&["--json", "sessions", "show", KEY, "--full"], "").ok().json()["messages"].clone();
    let of = |key: &str| messages.as_array().expect("messages").iter().filter(|message| message[key].is_u64()).count();
    assert_eq!((of("turn"), of("live_turn")), (all.len(), live.len() - 1));
}

/// Regression: a shell would have taken what follows the `;` for another command.
#[test]
fn a_key_in_the_command_that_numbers_the_turns_was_not_quoted() {
    let home = Home::new();
    let said = json!({"user": "U;1", "text": "hello", "event_id": "Ev1"}).to_string();
    home.run(&["run", "--model", "sim"], &said).ok();
    let refused = home.run(&["sessions", "reset", "console:dm:U;1", "--to-turn", "2"], "");
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stdout);
    assert!(refused.stderr.contains(" sessions show 'console:dm:U;1'` numbers"), "{}", refused.stderr);
}

/// Once, it became a file called `-`.
#[test]
fn an_export_for_standard_output_went_into_a_file_called_so() {
    let home = Home::new();
    home.run(&["run", "--model", "sim"], &question("Ev1", "hello")).ok();
    for arguments in [&["sessions", "export", KEY, "--to", "-"][..], &["store", "backup", "-"]] {
        let refused = home.run(arguments, "");
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(refused.stderr.contains("this cannot be written to standard output"), "{}", refused.stderr);
    }
}

#[test]
fn a_home_without_a_store_is_an_error_and_stays_as_it_is() {
    let home = Home::cold();
    let nowhere = home.path().join("nowhere").display().to_string();
    let missing = home.run(&["sessions", "list", "--home", &nowhere], "");
    assert_eq!((missing.status.code(), missing.stdout.as_str()), (Some(1), ""));
    assert!(missing.stderr.starts_with("error: home `"), "{}", missing.stderr);
    for arguments in [&["sessions", "list"][..], &["sessions", "show", KEY]] {
        let finished = home.run(arguments, "");
        assert_eq!((finished.status.code(), finished.stdout.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(finished.stderr.starts_with("error: there is no store at `"), "{}", finished.stderr);
        assert!(finished.stderr.contains("\n  hint: "), "{}", finished.stderr);
    }
    assert_eq!(std::fs::read_dir(home.path()).expect("the home").count(), 0);
}

#[test]
fn a_store_that_cannot_be_opened_is_not_called_missing() {
    let home = Home::cold();
    let file = home.write("file", "").display().to_string();
    let in_a_file = home.run(&["sessions", "list", "--home", &file], "").stderr;
    std::fs::create_dir_all(home.path().join("gateway/pmk-host.db")).expect("a folder in the store's place");
    let a_folder = home.run(&["sessions", "list"], "").stderr;
    assert!(in_a_file.contains("is not a folder, so it cannot be a home\n  hint: "), "{in_a_file}");
    assert!(a_folder.starts_with("error: cannot use the store `") && a_folder.contains("\n  hint: "), "{a_folder}");
    assert!(!a_folder.contains("immutable"), "{a_folder}");
}

#[test]
fn what_a_message_says_to_a_terminal_is_not_obeyed() {
    let home = Home::new();
    home.run(&["run", "--model", "sim"], &question("Ev1", "a\u{1b}[2Jb")).ok();
    let shown = home.run(&["sessions", "show", KEY], "").ok().stdout;
    assert!(shown.contains("a\u{fffd}[2Jb") && !shown.contains('\u{1b}'), "{shown:?}");
}
