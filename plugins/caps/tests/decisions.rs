//! The decisions of caps, run natively.

use caps::Caps;
use pmk_policy_sdk::{
    level,
    testing::{
        Harness,
        core::{CapVerdict, Origin},
    },
};

fn cap(kind: Origin, name: &str, content: &str) -> (String, String) {
    let harness = Harness::<Caps>::new().with("tool-result-cap", 100).with("by-name", "grep=40 *.log=60");
    let chars: Vec<char> = content.chars().collect();
    match harness.cap(kind, name, content, 100_000) {
        CapVerdict::Shorten { head, tail } => {
            (chars[..head as usize].iter().collect(), chars[chars.len() - tail as usize..].iter().collect())
        }
        verdict => panic!("{verdict:?}"),
    }
}

#[test]
fn what_fits_stays_whole() {
    let harness = Harness::<Caps>::new();
    for kind in [Origin::Seed, Origin::MraResult, Origin::ToolResult, Origin::Attachment] {
        assert_eq!(harness.cap(kind, "", &"預".repeat(20_000), 100_000), CapVerdict::Keep);
        assert!(matches!(harness.cap(kind, "", &"預".repeat(440_000), 100_000), CapVerdict::Shorten { .. }));
    }
}

#[test]
fn json_keeps_whole_keys_at_both_ends() {
    let rows: Vec<String> = (0..40).map(|n| format!("\"key{n}\": \"value, {n}\"")).collect();
    let (head, tail) = cap(Origin::ToolResult, "fetch", &format!("{{{}}}", rows.join(", ")));
    assert_eq!(head, "{\"key0\": \"value, 0\", \"key1\": \"value, 1\",");
    assert_eq!(tail, " \"key38\": \"value, 38\", \"key39\": \"value, 39\"}");
}

#[test]
fn a_table_keeps_its_header_and_a_log_its_end() {
    let rows: String = (0..40).map(|n| format!("{n},name {n}\n")).collect();
    let (head, tail) = cap(Origin::ToolResult, "query", &format!("id,name\n{rows}"));
    assert!(head.starts_with("id,name\n0,name 0\n") && head.ends_with('\n') && head.chars().count() > 60, "{head}");
    assert_eq!(tail, "39,name 39\n");
    let lines: String = (10..50).map(|n| format!("10:00:{n} step {n}\n")).collect();
    let (head, tail) = cap(Origin::ToolResult, "build.log", &format!("{lines}10:01:00 ERROR no"));
    assert_eq!(head, "10:00:10 ste");
    assert!(tail.starts_with("10:00:4") && tail.ends_with("ERROR no"), "{tail}");
}

#[test]
fn a_name_goes_before_its_kind() {
    let (head, tail) = cap(Origin::ToolResult, "grep", &"words and words ".repeat(50));
    assert_eq!((head.chars().count(), tail.chars().count()), (27, 13));
}

#[test]
fn a_word_that_sets_no_cap_is_told() {
    let harness = Harness::<Caps>::new().with("by-name", "grep=8k *.log:20000, find=30");
    assert_eq!(harness.cap(Origin::ToolResult, "grep", "found", 100_000), CapVerdict::Keep);
    let told = ["grep=8k", "*.log:20000"].map(|word| format!("`{word}` in `by-name` is not `NAME=CHARACTERS`"));
    assert_eq!(harness.log(), told.map(|line| (level::WARN, line)));
}
