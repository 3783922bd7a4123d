//! `model explain` and `model tokens`: what the gateway makes of errors and of texts.

use serde_json::json;

use crate::support::Home;

const TOO_LONG: &str = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 204,001 tokens > 200,000 maximum"}}"#;

#[test]
fn one_error_is_explained() {
    let home = Home::new();
    let body = home.write("body.json", TOO_LONG).display().to_string();
    let arguments = ["model", "explain", "--provider", "anthropic-api", "--status", "400", "--body-file", &body];
    insta::assert_snapshot!(home.run(&arguments, "").ok().stdout);
    insta::assert_json_snapshot!(home.run(&[&["--json"], &arguments[..]].concat(), "").ok().json());
}

#[test]
fn a_body_on_standard_input_that_steers_the_terminal() {
    let home = Home::new();
    let arguments = ["model", "explain", "--provider", "openai", "--body-file", "-"];
    let shown = home.run(&arguments, "429 \u{1b}[2Jslow down, try again in 2.5 s").ok().stdout;
    insta::assert_snapshot!(shown);
}

#[test]
fn a_prompt_that_was_cut_off_in_silence() {
    let home = Home::new();
    let body = json!({"choices": [{"finish_reason": "length", "message": {"content": ""}}],
                      "usage": {"prompt_tokens": 7_990, "completion_tokens": 0}});
    let explain = |window: &str| {
        let arguments = [
            "--json",
            "model",
            "explain",
            "--provider",
            "ollama",
            "--status",
            "200",
            "--window",
            window,
            "--body-file",
            "-",
        ];
        home.run(&arguments, &body.to_string()).ok().json()["class"].clone()
    };
    assert_eq!(explain("8000"), "context_overflow");
    assert_eq!(explain("9000"), "other");
}

#[test]
fn many_errors_are_explained_a_line_each() {
    let home = Home::new();
    let nested = json!({"error": {"message": "Provider returned error", "metadata": {"raw": TOO_LONG}}});
    let cases = [
        json!({"id": "object", "provider": "openrouter", "status": 400, "body": nested}),
        json!({"id": "text", "provider": "anthropic-api", "status": 400, "body": TOO_LONG}),
        json!({"id": "no status", "provider": "claude-cli", "status": null, "body": "Prompt is too long"}),
        json!({"id": 7, "provider": "groq", "status": 429, "body": "tokens per minute (TPM): Limit 8000, Used 7500, Requested 1000, please try again in 3.5s"}),
        json!({"id": "size", "provider": "groq", "status": 413, "body": "tokens per minute (TPM): Limit 8000, Requested 8098"}),
        json!({"id": "slack", "provider": "slack", "status": 200, "body": {"ok": false, "error": "msg_too_long"}}),
        json!({"id": "load", "provider": "anthropic-api", "status": 529, "body": ""}),
        json!({"id": "key", "provider": "openai", "status": 401, "body": {"error": {"code": "invalid_api_key"}}}),
        json!({"id": "money", "provider": "openai", "status": 429, "body": {"error": {"code": "insufficient_quota"}}}),
        json!({"id": "tools", "provider": "anthropic-api", "status": 400, "body": "`tool_use` ids were found without `tool_result` blocks immediately after: a"}),
        json!({"id": "declined", "provider": "azure", "status": 400, "body": {"error": {"code": "content_filter"}}}),
        json!({"id": "wire", "provider": "openai", "status": null, "body": "socket hang up"}),
        json!({"id": "time", "provider": "openai", "status": 408, "body": null}),
        json!({"id": "prose", "provider": "openai", "status": null, "body": "Let's investigate the context overflow bug"}),
    ];
    let file = home.write("cases.jsonl", cases.map(|case| case.to_string()).join("\r\n") + "\n\n");
    let explained = home.run(&["model", "explain", "--cases", &file.display().to_string()], "").ok();
    insta::assert_snapshot!(explained.stdout);
    assert_eq!(explained.stderr, "");
    let same =
        home.run(&["model", "explain", "--cases", "-"], &std::fs::read_to_string(&file).expect("the cases")).ok();
    assert_eq!(same.stdout, explained.stdout);
}

#[test]
fn a_bad_case_is_named_and_the_others_are_answered() {
    let home = Home::new();
    let lines = [
        r#"{"id":"first","provider":"openai","status":503,"body":""}"#,
        "not JSON",
        r#"{"id":"no body","provider":"openai","status":400}"#,
        r#"{"id":["x"],"provider":"openai","body":""}"#,
        r#"{"id":"status","provider":"openai","status":"many","body":""}"#,
        r#"{"id":"status","provider":"openai","status":99999,"body":""}"#,
        r#"{"id":"provider","provider":7,"body":""}"#,
        r#"{"id":"last","provider":"openai","body":"fetch failed"}"#,
    ];
    let file = home.write("cases.jsonl", lines.join("\n")).display().to_string();
    let finished = home.run(&["model", "explain", "--cases", &file], "");
    assert_eq!(finished.status.code(), Some(1));
    assert_eq!(finished.lines().iter().map(|line| line["id"].clone()).collect::<Vec<_>>(), ["first", "last"]);
    insta::assert_snapshot!(finished.stderr.replace(&format!("{}/", home.path().display()), ""));
    let as_json = home.run(&["--json", "model", "explain", "--cases", &file], "");
    let errors: Vec<serde_json::Value> =
        as_json.stderr.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(errors.len(), 7);
    assert!(errors.iter().all(|error| error["type"] == "error"), "{errors:?}");
}

#[test]
fn arguments_that_make_no_sense() {
    let home = Home::new();
    for arguments in [
        &["model", "explain"][..],
        &["model", "explain", "--provider", "openai"],
        &["model", "explain", "--provider", "openai", "--status", "99", "--body-file", "-"],
        &["model", "explain", "--cases", "-", "--status", "400"],
    ] {
        assert_eq!(home.run(arguments, "").status.code(), Some(2), "{arguments:?}");
    }
    let missing = home.run(&["model", "explain", "--cases", "nowhere.jsonl"], "");
    assert_eq!(missing.status.code(), Some(1));
    assert!(missing.stderr.contains("`nowhere.jsonl` cannot be read") && missing.stderr.contains("hint: "));
}

#[test]
fn tokens_of_a_text() {
    let home = Home::new();
    let text = home.write("text.md", "預算還剩多少？ The launch is on Friday.\n".repeat(50)).display().to_string();
    let mut shown = String::new();
    for model in ["claude-haiku-4-5", "openai:llama3.2", "sim", "anthropic-api"] {
        shown.push_str(&home.run(&["model", "tokens", "--model", model, &text], "").ok().stdout);
    }
    shown.push_str(&home.run(&["model", "tokens"], "hello").ok().stdout);
    shown.push_str(&home.run(&["model", "tokens", "-"], "").ok().stdout);
    insta::assert_snapshot!(shown);
    let counted = home.run(&["--json", "model", "tokens", "--model", "gpt-5", &text], "").ok().json();
    insta::assert_json_snapshot!(counted);
}

#[test]
fn what_has_no_tokens_is_said() {
    let home = Home::new();
    let binary = home.write("binary", b"\xff\xfe\0").display().to_string();
    let mut shown = String::new();
    for arguments in [&["model", "tokens", &binary][..], &["model", "tokens", "--model", "nobody", "-"]] {
        let finished = home.run(arguments, "hello");
        assert_eq!(finished.status.code(), Some(1), "{arguments:?}");
        shown.push_str(&finished.stderr.replace(&format!("{}/", home.path().display()), ""));
    }
    insta::assert_snapshot!(shown);
}
