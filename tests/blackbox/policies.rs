//! Policy files, good and bad, as an operator meets them.

use crate::support::{Home, component, of_type, question, repository};

#[test]
fn inspect_shows_what_a_component_is() {
    let home = Home::new();
    let shown = home.run(&["policy", "inspect", &component("strict")], "").ok().stdout;
    // Digest and size change with the compiler.
    insta::with_settings!({filters => vec![
        (r"[0-9a-f]{64}", "[sha256]"),
        (r"\d+ bytes", "[size] bytes"),
    ]}, { insta::assert_snapshot!(shown) });
    let document = home.run(&["--json", "policy", "inspect", &component("strict")], "").ok().json();
    assert_eq!(document["name"], "strict");
    assert_eq!(document["exports"], serde_json::json!(["cap", "prune", "recover"]));
}

#[test]
fn a_bad_file_is_one_clear_line_with_a_hint() {
    let home = Home::new();
    let strict = std::fs::read(component("strict")).expect("the component");
    let files = [
        ("missing", None),
        ("empty.wasm", Some(vec![])),
        ("truncated.wasm", Some(strict[..strict.len() / 2].to_vec())),
        ("text.wasm", Some(b"hello".to_vec())),
        ("core.wasm", Some(b"\0asm\x01\0\0\0".to_vec())),
        ("nothing.wasm", Some(b"\0asm\x0d\0\x01\0".to_vec())),
    ];
    let mut shown = String::new();
    for (name, content) in files {
        let path = match content {
            Some(content) => home.write(name, content),
            None => home.path().join(name),
        };
        let finished = home.run(&["run", "--model", "sim", "--policy", &path.display().to_string()], "");
        assert_eq!(finished.status.code(), Some(1), "{name}");
        assert_eq!(finished.stdout, "", "{name}");
        shown.push_str(&finished.stderr.replace(&format!("{}/", home.path().display()), ""));
    }
    insta::with_settings!({filters => vec![
        // Where a cut component ends changes with every build.
        (r"not a valid component: .*", "not a valid component: [..]"),
    ]}, { insta::assert_snapshot!(shown) });
}

#[test]
fn a_bad_setting_is_named() {
    let home = Home::new();
    let strict = component("strict");
    let mut shown = String::new();
    for set in
        ["strict.max-session-token=1", "strict.seed-cap=many", "strict.seed-cap=-1", "loose.seed-cap=1", "seed-cap=1"]
    {
        let finished = home.run(&["run", "--model", "sim", "--policy", &strict, "--set", set], "");
        assert_ne!(finished.status.code(), Some(0), "{set}");
        shown.push_str(&finished.stderr);
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_warm_start_does_not_compile() {
    let home = Home::cold();
    let strict = component("strict");
    let run = || {
        let mut command = home.command(&["run", "--policy", &strict, "--model", "sim"]);
        command.env("PMK_LOG", "pmk_host=debug");
        crate::support::finish(command, &question("Ev1", "hello")).ok().stderr
    };
    assert!(run().contains("cached=0 compiled=2"), "the first start compiles both");
    assert!(run().contains("cached=2 compiled=0"), "the second takes what the first compiled");
}

#[test]
fn a_component_built_against_1_0_0_still_decides() {
    let home = Home::new();
    let old = repository("tests/contract-1.0.0/strict.wasm").display().to_string();
    let history = repository("tests/fixtures/tool-heavy-en.json").display().to_string();
    let plan = |policy: &str| {
        // Room for the last turn: where there is less, today's cuts it short.
        let arguments = ["plan", "--policy", policy, "--history", &history, "--budget", "20000", "--json"];
        let plan = home.run(&arguments, "").ok().json();
        assert_eq!(plan["decided_by"], "strict", "{plan:#}");
        plan["kept"].clone()
    };
    assert_eq!(plan(&old), plan(&component("strict")));
}

/// Once, `--policy strict` failed although it was there.
#[test]
fn what_comes_with_the_program_goes_by_name() {
    let home = Home::new();
    for name in ["caps", "facts-summary", "recall", "rolling-summary", "standard", "strict", "tool-lean"] {
        let shown = home.run(&["--json", "policy", "inspect", name], "").ok().json();
        assert_eq!(shown["name"], name, "{shown}");
        let of_file = home.run(&["--json", "policy", "inspect", &component(name)], "").ok().json();
        assert_eq!(shown["sha256"], of_file["sha256"], "{name}");
    }
    // A file of that name is named by its path.
    let file = home.write("strict", "no component");
    home.write("gateway.json", r#"{"version":1,"policy":{"files":["recall","strict","standard"]}}"#);
    let answered = home.run(&["run", "--model", "sim"], &question("Ev1", "who decides?")).ok();
    assert_eq!(of_type(&answered.lines(), "turn")[0]["policy"]["name"], "strict", "{}", answered.stdout);
    let file = file.to_str().expect("UTF-8");
    let refused = home.run(&["run", "--model", "sim", "--policy", file], "");
    assert!(refused.stderr.contains(file), "{}", refused.stderr);
    let mistyped = home.run(&["run", "--model", "sim", "--policy", "strikt"], "");
    assert_eq!(mistyped.status.code(), Some(1));
    insta::assert_snapshot!(mistyped.stderr);
}
