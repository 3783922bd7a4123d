//! A home that somebody else could have written is not believed: what it says would be done with the rights of who
//! runs the program.

use std::{
    fs::{Permissions, set_permissions},
    os::unix::fs::{PermissionsExt, chown},
    path::PathBuf,
    process::Command,
};

use pmk_stand_ins::not_run;
use serde_json::json;

use crate::support::{Home, component, finish, program, question, repository};

/// A user that is nobody in particular.
pub const SOMEBODY_ELSE: u32 = 65_534;

/// A home whose gateway.json has a command run for the key; and the file that this command would make.
fn with_a_command() -> (Home, PathBuf) {
    let home = Home::new();
    let made = home.path().join("made");
    let command = format!("touch '{}'; echo key", made.display());
    let config = json!({"version": 1, "apiKey": {"cmd": command}});
    home.write("gateway.json", config.to_string());
    (home, made)
}

fn refused(home: &Home, arguments: &[&str]) -> String {
    let mut command = home.command(arguments);
    command.env_remove("LANG");
    let finished = finish(command, &question("Ev1", "hello"));
    assert_eq!(finished.status.code(), Some(1), "{arguments:?}: {}", finished.stderr);
    assert_eq!(finished.stdout, "", "{arguments:?}");
    finished.stderr.replace(home.path().to_str().expect("UTF-8"), "[home]")
}

#[test]
fn one_that_others_can_write_is_refused_with_the_command_that_mends_it() {
    let (home, made) = with_a_command();
    let set = |part: &str, mode| set_permissions(home.path().join(part), Permissions::from_mode(mode)).expect("a mode");
    let mut shown = String::new();
    for part in ["", "gateway.json", "cache"] {
        let before = home.path().join(part).metadata().expect("it is there").permissions().mode();
        set(part, before | 0o022);
        shown += &refused(&home, &["run"]);
        for arguments in [&["sessions", "list"][..], &["policy", "inspect", &component("strict")]] {
            refused(&home, arguments);
        }
        set(part, before);
    }
    insta::assert_snapshot!(shown);
    assert!(!made.exists(), "no command of its gateway.json was run");
}

#[test]
fn one_of_another_user_is_refused() {
    // Only the administrator can give files away, and only for the administrator is the danger this large.
    if !is_root() {
        not_run::say("giving a file to another user needs root");
        return;
    }
    for part in ["", "gateway.json"] {
        let (home, made) = with_a_command();
        chown(home.path().join(part), Some(SOMEBODY_ELSE), None).expect("root may");
        let said = refused(&home, &["run"]);
        assert!(said.contains("belongs to another user (uid 65534)"), "{said}");
        assert!(said.contains("sudo -u '#65534'"), "{said}");
        assert!(!made.exists(), "no command of its gateway.json was run");
    }
}

/// Once, `audit --home /typo` printed zeros, and `audience set` made a home of a slip of the pen; and `config check` took one that
/// `PMK_HOME` misspelt for an empty one.
#[test]
fn one_that_does_not_exist_is_an_error_everywhere_but_in_run() {
    let home = Home::new();
    let missing = home.path().join("typo");
    let strict = component("strict");
    let history = repository("tests/fixtures/marker-and-giant-mixed.json").display().to_string();
    let commands: &[&[&str]] = &[
        &["status"],
        &["stop"],
        &["audit"],
        &["sessions", "list"],
        &["sessions", "show", "slack:dm:U1"],
        &["sessions", "parked"],
        &["atoms", "list"],
        &["audience", "list"],
        &["audience", "set", "U1", "pm"],
        &["escalation", "list"],
        &["escalation", "add", "default", "U1"],
        &["experiment", "status"],
        &["experiment", "stop"],
        &["store", "check"],
        &["store", "renew"],
        &["model", "forget"],
        &["model", "tokens", "/dev/null"],
        &["policy", "inspect", &strict],
        &["policy", "use", &strict],
        &["plan", "--policy", &strict, "--history", &history],
        &["compare", "--policy", &strict, "--histories", &history],
    ];
    for (arguments, by) in commands.iter().flat_map(|arguments| [(arguments, "--home"), (arguments, "PMK_HOME")]) {
        let mut command = Command::new(program());
        command.env_clear().env("HOME", home.path());
        match by {
            "--home" => command.arg(by).arg(&missing),
            _ => command.env(by, &missing),
        };
        command.args(*arguments);
        let finished = finish(command, "");
        // 1 of `status` says that a gateway is there.
        let code = if *arguments == ["status"] { 4 } else { 1 };
        assert_eq!(
            (finished.status.code(), finished.stdout.as_str()),
            (Some(code), ""),
            "{by} {arguments:?}: {}",
            finished.stderr
        );
        let said = finished.stderr.replace(home.path().to_str().expect("UTF-8"), "[home]");
        assert!(said.starts_with("error: home `[home]/typo` does not exist\n  hint: "), "{arguments:?}: {said}");
        assert!(!missing.exists(), "{arguments:?} has made one");
    }
    // What has nothing to do with any takes no offence.
    for arguments in [&["slack", "manifest"][..], &["config", "schema"], &["completions", "bash"]] {
        let mut command = Command::new(program());
        command.env_clear().env("HOME", home.path()).env("PMK_HOME", &missing).args(arguments);
        finish(command, "").ok();
        assert!(!missing.exists(), "{arguments:?} has made one");
    }
    // What is about one wants it, too, where nobody names any.
    for arguments in
        [&["policy", "use", "recall"][..], &["policy", "use", "--previous"], &["model", "forget"], &["status"]]
    {
        let mut command = Command::new(program());
        command.env_clear().env("HOME", home.path().join("nobody")).args(arguments);
        let said = finish(command, "").stderr;
        assert!(said.starts_with("error: home `"), "{arguments:?}: {said}");
        assert!(!home.path().join("nobody").exists(), "{arguments:?} has made one");
    }
    // What needs none does without, as long as nobody names one.
    let mut command = Command::new(program());
    command.env_clear().env("HOME", home.path().join("nobody")).args(["policy", "inspect", &strict]);
    finish(command, "").ok();
    assert!(!home.path().join("nobody").exists(), "looking makes none");
    let mut command = Command::new(program());
    command.env_clear().env("HOME", home.path()).arg("--home").arg(&missing).args(["run", "--model", "sim"]);
    finish(command, "").ok();
    assert!(missing.exists());
    // Regression: on a new machine, a backup could only be restored after a first run.
    let (backup, new) = (home.path().join("backup.db"), home.path().join("new"));
    let (backup, new, made) = (backup.display().to_string(), new.display().to_string(), missing.display().to_string());
    let mut command = Command::new(program());
    command.env_clear().env("HOME", home.path()).args(["--home", &new, "store", "restore", &backup]);
    let said = finish(command, "").stderr;
    assert!(said.starts_with("error: there is no `"), "{said}");
    assert!(!home.path().join("new").exists(), "a backup that is missing has made one");
    for arguments in [["--home", &made, "store", "backup", &backup], ["--home", &new, "store", "restore", &backup]] {
        let mut command = Command::new(program());
        command.env_clear().env("HOME", home.path()).args(arguments);
        finish(command, "").ok();
    }
    assert!(home.path().join("new/gateway/pmk-host.db").exists());
}

/// Once, `run` said that a folder of that name exists already.
#[test]
fn a_link_that_leads_nowhere_is_named_with_where_it_leads() {
    let home = Home::new();
    let link = home.path().join("link");
    std::os::unix::fs::symlink("/nowhere/pmk", &link).expect("a link");
    for arguments in [&["run", "--model", "sim"][..], &["status"], &["config", "check"]] {
        let mut command = Command::new(program());
        command.env_clear().env("HOME", home.path()).arg("--home").arg(&link).args(arguments);
        let said = finish(command, "").stderr.replace(home.path().to_str().expect("UTF-8"), "[home]");
        assert!(said.starts_with("error: `[home]/link` is a link to `/nowhere/pmk`, which does not exist\n"), "{said}");
    }
}

/// Whether the tests run as the administrator.
pub fn is_root() -> bool {
    std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").expect("Linux's /proc")) == 0
}

/// The same command for whom the modes of files hold, although the tests may run as the administrator.
pub fn heeding_modes(command: Command) -> Command {
    if !is_root() {
        return command;
    }
    let without = "=-dac_override,-dac_read_search";
    let mut heeding = Command::new("setpriv");
    heeding.args([format!("--bounding-set{without}"), format!("--inh-caps{without}")]);
    heeding.arg(command.get_program()).args(command.get_args()).env_clear();
    heeding.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    heeding
}

#[test]
fn compiled_code_that_others_could_have_written_is_not_run() {
    let home = Home::cold();
    let strict = component("strict");
    home.run(&["policy", "inspect", &strict], "").ok();
    let compiled = home.path().join("cache/components");
    for entry in std::fs::read_dir(&compiled).expect("the cache").flatten() {
        set_permissions(entry.path(), Permissions::from_mode(0o666)).expect("a mode");
    }
    let said = refused(&home, &["policy", "inspect", &strict]);
    assert!(said.contains("can be changed by other users (mode 666)"), "{said}");
    assert!(said.contains("chmod go-w '[home]/cache/components/"), "{said}");
}

#[test]
fn a_home_that_cannot_keep_compiled_code_is_no_reason_to_stop() {
    let home = Home::cold();
    home.write("cache", "in the way");
    let (program, home) = (program(), home.path());
    let line = format!("umask 002; exec '{}' --home '{}' policy inspect \"$1\"", program.display(), home.display());
    let mut command = Command::new("sh");
    command.args(["-c", &line, "sh", &component("strict")]);
    let finished = crate::support::finish(command, "").ok();
    assert!(finished.stderr.contains("policies are compiled at every start"), "{}", finished.stderr);
}
