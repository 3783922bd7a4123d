//! `sessions export|import|reset --to-turn|show --turns`: conversations on their way from pmk, to pmk, and from
//! one home to another.

use std::{fs, io::Write, path::Path};

use pmk_core::{Message, testing};
use serde_json::{Value, json};

use crate::{
    support::{Finished, Home, Running, component, finish, of_type, question},
    terminal::Terminal,
};

const KEY: &str = "console:dm:U1";
const SEED: &str = "我先把 workspace 的 PKB context 給你（請當作 ground truth）";

/// A place for files that are no home.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Desk {
        Desk(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, content: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("a file");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).expect("a file")
    }
}

/// What a terminal would show, without what differs from run to run.
fn shown(arguments: &[&str], finished: &Finished, home: &Home, desk: &Desk) -> String {
    let stderr: String = finished.stderr.lines().map(|line| format!("2> {line}\n")).collect();
    let code = finished.status.code().filter(|code| *code != 0).map(|code| format!("[exit {code}]\n"));
    let text = format!("$ pmk-host {}\n{}{stderr}{}\n", arguments.join(" "), finished.stdout, code.unwrap_or_default());
    text.replace(&desk.path(""), "[desk]/").replace(&home.path().display().to_string(), "[home]")
}

fn session(messages: &[(&str, &str)]) -> Value {
    let messages: Vec<Value> =
        messages.iter().map(|(role, content)| json!({"role": role, "content": content})).collect();
    json!({"userId": "U1", "displayName": "?", "messages": messages, "lastActiveAt": 1_777_342_416_133_u64,
        "approxTokens": 9, "turns": 7})
}

/// A tree as pmk leaves it, of several versions, with what goes wrong in years.
fn pmk_tree(desk: &Desk) {
    let sound = session(&[
        ("user", SEED),
        ("assistant", "了解，已載入 workspace PKB context。請繼續。"),
        ("user", "(此處省略 12 輪較舊的對話以節省 context)"),
        ("user", "預算怎麼查？"),
        ("assistant", "我查一下"),
        ("user", "這是 `mra ask erp` 的結果：\n在財務報表"),
        ("assistant", "在財務報表"),
    ]);
    desk.write("slack/users/U1/session.json", &sound.to_string());
    let broken = json!({"userId": "U1", "lastActiveAt": 1_777_342_416_133_u64, "messages": [
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "one"},
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": [{"type": "text", "text": "let me see"},
            {"type": "tool_use", "id": "a", "name": "ls", "input": {}}]},
        {"role": "user", "content": ""},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b", "content": "late"}]},
        {"role": "user", "content": "（此處省略 3 輪）"},
        {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "three"}]},
    ]});
    desk.write("slack/users/U1/threads/1777342320.134509/session.json", &broken.to_string());
    desk.write("slack/users/U2/session.json", "{\"userId\":\"U2\",\"messages\":[{\"role\":\"user\",\"con");
    desk.write("slack/users/U:3/session.json", "{}");
    desk.write("slack/channels/C1/main.chat-session.json", &session(&[("user", "q"), ("assistant", "a")]).to_string());
    desk.write("slack/channels/C2/chat-session.json", &session(&[("user", "old"), ("assistant", "a")]).to_string());
    desk.write(
        "slack/channels/C2/messages.jsonl",
        "{\"ts\":\"2026-05-07T07:39:55.339Z\",\"role\":\"user\",\"userId\":\"U1\",\"content\":\"q\"}\nnot JSON\n\
         {\"ts\":\"2026-05-07T07:39:59.339Z\",\"role\":\"assistant\",\"content\":\"a\"}\n{\"ts\":\"2026-05-07T0",
    );
    desk.write("slack/channels/C2/meta.json", "{}");
}

#[test]
fn a_pmk_moves_in() {
    let (home, desk) = (Home::cold(), Desk::new());
    pmk_tree(&desk);
    let tree = desk.path("slack");
    let mut all = String::new();
    for arguments in [
        &["sessions", "import", &tree][..],
        &["sessions", "list"],
        &["sessions", "show", "slack:dm:U1"],
        &["sessions", "show", "slack:dm:U1:1777342320.134509"],
        &["sessions", "show", "slack:channel:C2", "--json"],
        &["sessions", "import", &tree],
        &["sessions", "import", &format!("{tree}/users/U1/session.json")],
        &["--json", "sessions", "import", &format!("{tree}/users/U1/session.json"), "--replace"],
        &["sessions", "list"],
    ] {
        all.push_str(&shown(arguments, &home.run(arguments, ""), &home, &desk));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn what_is_moved_in_is_talked_on_about() {
    let (home, desk) = (Home::new(), Desk::new());
    let history = session(&[
        ("user", "(此處省略 12 輪較舊的對話以節省 context)"),
        ("user", "The launch is on Friday."),
        ("assistant", "Noted."),
    ]);
    desk.write("session.json", &history.to_string());
    home.run(&["sessions", "import", &desk.path("session.json"), "--key", KEY], "").ok();
    let lines = home.run(&["run", "--model", "sim"], &question("Ev1", "When is the launch?")).ok().lines();
    let reply = of_type(&lines, "reply")[0]["text"].as_str().expect("a text").to_owned();
    assert!(reply.contains("Friday"), "{reply}");
    let document = home.run(&["sessions", "show", KEY, "--json"], "").ok().json();
    assert_eq!(document["marker"]["turns"], 12);
}

/// An empty or unreadable file counted as its conversation: it hid the older one, and emptied the window.
#[test]
fn a_file_that_has_lost_its_messages_is_not_imported_in_place_of_anything() {
    let (home, desk) = (Home::cold(), Desk::new());
    let (some, none) = (session(&[("user", "q"), ("assistant", "a")]).to_string(), session(&[]).to_string());
    desk.write("slack/channels/C1/messages.jsonl", "");
    desk.write("slack/channels/C1/chat-session.json", &some);
    desk.write("slack/users/U2/session.json", &some);
    desk.write("slack/users/U3/session.json", &none);
    let tree = desk.path("slack");
    let imported = home.run(&["--json", "sessions", "import", &tree], "");
    assert_eq!(imported.status.code(), Some(1), "{}", imported.stderr);
    assert!(imported.stderr.contains("messages.jsonl` contains no readable message"), "{}", imported.stderr);
    let document = imported.json();
    assert_eq!((&document["imported"], &document["failed"]), (&json!(2), &json!(1)), "{document}");
    assert_eq!(conversations(&home), 2, "of who has said nothing, nothing is there");
    let before = everything(&home);
    desk.write("slack/users/U2/session.json", &none);
    for lost in ["", "\0\0\0\0\n"] {
        desk.write("slack/channels/C1/messages.jsonl", lost);
        let refused = home.run(&["sessions", "import", &tree, "--replace"], "");
        assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
        assert!(refused.stderr.contains("messages.jsonl` contains no readable message"), "{}", refused.stderr);
        assert_eq!(everything(&home), before);
    }
}

/// The times of its messages are made up from its end: all of them looked new, and the turns counted double.
#[test]
fn a_session_that_went_on_in_pmk_is_there_once_after_a_second_import() {
    let (home, desk) = (Home::cold(), Desk::new());
    let mut history = session(&[("user", "q1"), ("assistant", "a1"), ("user", "q2"), ("assistant", "a2")]);
    desk.write("session.json", &history.to_string());
    home.run(&["sessions", "import", &desk.path("session.json")], "").ok();
    let more = [json!({"role": "user", "content": "q3"}), json!({"role": "assistant", "content": "a3"})];
    history["messages"].as_array_mut().expect("a list").extend(more);
    history["lastActiveAt"] = json!(1_777_342_416_133_u64 + 86_400_000);
    history["turns"] = json!(8);
    desk.write("session.json", &history.to_string());
    home.run(&["sessions", "import", &desk.path("session.json"), "--replace"], "").ok();
    let list = home.run(&["sessions", "list", "--json"], "").ok().json();
    let counts = ["turns", "live_messages", "archived_messages"].map(|count| list[0][count].as_u64());
    assert_eq!(counts, [Some(8), Some(6), Some(0)], "{list}");
}

/// pmk went on from the file that it had, and an import of ours skipped the one that was written as older.
#[test]
fn an_export_to_pmk_is_not_written_beside_a_file_that_pmk_reads_instead() {
    let (home, desk) = (Home::cold(), Desk::new());
    desk.write("slack/channels/C1/chat-session.json", &session(&[("user", "q"), ("assistant", "a")]).to_string());
    home.run(&["sessions", "import", &desk.path("slack")], "").ok();
    desk.write("tree/channels/C1/messages.jsonl", "{\"role\":\"user\",\"content\":\"q\"}\n");
    let tree = desk.path("tree");
    let refused = home.run(&["sessions", "export", "slack:channel:C1", "--format", "pmk", "--to", &tree], "");
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    let named = format!("error: `{tree}/channels/C1/messages.jsonl` already exists\n  hint: ");
    assert!(refused.stderr.starts_with(&named), "{}", refused.stderr);
    assert_eq!(fs::read_dir(desk.path("tree/channels/C1")).expect("a folder").count(), 1);
}

/// A home with turns that were dropped, reset and kept, and a message that stands shortened.
fn lived_in() -> Home {
    let home = Home::new();
    let questions: Vec<String> = (0..14).map(|n| question(&format!("Ev{n}"), &format!("Number {n}"))).collect();
    let mut command = home.command(&["run", "--policy", &component("strict"), "--model", "sim"]);
    command.env("PMK_MAX_SESSION_TOKENS", "1");
    finish(command, &questions.join("\n")).ok();
    let other = json!({"user": "U2", "channel": "C1", "thread_ts": "17.01", "text": "elsewhere", "event_id": "EvC"});
    home.run(&["run", "--model", "sim"], &other.to_string()).ok();
    home.run(&["sessions", "reset", KEY, "--to-turn", "7"], "").ok();
    home
}

/// Everything that the commands show of the conversations of a home.
fn everything(home: &Home) -> Vec<Value> {
    let list = home.run(&["sessions", "list", "--json"], "").ok().json();
    let keys: Vec<String> =
        list.as_array().expect("a list").iter().map(|row| row["key"].as_str().expect("a key").to_owned()).collect();
    let show = |key: &String| {
        let live = home.run(&["sessions", "show", key, "--json"], "").ok().json();
        [live, home.run(&["sessions", "show", key, "--full", "--json"], "").ok().json()]
    };
    let shown = keys.iter().flat_map(show).collect::<Vec<_>>();
    [list].into_iter().chain(shown).collect()
}

#[test]
fn the_full_format_moves_a_home() {
    let (home, desk) = (lived_in(), Desk::new());
    let (file, again) = (desk.path("all.jsonl"), desk.path("again.jsonl"));
    home.run(&["sessions", "export", "--all", "--to", &file], "").ok();
    let fresh = Home::cold();
    fresh.run(&["sessions", "import", &file], "").ok();
    assert_eq!(everything(&fresh), everything(&home));
    fresh.run(&["sessions", "export", "--all", "--to", &again], "").ok();
    assert!(desk.read("again.jsonl") == desk.read("all.jsonl"), "the second export differs from the first");
    let refused = home.run(&["sessions", "export", KEY, "--to", &file], "");
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stderr.contains("all.jsonl` already exists\n  hint: "), "{}", refused.stderr);
}

/// Once, the conversations that were missing were missed by nobody, and those of half a file were said to be intact.
#[test]
fn an_export_that_was_cut_off_is_imported_as_far_as_it_goes_and_said_to_be_cut_off() {
    let (home, desk) = (lived_in(), Desk::new());
    home.run(&["sessions", "export", "--all", "--to", &desk.path("all.jsonl")], "").ok();
    let all = desk.read("all.jsonl");
    let second = all.rfind("{\"session\":").expect("two conversations");
    let header = all.find('\n').expect("a header") + 1;
    let early = "ends early, at line";
    for (name, part, imported) in [
        ("header", &all[..header], 0),
        ("inside", &all[..header + 200], 0),
        ("between", &all[..second], 1),
        ("begun", &all[..second + 20], 1),
        ("unended", all.trim_end().strip_suffix("{\"end\":{}}").expect("an end"), 2),
    ] {
        desk.write(&format!("{name}.jsonl"), part);
        let fresh = Home::cold();
        let finished = fresh.run(&["sessions", "import", &desk.path(&format!("{name}.jsonl"))], "");
        assert_eq!(finished.status.code(), Some(1), "{name}: {}", finished.stderr);
        let said = &finished.stderr;
        assert!(said.contains(early) && said.contains("; what came after is missing"), "{name}: {said}");
        assert!(!said.contains("intact"), "{name}: {said}");
        assert_eq!(conversations(&fresh), imported, "{name}");
    }
}

/// It was said that one conversation is not imported, and nothing of all those after it.
#[test]
fn an_export_with_a_line_that_is_too_long_to_be_read_is_imported_as_far_as_it_goes_and_said_to_be_cut_short() {
    let (home, desk) = (lived_in(), Desk::new());
    home.run(&["sessions", "export", "--all", "--to", &desk.path("all.jsonl")], "").ok();
    let all = desk.read("all.jsonl");
    let second = all.rfind("{\"session\":").expect("two conversations");
    desk.write("all.jsonl", &all[..second]);
    let mut file = fs::File::options().append(true).open(desk.path("all.jsonl")).expect("a file");
    // A hole in it is as good as a text.
    file.set_len(second as u64 + (65 << 20)).expect("a hole");
    write!(file, "\n{}", &all[second..]).expect("the rest");
    let fresh = Home::cold();
    let finished = fresh.run(&["sessions", "import", &desk.path("all.jsonl")], "");
    let said = &finished.stderr;
    assert_eq!(finished.status.code(), Some(1), "{said}");
    assert!(
        said.contains("` cannot be read to its end: line ") && said.contains("what comes after is missing"),
        "{said}"
    );
    assert!(!said.contains("not imported"), "{said}");
    assert_eq!(conversations(&fresh), 1);
}

/// Each that was killed left a hidden file behind, for ever.
#[test]
fn what_a_killed_export_has_left_is_taken_away_by_the_next() {
    let (home, desk) = (lived_in(), Desk::new());
    desk.write("full/all.jsonl.unfinished", "half of a longer one");
    desk.write("pmk/one.json.unfinished", "half of a longer one");
    home.run(&["sessions", "export", "--all", "--to", &desk.path("full/all.jsonl")], "").ok();
    home.run(&["sessions", "export", KEY, "--format", "pmk", "--to", &desk.path("pmk/one.json")], "").ok();
    for (folder, file) in [("full", "all.jsonl"), ("pmk", "one.json")] {
        let entries = std::fs::read_dir(desk.path(folder)).expect("a folder").flatten();
        assert_eq!(entries.map(|entry| entry.file_name()).collect::<Vec<_>>(), [file]);
    }
}

#[test]
fn what_was_there_already_is_counted_as_such() {
    let (home, desk) = (lived_in(), Desk::new());
    let file = desk.path("all.jsonl");
    home.run(&["sessions", "export", "--all", "--to", &file], "").ok();
    let fresh = Home::cold();
    let counts = |finished: Finished| {
        let document = finished.json();
        ["imported", "there_already", "failed"].map(|count| document[count].as_u64())
    };
    assert_eq!(counts(fresh.run(&["--json", "sessions", "import", &file], "")), [Some(2), Some(0), Some(0)]);
    assert_eq!(counts(fresh.run(&["--json", "sessions", "import", &file], "")), [Some(0), Some(2), Some(0)]);
    let again = fresh.run(&["sessions", "import", &file], "").stderr;
    assert!(again.contains("error: 2 of 2 conversations not imported because they already exist"), "{again}");
}

/// Regression: nothing was printed of a single conversation that was not imported.
#[test]
fn a_program_hears_of_the_only_conversation_that_was_there_already() {
    let (home, desk) = (lived_in(), Desk::new());
    let file = desk.path("one.jsonl");
    home.run(&["sessions", "export", KEY, "--to", &file], "").ok();
    let again = home.run(&["--json", "sessions", "import", &file], "");
    assert_eq!(again.status.code(), Some(1));
    assert!(again.stderr.contains("already exists") && again.stderr.lines().count() == 1, "{}", again.stderr);
    let nothing = json!({"imported": 0, "there_already": 1, "failed": 0, "conversations": [], "cases": []});
    assert_eq!(again.json(), nothing);
}

#[test]
fn random_conversations_survive_the_move() {
    let (home, desk) = (Home::cold(), Desk::new());
    for seed in 0..40 {
        let document =
            |message: &Message| json!({"role": message.role, "origin": message.origin, "content": message.blocks});
        let messages: Vec<Value> = testing::random_history(seed, 12).iter().map(document).collect();
        let history = json!({"messages": messages, "lastActiveAt": 1_777_342_416_133_u64});
        desk.write(&format!("tree/users/U{seed}/session.json"), &history.to_string());
    }
    home.run(&["sessions", "import", &desk.path("tree")], "").ok();
    home.run(&["sessions", "export", "--all", "--to", &desk.path("all.jsonl")], "").ok();
    let fresh = Home::cold();
    fresh.run(&["sessions", "import", &desk.path("all.jsonl")], "").ok();
    fresh.run(&["sessions", "export", "--all", "--to", &desk.path("again.jsonl")], "").ok();
    assert!(desk.read("again.jsonl") == desk.read("all.jsonl"), "the second export differs from the first");
    assert_eq!(desk.read("all.jsonl").matches("{\"session\":").count(), conversations(&home));
}

fn conversations(home: &Home) -> usize {
    home.run(&["sessions", "list", "--json"], "").ok().json().as_array().expect("a list").len()
}

#[test]
fn an_export_to_pmk_is_read_back() {
    let (home, desk) = (lived_in(), Desk::new());
    let tree = desk.path("tree");
    let mut all = String::new();
    for arguments in [
        &["sessions", "export", "--all", "--format", "pmk", "--to", &tree][..],
        &["sessions", "export", "--all", "--format", "pmk", "--to", &tree],
        &["sessions", "export", KEY, "--format", "pmk", "--to", &desk.path("one.json")],
        &["--json", "sessions", "export", KEY, "--format", "pmk", "--to", &desk.path("another.json")],
        &["sessions", "export", "slack:dm:U9", "--to", &desk.path("nobody.jsonl")],
        &["sessions", "export", "--to", &desk.path("nobody.jsonl")],
    ] {
        all.push_str(&shown(arguments, &home.run(arguments, ""), &home, &desk));
    }
    let mut written: Value = serde_json::from_str(&desk.read("one.json")).expect("JSON");
    assert!(written["lastActiveAt"].take().is_u64());
    written["messages"].as_array_mut().expect("a list").truncate(4);
    all.push_str(&format!("{written:#}\n"));
    insta::assert_snapshot!(all);
    let fresh = Home::cold();
    fresh.run(&["sessions", "import", &tree], "").ok();
    for key in [KEY, "console:channel:C1:17.01"] {
        let texts = |home: &Home| {
            let document = home.run(&["sessions", "show", key, "--json"], "").ok().json();
            let messages = document["messages"].as_array().expect("a list").clone();
            let content: Vec<Value> = messages.into_iter().map(|mut message| message["content"].take()).collect();
            (document["marker"].clone(), content)
        };
        assert_eq!(texts(&fresh), texts(&home), "{key}");
    }
}

#[test]
fn turns_are_shown_and_cut_by_number() {
    let (home, desk) = (Home::cold(), Desk::new());
    let history = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/tool-heavy-en.json");
    home.run(&["sessions", "import", &history.display().to_string(), "--key", "slack:dm:U1"], "").ok();
    let headings = |finished: &Finished| -> String {
        finished.stdout.lines().filter(|line| line.starts_with('m')).map(|line| format!("{line}\n")).collect()
    };
    let mut all = String::new();
    for arguments in [
        &["sessions", "show", "slack:dm:U1", "--turns", "2"][..],
        &["sessions", "show", "slack:dm:U1", "--turns", "2..3", "--full"],
        &["sessions", "show", "slack:dm:U1", "--turns", "999.."],
        &["sessions", "show", "slack:dm:U1", "--turns", "3..2"],
        &["sessions", "reset", "slack:dm:U1", "--to-turn", "2"],
        &["sessions", "reset", "slack:dm:U1", "--to-turn", "2"],
        &["--json", "sessions", "reset", "slack:dm:U1", "--to-turn", "0"],
    ] {
        let mut finished = home.run(arguments, "");
        if arguments[1] == "show" {
            finished.stdout = headings(&finished);
        }
        let created = without_times(&shown(arguments, &finished, &home, &desk));
        all.push_str(&created);
    }
    insta::assert_snapshot!(all);
    let two = home.run(&["sessions", "show", "slack:dm:U1", "--turns", "1..2", "--full", "--json"], "").ok().json();
    assert_eq!((&two["turns"]["from"], &two["turns"]["to"]), (&json!(1), &json!(2)));
}

/// The lines without the time at their end.
fn without_times(text: &str) -> String {
    let line = |line: &str| match line.rsplit_once(") ") {
        Some((start, time)) if time.starts_with("20") && time.ends_with('Z') => format!("{start}) [time]\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[test]
fn an_import_beside_a_running_gateway_waits_for_its_turn() {
    let (home, desk) = (Home::new(), Desk::new());
    desk.write("session.json", &session(&[("user", "The launch is on Friday."), ("assistant", "Noted.")]).to_string());
    let mut running = Running::start(home.command(&["run", "--model", "sim"]));
    assert!(running.say(&question("Ev1", "hello")));
    running.next_of("reply");
    home.run(&["sessions", "import", &desk.path("session.json"), "--key", KEY, "--replace"], "").ok();
    assert!(running.say(&question("Ev2", "When is the launch?")));
    let reply = running.next_of("reply")["text"].as_str().expect("a text").to_owned();
    assert!(reply.contains("Friday"), "{reply}");
    assert!(running.end().0.success());
}

#[test]
fn what_cannot_be_moved_is_one_clear_line() {
    let (home, desk) = (Home::cold(), Desk::new());
    desk.write("newer.jsonl", "{\"pmk-host-sessions\":{\"version\":9}}\n");
    desk.write("empty/notes.txt", "");
    desk.write("nobody.json", "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}");
    desk.write("none.json", "");
    desk.write("list.json", "[1]");
    desk.write(
        "cut.jsonl",
        "{\"pmk-host-sessions\":{\"version\":1}}\n{\"session\":{\"key\":\"slack:dm:U1\",\"created_at_ms\":1,\
         \"active_at_ms\":1,\"turns\":1,\"dropped_turns\":0,\"marker\":null,\"messages\":2,\"live\":0}}\n",
    );
    let mut all = String::new();
    for name in ["newer.jsonl", "empty", "nowhere", "nobody.json", "none.json", "list.json", "cut.jsonl"] {
        let path = desk.path(name);
        let arguments = ["sessions", "import", &path];
        all.push_str(&shown(&arguments, &home.run(&arguments, ""), &home, &desk));
    }
    desk.write("good.json", &session(&[("user", "q"), ("assistant", "a")]).to_string());
    for arguments in [
        &["sessions", "import", &desk.path("good.json"), "--home", "/proc/nowhere"][..],
        &["sessions", "import", &desk.path("good.json")],
        &["sessions", "export", "--all", "--to", "/proc/nowhere/all.jsonl"],
        &["sessions", "export", "--all", "--format", "pmk", "--to", "/proc/nowhere"],
    ] {
        all.push_str(&shown(arguments, &home.run(arguments, ""), &home, &desk));
    }
    let path = desk.path("nobody.json");
    let arguments = ["--json", "sessions", "import", &path, "--format", "full"];
    all.push_str(&shown(&arguments, &home.run(&arguments, ""), &home, &desk));
    insta::assert_snapshot!(all);
}

/// Once, `import` called a history empty that was cut off at the end of a line.
#[test]
fn a_history_that_was_cut_off_at_a_line_end_is_not_called_empty() {
    let (home, desk) = (Home::new(), Desk::new());
    let cut = "{\"messages\":[\n{\"role\":\"user\",\"content\":\"hi\"},\n\
               {\"role\":\"assistant\",\"content\":\"yo\"},\n";
    let truncated = ["it is not JSON: EOF while parsing a value at line 4 column 0", "hint: it is truncated; complete"];
    let empty = ["it is empty", "hint: a history is pmk's"];
    for (text, said) in [(cut, truncated), ("", empty), ("\n \n", empty), ("\u{feff}  ", empty)] {
        desk.write("session.json", text);
        let path = desk.path("session.json");
        for arguments in [&["sessions", "import", &path, "--key", KEY][..], &["plan", "--history", &path]] {
            let finished = home.run(arguments, "");
            assert_eq!(finished.status.code(), Some(1), "{arguments:?}: {}", finished.stderr);
            assert!(said.iter().all(|said| finished.stderr.contains(said)), "{arguments:?}: {}", finished.stderr);
        }
    }
}

/// Once, `store check` said of such a store that it is sound, and nothing of it could be exported.
#[test]
fn one_conversation_that_cannot_be_read_is_named_and_the_others_are_exported() {
    let (home, desk) = (lived_in(), Desk::new());
    let listed = conversations(&home);
    let store = rusqlite::Connection::open(home.path().join("gateway/pmk-host.db")).expect("the store");
    let key: String = store
        .query_row("SELECT s.key FROM session s JOIN message m ON m.session_id = s.id WHERE m.id = 1", [], |row| {
            row.get(0)
        })
        .expect("a key");
    store
        .execute_batch("DROP TRIGGER message_is_never_rewritten; UPDATE message SET blocks = '[{' WHERE id = 1")
        .expect("damage");
    drop(store);
    let checked = home.run(&["store", "check"], "");
    assert_eq!(checked.status.code(), Some(1), "{}", checked.stdout);
    let said = format!("{}{}", checked.stdout, checked.stderr);
    assert!(said.contains(&format!("`{key}`: message 1 cannot be read")), "{said}");
    for (format, to) in [("full", "all.jsonl"), ("pmk", "tree")] {
        let arguments = ["--json", "sessions", "export", "--all", "--format", format, "--to", &desk.path(to)];
        let exported = home.run(&arguments, "");
        assert_eq!(exported.status.code(), Some(1), "{}", exported.stderr);
        assert!(exported.stderr.contains(&format!("`{key}` is not written")), "{}", exported.stderr);
        let told: Value = serde_json::from_str(&exported.stdout).expect("JSON");
        assert_eq!(told["exported"], json!(listed - 1), "{told}");
    }
    let other = Home::new();
    other.run(&["sessions", "import", &desk.path("all.jsonl")], "").ok();
    assert_eq!(conversations(&other), listed - 1);
}

/// Once, the key was not looked at, and a file of rubbish became a conversation of nothing.
#[test]
fn a_key_is_for_one_history_that_has_messages() {
    let (home, desk) = (lived_in(), Desk::new());
    let all = desk.path("all.jsonl");
    home.run(&["sessions", "export", "--all", "--to", &all], "").ok();
    let before = everything(&home);
    desk.write("rubbish.jsonl", "neither\nnor\n");
    desk.write("none.json", r#"{"messages":[]}"#);
    pmk_tree(&desk);
    for (path, why) in [
        (all, "`--key` is only for a single file of pmk"),
        (desk.path("slack"), "`--key` is only for a single file of pmk"),
        (desk.path("rubbish.jsonl"), "contains no readable message"),
        (desk.path("none.json"), "contains no readable message"),
    ] {
        let refused = home.run(&["sessions", "import", &path, "--key", "slack:dm:U55", "--replace"], "");
        assert_eq!(refused.status.code(), Some(1), "{path}: {}", refused.stderr);
        assert!(refused.stderr.contains(why) && refused.stderr.contains("\n  hint: "), "{path}: {}", refused.stderr);
    }
    assert_eq!(everything(&home), before);
}

#[test]
fn a_store_of_a_later_version_is_neither_read_nor_written() {
    let (home, desk) = (Home::cold(), Desk::new());
    desk.write("session.json", &session(&[("user", "q"), ("assistant", "a")]).to_string());
    let file = desk.path("session.json");
    home.run(&["sessions", "import", &file], "").ok();
    // The schema's version is the big-endian number at byte 60 of the file.
    let store = home.path().join("gateway/pmk-host.db");
    let mut bytes = fs::read(&store).expect("the store");
    bytes[60..64].copy_from_slice(&99u32.to_be_bytes());
    fs::write(&store, &bytes).expect("a later store");
    for arguments in [
        &["sessions", "import", &file, "--replace"][..],
        &["sessions", "export", "--all", "--to", &desk.path("all.jsonl")],
        &["sessions", "reset", "slack:dm:U1", "--to-turn", "1"],
        &["sessions", "show", "slack:dm:U1", "--turns", "1"],
    ] {
        let finished = home.run(arguments, "");
        assert_eq!(finished.status.code(), Some(1), "{arguments:?}");
        assert!(
            finished.stderr.contains("was written by a newer pmk-host: its schema is version 99"),
            "{}",
            finished.stderr
        );
        assert!(finished.stderr.contains("\n  hint: upgrade pmk-host"), "{}", finished.stderr);
    }
    assert_eq!(fs::read(&store).expect("the store"), bytes);
}

#[test]
fn a_full_disk_keeps_all_of_a_conversation_out() {
    let (home, desk) = (Home::cold(), Desk::new());
    desk.write("small.json", &session(&[("user", "q"), ("assistant", "a")]).to_string());
    home.run(&["sessions", "import", &desk.path("small.json")], "").ok();
    let long = "long ".repeat(200_000);
    let large = session(&[("user", &long), ("assistant", &long), ("user", &long), ("assistant", &long)]);
    desk.write("large.json", &large.to_string());
    // No file may grow beyond a megabyte: the kernel's nearest thing to a disk that fills up.
    let program = home.command(&["sessions", "import", &desk.path("large.json"), "--key", "slack:dm:U2"]);
    let mut limited = std::process::Command::new("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 2048; exec \"$0\" \"$@\""])
        .arg(program.get_program())
        .args(program.get_args());
    limited.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let finished = finish(limited, "");
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    assert!(finished.stderr.starts_with("error: "), "{}", finished.stderr);
    assert_eq!((finished.stderr.lines().count(), finished.stdout.as_str()), (2, ""), "{}", finished.stderr);
    assert_eq!(conversations(&home), 1, "nothing of the large one is there, and the small one is");
    home.run(&["sessions", "import", &desk.path("large.json"), "--key", "slack:dm:U2"], "").ok();
    assert_eq!(conversations(&home), 2);
}

#[test]
fn an_import_that_takes_long_says_what_it_does() {
    let home = Home::new();
    home.run(&["run", "--model", "sim"], &question("Ev1", "hello")).ok();
    let exported = home.path().join("all.jsonl");
    home.run(&["sessions", "export", "--all", "--to", &exported.display().to_string()], "").ok();
    let other = Home::new();
    other.run(&["run", "--model", "sim"], "").ok();
    // Somebody else writes for as long as it takes to be noticed.
    let store = rusqlite::Connection::open(other.path().join("gateway/pmk-host.db")).expect("the store");
    store.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes now");
    let mut command = other.command(&["sessions", "import", &exported.display().to_string()]);
    command.env("TERM", "xterm");
    let mut terminal = Terminal::start(command);
    terminal.wait_for("reading the first conversation", 1);
    store.execute_batch("ROLLBACK").expect("others write again");
    terminal.wait_for("imported from", 1);
    assert!(terminal.wait().success());
}
