//! `policy dev`: what each save of a project changes. The components are those of older contracts, which never change,
//! and the command that builds is `cp`.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, process::Command};

use serde_json::{Value, json};

use crate::{
    authoring::broken,
    readers::{CHINESE, is_chinese},
    support::{Finished, Home, Running, finish, is_alive, repository, until},
};

/// A project with a conversation of 30 turns, and questions about two of them.
struct Project(Home);

impl Project {
    fn new() -> Project {
        let project = Project(Home::new());
        for folder in ["mine", "histories"] {
            fs::create_dir(project.path(folder)).expect("a folder");
        }
        let said =
            |number: usize| format!("Part {number} ships in week {}, {}.", 2 * number, "as was agreed ".repeat(20));
        let turns = (1..=30).flat_map(|turn| {
            let (question, answer) = (format!("When does part {turn} ship?"), said(turn));
            [
                json!({"id": format!("q{turn}"), "role": "user", "content": question}),
                json!({"id": format!("a{turn}"), "role": "assistant", "content": answer}),
            ]
        });
        project.write("histories/parts.json", &Value::from_iter(turns).to_string());
        let asked = |turn: usize| {
            json!({"conversation": "parts", "question": format!("Which week was it for part {turn}?"),
                   "evidence": [format!("a{turn}")]})
        };
        project.write("questions.json", &json!([asked(15), asked(29)]).to_string());
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).expect("a file");
    }

    /// An author saves a policy: that of an older contract.
    fn save(&self, policy: &str) {
        let component = repository(&format!("tests/contract-1.0.0/{policy}.wasm"));
        fs::copy(component, self.path("mine/source.wasm")).expect("a component");
    }

    fn command(&self, build: &str, more: &[&str]) -> Command {
        let dev = ["policy", "dev", "mine", "--build", build, "--component", "mine.wasm", "--histories", "histories"];
        let mut command =
            self.0.command(&[&dev[..], &["--questions", "questions.json", "--budget", "1800"], more].concat());
        command.current_dir(self.0.path());
        command
    }

    fn once(&self, build: &str) -> Finished {
        finish(self.command(build, &["--once"]), "")
    }

    fn once_in_chinese(&self, build: &str) -> String {
        let mut command = self.command(build, &["--once"]);
        command.env("LC_ALL", CHINESE);
        let Finished { stdout, stderr, .. } = finish(command, "");
        stdout + &stderr
    }
}

const COPY: &str = "cp source.wasm mine.wasm";

const SECONDS: (&str, &str) = (r"\d+\.\d s\n", "[n] s\n");

#[test]
fn what_a_build_changes_is_shown_against_the_one_before() {
    let project = Project::new();
    project.save("standard");
    let mut shown = project.once(COPY).ok().stdout;
    project.save("strict");
    shown.push_str(&project.once(COPY).ok().stdout);
    shown.push_str(&project.once(COPY).ok().stdout);
    let failed = project.once("echo 'error: no such thing' >&2; exit 1");
    assert_eq!(failed.status.code(), Some(1));
    shown.push_str(&format!("{}{}", failed.stdout, failed.stderr));
    insta::with_settings!({filters => vec![SECONDS]}, { insta::assert_snapshot!(shown) });
}

#[test]
fn it_is_shown_in_the_readers_language() {
    let project = Project::new();
    let mut shown = String::new();
    for policy in ["standard", "strict", "strict"] {
        project.save(policy);
        shown.push_str(&project.once_in_chinese(COPY));
    }
    shown.push_str(&project.once_in_chinese("exit 1"));
    is_chinese(&shown.replace("When does part 13 ship?", "").replace("Which week was it for part 15?", ""));
    insta::with_settings!({filters => vec![SECONDS]}, { insta::assert_snapshot!(shown) });
}

/// With a misspelt conversation, or one beyond `--most`, a question disappeared, and only the others were counted.
#[test]
fn questions_about_other_conversations_were_passed_over_without_a_word() {
    let project = Project::new();
    project.save("strict");
    let asked = (1..=22).map(|turn| {
        json!({"conversation": "partz", "question": format!("Which week was it for part {turn}?"),
               "evidence": [format!("a{turn}")]})
    });
    project.write("questions.json", &Value::from_iter(asked).to_string());
    let told = project.once(COPY).ok().stderr;
    for expected in [
        "question `1`: conversation `partz` is not among those replayed; skipping the question",
        "question `20`: conversation `partz` is not among those replayed; skipping the question",
        "2 more of this kind; `--most` says how many conversations are replayed",
    ] {
        assert!(told.contains(expected), "{told}");
    }
    assert!(!told.contains("question `21`"), "{told}");
}

/// A build that failed its check was what the next one was held against.
#[test]
fn a_build_that_failed_its_check_was_taken_for_the_last_good_one() {
    let project = Project::new();
    project.save("strict");
    project.write("mine/build.sh", COPY);
    let dev = Running::telling(project.command("sh build.sh", &["--json"]), std::process::Stdio::null());
    let round = || dev.next_of("build");
    assert_eq!(round()["outcome"], "built");
    fs::write(project.path("mine/source.wasm"), broken::panics().build()).expect("a component");
    let bad = round();
    assert!(bad["changed"].as_array().is_some_and(|changed| !changed.is_empty()), "{bad:#}");
    project.save("strict");
    let back = round();
    assert_eq!((&back["outcome"], &back["changed"]), (&json!("built"), &json!([])), "{back:#}");
}

/// Regression: a gateway that follows the file that good builds are written to took those that fail their check, too.
#[test]
fn a_build_that_failed_its_check_was_written_where_good_ones_are() {
    let project = Project::new();
    project.save("strict");
    let good = finish(project.command(COPY, &["--once", "--json"]), "").ok().json();
    fs::write(project.path("mine/source.wasm"), broken::panics().build()).expect("a component");
    assert_eq!(project.once(COPY).status.code(), Some(1));
    let written = fs::read(good["component"].as_str().expect("a path")).expect("a component");
    assert_eq!(written, fs::read(repository("tests/contract-1.0.0/strict.wasm")).expect("a component"));
}

/// Once, builds were `same` in conversations of which they had decided nothing.
#[test]
fn conversations_that_a_layer_below_decided_were_shown_as_the_policys() {
    let project = Project::new();
    fs::write(project.path("mine/source.wasm"), broken::tears().build()).expect("a component");
    let shown = project.once(COPY).stdout;
    let told = "\nnot used  in 1 of 1 conversation of `histories`: a layer below decided\n  parts";
    assert!(shown.contains(told) && shown.contains("×, first in turn "), "{shown}");
    let shown = project.once_in_chinese(COPY);
    assert!(shown.contains("裡有 1 個由下面的層決定\n") && shown.contains(" 次，第一次在第 "), "{shown}");
    let document = finish(project.command(COPY, &["--once", "--json"]), "").json();
    let passed_over = &document["passed_over"][0];
    let reasons = passed_over["reasons"].as_array().expect("reasons");
    assert!(reasons.iter().any(|reason| reason["rule"] == 1 && reason["policy"] == "test"), "{passed_over:#}");
    assert!(passed_over["decided_instead"]["standard"].as_u64() > Some(0), "{passed_over:#}");
}

/// The check asked with the default settings, and the conversations were replayed with those that were set.
#[test]
fn a_build_was_checked_with_other_settings_than_it_was_tried_with() {
    let project = Project::new();
    fs::write(project.path("mine/source.wasm"), broken::traps_if_set().build()).expect("a component");
    let set = |value: &str| finish(project.command(COPY, &["--once", "--set", value]), "");
    set("test.test=0").ok();
    let refused = set("test.test=1");
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stdout.contains(" bad answers to "), "{}", refused.stdout);
}

#[test]
fn every_save_is_built_and_the_last_good_one_stays() {
    let project = Project::new();
    project.save("strict");
    project.write("mine/build.sh", COPY);
    let dev = Running::telling(project.command("sh build.sh", &["--json"]), std::process::Stdio::null());
    let round = || dev.next_of("build");
    let first = round();
    assert_eq!((&first["build"], &first["before"]), (&json!(1), &Value::Null), "{first:#}");
    assert_eq!(first["now"]["answered"], 2, "{first:#}");

    project.save("standard");
    let changed = round();
    assert_eq!(changed["policy"]["name"], "standard", "{changed:#}");
    assert_eq!(changed["changed"][0]["lost"], json!(["Which week was it for part 15?"]), "{changed:#}");

    project.write("mine/build.sh", "echo no such thing >&2; exit 1");
    let failed = round();
    assert_eq!((&failed["outcome"], &failed["said"]), (&json!("failed"), &json!("no such thing")), "{failed:#}");

    // Held against the last one that was good, not against nothing.
    project.write("mine/build.sh", &format!("{COPY} # again"));
    let same = round();
    assert_eq!((&same["outcome"], &same["changed"]), (&json!("built"), &json!([])), "{same:#}");

    // Whether the first of two saves is built depends on how soon the second one follows; that the second is does not.
    project.save("strict");
    project.write("mine/build.sh", &format!("{COPY} # and again"));
    let back = round();
    assert_eq!(back["policy"]["name"], "strict", "{back:#}");
    project.write("mine/notes.txt", "one");
    project.write("mine/notes.txt", "two");
    project.save("standard");
    let name = |round: Value| round["policy"]["name"].as_str().map(str::to_owned);
    while name(round()).as_deref() != Some("standard") {}
    assert_eq!(
        fs::read(project.path("mine/mine.good.wasm")).expect("a component"),
        fs::read(repository("tests/contract-1.0.0/standard.wasm")).expect("a component")
    );

    let interrupted = Command::new("kill").args(["-INT", &dev.pid().to_string()]).status();
    assert!(interrupted.expect("kill is installed").success());
    let (status, left) = dev.until_it_ends();
    assert!(status.success() && left.is_empty(), "{status}: {left:?}");
}

#[test]
fn what_is_built_while_it_is_left_goes_with_it() {
    let project = Project::new();
    project.write("mine/build.sh", "echo $$ > ../started; sleep 1000");
    let dev = Running::start(project.command("exec sh build.sh", &["--json"]));
    let builder =
        until("the build", || fs::read_to_string(project.path("started")).ok().filter(|pid| pid.ends_with('\n')));
    assert!(Command::new("kill").args(["-INT", &dev.pid().to_string()]).status().expect("kill").success());
    assert!(dev.until_it_ends().0.success());
    until("its end", || (!is_alive(builder.trim())).then_some(()));
}

/// Regression: a time limit that a job of CI sets ended it as if the build had passed.
#[test]
fn one_build_that_was_stopped_before_it_was_tried_had_passed() {
    let project = Project::new();
    project.write("mine/build.sh", "echo $$ > ../started; sleep 1000");
    for signal in ["-TERM", "-INT"] {
        let dev = Running::start(project.command("exec sh build.sh", &["--json", "--once"]));
        until("the build", || fs::read_to_string(project.path("started")).ok().filter(|pid| pid.ends_with('\n')));
        fs::remove_file(project.path("started")).expect("a file");
        assert!(Command::new("kill").args([signal, &dev.pid().to_string()]).status().expect("kill").success());
        assert_eq!(dev.until_it_ends().0.code(), Some(1), "{signal}");
    }
}

#[test]
fn what_cannot_be_built_is_said() {
    let project = Project::new();
    let mut shown = String::new();
    for arguments in [
        &["mine"][..],
        &["nowhere"],
        &["mine", "--build", "true", "--component", "mine.wasm", "--once"],
        &["mine", "--histories", "mine", "--build", "true", "--component", "mine.wasm"],
        &["mine", "--build", "echo text > mine.wasm", "--component", "mine.wasm", "--once"],
        &["mine", "--build", "rm -f mine.wasm; mkfifo mine.wasm", "--component", "mine.wasm", "--once"],
        &["mine", "--build", "rm -f mine.wasm; ln -s /dev/zero mine.wasm", "--component", "mine.wasm", "--once"],
    ] {
        let mut command = project.0.command(&[&["policy", "dev"], arguments].concat());
        command.current_dir(project.0.path());
        let finished = finish(command, "");
        assert_eq!(finished.status.code(), Some(1), "{arguments:?}: {}", finished.stdout);
        shown.push_str(&finished.stderr);
    }
    insta::assert_snapshot!(shown.replace(&format!("{}/", project.0.path().display()), ""));
}

/// Regression: as many lines came as the home has such conversations.
#[test]
fn each_conversation_that_cannot_be_replayed_was_told() {
    let project = Project::new();
    fs::create_dir(project.path("lone")).expect("a folder");
    for number in 0..22 {
        let answer = json!([{"role": "assistant", "content": format!("answer {number}")}]);
        project.write(&format!("lone/{number}.json"), &answer.to_string());
    }
    let dev = ["policy", "dev", "mine", "--build", COPY, "--component", "mine.wasm", "--histories", "lone", "--once"];
    let told = |language: &str| {
        let mut command = project.0.command(&dev);
        command.current_dir(project.0.path()).env("LC_ALL", language);
        finish(command, "").stderr
    };
    let shown = told("C");
    assert_eq!(shown.matches("it has no messages").count(), 20, "{shown}");
    assert!(shown.contains("2 more of this kind\n"), "{shown}");
    let shown = told(CHINESE);
    assert!(shown.contains("同類的還有 2 個\n"), "{shown}");
}

/// The file was expected to be called like the folder, and not as the build calls it.
#[test]
fn a_project_in_a_folder_of_another_name_was_never_built() {
    let project = Project::new();
    project.save("strict");
    let tools = project.path("tools");
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").expect("a path"));
    let run = |arguments: &[&str]| {
        let mut command = project.0.command(arguments);
        command.current_dir(project.0.path()).env("PATH", &path);
        finish(command, "").ok()
    };
    for (language, tool) in [("js", "npm"), ("python", "python")] {
        let (name, folder) = (format!("newest-{language}"), format!("clone-{language}"));
        run(&["policy", "new", &name, "--lang", language]);
        fs::rename(project.path(&name), project.path(&folder)).expect("another name");
        // In place of the tools that build: the file gets the name that the project's script says.
        let own = project.path(&format!("{folder}/.venv/bin"));
        let place = if language == "js" { &tools } else { &own };
        fs::create_dir_all(place).expect("a folder");
        let builds = format!("#!/bin/sh\nexec cp ../mine/source.wasm {name}.wasm\n");
        fs::write(place.join(tool), builds).expect("a program");
        fs::set_permissions(place.join(tool), fs::Permissions::from_mode(0o700)).expect("a program");
        let shown = run(&["policy", "dev", &folder, "--histories", "histories", "--once"]).stdout;
        assert!(shown.contains(&format!("`{folder}/{name}.good.wasm`")), "{shown}");
    }
}

/// Regression: it failed to resolve an import, without a hint, after the build that most people try first.
#[test]
fn a_module_built_for_wasi_0_1_was_refused_without_a_hint() {
    let project = Project::new();
    let module = r#"(module (import "wasi_snapshot_preview1" "environ_get" (func (param i32 i32) (result i32))))"#;
    fs::write(project.path("mine/source.wasm"), wat::parse_str(module).expect("a module")).expect("a file");
    let finished = project.once(COPY);
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stdout);
    let hint = "  hint: it imports `wasi_snapshot_preview1`, which no component does: build it with `cargo component";
    assert!(finished.stderr.contains(hint), "{}", finished.stderr);
    assert!(project.once_in_chinese(COPY).contains("  提示：它匯入 `wasi_snapshot_preview1`"));
}

/// Regression: all that cargo or rustup printed was the error, backtrace and all, without a hint.
#[test]
fn a_cargo_that_cannot_work_was_quoted_at_length_and_without_a_hint() {
    let project = Project::new();
    project.write("mine/Cargo.toml", "[package]\nname = \"mine\"\n");
    let cargo = project.path("cargo");
    // As of a toolchain file and of a damaged manifest.
    let said = "info: syncing\nerror: no default is configured\n  --> Cargo.toml:4:5\n\nStack backtrace:\n   0: anyhow::error\n   1: rustup::main";
    fs::write(&cargo, format!("#!/bin/sh\nprintf '{said}' >&2\nexit 1\n")).expect("a program");
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o700)).expect("a program");
    let dev = |language: &str| {
        let mut command = project.0.command(&["policy", "dev", "mine", "--once"]);
        command.current_dir(project.0.path()).env("CARGO", &cargo).env("LC_ALL", language);
        finish(command, "").stderr
    };
    let expected = "error: `cargo metadata` failed: Cargo.toml:4:5: no default is configured\n  hint: correct the \
                    project's `Cargo.toml`, or choose a toolchain with `rustup default stable`; or use `--build COMMAND \
                    --component FILE`\n";
    assert_eq!(dev("C"), expected);
    let expected =
        "錯誤：`cargo metadata` 失敗：Cargo.toml:4:5: no default is configured\n  提示：請修正專案的 `Cargo.toml`";
    let shown = dev(CHINESE);
    assert!(shown.starts_with(expected), "{shown}");
}
