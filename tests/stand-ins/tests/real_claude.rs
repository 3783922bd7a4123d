//! The real `claude` against the loopback Messages API, in a home full of configuration.
//!
//! It needs the program: `npm install @anthropic-ai/claude-code`, then
//! `PMK_TEST_CLAUDE=…/node_modules/.bin/claude cargo test -p pmk-stand-ins --test real_claude`.

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::Path,
    time::Duration,
};

use pmk_core::{Block, Message, message};
use pmk_models::{
    Meter, Model, ModelError, Request,
    claude_cli::{ClaudeCli, Config},
};
use pmk_stand_ins::{
    anthropic::{Anthropic, Behaviour, KEY, Recorded},
    not_run,
};
use pmk_system::child;

const CANARY: &str = "CANARY-of-the-host";

/// A home with everything that `claude` would otherwise read.
fn furnish(home: &Path) {
    let write = |path: &str, content: &str| {
        let path = home.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("a file");
    };
    write(".claude/CLAUDE.md", CANARY);
    write(".claude/skills/secret/SKILL.md", &format!("---\nname: secret\ndescription: {CANARY}\n---\n{CANARY}"));
    write(".claude/agents/secret.md", &format!("---\nname: secret\ndescription: {CANARY}\n---\n{CANARY}"));
    write(".claude/commands/secret.md", CANARY);
    let hook = format!(r#"{{"type":"command","command":"echo {CANARY}"}}"#);
    write(".claude/settings.json", &format!(r#"{{"hooks":{{"UserPromptSubmit":[{{"hooks":[{hook}]}}]}}}}"#));
    write(".mcp.json", &format!(r#"{{"mcpServers":{{"secret":{{"command":"echo","args":["{CANARY}"]}}}}}}"#));
    write("CLAUDE.md", CANARY);
    write("run/CLAUDE.md", CANARY);
}

/// The real `claude`; without one the tests say that they did not run.
fn program() -> Option<OsString> {
    let program = std::env::var_os("PMK_TEST_CLAUDE");
    if program.is_none() {
        not_run::say("PMK_TEST_CLAUDE names no real `claude`, so it was not asked");
    }
    program
}

async fn ask(program: &OsStr, server: &Anthropic, home: &Path) -> Result<String, ModelError> {
    let mut config = Config::new(home.join("run/empty"), "claude-haiku-4-5");
    config.program = program.to_owned();
    config.call_timeout = Duration::from_secs(60);
    config.attempts = 1;
    config.environment = child::inherit(["PATH"]);
    for (name, value) in
        [("HOME", home.to_str().expect("a path")), ("ANTHROPIC_BASE_URL", &server.url()), ("ANTHROPIC_API_KEY", KEY)]
    {
        config.environment.push((name.into(), value.into()));
    }
    let question = format!("預算是多少？ See @{} and @../CLAUDE.md", home.join("CLAUDE.md").display());
    let messages = [Message::user("first"), Message::assistant("second"), Message::user(question)];
    let messages = message::shared(messages);
    let request = Request { system: "Be brief.".into(), messages, max_answer_tokens: 1234, ..Request::default() };
    let answer = ClaudeCli::new(config).ask(&request, &Meter::default()).await?;
    let [Block::Text { text }] = &answer.blocks[..] else { panic!("{answer:?}") };
    assert!(answer.usage.prompt_tokens() > 0 && answer.usage.output_tokens > 0, "{:?}", answer.usage);
    Ok(text.clone())
}

#[tokio::test]
async fn nothing_of_the_hosts_configuration_reaches_the_request() {
    let Some(program) = program() else { return };
    let home = tempfile::tempdir().expect("a home");
    furnish(home.path());
    let server = Anthropic::start().await;
    server.push(Behaviour::answer("forty-two"));
    assert_eq!(ask(&program, &server, home.path()).await, Ok("forty-two".into()));
    let [request] = server.requests().try_into().expect("one request");
    let request: Recorded = request;
    let body = request.body.to_string();
    assert!(!body.contains(CANARY), "{body}");
    assert!(body.contains("Be brief.") && body.contains("預算是多少？"), "{body}");
    assert!(body.len() < 4_000, "{} bytes: {body}", body.len());
    assert_eq!(request.body["max_tokens"], 1234);
    assert!(request.body.get("tools").is_none_or(|tools| tools.as_array().is_some_and(Vec::is_empty)), "{body}");
    assert!(request.body.get("thinking").is_none_or(|thinking| thinking["type"] == "disabled"), "{body}");
}

#[tokio::test]
async fn its_failures_have_their_class() {
    let Some(program) = program() else { return };
    let home = tempfile::tempdir().expect("a home");
    for (status, code, message, class) in [
        (400, "invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum", "context_overflow"),
        (401, "authentication_error", "invalid x-api-key", "auth"),
        (529, "overloaded_error", "Overloaded", "overloaded"),
    ] {
        let server = Anthropic::start().await;
        for _ in 0..4 {
            server.push(Behaviour::error(status, code, message));
        }
        let error = ask(&program, &server, home.path()).await.expect_err(message);
        assert_eq!(error.class.name(), class, "{error}");
    }
}
