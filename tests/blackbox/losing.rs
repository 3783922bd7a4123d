//! A store that is lost, full or emptied under the program: it says so, and acknowledges nothing that is not kept.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::Value;

use crate::support::{Finished, Home, Running, finish, program, question, repository};

fn store(home: &Home) -> PathBuf {
    home.path().join("gateway/pmk-host.db")
}

fn start(home: &Home) -> Command {
    let mut command = home.command(&["run", "--model", "sim"]);
    command.env_remove("LANG");
    command
}

fn run(home: &Home, input: &str) -> Finished {
    finish(start(home), input)
}

fn turns(home: &Home) -> Value {
    home.run(&["--json", "sessions", "list"], "").ok().json()[0]["turns"].clone()
}

/// Asks, does something to the store, asks again: nothing is acknowledged, and the program ends.
fn lost_by(harm: impl Fn(&Home)) -> (Home, String) {
    let home = Home::new();
    let errors = home.path().join("errors");
    let mut gateway = Running::telling(start(&home), fs::File::create(&errors).expect("a file"));
    assert!(gateway.say(&question("Ev1", "hello")));
    gateway.next_of("turn");
    harm(&home);
    gateway.say(&question("Ev2", "is anybody there?"));
    // The input stays open: the program ends by itself.
    let (status, lines) = gateway.until_it_ends();
    assert_eq!(status.code(), Some(1), "{lines:#?}");
    let acknowledged = lines.iter().any(|line| line["type"] == "accepted" && line["event_id"] == "Ev2");
    assert!(!acknowledged, "{lines:#?}");
    (home, fs::read_to_string(errors).expect("what it said"))
}

#[test]
fn a_store_deleted_while_it_is_open_ends_the_gateway_and_is_not_begun_anew() {
    let (home, errors) = lost_by(|home| fs::remove_file(store(home)).expect("deleted"));
    let last = errors.lines().rev().nth(1).expect("a line and its hint");
    assert_eq!(last, format!("error: the store `{}` no longer exists", store(&home).display()), "{errors}");
    let lost: Vec<Value> = home.ledger().into_iter().filter(|event| event["type"] == "store.lost").collect();
    assert_eq!(lost.len(), 1, "{lost:?}");
    let audit = home.run(&["audit"], "").ok();
    assert!(audit.stdout.contains("WARN 1 time the store was lost while it was open"), "{}", audit.stdout);
    assert!(audit.stderr.contains("no longer exists"), "{}", audit.stderr);

    let refused = run(&home, &question("Ev3", "hello"));
    assert_eq!((refused.status.code(), refused.stdout.as_str()), (Some(1), ""), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("no longer exists\n  hint: if it was moved, move it back to its name"),
        "{}",
        refused.stderr
    );
    let import = home.run(&["sessions", "import", &home.path().join("errors").display().to_string()], "");
    assert!(!import.status.success() && import.stderr.contains("no longer exists"), "{}", import.stderr);
    home.run(&["store", "renew"], "").ok();
    assert!(run(&home, &question("Ev3", "hello")).ok().stdout.contains("reply"));
}

#[test]
fn a_store_replaced_while_it_is_open_ends_the_gateway() {
    let (home, errors) = lost_by(|home| {
        fs::copy(store(home), home.path().join("other.db")).expect("copied");
        fs::rename(home.path().join("other.db"), store(home)).expect("replaced");
    });
    assert!(errors.contains("was replaced by another file while it was in use"), "{errors}");
    // The other one is somebody's decision.
    run(&home, &question("Ev3", "hello")).ok();
}

#[test]
fn a_store_emptied_between_two_runs_is_restored_from_a_backup() {
    let home = Home::new();
    run(&home, &question("Ev1", "hello")).ok();
    let backup = home.path().join("backup.db").display().to_string();
    home.run(&["store", "backup", &backup], "").ok();
    fs::write(store(&home), "").expect("emptied");
    let refused = run(&home, &question("Ev2", "hello"));
    assert_eq!((refused.status.code(), refused.stdout.as_str()), (Some(1), ""));
    assert!(refused.stderr.contains("has been emptied: it has 0 bytes"), "{}", refused.stderr);
    assert_eq!(fs::metadata(store(&home)).expect("it is there").len(), 0, "and it is left as it is");
    home.run(&["store", "restore", &backup], "").ok();
    assert_eq!(turns(&home), 1);
    run(&home, &question("Ev2", "hello")).ok();
    assert_eq!(turns(&home), 2);
    home.run(&["store", "check"], "").ok();
    let log = fs::read_dir(home.path().join("gateway")).expect("the folder").flatten();
    assert!(log.into_iter().any(|file| file.file_name().to_string_lossy().starts_with("pmk-host.db.until-")));
}

/// Regression: it advised `pmk-host stop`, which stops the gateway of the default home.
#[test]
fn the_hint_to_stop_a_gateway_first_was_about_that_of_another_home() {
    let (home, other) = (Home::new(), Home::new());
    let mut gateway = Running::telling(start(&home), Stdio::null());
    assert!(gateway.say(&question("Ev1", "hello")));
    gateway.next_of("turn");
    let (path, to) = (home.path().display().to_string(), other.path().display().to_string());
    for arguments in [&["store", "renew"][..], &["store", "copy", "--from", &path, "--to", &to]] {
        let refused = home.run(arguments, "");
        let hint = format!("hint: stop it first: `pmk-host --home {path} stop`");
        assert!(refused.stderr.contains(&hint), "{}", refused.stderr);
    }
    fs::remove_file(store(&home)).expect("deleted");
    let lost = home.run(&["sessions", "list"], "").stderr;
    assert!(lost.contains(&format!("`pmk-host --home {path} store restore FILE`")), "{lost}");
}

/// The page's own commands, with a folder of this test's in place of `/srv/backups`.
#[test]
fn what_the_page_on_backups_says_is_done_and_brings_a_conversation_back() {
    let home = Home::new();
    run(&home, &question("Ev1", "hello")).ok();
    let page = fs::read_to_string(repository("docs/backups.md")).expect("the page");
    let blocks: Vec<&str> = page.split("```sh\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0)).collect();
    let [backing_up, nightly, putting_back] = blocks[..] else { panic!("{blocks:?}") };
    let shell = |commands: &str| {
        let folder = home.path().display().to_string();
        let mut shell = Command::new("sh");
        let function = format!("pmk-host() {{ '{}' --home '{folder}' \"$@\"; }}\n", program().display());
        // A shell of POSIX takes no hyphen in the name of a function.
        let script = function.replace("pmk-host()", "pmk_host()") + &commands.replace("pmk-host ", "pmk_host ");
        shell.args(["-e", "-c", &script.replace("/srv/backups", &folder)]);
        finish(shell, "").ok()
    };
    shell(backing_up);
    // A backup that was killed: no other has its name, so none removes what it left.
    let left = home.path().join("pmk-2026-01-01-031500.db.unfinished");
    let long_ago = SystemTime::now() - Duration::from_secs(40 * 86_400);
    fs::File::create(&left).and_then(|file| file.set_modified(long_ago)).expect("an old file");
    let script = nightly.split("<<'EOF'\n").nth(1).and_then(|rest| rest.split("EOF\n").next()).expect("a script");
    shell(&script.replace("runuser -u pmk-host -- ", "").replace("--home /var/lib/pmk ", ""));
    let files = fs::read_dir(home.path()).expect("the folder").map(|file| file.expect("a file").file_name());
    let dated = |name: &str| name.starts_with("pmk-2") && name.ends_with(".db");
    assert!(files.into_iter().any(|name| name.to_str().is_some_and(dated)), "each night's has a name of its own");
    assert!(!left.exists(), "it would stay for ever");
    run(&home, &question("Ev2", "and since then?")).ok();
    assert_eq!(turns(&home), 2);
    shell(putting_back);
    assert_eq!(turns(&home), 1);
}

#[test]
fn a_check_of_a_store_cut_in_half_does_not_send_anybody_to_check_it() {
    let home = Home::new();
    run(&home, &question("Ev1", "hello")).ok();
    let file = fs::File::options().write(true).open(store(&home)).expect("the store");
    file.set_len(file.metadata().expect("its length").len() / 2).expect("cut");
    let checked = home.run(&["store", "check"], "");
    assert!(!checked.status.success(), "{}", checked.stderr);
    assert!(checked.stderr.contains("is damaged in") && !checked.stderr.contains("store check"), "{}", checked.stderr);
    assert!(checked.stderr.contains("store restore FILE"), "{}", checked.stderr);
}

#[test]
fn a_limit_on_the_size_of_files_is_a_full_disk_and_not_the_end() {
    let home = Home::new();
    let mut gateway = Running::start(home.command(&["run", "--model", "sim"]));
    assert!(gateway.say(&question("Ev0", "hello")));
    gateway.next_of("turn");
    let log = fs::metadata(home.path().join("gateway/pmk-host.db-wal")).expect("the log").len();
    let pid = Pid::from_raw(gateway.pid().cast_signed());
    let unlimited = getrlimit(Resource::Fsize);
    let limited = Rlimit { current: Some(log + 50_000), maximum: unlimited.maximum };
    prlimit(pid, Resource::Fsize, limited).expect("a limit");

    // Only the console's own message: it does not fit, whatever the turns before it have taken.
    let long = "a long story ".repeat(10_000);
    assert!(gateway.say(&question("Ev1", &long)));
    let refused = gateway.next_of("error");
    assert_eq!(refused["event_id"], "Ev1");
    let told = refused["message"].as_str().expect("a text");
    assert!(told.contains("cannot grow beyond"), "{told}");

    prlimit(pid, Resource::Fsize, unlimited).expect("no limit");
    assert!(gateway.say(&question("Ev1", &long)));
    assert_eq!(gateway.next_of("accepted")["event_id"], "Ev1");
    let (status, rest) = gateway.end();
    assert!(status.success());
    assert!(rest.iter().any(|line| line["type"] == "reply" && line["event_id"] == "Ev1"), "{rest:#?}");
}

/// Regression: until its heartbeat had stopped, it was healthy, and the heartbeat did not say why it had.
#[test]
fn a_gateway_that_could_store_nothing_was_healthy() {
    let home = Home::new();
    let mut gateway = Running::start(home.command(&["run", "--model", "sim"]));
    assert!(gateway.say(&question("Ev0", "hello")));
    gateway.next_of("turn");
    let pid = Pid::from_raw(gateway.pid().cast_signed());
    let unlimited = getrlimit(Resource::Fsize);
    prlimit(pid, Resource::Fsize, Rlimit { current: Some(4_096), maximum: unlimited.maximum }).expect("a limit");
    assert!(gateway.say(&question("Ev1", "and now?")));
    gateway.next_of("error");
    let status = home.run(&["status"], "");
    assert_eq!(status.status.code(), Some(1), "{}", status.stdout);
    let told = format!("{}{}", status.stdout, status.stderr);
    for line in ["because      it cannot use its database", "cannot grow beyond 4096 bytes", "hint: make room"] {
        assert!(told.contains(line), "{told}");
    }

    prlimit(pid, Resource::Fsize, unlimited).expect("no limit");
    assert!(gateway.say(&question("Ev1", "and now?")));
    gateway.next_of("turn");
    home.run(&["status"], "").ok();
    assert!(gateway.end().0.success());
}

/// Takes the store back to what the program before the ledger's events made of it.
fn as_of_schema_12(home: &Home) {
    let conn = rusqlite::Connection::open(store(home)).expect("the store");
    conn.execute_batch(include_str!("../stores/back-to-schema-12.sql")).expect("changed");
}

fn schema(home: &Home) -> i64 {
    let conn = rusqlite::Connection::open(store(home)).expect("the store");
    conn.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a number")
}

#[test]
fn an_upgrade_keeps_what_it_found_and_there_is_a_way_back() {
    let home = Home::new();
    run(&home, &question("Ev1", "hello")).ok();
    let newest = schema(&home);
    as_of_schema_12(&home);
    let backup = home.path().join("gateway/pmk-host.db.schema-12");

    let upgraded = run(&home, &question("Ev2", "and now?")).ok();
    let name = backup.display().to_string();
    let told: Vec<&str> = upgraded.stderr.lines().filter(|line| line.contains(&name)).collect();
    assert!(
        matches!(&told[..], [line] if line.contains("WARN") && line.contains("from schema 12 to")),
        "{}",
        upgraded.stderr
    );
    assert_eq!((schema(&home), turns(&home)), (newest, Value::from(2)));

    // The program of before says so of a newer one's store, and goes back.
    let conn = rusqlite::Connection::open(store(&home)).expect("the store");
    conn.pragma_update(None, "user_version", 99).expect("changed");
    drop(conn);
    let refused = run(&home, "");
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stderr.contains(&format!(" store restore {name}`")), "{}", refused.stderr);
    home.run(&["store", "restore", &name], "").ok();
    assert_eq!(schema(&home), 12);
    home.run(&["store", "check"], "").ok();
    assert_eq!(turns(&home), Value::from(1));
}

/// Regression: it made the copy and the new schema, and said only that the store is intact.
#[test]
fn a_command_upgraded_the_store_without_a_word() {
    let home = Home::new();
    run(&home, &question("Ev1", "hello")).ok();
    as_of_schema_12(&home);
    let name = home.path().join("gateway/pmk-host.db.schema-12").display().to_string();
    let told = home.run(&["store", "check"], "").ok().stderr;
    assert!(told.starts_with("warning: the store was upgraded from schema 12 to "), "{told}");
    assert!(told.contains(&format!("; a backup from before is in `{name}`\n")), "{told}");
    let again = home.run(&["store", "check"], "").ok().stderr;
    assert!(!again.contains("upgraded"), "{again}");
}

#[test]
fn an_upgrade_without_room_for_its_backup_is_not_begun() {
    let home = Home::new();
    run(&home, &question("Ev1", "hello")).ok();
    as_of_schema_12(&home);
    let bounded = |arguments: &[&str]| {
        let command = home.command(arguments);
        let mut bounded = std::process::Command::new("sh");
        bounded.args(["-c", "trap '' XFSZ; ulimit -f 100; exec \"$0\" \"$@\""]).arg(command.get_program());
        bounded.args(command.get_args()).env("HOME", home.path());
        finish(bounded, "")
    };
    let refused = bounded(&["store", "check"]);
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("from schema 12 to") && refused.stderr.contains("hint: "), "{}", refused.stderr);
    let left =
        fs::read_dir(home.path().join("gateway")).expect("a folder").map(|file| file.expect("a file").file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains("schema")).collect();
    assert!(left.is_empty() && schema(&home) == 12, "{left:?}");
    home.run(&["store", "check"], "").ok();
}
