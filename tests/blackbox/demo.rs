//! What a newcomer sees first, without a key, a network or a home.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

use crate::{
    support::{Home, finish, program},
    terminal::Terminal,
};

#[test]
fn the_table_in_english() {
    insta::assert_snapshot!(Home::cold().run(&["demo", "--language", "en"], "").ok().stdout);
}

#[test]
fn the_table_in_chinese() {
    insta::assert_snapshot!(Home::cold().run(&["demo", "--plain", "--language", "zh-TW"], "").ok().stdout);
}

/// What the demo is to show holds of its figures, in both languages.
#[test]
fn the_model_refuses_once_and_only_recall_brings_back_what_was_lost() {
    for language in ["en", "zh-TW"] {
        let demo = Home::cold().run(&["--json", "demo", "--language", language], "").ok().json();
        let window = demo["window"].as_u64().expect("a window");
        let lanes = demo["lanes"].as_array().expect("lanes");
        let told = |lane: &Value, key: &str| -> Vec<u64> {
            lane["turns"].as_array().expect("turns").iter().map(|turn| turn[key].as_u64().expect("a number")).collect()
        };
        let [none, strict, recall] = &lanes[..] else { panic!("{lanes:?}") };
        assert_eq!(told(none, "refusals").iter().sum::<u64>(), 1, "{language}: {none}");
        assert!(told(none, "tokens_largest").iter().any(|&tokens| tokens > window), "{language}: {none}");
        for lane in [strict, recall] {
            assert_eq!(told(lane, "refusals").iter().sum::<u64>(), 0, "{language}: {lane}");
            assert!(told(lane, "tokens_largest").iter().all(|&tokens| tokens <= window), "{language}: {lane}");
        }
        for lane in lanes {
            assert!(told(lane, "tokens_sent").iter().all(|&tokens| tokens <= window), "{language}: {lane}");
            assert!(lane["turns"].as_array().expect("turns").iter().all(|turn| turn["answered"] == true), "{language}");
            // The fact is out of view in every lane.
            assert!(lane["last"]["turns_out_of_view"].as_u64() > demo["said_in_turn"].as_u64(), "{language}: {lane}");
        }
        let found: Vec<&Value> = lanes.iter().map(|lane| &lane["found"]).collect();
        assert_eq!(found, [false, false, true], "{language}");
    }
}

#[test]
fn a_terminal_watches_the_lanes_fill() {
    let home = Home::cold();
    let mut command = home.command(&["demo", "--language", "en", "--seconds", "6"]);
    command.env("TERM", "xterm");
    let mut terminal = Terminal::start(command);
    terminal.wait_for("The model refuses:", 1);
    terminal.wait_for("21 messages brought back", 1);
    assert!(terminal.wait().success());
    assert!(terminal.screen.contains("refused once · recovered (trim)"), "{}", terminal.screen);
}

#[test]
fn it_leaves_nothing_behind() {
    let home = Home::cold();
    let mut command = Command::new(program());
    command.env_clear().env("HOME", home.path()).arg("demo");
    finish(command, "").ok();
    assert_eq!(fs::read_dir(home.path()).expect("a folder").count(), 0);
}

/// `docs/pictures/record docs/pictures/demo.svg 84 30 pmk-host demo` makes it anew.
#[test]
fn the_picture_shows_what_the_demo_shows() {
    let picture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures/demo.svg");
    let picture = fs::read_to_string(picture).expect("the picture");
    let demo = Home::cold().run(&["--json", "demo", "--language", "en"], "").ok().json();
    for lane in demo["lanes"].as_array().expect("lanes") {
        let last = lane["turns"].as_array().and_then(|turns| turns.last()).expect("a turn");
        let sent = last["tokens_sent"].as_u64().expect("a number");
        let shown = format!(">{},{:03}<", sent / 1_000, sent % 1_000);
        assert!(picture.contains(&shown), "{shown} of {} is not in the picture", lane["policy"]);
    }
}
