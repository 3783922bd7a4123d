//! The `claude-cli` model against the stand-in program: what `claude` gets to see, and what becomes of
//! everything it may say.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use pmk_core::{Block, Message, message};
use pmk_models::{
    Answer, ErrorClass, Meter, Model, ModelError, Request, Stop, Usage,
    claude_cli::{ClaudeCli, Config},
};
use pmk_stand_ins::{
    patience::{PATIENCE, until_async},
    program::{Call, calls},
};
use serde_json::json;

struct Stage {
    directory: tempfile::TempDir,
    config: Config,
}

fn stage(script: &str) -> Stage {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("script");
    std::fs::write(&file, script).expect("a script");
    let mut config = Config::new(directory.path().join("empty"), "sonnet");
    config.program = env!("CARGO_BIN_EXE_claude").into();
    config.arguments = vec!["--script".into(), file.into()];
    config.first_wait = Duration::from_millis(1);
    Stage { directory, config }
}

impl Stage {
    async fn ask(&self) -> Result<Answer, ModelError> {
        self.ask_metered(&Meter::default()).await
    }

    async fn ask_metered(&self, meter: &Meter) -> Result<Answer, ModelError> {
        let messages = vec![Message::user("本月預算?"), Message::assistant("哪個部門?"), Message::user("--help")];
        let request = Request {
            system: "Be brief.".into(),
            messages: message::shared(messages),
            max_answer_tokens: 1234,
            ..Request::default()
        };
        ClaudeCli::new(self.config.clone()).ask(&request, meter).await
    }

    fn script(&self) -> PathBuf {
        self.directory.path().join("script")
    }

    fn calls(&self) -> Vec<Call> {
        calls(&self.script()).expect("recorded calls")
    }
}

#[tokio::test]
async fn an_answer_with_its_usage() {
    let stage = stage("answer 行銷部\\n三萬元");
    let answer = stage.ask().await.expect("an answer");
    assert_eq!(answer.blocks, [Block::Text { text: "行銷部\n三萬元".into() }]);
    assert_eq!(answer.stop, Stop::End);
    assert_eq!((answer.usage.prompt_tokens(), answer.usage.output_tokens), (200, 9));
}

/// Nothing of the host's own configuration reaches the request (specification 000 §cause-2).
#[tokio::test]
async fn claude_sees_what_it_needs_and_nothing_else() {
    let mut stage = stage("answer ok");
    stage.config.environment = vec![("PATH".into(), "/usr/bin:/bin".into()), ("HOME".into(), "/home/op".into())];
    stage.ask().await.expect("an answer");
    let [call] = stage.calls().try_into().expect("one call");
    let call: Call = call;
    assert_eq!(
        call.arguments,
        [
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--include-partial-messages",
            "--tools",
            "",
            "--setting-sources",
            "",
            "--strict-mcp-config",
            "--disable-slash-commands",
            "--no-session-persistence",
            "--model",
            "sonnet",
            "--system-prompt",
            "Be brief.",
        ]
    );
    let names: Vec<_> = call.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        names,
        [
            "CLAUDE_CODE_DISABLE_ATTACHMENTS=1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS=25810",
            "CLAUDE_CODE_MAX_RETRIES=1",
            "DISABLE_AUTOUPDATER=1",
            "HOME=/home/op",
            "MAX_THINKING_TOKENS=0",
            "PATH=/usr/bin:/bin",
        ]
    );
    let empty = stage.directory.path().join("empty").canonicalize().expect("it was created");
    assert_eq!(call.directory, empty);
    assert_eq!(
        call.stdin,
        "=== Conversation so far ===\n\n## User\n\n本月預算?\n\n## Assistant\n\n哪個部門?\n\n=== Current turn ===\n\n--help"
    );
}

#[tokio::test]
async fn every_failure_of_the_api_has_its_class() {
    for (script, class, expected_calls) in [
        ("failure 400", "context_overflow", 1),
        ("failure 401", "auth", 1),
        ("failure 413", "context_overflow", 1),
        ("failure 429", "rate_limited", 2),
        ("failure 529", "overloaded", 2),
    ] {
        let stage = stage(script);
        let error = stage.ask().await.expect_err(script);
        assert_eq!((error.class.name(), stage.calls().len()), (class, expected_calls), "{script}: {error}");
        if script == "failure 400" {
            let ErrorClass::Overflow { observed_tokens, allowed_tokens, .. } = error.class else { panic!("{error}") };
            assert_eq!((observed_tokens, allowed_tokens), (Some(350_000), Some(200_000)));
        }
    }
}

/// The answer was there, paid for, and thrown away ten minutes later.
#[tokio::test]
async fn a_claude_that_has_answered_and_does_not_exit_has_answered() {
    for limit in [Duration::from_secs(1), PATIENCE] {
        let mut stage = stage("answer 三萬元\nhang");
        stage.config.call_timeout = limit;
        let began = Instant::now();
        let answer = stage.ask().await.expect("an answer");
        assert_eq!(answer.blocks, [Block::Text { text: "三萬元".into() }]);
        assert!(began.elapsed() < PATIENCE, "it is not waited for");
    }
}

/// It was counted only once it had ended: what was stopped looked free.
#[tokio::test]
async fn what_a_stopped_claude_had_spent_was_not_counted() {
    let event = |event: serde_json::Value| json!({"type": "stream_event", "event": event});
    let usage = json!({"input_tokens": 120, "cache_read_input_tokens": 50, "output_tokens": 1});
    let start = event(json!({"type": "message_start", "message": {"usage": usage}}));
    let delta = event(json!({"type": "message_delta", "usage": {"output_tokens": 9}}));
    // More than a pipe holds: once it is written, what came before it has been read.
    let stage = stage(&format!("out {start}\nout {delta}\nout {start}\nflood 1000000\nmark said\nhang"));
    let (meter, said) = (Meter::default(), stage.directory.path().join("said"));
    tokio::select! {
        outcome = stage.ask_metered(&meter) => panic!("{outcome:?}"),
        () = until_async("an answer begins", || said.exists().then_some(())) => {}
    }
    let spent = Usage { input_tokens: 240, output_tokens: 10, cache_read_tokens: 100, cache_creation_tokens: 0 };
    assert_eq!(meter.total(), spent);
}

#[tokio::test]
async fn waiting_helps_against_an_overload() {
    let stage = stage("failure 529\n---\nanswer at last");
    assert_eq!(stage.ask().await.map(|answer| answer.blocks), Ok(vec![Block::Text { text: "at last".into() }]));
}

/// It was asked again after two seconds, whatever it had said.
#[tokio::test]
async fn the_wait_that_claude_names_was_not_kept() {
    let busy = |wait: &str| {
        let text = format!("API Error: Request rejected (429) · try again in {wait}");
        let result = json!({"type": "result", "subtype": "success", "is_error": true, "result": text,
                            "api_error_status": 429, "terminal_reason": "completed"});
        format!("out {result}\nexit 1\n---\nanswer at last")
    };
    let before = Instant::now();
    stage(&busy("500ms")).ask().await.expect("an answer");
    assert!(before.elapsed() >= Duration::from_millis(500), "{:?}", before.elapsed());
    let stage = stage(&busy("61s"));
    let error = stage.ask().await.expect_err("too long a wait");
    assert_eq!(error.class, ErrorClass::RateLimited { retry_after: Some(Duration::from_secs(61)) });
    assert_eq!(stage.calls().len(), 1);
}

#[tokio::test]
async fn garbage_silence_and_crashes_are_said() {
    for (script, expected) in [
        ("out not json\nraw ff fe 0a\nflood 3000000\nanswer ok", Ok("ok")),
        ("", Err("ended without a result (exit code 0): ")),
        ("err fatal: no\nerr network\nexit 2", Err("ended without a result (exit code 2): fatal: no network")),
        ("out {\"type\":\"result\"", Err("ended without a result (exit code 0): ")),
    ] {
        let outcome = stage(script).ask().await;
        match (&outcome, expected) {
            (Ok(answer), Ok(text)) => assert_eq!(answer.blocks, [Block::Text { text: text.into() }]),
            (Err(error), Err(text)) => assert!(error.to_string().contains(text), "{script}: {error}"),
            _ => panic!("{script}: {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn a_claude_that_hangs_is_ended() {
    let mut stage = stage("spawn\nhang");
    stage.config.call_timeout = Duration::from_secs(1);
    let before = Instant::now();
    let error = stage.ask().await.expect_err("no answer");
    assert_eq!(error, ModelError::not_done_within(Duration::from_secs(1)));
    assert!(before.elapsed() < PATIENCE, "it waited for what it had started");
}

/// It held its conversation until the time for the whole call was over, ten minutes later.
#[tokio::test]
async fn a_claude_that_prints_nothing_more_is_ended_and_not_asked_again() {
    let mut stage = stage("out {\"type\":\"system\",\"subtype\":\"init\"}\nspawn\nhang");
    stage.config.idle_timeout = Duration::from_secs(2);
    let before = Instant::now();
    assert_eq!(stage.ask().await, Err(ModelError::silent_for(Duration::from_secs(2))));
    assert!(before.elapsed() < PATIENCE, "{:?}", before.elapsed());
    assert_eq!(stage.calls().len(), 1);
}

#[tokio::test]
async fn a_claude_that_prints_something_now_and_then_is_waited_for() {
    let mut stage = stage(&format!("{}answer at last", "out {\"type\":\"system\"}\nsleep 1000\n".repeat(4)));
    stage.config.idle_timeout = Duration::from_secs(3);
    let answer = stage.ask().await.expect("an answer");
    assert_eq!(answer.blocks, [Block::Text { text: "at last".into() }]);
}

#[tokio::test]
async fn a_missing_program_and_a_littered_directory_are_said() {
    let mut stage = stage("answer ok");
    std::fs::create_dir(stage.directory.path().join("empty")).expect("a directory");
    std::fs::write(stage.directory.path().join("empty/CLAUDE.md"), "obey").expect("a file");
    let error = stage.ask().await.expect_err("litter").to_string();
    assert!(error.contains("must be empty"), "{error}");
    assert_eq!(stage.calls(), []);
    stage.config.directory = stage.directory.path().join("other");
    stage.config.program = "no-such-claude".into();
    let error = stage.ask().await.expect_err("no program").to_string();
    assert!(error.starts_with("`no-such-claude` was not found; install it with `npm install"), "{error}");
}
