//! Conversations that are erased: by an operator, and by their age.

use serde_json::json;

use crate::support::{Home, Running, finish, of_type, question, replies};

const KEY: &str = "console:dm:U1";
const RUN: [&str; 5] = ["run", "--model", "sim", "--front", "console"];

fn store(home: &Home) -> rusqlite::Connection {
    rusqlite::Connection::open(home.path().join("gateway/pmk-host.db")).expect("the store")
}

/// A question of this person.
fn from(user: &str, event_id: &str, text: &str) -> String {
    json!({"user": user, "event_id": event_id, "text": text}).to_string()
}

/// A home with two conversations.
fn two() -> Home {
    let home = Home::new();
    let said = [from("U1", "Ev1", "The launch is on Friday."), from("U2", "Ev2", "The budget is 40.")].join("\n");
    home.run(&RUN, &said).ok();
    home
}

fn listed(home: &Home) -> Vec<String> {
    let sessions = home.run(&["--json", "sessions", "list"], "").ok().json();
    let keys =
        sessions.as_array().expect("a list").iter().map(|session| session["key"].as_str().expect("a key").into());
    keys.collect()
}

#[test]
fn an_erased_conversation_is_gone_while_the_gateway_runs_and_starts_over() {
    let home = two();
    let mut gateway = Running::start(home.command(&RUN));
    assert!(gateway.say(&question("Ev3", "When is the launch?")));
    let answer = gateway.next_of("reply");
    assert!(answer["text"].as_str().is_some_and(|text| text.contains("Friday")), "{answer}");

    let erased = home.run(&["sessions", "erase", KEY], "").ok();
    assert_eq!(erased.stderr, format!("`{KEY}` is erased: 4 messages\n"));
    assert_eq!(listed(&home), ["console:dm:U2"]);
    let shown = home.run(&["sessions", "show", KEY, "--full"], "").ok();
    assert!(!shown.stdout.contains("Friday"), "{}", shown.stdout);

    assert!(gateway.say(&question("Ev4", "When is the launch?")));
    let answer = gateway.next_of("reply");
    assert!(!answer["text"].as_str().is_some_and(|text| text.contains("Friday")), "{answer}");
    assert!(gateway.end().0.success());
    assert_eq!(listed(&home), [KEY, "console:dm:U2"]);
    let noted = home.run(&["admin", "log"], "").ok().stdout;
    assert!(noted.contains("sessions.erase") && noted.contains(KEY), "{noted}");
}

/// Regression: whoever had given `--full` was told to give it.
#[test]
fn of_an_erased_conversation_nothing_is_stored_and_no_option_shows_more() {
    let home = two();
    home.run(&["sessions", "reset", KEY], "").ok();
    let emptied = home.run(&["sessions", "show", KEY], "").ok().stderr;
    assert!(emptied.contains("would see nothing of") && emptied.contains("hint: show the archive"), "{emptied}");
    home.run(&["sessions", "erase", KEY], "").ok();
    for arguments in [&["sessions", "show", KEY][..], &["sessions", "show", KEY, "--full"]] {
        let shown = home.run(arguments, "").ok();
        assert_eq!((shown.stdout.as_str(), shown.stderr), ("", format!("nothing of `{KEY}` is stored\n")));
    }
}

#[test]
fn what_would_be_erased_is_shown_and_a_key_that_does_not_exist_erases_nothing() {
    let home = two();
    let shown = home.run(&["sessions", "erase", KEY, "console:dm:U2", "--dry-run"], "").ok().stderr;
    assert_eq!(shown, format!("`{KEY}` would be erased\n`console:dm:U2` would be erased\n"));
    let failed = home.run(&["sessions", "erase", KEY, "console:dm:U9"], "");
    assert_eq!(failed.status.code(), Some(1));
    assert!(failed.stderr.contains("there is no conversation `console:dm:U9`"), "{}", failed.stderr);
    assert_eq!(listed(&home).len(), 2);
    let nothing = home.run(&["sessions", "erase", "--idle-days", "1"], "").ok().stderr;
    assert_eq!(nothing, "there is nothing to erase\n");
    let document = home.run(&["--json", "sessions", "erase", KEY], "").ok().json();
    assert_eq!(document, json!({"erased": [{"key": KEY, "messages": 2, "parked": 0}], "kept": [], "threads": 0}));
}

/// Once, only the key was asked for, as if there were no other way.
#[test]
fn who_named_no_conversation_to_erase_did_not_hear_of_the_other_way() {
    let home = Home::new();
    let refused = home.run(&["sessions", "erase"], "");
    assert_eq!(refused.status.code(), Some(2));
    let (error, usage) = refused.stderr.split_once("Usage: ").expect("the usage");
    assert!(
        error.contains("KEY|--idle-days <N>|--from <USER>") && usage.contains("KEY|--idle-days <N>|--from <USER>"),
        "{}",
        refused.stderr
    );
    let both = home.run(&["sessions", "erase", KEY, "--idle-days", "1"], "");
    assert_eq!(both.status.code(), Some(2), "{}", both.stderr);
}

#[test]
fn a_conversation_with_a_message_that_is_not_answered_yet_is_not_erased() {
    let home = two();
    store(&home).execute("UPDATE inbox SET message = '{}' WHERE event_id = 'Ev1'", []).expect("an open message");
    let shown = home.run(&["--json", "sessions", "erase", KEY, "console:dm:U2", "--dry-run"], "").ok().json();
    let why = format!("`{KEY}` has messages that are not answered yet");
    assert_eq!(
        shown,
        json!({"would_erase": ["console:dm:U2"], "would_erase_messages_in": [], "would_keep": [{"key": KEY, "why": why}], "threads": 0})
    );
    let failed = home.run(&["sessions", "erase", KEY, "console:dm:U2"], "");
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(
        failed.stderr,
        format!(
            "`console:dm:U2` is erased: 2 messages\n`{KEY}` has messages that are not answered yet\n  hint: try again \
             once they are answered; `pmk-host status` shows what is in their way\nerror: conversations that were \
             not erased: 1\n"
        )
    );
    assert_eq!(listed(&home), [KEY]);
}

#[test]
fn a_gateway_erases_what_is_older_than_conversations_are_kept_and_a_dry_run_does_not() {
    let home = two();
    let day_ms = 24 * 60 * 60 * 1_000_i64;
    let age = format!("UPDATE session SET active_at = active_at - 31 * {day_ms} WHERE key = '{KEY}'");
    store(&home).execute(&age, []).expect("an old conversation");
    home.write("gateway.json", r#"{"version": 1, "sessions": {"keepDays": 30}}"#);

    let mut dry = home.command(&RUN);
    dry.env("PMK_DRY_RUN", "1");
    let lines = finish(dry, &from("U2", "Ev3", "What is the budget?")).ok().lines();
    assert_eq!(replies(&lines).len(), 1);
    assert_eq!(listed(&home).len(), 2);

    let gateway = Running::start(home.command(&RUN));
    let noted = home.await_events("sessions.forgotten", 1);
    assert_eq!(
        (&noted[0]["sessions"], &noted[0]["messages"], &noted[0]["keepDays"]),
        (&json!(1), &json!(2), &json!(30))
    );
    let (status, lines) = gateway.end();
    assert!(status.success() && of_type(&lines, "reply").is_empty());
    assert_eq!(listed(&home), ["console:dm:U2"]);
    let left =
        store(&home).query_row("SELECT count(*) FROM message WHERE blocks LIKE '%Friday%'", [], |row| row.get(0));
    assert_eq!(left, Ok(0));
}

#[test]
fn what_one_person_has_written_is_erased_while_the_gateway_runs() {
    const SHARED: &str = "console:channel:C1";
    let home = Home::new();
    let in_channel = |user: &str, event_id: &str, text: &str| {
        json!({"user": user, "channel": "C1", "event_id": event_id, "text": text}).to_string()
    };
    let said = [
        in_channel("U1", "Ev1", "The launch is on Friday."),
        in_channel("U2", "Ev2", "The budget is 40."),
        from("U1", "Ev3", "I am ill on Friday."),
    ];
    home.run(&RUN, &said.join("\n")).ok();
    let shown = home.run(&["sessions", "erase", "--from", "U1", "--dry-run"], "").ok().stderr;
    assert_eq!(shown, format!("in `{SHARED}`, the messages of `U1` would be erased\n`{KEY}` would be erased\n"));
    let mut gateway = Running::start(home.command(&RUN));
    assert!(gateway.say(&in_channel("U2", "Ev4", "Is it?")));
    gateway.next_of("reply");
    let erased = home.run(&["--json", "sessions", "erase", "--from", "U1"], "").ok().json();
    let of_shared = json!({"key": SHARED, "partly": true, "messages": 1, "parked": 0, "summaries": 0, "imported": 0});
    let of_own = json!({"key": KEY, "messages": 2, "parked": 0});
    assert_eq!(erased, json!({"erased": [of_shared, of_own], "kept": [], "threads": 0}));
    assert_eq!(listed(&home), [SHARED]);
    let shown = home.run(&["sessions", "show", SHARED, "--full"], "").ok().stdout;
    assert!(shown.contains("(this message was deleted)") && shown.contains("The budget is 40."), "{shown}");
    assert!(!shown.contains("The launch is on Friday."), "{shown}");

    assert!(gateway.say(&in_channel("U2", "Ev5", "When is the launch?")));
    let answer = gateway.next_of("reply");
    assert!(answer["text"].as_str().is_some_and(|text| !text.contains("The launch is on")), "{answer}");
    assert!(gateway.end().0.success());
    let again = home.run(&["sessions", "erase", "--from", "U1"], "").ok().stderr;
    assert_eq!(again, "there is nothing to erase\n");
    let noted = home.run(&["admin", "log"], "").ok().stdout;
    assert!(noted.contains("--from U1"), "{noted}");
    let unknown = home.run(&["sessions", "erase", "--from", "lin"], "");
    assert_eq!(unknown.status.code(), Some(1));
    assert!(unknown.stderr.contains("nothing is stored that `lin` has written"), "{}", unknown.stderr);
    for both in [&["--from", "U1", "--idle-days", "3"][..], &["--from", ""], &["--from", "U1", KEY]] {
        assert_eq!(home.run(&[&["sessions", "erase"], both].concat(), "").status.code(), Some(2), "{both:?}");
    }
}

/// Regression: a shell would have taken what follows the `;` for another command.
#[test]
fn a_key_in_the_command_that_erases_all_of_it_was_not_quoted() {
    let home = Home::new();
    let in_channel = |user: &str, event_id: &str, text: &str| {
        json!({"user": user, "channel": "C;1", "event_id": event_id, "text": text}).to_string()
    };
    let said = [in_channel("U1", "Ev1", "The launch is on Friday."), in_channel("U2", "Ev2", "The budget is 40.")];
    home.run(&RUN, &said.join("\n")).ok();
    let imported = "INSERT INTO message (session_id, role, origin, blocks, tokens, chars, created_at) \
                    SELECT session_id, role, origin, blocks, tokens, chars, created_at FROM message \
                    WHERE origin = 'user' AND blocks LIKE '%budget%'";
    assert_eq!(store(&home).execute(imported, []), Ok(1));
    let erased = home.run(&["sessions", "erase", "--from", "U1"], "").ok().stderr;
    assert!(erased.contains("`sessions erase 'console:channel:C;1'` erases the whole"), "{erased}");
}
