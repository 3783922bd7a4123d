//! The operator's commands for what the team knows: atoms, audiences, contacts. Snapshots are what a
//! terminal shows, standard error behind `2>`.

use std::{os::unix::fs::PermissionsExt, path::PathBuf, process::Stdio};

use serde_json::{Value, json};

use self::terminal::{Terminal, admin_lines, admin_log, drafts, mode};
use crate::{readers::in_chinese, support::Home};

pub mod terminal;

#[test]
fn audiences() {
    let mut terminal = Terminal::new();
    terminal.run(&["audience", "list"]);
    assert!(!terminal.home.path().join("gateway").exists(), "looking makes nothing");
    for arguments in [
        &["audience", "default", "tech"][..],
        &["audience", "set", "U0XYZ", "pm"],
        &["--json", "audience", "set", "C0ABC", "Exec"],
        &["audience", "set", "D1", "biz"],
        &["audience", "list"],
        &["audience", "list", "--json"],
        &["audience", "unset", "D1"],
        &["--json", "audience", "unset", "U0XYZ"],
        &["--json", "audience", "default", "biz"],
        &["audience", "unset", "U0XYZ"],
        &["audience", "unset", "han"],
        &["audience", "set", "U0XYZ", "king"],
        &["audience", "set", "@han", "pm"],
        &["audience", "default", ""],
        &["audience", "set", "U0XYZ"],
    ] {
        terminal.run(arguments);
    }
    terminal.shown.push_str(&terminal.config());
    insta::assert_snapshot!(terminal.all());
    assert_eq!(mode(&terminal.home.path().join("gateway.json")), 0o600);
}

/// Regression: they passed for well and were listed, and no command could remove them.
#[test]
fn audiences_of_what_is_no_id_were_kept() {
    let mut terminal = Terminal { home: Home::new(), shown: String::new() };
    let audience = json!({"users": {"@ann": "tech", "U1": "pm"}, "channels": {"#general": "pm", "U2": "tech"}});
    terminal.home.write("gateway.json", json!({"version": 1, "model": "sim", "audience": audience}).to_string());
    let checked = terminal.run(&["config", "check"]).ok();
    let listed = terminal.run(&["audience", "list"]).ok();
    for told in [
        "`audience.users.@ann` is ignored: `@ann` is not a user id (`U…`, `W…`)",
        "`audience.channels.#general` is ignored: `#general` is not a channel id (`C…`, `G…`, `D…`)",
        "`audience.channels.U2` is ignored: `U2` is not a channel id (`C…`, `G…`, `D…`)",
    ] {
        assert!(checked.stdout.contains(told), "{}", checked.stdout);
        assert!(listed.stderr.contains(told), "{}", listed.stderr);
    }
    assert!(!listed.stdout.contains("@ann") && !listed.stdout.contains("U2"), "{}", listed.stdout);
    assert!(in_chinese(&terminal.home, &["config", "check"]).contains("`#general` 不是頻道 id"));
    for id in ["@ann", "#general", "U2"] {
        terminal.run(&["audience", "unset", id]).ok();
    }
    let left: Value = serde_json::from_str(&terminal.config()).expect("JSON");
    assert_eq!(left["audience"], json!({"users": {"U1": "pm"}, "channels": {}}));
    let refused = terminal.run(&["audience", "unset", "@ann"]);
    assert!(refused.stderr.contains("`@ann` is not the id of a user"), "{}", refused.stderr);
}

#[test]
fn threads_that_pmk_left_waiting_are_taken_over_once() {
    let mut terminal = Terminal::new();
    let folder = terminal.home.path().join("gateway/slack/escalations");
    // Once, it was an error that nothing was ever waiting.
    terminal.run(&["escalation", "import"]);
    terminal.run(&["escalation", "import", "nowhere"]);
    std::fs::create_dir_all(&folder).expect("a folder");
    let marker = json!({"channelId": "C1", "threadTs": "1.1", "question": "本月預算?\n各部門", "scope": "erp",
        "pendingSince": 1_777_342_416_133_u64, "mentionedUserIds": ["U2", "U3"], "askerUserId": "U1"});
    std::fs::write(folder.join("C1__1.1.json"), marker.to_string()).expect("a marker");
    std::fs::write(folder.join("C1__2.2.json"), "{}").expect("something else");
    for arguments in [
        &["escalation", "import"][..],
        &["--json", "escalation", "import"],
        &["escalation", "list"],
        &["--json", "escalation", "list"],
    ] {
        terminal.run(arguments);
    }
    insta::assert_snapshot!(terminal.all());
}

#[test]
fn contacts() {
    let mut terminal = Terminal::new();
    for arguments in [
        &["escalation", "list"][..],
        &["escalation", "add", "default", "U_IT1"],
        &["escalation", "add", "erp", "U_IT2"],
        &["--json", "escalation", "add", "erp", "W3"],
        &["escalation", "list"],
        &["--json", "escalation", "list"],
        &["escalation", "add", "erp", "U_IT2"],
        &["escalation", "add", "erp", "C0ABC"],
        &["escalation", "add", "erp", "<!channel>"],
        &["escalation", "add", "../../etc", "U_IT2"],
        &["escalation", "remove", "erp", "U_IT1"],
        &["escalation", "remove", "web", "U_IT1"],
        &["escalation", "remove", "erp", "U_IT2"],
        &["--json", "escalation", "remove", "erp", "W3"],
        &["escalation", "remove", "default", "U_IT1"],
        &["escalation", "list"],
    ] {
        terminal.run(arguments);
    }
    terminal.shown.push_str(&terminal.config());
    insta::assert_snapshot!(terminal.all());
}

#[test]
fn admins_and_the_log() {
    let mut terminal = Terminal::new();
    terminal.run(&["admin", "list"]);
    terminal.run(&["admin", "log"]);
    assert!(!terminal.home.path().join("gateway").exists(), "looking makes nothing");
    for arguments in [
        &["admin", "add", "U0BOSS"][..],
        &["--json", "admin", "add", "W2"],
        &["admin", "list"],
        &["--json", "admin", "list"],
        &["admin", "add", "U0BOSS"],
        &["admin", "add", "@han"],
        &["admin", "remove", "U9"],
        &["admin", "remove", "W2"],
        &["admin", "remove", "U0BOSS"],
        &["--json", "admin", "remove", "U0BOSS"],
        &["admin", "list"],
        &["admin", "log", "--last", "0"],
    ] {
        terminal.run(arguments);
    }
    terminal.shown.push_str(&terminal.config());
    insta::assert_snapshot!(terminal.all());
}

/// Who did what when, as a pmk that had no months yet has written it, and two months of ours.
#[test]
fn the_log_is_read_over_all_months_and_the_old_file() {
    let mut terminal = Terminal::new();
    let folder = terminal.home.path().join("gateway");
    std::fs::create_dir(&folder).expect("a folder");
    let line = |month: u32, action: &str, outcome: &str| {
        format!(
            r#"{{"at":"2026-{month:02}-03T04:05:06.789Z","actor":"U0BOSS","origin":"slack","action":"{action}","args":"U1 pm",{outcome}}}"#
        ) + "\n"
    };
    let old = line(1, "audience.set", r#""ok":true"#) + "half a li";
    std::fs::write(folder.join("admin.log"), &old).expect("a log");
    let refused = line(3, "admins.remove", r#""ok":false,"reason":"last-admin\u001b[2J protection""#);
    std::fs::write(folder.join("admin-2026-02.log"), line(2, "audience.unset", r#""ok":true"#)).expect("a log");
    std::fs::write(folder.join("admin-2026-03.log"), format!("{{}}\n{refused}[]\n")).expect("a log");
    for arguments in
        [&["admin", "log"][..], &["admin", "log", "--last", "1"], &["--json", "admin", "log", "--last", "2"]]
    {
        terminal.run(arguments).ok();
    }
    insta::assert_snapshot!(terminal.shown);
    assert_eq!(std::fs::read_to_string(folder.join("admin.log")).expect("the old file"), old);
}

#[test]
fn everything_else_in_gateway_json_stays_where_it_is() {
    let mut terminal = Terminal::new();
    let before = r#"{
  "slack": {
    "botToken": "xoxb-1",
    "appToken": "xapp-1"
  },
  "version": 1,
  "zeta": {
    "b": [
      1,
      2.5,
      null
    ],
    "a": "中"
  },
  "escalation": {
    "repos": {
      "web": [
        "U9"
      ],
      "erp": [
        "U2",
        7
      ]
    },
    "note": "kept",
    "default": [
      "U1"
    ]
  },
  "audience": {
    "users": {
      "U9": "exec",
      "U1": "king"
    },
    "domainExamples": {
      "pm": [],
      "biz": []
    },
    "default": "biz"
  }
}
"#;
    let path = terminal.home.write("gateway.json", before);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).expect("a mode");
    let shown = terminal.run(&["audience", "list"]).ok();
    assert_eq!(terminal.config(), before);
    assert!(shown.stderr.contains("warning: gateway.json: `audience.users.U1` is ignored"), "{}", shown.stderr);
    terminal.run(&["audience", "set", "U1", "pm"]).ok();
    terminal.run(&["audience", "default", "tech"]).ok();
    terminal.run(&["escalation", "add", "erp", "U3"]).ok();
    terminal.run(&["escalation", "remove", "web", "U9"]).ok();
    let after = before
        .replace("\"king\"", "\"pm\"")
        .replace("\"default\": \"biz\"", "\"default\": \"tech\"")
        .replace("        7\n", "        7,\n        \"U3\"\n")
        .replace("      \"web\": [\n        \"U9\"\n      ],\n", "");
    assert_eq!(terminal.config(), after);
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn a_gateway_json_that_makes_no_sense_is_never_overwritten() {
    let mut terminal = Terminal::new();
    for text in [
        "{\"version\": 1,",
        "[]",
        "{\"version\": 2}",
        "{\"version\": 1, \"audience\": \"biz\"}",
        "{\"version\": 1, \"audience\": {\"users\": []}}",
    ] {
        terminal.home.write("gateway.json", text);
        terminal.shown.push_str(&format!("{text}\n"));
        assert_eq!(terminal.run(&["audience", "set", "U1", "pm"]).status.code(), Some(1), "{text}");
        assert_eq!(terminal.config(), text);
    }
    insta::assert_snapshot!(terminal.all());
}

#[test]
fn no_change_of_commands_at_once_is_lost() {
    let home = Home::cold();
    let users: Vec<String> = (0..8).map(|n| format!("U{n}")).collect();
    let running: Vec<_> = users
        .iter()
        .map(|user| {
            let mut command = home.command(&["escalation", "add", "erp", user]);
            command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts")
        })
        .collect();
    for child in running {
        let output = child.wait_with_output().expect("the program ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let document = home.run(&["--json", "escalation", "list"], "").ok().json();
    let mut people: Vec<&str> =
        document["repos"]["erp"].as_array().expect("a pool").iter().filter_map(Value::as_str).collect();
    people.sort_unstable();
    assert_eq!(people, users);
    let lines = admin_lines(&home);
    assert_eq!((lines.len(), lines.iter().all(|line| line["ok"] == true)), (8, true), "{lines:?}");
}

#[test]
fn a_change_that_cannot_be_noted_is_made_and_told() {
    let home = Home::cold();
    let month = jiff::Timestamp::now().strftime("%Y-%m");
    std::fs::create_dir_all(home.path().join(format!("gateway/admin-{month}.log"))).expect("a folder in its place");
    let done = home.run(&["audience", "set", "U1", "pm"], "").ok();
    assert!(
        done.stderr.starts_with("warning: the change was made, but could not be recorded: cannot write `"),
        "{}",
        done.stderr
    );
    let refused = home.run(&["audience", "set", "U1", "king"], "");
    assert!(
        refused.stderr.starts_with("warning: the refused change could not be recorded: cannot write `")
            && refused.stderr.contains("error: unknown audience `king`"),
        "{}",
        refused.stderr
    );
}

#[test]
fn atoms_and_verdicts() {
    let mut terminal = Terminal::new();
    terminal.run(&["atoms", "list"]);
    terminal.run(&["atoms", "show", "2026"]);
    assert!(!terminal.home.path().join("knowledge").exists(), "looking makes nothing");
    let [budget, place, decided] = terminal.atoms();
    let due = terminal.atom("2026-04-27T0900-aaaa-d", "question: due\nstatus: pending\nexpiresAt: 1\n", "d");
    let broken = due.with_file_name("broken.md");
    std::fs::write(&broken, "---\nid: [\n---\n").expect("a file");
    for arguments in
        [&["atoms", "list"][..], &["atoms", "list", "--pending"], &["atoms", "list", "--pending", "--json"]]
    {
        terminal.run(arguments);
    }
    std::fs::remove_file(broken).expect("it is there");
    assert!(std::fs::read_to_string(&due).expect("an atom").contains("status: approved"), "its time has come");
    let [pending, approved, both] =
        ["2026-04-28T0213-5388", "2026-04-29T1000", "2026-04-28T0213-53"].map(|id| ["atoms", "show", id]);
    let chinese = [&["atoms", "list"][..], &pending, &approved, &both];
    let chinese: String = chinese.iter().map(|arguments| in_chinese(&terminal.home, arguments)).collect();
    insta::assert_snapshot!("atoms_in_chinese", chinese);
    for arguments in [
        &["atoms", "show", "2026-04-28T0213-5388"][..],
        &["atoms", "show", "2026-04-28T0213-53ff"],
        &["--json", "atoms", "show", "2026-04-28T0213-5388"],
        &["atoms", "show", "2026-04-28T0213-53"],
        &["atoms", "approve", "2026-04-28T0213-53"],
        &["atoms", "approve", "2027"],
        &["atoms", "reject", ""],
        &["atoms", "approve", "2026-04-28T0213-5388"],
        &["--json", "atoms", "approve", "2026-04-29T1000-0001-c"],
        &["atoms", "reject", "2026-04-28T0213-53f"],
        &["--json", "atoms", "reject", "2026-04-29"],
        &["atoms", "list", "--pending"],
    ] {
        terminal.run(arguments);
    }
    assert!(std::fs::read_to_string(budget).expect("an atom").contains("status: approved"));
    assert!(!place.exists() && !decided.exists());
    insta::assert_snapshot!(terminal.all());
}

#[test]
fn an_edit_is_saved_word_for_word() {
    let mut terminal = Terminal::new();
    let [budget, ..] = terminal.atoms();
    let before = std::fs::read_to_string(&budget).expect("an atom");
    let editor = terminal.editor("sed -i 's/看後台/看報表/' \"$file\"; touch \"$file~\"; chmod 644 \"$file\"");
    let edit = ["--json", "atoms", "edit", "2026-04-28T0213-5388"];
    let environment = [("VISUAL", editor.as_str()), ("EDITOR", "false")];
    assert_eq!(terminal.run_with(&edit, &environment).ok().json()["saved"], true);
    assert_eq!(std::fs::read_to_string(&budget).expect("an atom"), before.replace("看後台", "看報表"));
    assert_eq!(mode(&budget), 0o600);
    // The second time there is nothing left to replace.
    assert_eq!(
        terminal.run_with(&edit, &environment).ok().json(),
        json!({"id": "2026-04-28T0213-5388-預算", "saved": false})
    );
    assert_eq!(drafts(&terminal.home), [] as [PathBuf; 0]);
    assert_eq!(admin_log(&terminal.home), "\"atoms.edit\" [2026-04-28T0213-5388-預算] true\n");
}

#[test]
fn an_edit_that_cannot_be_saved_keeps_both_texts() {
    let mut terminal = Terminal::new();
    let [budget, ..] = terminal.atoms();
    let before = std::fs::read_to_string(&budget).expect("an atom");
    let mut kept = 0;
    for (script, keeps) in [
        ("sed -i 's/^status: .*/status: maybe/' \"$file\"", true),
        ("sed -i 's/^id: .*/id: another/' \"$file\"", true),
        ("echo 'no front matter' > \"$file\"", true),
        ("echo 'half a thought' >> \"$file\"; exit 3", true),
        ("exit 3", false),
        ("rm \"$file\"", false),
        (": > \"$file\"", false),
    ] {
        let editor = terminal.editor(script);
        terminal.shown.push_str(&format!("EDITOR={script}\n"));
        let edited = terminal.run_with(&["atoms", "edit", "2026-04-28T0213-5388"], &[("EDITOR", &editor)]);
        assert_eq!(edited.status.code(), Some(1), "{script}");
        assert_eq!(std::fs::read_to_string(&budget).expect("an atom"), before, "{script}");
        kept += usize::from(keeps);
        let drafts = drafts(&terminal.home);
        assert_eq!(drafts.len(), kept, "{script}");
    }
    assert_eq!(mode(&terminal.home.path().join("gateway/edits")), 0o700);
    for editor in ["", "no-such-editor -w", "'unbalanced"] {
        terminal.shown.push_str(&format!("EDITOR={editor}\n"));
        terminal.run_with(&["atoms", "edit", "2026-04-28T0213-5388"], &[("EDITOR", editor)]);
    }
    insta::with_settings!({filters => vec![(r"edits/\.tmp\w+", "edits/[random]")]}, {
        insta::assert_snapshot!(terminal.all());
    });
}

#[test]
fn an_edit_does_not_undo_what_somebody_else_did_meanwhile() {
    let mut terminal = Terminal::new();
    let [budget, ..] = terminal.atoms();
    let editor = terminal.editor(&format!(
        "sed -i 's/看後台/看報表/' \"$file\"; sed -i 's/status: pending/status: approved/' '{}'",
        budget.display()
    ));
    let edited = terminal.run_with(&["atoms", "edit", "2026-04-28T0213-5388"], &[("EDITOR", &editor)]);
    assert_eq!(edited.status.code(), Some(1));
    assert!(edited.stderr.contains("was changed by somebody else in the meantime"), "{}", edited.stderr);
    let now = std::fs::read_to_string(&budget).expect("an atom");
    assert!(now.contains("status: approved") && now.contains("看後台"), "{now}");
    let draft = drafts(&terminal.home).pop().expect("the text is kept");
    assert!(std::fs::read_to_string(draft).expect("a text").contains("看報表"));
}
