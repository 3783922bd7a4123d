//! The gateway's side of `mra ask` against the stand-in program.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use pmk_host::{
    front::progress::{Sent, Settings},
    mra::{Config, Failure, Mra, MraQuestion, Outcome},
};
use pmk_stand_ins::{
    patience::{PATIENCE, let_pass, until_async},
    program::calls,
};
use pmk_system::child;
use tokio_util::sync::CancellationToken;

struct Stage {
    directory: tempfile::TempDir,
    mra: Mra,
}

impl Stage {
    fn script(&self) -> PathBuf {
        self.directory.path().join("script")
    }
}

fn stage(script: &str) -> Stage {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("script");
    std::fs::write(&file, script).expect("a script");
    let mra = Mra::new(Config {
        program: env!("CARGO_BIN_EXE_mra").into(),
        arguments: vec!["--script".into(), file.into()],
        workspace: Some(directory.path().to_owned()),
        environment: child::inherit(["PATH"]),
        time_limit: PATIENCE,
    });
    Stage { directory, mra }
}

async fn ask(mra: &Mra) -> (Outcome, Vec<String>) {
    let question = MraQuestion::new("erp", "where is the scope?").expect("a good question");
    let mut lines = Vec::new();
    let outcome = mra.ask(&question, &CancellationToken::new(), |line| lines.push(line.to_owned())).await;
    (outcome, lines)
}

#[tokio::test]
async fn it_is_called_with_nothing_but_the_question() {
    let stage = stage("out [ask] PKB loaded\nout in app/models/sales.rb");
    let (outcome, lines) = ask(&stage.mra).await;
    assert_eq!(outcome.result.as_deref(), Ok("[ask] PKB loaded\nin app/models/sales.rb"));
    assert_eq!(lines, ["[ask] PKB loaded", "in app/models/sales.rb"]);
    let calls = calls(&stage.script()).expect("recorded calls");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].arguments, ["ask", "erp", "where is the scope?"]);
    assert_eq!(calls[0].environment.keys().collect::<Vec<_>>(), ["PATH"]);
    assert_eq!(calls[0].directory, stage.directory.path().canonicalize().expect("it is there"));
    assert_eq!(calls[0].stdin, "");
}

#[tokio::test]
async fn a_silent_failure_is_called_twice_and_a_loud_one_once() {
    let silent = stage("exit 1\n---\nout found");
    let (outcome, _) = ask(&silent.mra).await;
    assert_eq!((outcome.result.as_deref(), outcome.retried), (Ok("found"), true));
    assert_eq!(calls(&silent.script()).expect("recorded calls").len(), 2);

    let loud = stage("err fatal: no index for erp\nexit 3\n---\nout found");
    let (outcome, _) = ask(&loud.mra).await;
    let stderr = "fatal: no index for erp".into();
    assert_eq!(outcome.result, Err(Failure::Exited { code: 3, stderr, stdout: String::new() }));
    assert!(outcome.result.unwrap_err().to_string().contains("fatal: no index for erp"));
    assert_eq!(calls(&loud.script()).expect("recorded calls").len(), 1);
}

#[tokio::test]
async fn what_it_started_dies_with_it() {
    let mut stage = stage("spawn\nhang");
    let time_limit = Duration::from_secs(3_600);
    stage.mra = Mra::new(Config {
        program: env!("CARGO_BIN_EXE_mra").into(),
        arguments: vec!["--script".into(), stage.script().into()],
        environment: child::inherit(["PATH"]),
        time_limit,
        ..Config::default()
    });
    let question = MraQuestion::new("erp", "where is the scope?").expect("a good question");
    let (said, mut lines) = tokio::sync::mpsc::unbounded_channel();
    let cancel = CancellationToken::new();
    let ask = stage.mra.ask(&question, &cancel, |line| said.send(line.to_owned()).expect("the test reads on"));
    let watch = async {
        let line = lines.recv().await.expect("a line");
        let_pass(time_limit).await;
        line
    };
    let (outcome, line) = tokio::join!(ask, watch);
    assert!(matches!(outcome.result, Err(Failure::TimedOut { .. })));
    let pid = line.strip_prefix("grandchild ").expect("the grandchild's number");
    let stat = PathBuf::from(format!("/proc/{pid}/stat"));
    until_async("the end of the grandchild", || is_dead(&stat).then_some(())).await;
}

/// Gone, or waiting to be reaped by whoever inherited it.
fn is_dead(stat: &Path) -> bool {
    std::fs::read_to_string(stat)
        .map_or(true, |stat| stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('Z')))
}

#[tokio::test]
async fn megabytes_of_no_text_are_survived() {
    let stage = stage("raw ff fe 0a\nflood 5000000");
    let (outcome, lines) = ask(&stage.mra).await;
    assert_eq!(lines.len(), 50_001);
    assert!(outcome.result.expect("a result").starts_with("\u{fffd}\u{fffd}\nxxx"));
}

/// What is shown of a script, with so long between two lines. Each line shown leaves a file of its number.
async fn shown(script: &str, min_gap: Duration) -> Vec<String> {
    let stage = stage(script);
    let settings = Settings { min_gap, ..Settings::default() };
    let (sender, mut shown) = tokio::sync::mpsc::unbounded_channel();
    let (folder, mut count) = (stage.directory.path().to_owned(), 0);
    let progress = settings.begin(move |line| {
        std::fs::write(folder.join(count.to_string()), "").expect("a file");
        count += 1;
        sender.send(line).expect("the test reads on");
        std::future::ready(Sent::Shown)
    });
    progress.line("opening");
    let question = MraQuestion::new("erp", "q").expect("a good question");
    let outcome = stage.mra.ask(&question, &CancellationToken::new(), |line| progress.line(line)).await;
    progress.finish().await;
    assert!(outcome.result.is_ok());
    std::iter::from_fn(|| shown.try_recv().ok()).collect()
}

/// Must show 2: lines at most as often as allowed, and none after the answer.
#[tokio::test]
async fn progress_is_throttled_and_never_late() {
    let burst: String = (0..20).map(|n| format!("out a {n}\nout b {n}\n")).collect();
    assert_eq!(shown(&format!("{burst}out done"), Duration::from_secs(3_600)).await, ["opening"]);
    let at_leisure = "wait 0\nout one\nwait 1\nout two\nwait 2";
    assert_eq!(shown(at_leisure, Duration::ZERO).await, ["opening", "one", "two"]);
}
