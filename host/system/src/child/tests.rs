//! Real children, as scripts for the shell that every Unix has.

use std::{path::Path, time::Instant};

use pmk_stand_ins::patience::{PATIENCE, let_pass, until_async};
use rustix::process::{Pid, test_kill_process};

use super::*;

fn shell(script: &str) -> Spec {
    let mut spec = Spec::new("sh", ["-c", script]);
    spec.environment = inherit(["PATH"]);
    spec.limits.wall_clock = PATIENCE;
    spec
}

async fn finish(spec: &Spec) -> (Finished, Vec<String>) {
    let mut lines = Vec::new();
    let finished = run(spec, &CancellationToken::new(), |line| lines.push(line.to_owned())).await.expect("a shell");
    (finished, lines)
}

/// Waits until the process with this id has ended, or is a zombie.
async fn until_gone(pid: &str) {
    let number: i32 = pid.trim().parse().expect("a process id");
    let is_gone = || {
        let zombie = std::fs::read_to_string(format!("/proc/{number}/stat"))
            .is_ok_and(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z')));
        zombie || test_kill_process(Pid::from_raw(number).expect("not zero")).is_err()
    };
    until_async("the end of a process", || is_gone().then_some(())).await;
}

#[tokio::test]
async fn lines_come_while_the_child_runs() {
    let mut spec = shell("echo one; echo two; printf three; echo trouble >&2; exit 3");
    spec.input = b"ignored".to_vec();
    let (finished, lines) = finish(&spec).await;
    assert_eq!(finished.end, End::Exited(3));
    assert_eq!(lines, ["one", "two", "three"]);
    assert_eq!(finished.stdout.text(), "one\ntwo\nthree");
    assert_eq!(finished.stderr.text(), "trouble\n");
}

#[tokio::test]
async fn only_the_given_environment_is_seen() {
    let mut spec = shell("env | grep -v '^_=\\|^PWD=\\|^SHLVL=' | sort; pwd");
    let directory = tempfile::tempdir().expect("a directory");
    let directory_path = directory.path().canonicalize().expect("it is there");
    spec.environment.push(("GIVEN".into(), "a b".into()));
    spec.directory = Some(directory_path.clone());
    let (_, lines) = finish(&spec).await;
    let path = format!("PATH={}", std::env::var("PATH").expect("a path"));
    assert_eq!(lines, ["GIVEN=a b".to_owned(), path, directory_path.display().to_string()]);
}

#[tokio::test]
async fn input_larger_than_a_pipe_is_read_while_output_is() {
    let mut spec = shell("cat");
    spec.input = vec![b'x'; 3 << 20];
    spec.limits.max_stdout_bytes = 10;
    let (finished, _) = finish(&spec).await;
    assert_eq!(finished.end, End::Exited(0));
    assert_eq!(finished.stdout, Captured { bytes: vec![b'x'; 10], total_bytes: 3 << 20 });
}

#[tokio::test]
async fn megabytes_on_both_pipes_are_cut() {
    let spec = shell("yes output | head -c 5000000; yes error | head -c 3000000 >&2; echo the end >&2");
    let (finished, _) = finish(&spec).await;
    assert_eq!(finished.stdout.total_bytes, 5_000_000);
    assert_eq!(finished.stdout.bytes.len(), DEFAULT_MAX_STDOUT_BYTES);
    assert_eq!(finished.stderr.bytes.len(), DEFAULT_MAX_STDERR_BYTES);
    assert!(finished.stderr.text().ends_with("the end\n"));
}

#[tokio::test]
async fn a_child_that_takes_too_long_is_killed_with_its_children() {
    let mut spec = shell("sleep 600 & echo $!; sleep 600 & echo $!; wait");
    spec.limits.wall_clock = Duration::from_secs(3_600);
    let (told, mut lines) = tokio::sync::mpsc::unbounded_channel();
    let cancel = CancellationToken::new();
    let run = run(&spec, &cancel, |line| told.send(line.to_owned()).expect("the test reads on"));
    let watch = async {
        let pids = [lines.recv().await.expect("a number"), lines.recv().await.expect("another")];
        let_pass(spec.limits.wall_clock).await;
        pids
    };
    let (finished, pids) = tokio::join!(run, watch);
    assert_eq!(finished.expect("a shell").end, End::TimedOut);
    for pid in &pids {
        until_gone(pid).await;
    }
}

#[tokio::test]
async fn a_child_that_leaves_somebody_behind_is_not_waited_for() {
    let started = Instant::now();
    let (finished, lines) = finish(&shell("sleep 600 & echo $!")).await;
    assert_eq!(finished.end, End::Exited(0));
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    until_gone(&lines[0]).await;
}

#[tokio::test]
async fn cancelling_kills_and_keeps_what_was_said() {
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let spec = shell("echo $$; sleep 600");
    let mut pid = String::new();
    let finished = run(&spec, &cancel, |line| {
        pid = line.to_owned();
        token.cancel();
    });
    assert_eq!(finished.await.expect("a shell").end, End::Cancelled);
    until_gone(&pid).await;
}

#[tokio::test]
async fn dropping_kills_the_group() {
    let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel();
    let task = tokio::spawn(async move {
        let spec = shell("sleep 600 & echo $!; wait");
        run(&spec, &CancellationToken::new(), |line| sender.send(line.to_owned()).expect("the test reads on")).await
    });
    let pid = lines.recv().await.expect("the grandchild's number");
    task.abort();
    until_gone(&pid).await;
}

#[tokio::test]
async fn a_signal_is_told_from_an_exit() {
    assert_eq!(finish(&shell("kill -9 $$")).await.0.end, End::Signalled(9));
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let failure = |spec: Spec| async move {
        run(&spec, &CancellationToken::new(), |_| {}).await.expect_err("not startable").to_string()
    };
    assert_eq!(failure(Spec::new("no-such-program", ["x"])).await, "`no-such-program` was not found");
    assert_eq!(failure(Spec::new("/etc/passwd", ["x"])).await, "this user is not allowed to run `/etc/passwd`");
    let mut spec = shell("true");
    spec.directory = Some(Path::new("/no/such/place").into());
    assert_eq!(failure(spec).await, "the working directory `/no/such/place` does not exist");
}
