//! Tests with shell scripts. The stand-in program has its own tests under `tests/`.

use pmk_stand_ins::patience::{PATIENCE, let_pass};

use super::*;

/// Returns an `mra` that runs this script; `$1` is `ask`, `$2` the repository, `$3` the question.
fn mra(script: &str) -> Mra {
    Mra::new(Config {
        program: "sh".into(),
        arguments: ["-c", script, "mra"].map(OsString::from).into(),
        environment: child::inherit(["PATH"]),
        time_limit: PATIENCE,
        ..Config::default()
    })
}

async fn ask(mra: &Mra, question: &str) -> (Outcome, Vec<String>) {
    let question = MraQuestion::new("erp", question).expect("a good question");
    let mut progress = Vec::new();
    let outcome = mra.ask(&question, &CancellationToken::new(), |line| progress.push(line.to_owned())).await;
    (outcome, progress)
}

#[tokio::test]
async fn arguments_arrive_as_they_are() {
    let (outcome, _) = ask(&mra(r#"printf '%s|' "$#" "$@""#), "$(id); `id` \"'*\n--help").await;
    assert_eq!(outcome.result.as_deref(), Ok("3|ask|erp|$(id); `id` \"'*\n--help|"));
    let (outcome, _) = ask(&mra(r#"printf %s "$3""#), "--help").await;
    assert_eq!(outcome.result.as_deref(), Ok("Q: --help"));
}

#[tokio::test]
async fn progress_has_neither_colours_nor_empty_lines() {
    let script = r"printf '\033[32m[ask] PKB loaded\033[0m\n\n  \n[ask] querying...\nanswer\n'";
    let (outcome, progress) = ask(&mra(script), "q").await;
    assert_eq!(progress, ["[ask] PKB loaded", "[ask] querying...", "answer"]);
    assert_eq!(outcome.result.as_deref(), Ok("[ask] PKB loaded\n\n  \n[ask] querying...\nanswer"));
    assert!(!outcome.retried);
}

/// Fails on the first call and succeeds on the second, using a file that it leaves behind.
fn second_time_lucky(directory: &tempfile::TempDir, complaint: &str) -> Mra {
    let mut mra = mra(&format!("{complaint} if [ -e once ]; then echo ok; else : > once; exit 1; fi"));
    mra.config.workspace = Some(directory.path().into());
    mra
}

#[tokio::test]
async fn a_silent_failure_is_tried_once_more() {
    let directory = tempfile::tempdir().expect("a directory");
    let (outcome, _) = ask(&second_time_lucky(&directory, ""), "q").await;
    assert_eq!((outcome.result.as_deref(), outcome.retried), (Ok("ok"), true));
    let (outcome, _) = ask(&mra("exit 7"), "q").await;
    assert_eq!(outcome.result, Err(Failure::Exited { code: 7, stderr: String::new(), stdout: String::new() }));
    assert!(outcome.retried);
    let (outcome, _) = ask(&mra("echo '  '"), "q").await;
    assert_eq!((outcome.result, outcome.retried), (Err(Failure::NoAnswer { stderr: String::new() }), true));
}

#[tokio::test]
async fn a_failure_with_a_reason_is_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let (outcome, _) = ask(&second_time_lucky(&directory, "echo no index >&2;"), "q").await;
    assert_eq!(outcome.result, Err(Failure::Exited { code: 1, stderr: "no index".into(), stdout: String::new() }));
    assert!(!outcome.retried);
}

#[tokio::test]
async fn a_call_that_hangs_is_ended_and_not_repeated() {
    let mut mra = mra("echo started; sleep 600");
    let limit = Duration::from_secs(3_600);
    mra.config.time_limit = limit;
    let question = MraQuestion::new("erp", "q").expect("a good question");
    let (said, mut progress) = tokio::sync::mpsc::unbounded_channel();
    let cancel = CancellationToken::new();
    let ask = mra.ask(&question, &cancel, |line| said.send(line.to_owned()).expect("the test reads on"));
    let watch = async {
        assert_eq!(progress.recv().await.as_deref(), Some("started"));
        let_pass(limit).await;
    };
    let (outcome, ()) = tokio::join!(ask, watch);
    let expected = Failure::TimedOut { after: limit, stderr: String::new(), stdout: "started".into() };
    assert_eq!((outcome.result, outcome.retried), (Err(expected), false));
    assert!(progress.try_recv().is_err(), "it was called again");
}

#[tokio::test]
async fn megabytes_and_bytes_that_are_no_text_do_no_harm() {
    let (outcome, _) = ask(&mra("yes 0123456789 | head -c 3000000"), "q").await;
    let text = outcome.result.expect("a result");
    assert!(text.len() < MAX_RESULT_BYTES + 100, "{}", text.len());
    assert!(text.ends_with("\n…(mra: 1048576 / 3000000 bytes)"));
    let (outcome, _) = ask(&mra(r"printf 'a\377b'"), "q").await;
    assert_eq!(outcome.result.as_deref(), Ok("a\u{fffd}b"));
    // Invalid bytes grow when they are replaced; the limit still holds.
    let (outcome, _) = ask(&mra(r"yes $(printf '\377') | head -c 2000000"), "q").await;
    assert!(outcome.result.expect("a result").len() < MAX_RESULT_BYTES + 100);
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let mra = Mra::new(Config { program: "no-such-mra".into(), ..Config::default() });
    let (outcome, _) = ask(&mra, "q").await;
    assert_eq!(outcome.result, Err(Failure::NotStarted { message: "`no-such-mra` was not found".into() }));
}

#[tokio::test]
async fn stopping_the_gateway_ends_the_call() {
    let question = MraQuestion::new("erp", "q").expect("a good question");
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let outcome = mra("echo started; sleep 600").ask(&question, &cancel, |_| token.cancel()).await;
    assert_eq!((outcome.result, outcome.retried), (Err(Failure::Cancelled), false));
}
