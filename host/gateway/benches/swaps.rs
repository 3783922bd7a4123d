//! Measures swaps of the policies under load: the built gateway as a separate process, conversations that never pause,
//! and two components that alternate.
//!
//! `cargo bench --workspace --bench swaps`. Prints the duration of a swap, and the gateway's resident memory at the
//! start, after 100 and after 1,000 swaps. Every question must be answered, by a policy that was asked and did not
//! fail.
//!
//! Measured twice: unchanged, where glibc keeps memory for each thread that ever loaded a policy, up to a limit; and
//! with one arena for all threads, where memory that a swap does not free would show.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use pmk_stand_ins::usage;

const SWAPS: usize = 1_000;
const CONVERSATIONS: usize = 16;
/// The most questions that wait for an answer.
const WAITING: usize = 64;
const PATIENCE: Duration = Duration::from_secs(60);

fn main() {
    // `cargo test --benches` only checks that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    measure("as it is", &[]);
    measure("one malloc arena", &[("MALLOC_ARENA_MAX", "1")]);
}

fn measure(what: &str, environment: &[(&str, &str)]) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let (gateway, stdin, stdout) = Gateway::start(home.path(), environment);
    let socket = home.path().join("gateway/control.sock");
    let begun = Instant::now();
    while UnixStream::connect(&socket).is_err() {
        assert!(begun.elapsed() < PATIENCE, "the gateway takes commands");
        thread::sleep(Duration::from_millis(20));
    }

    let (asked, answered, stop) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let (asked, answered, stop) = (Arc::new(asked), Arc::new(answered), Arc::new(stop));
    let reader = thread::spawn({
        let answered = Arc::clone(&answered);
        move || read(stdout, &answered)
    });
    let writer = thread::spawn({
        let (asked, answered, stop) = (Arc::clone(&asked), Arc::clone(&answered), Arc::clone(&stop));
        move || ask(stdin, &asked, &answered, &stop)
    });
    while answered.load(Ordering::Relaxed) < CONVERSATIONS {
        thread::sleep(Duration::from_millis(5));
    }

    let policies = ["strict", "rolling-summary"].map(component);
    let mut resident = vec![(0, usage::resident_kib(gateway.0.id()))];
    let mut times = Vec::with_capacity(SWAPS);
    for swap in 0..SWAPS {
        let begun = Instant::now();
        swap_to(&socket, &policies[swap % 2]);
        times.push(begun.elapsed().as_secs_f64() * 1_000.0);
        if [100, SWAPS].contains(&(swap + 1)) {
            resident.push((swap + 1, usage::resident_kib(gateway.0.id())));
        }
    }
    stop.store(true, Ordering::Relaxed);
    writer.join().expect("the questions are asked");
    reader.join().expect("every answer is as it should be");
    let (asked, answered) = (asked.load(Ordering::Relaxed), answered.load(Ordering::Relaxed));
    assert_eq!(asked, answered, "every question is answered");

    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{what}: {SWAPS} swaps under load, {answered} turns, none failed; a swap p50 {:.1} ms, p99 {:.1} ms",
        at(0.5),
        at(0.99)
    );
    for (swaps, kib) in resident {
        println!("{swaps:>5} swaps  {:.1} MB resident", kib as f64 / 1_024.0);
    }
}

/// Asks questions in many conversations, as fast as they are answered. The input ends with the last one.
fn ask(mut stdin: ChildStdin, asked: &AtomicUsize, answered: &AtomicUsize, stop: &AtomicBool) {
    for n in 0.. {
        while asked.load(Ordering::Relaxed) >= answered.load(Ordering::Relaxed) + WAITING {
            thread::sleep(Duration::from_millis(1));
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let user = n % CONVERSATIONS;
        // Threads of a few turns, so that the length of conversations does not affect the result.
        let thread = n / CONVERSATIONS / 8;
        asked.fetch_add(1, Ordering::Relaxed);
        writeln!(
            stdin,
            r#"{{"type":"message","user":"U{user}","channel":"D{user}","thread_ts":"{thread}.0","text":"How much of the budget is left?"}}"#
        )
        .expect("the gateway reads");
    }
}

fn read(stdout: ChildStdout, answered: &AtomicUsize) {
    for line in BufReader::new(stdout).lines() {
        let line: serde_json::Value = serde_json::from_str(&line.expect("UTF-8")).expect("JSON");
        assert_ne!(line["type"], "error", "{line}");
        if line["type"] == "turn" {
            assert_eq!(line["calls"], 1, "{line}");
            assert!(line["policy"]["sha256"].is_string(), "a policy decided: {line}");
            answered.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn swap_to(socket: &Path, file: &Path) {
    let mut stream = UnixStream::connect(socket).expect("the socket");
    let request = serde_json::json!({"command": "policy.use", "files": [file]});
    stream.write_all(format!("{request}\n").as_bytes()).expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.contains(r#""type":"swapped""#), "{answer}");
}

fn component(name: &str) -> PathBuf {
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins");
    plugins.canonicalize().expect("the folder").join(name).with_extension("wasm")
}

/// The gateway process; killed when dropped.
struct Gateway(Child);

impl Gateway {
    fn start(home: &Path, environment: &[(&str, &str)]) -> (Gateway, ChildStdin, ChildStdout) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pmk-host"));
        command.arg("--home").arg(home).args(["run", "--front", "console", "--model", "sim"]);
        command
            .env_clear()
            .env("PMK_LOG", "error")
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("the gateway starts");
        let (stdin, stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        (Gateway(child), stdin, stdout)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
