//! Changed files and signals: nobody is there who would read a reply.

use std::{fs::Permissions, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{await_events, await_policy, decides, file, policy_use, send, start, text};
use crate::{
    component::Component,
    moments::Moments,
    support::{Home, component, until},
};

#[test]
fn a_file_that_changes_is_taken_once_it_is_whole() {
    let home = Home::new();
    let mine = file(&home, "strict");
    let mut gateway = start(&home, &["--policy", text(&mine)]);
    assert_eq!(decides(&mut gateway), "strict");

    // Written in place and bit by bit, as a copy over a network is. That none of the bits is taken for the whole is
    // held where time can be told what it is, in `policies::watch`.
    let next = std::fs::read(component("rolling-summary")).expect("a component");
    for end in [next.len() / 3, next.len() / 2, next.len()] {
        std::fs::write(&mine, &next[..end]).expect("a file");
    }
    await_policy(&mut gateway, "rolling-summary");

    // Replaced by a rename, as editors and package managers do; the same component changes nothing.
    std::fs::rename(home.write("next.wasm", &next), &mine).expect("a rename");
    std::fs::rename(home.write("next.wasm", std::fs::read(component("strict")).expect("a component")), &mine)
        .expect("a rename");
    await_policy(&mut gateway, "strict");
    let events = await_events(&home, "policy.swapped", 2);
    assert!(events.iter().all(|event| event["by"] == "file"), "{events:#?}");
}

#[test]
fn a_file_that_changes_while_it_is_loaded_is_not_missed() {
    // Nothing is compiled yet, so the start takes a while: first the embedded policy, then this one.
    let home = Home::cold();
    let mine = file(&home, "strict");
    let mut gateway = start(&home, &["--policy", text(&mine)]);
    let compiled = home.path().join("cache/components");
    until("the embedded policy is compiled", || holds_a_file(&compiled).then_some(()));
    Moments::new().pass_blocking(Duration::from_millis(200));
    std::fs::write(&mine, std::fs::read(component("rolling-summary")).expect("a component")).expect("a file");
    await_policy(&mut gateway, "rolling-summary");
}

/// Whether there is a compiled component somewhere in this folder.
pub(super) fn holds_a_file(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.into_iter().any(|path| path.is_file() && !text(&path).contains(".staged-") || holds_a_file(&path))
}

#[test]
fn a_file_that_changes_for_the_worse_is_told_once() {
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"admins":["UADMIN"],"language":"en"}"#);
    let mine = file(&home, "strict");
    let mut gateway = start(&home, &["--policy", text(&mine)]);
    assert_eq!(decides(&mut gateway), "strict");

    let write = |content: &[u8]| std::fs::write(&mine, content).expect("a file");
    write(b"oops");
    await_events(&home, "policy.refused", 1);
    write(b"oops again");
    await_events(&home, "policy.refused", 2);
    write(&std::fs::read(component("rolling-summary")).expect("a component"));
    await_events(&home, "policy.swapped", 1);
    write(b"not again");
    await_events(&home, "policy.refused", 3);

    let (status, lines) = gateway.end();
    assert!(status.success());
    let told: Vec<&Value> = lines.iter().filter(|line| line["channel"] == "UADMIN").collect();
    assert_eq!(told.len(), 2, "once until they could be used again: {lines:#?}");
    assert_shown!(home, told[0]["text"].as_str().expect("a text"));
}

/// Regression: whoever had been told of a refused signal was told of no bad file.
#[test]
fn a_file_that_changed_for_the_worse_after_a_refused_hangup_was_not_told() {
    let home = Home::new();
    let mine = file(&home, "strict");
    let configure = |file: &str| {
        let policy = json!({"files": [file]});
        home.write(
            "gateway.json",
            json!({"version": 1, "admins": ["UADMIN"], "language": "en", "policy": policy}).to_string(),
        );
    };
    configure(text(&mine));
    let mut gateway = start(&home, &[]);
    assert_eq!(decides(&mut gateway), "strict");
    configure("/nowhere.wasm");
    send(gateway.pid(), Signal::HUP);
    await_events(&home, "policy.refused", 1);
    std::fs::write(&mine, b"oops").expect("a file");
    await_events(&home, "policy.refused", 2);
    let (status, lines) = gateway.end();
    assert!(status.success());
    let told: Vec<&Value> = lines.iter().filter(|line| line["channel"] == "UADMIN").collect();
    assert_eq!(told.len(), 2, "{lines:#?}");
}

/// The file had to change once more.
#[test]
fn a_file_that_was_refused_for_gateway_json_was_not_tried_again_once_that_was_mended() {
    let home = Home::new();
    let mine = file(&home, "strict");
    let mut gateway = start(&home, &["--policy", text(&mine)]);
    assert_eq!(decides(&mut gateway), "strict");
    home.write("gateway.json", "{");
    file(&home, "rolling-summary");
    await_events(&home, "policy.refused", 1);
    home.write("gateway.json", r#"{"version":1}"#);
    await_policy(&mut gateway, "rolling-summary");
}

/// The file had to change once more: its stamp and that of gateway.json stayed as they were.
#[test]
fn a_file_that_was_refused_while_others_could_change_the_home_was_not_tried_again_once_they_could_not() {
    let home = Home::new();
    let mine = file(&home, "strict");
    let mut gateway = start(&home, &["--policy", text(&mine)]);
    assert_eq!(decides(&mut gateway), "strict");
    let set = |mode| std::fs::set_permissions(home.path(), Permissions::from_mode(mode)).expect("a mode");
    set(0o720);
    file(&home, "rolling-summary");
    await_events(&home, "policy.refused", 1);
    set(0o700);
    await_policy(&mut gateway, "rolling-summary");
}

/// Regression: `seedMayGo` stayed what it was at the start, although all else of `policy` was read again.
#[test]
fn a_hangup_lets_the_seed_go_once_the_operator_allows_it() {
    let home = Home::new();
    let notes = home.path().join("notes");
    std::fs::create_dir(&notes).expect("a folder");
    std::fs::write(notes.join("a.md"), "what the team knows").expect("a file");
    let drops_the_seed = Component::pruning("(call $remove (local.get $plan) (i32.const 0) (i32.const 2))").build();
    let mine = home.write("mine.wasm", drops_the_seed);
    let configure = |seed_may_go: bool| {
        let policy = json!({"files": [text(&mine)], "seedMayGo": seed_may_go});
        let ingest = format!("dir:{}", notes.display());
        home.write("gateway.json", json!({"version": 1, "policy": policy, "defaultIngest": ingest}).to_string());
    };
    configure(false);
    let mut gateway = start(&home, &[]);
    assert_eq!(decides(&mut gateway), "standard");
    let refused = await_events(&home, "policy.failed", 1);
    assert_eq!(refused[0]["reason"], "removing 0..2 removes the seed pair");
    configure(true);
    send(gateway.pid(), Signal::HUP);
    await_events(&home, "policy.swapped", 1);
    assert_eq!(decides(&mut gateway), "test");
    policy_use(&home, &["standard"]).ok();
    configure(false);
    policy_use(&home, &["--previous"]).ok();
    home.run(&["sessions", "reset", "console:dm:U1"], "").ok();
    assert_eq!(decides(&mut gateway), "standard", "it is allowed what gateway.json allows now");
    await_events(&home, "policy.failed", 2);
}

#[test]
fn a_hangup_loads_what_a_start_would() {
    let home = Home::new();
    let configure = |names: &[&str]| {
        let files: Vec<String> = names.iter().map(|name| component(name)).collect();
        home.write("gateway.json", json!({"version": 1, "policy": {"files": files}}).to_string());
    };
    configure(&["strict"]);
    let mut gateway = start(&home, &[]);
    assert_eq!(decides(&mut gateway), "strict");
    configure(&["strict", "rolling-summary"]);
    assert_eq!(decides(&mut gateway), "strict", "gateway.json is not watched for this");
    let hangup = || send(gateway.pid(), Signal::HUP);
    hangup();
    let events = await_events(&home, "policy.swapped", 1);
    assert_eq!(events[0]["by"], "signal");
    assert_eq!(events[0]["serving"].as_array().map(Vec::len), Some(3));
    home.write("gateway.json", r#"{"version":1,"policy":{"files":["/nowhere.wasm"]}}"#);
    hangup();
    await_events(&home, "policy.refused", 1);
    assert_eq!(decides(&mut gateway), "rolling-summary");
}
