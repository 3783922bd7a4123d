//! Components made to use as much time and memory as possible when they are compiled, through each entry point and
//! under the default limits, beside a gateway that answers twenty questions a second.
//!
//! `cargo bench --workspace --bench bombs`. Prints, as a table, the size of each, the time until it was refused, the
//! peak memory of its compiler and of the gateway, and the answer times meanwhile; then the answer times beside all of
//! them compared with those of a quiet gateway. Takes some minutes: through each entry point a component may use all
//! that it is allowed.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

#[path = "../../../tests/blackbox/bombs/made.rs"]
mod made;

/// The pause between two questions.
const PAUSE: Duration = Duration::from_millis(50);
/// How long the gateway is measured without a bomb.
const QUIET: Duration = Duration::from_secs(60);
const CONVERSATIONS: usize = 16;

fn main() {
    // `cargo test --benches` only checks that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let home = tempfile::tempdir().expect("a temporary folder");
    let watched = home.path().join("watched.wasm");
    fs::copy(strict(), &watched).expect("a file");
    let gateway = Gateway::start(home.path(), &watched);
    thread::sleep(Duration::from_secs(2));
    let quiet = gateway.answers_while(|| thread::sleep(QUIET));
    println!("| bomb | bytes | door | seconds | what is said | compiler MiB | gateway MiB | p50 ms | slowest ms |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut beside = Answers(vec![]);
    for made::Bomb { name, bytes } in made::all() {
        let bomb = home.path().join("bomb.wasm");
        fs::write(&bomb, &bytes).expect("a file");
        for door in ["inspect", "check", "use", "watched"] {
            let memory = Memory::watch();
            let begun = Instant::now();
            let mut said = String::new();
            let answers = gateway.answers_while(|| {
                said = match door {
                    "watched" => gateway.replace(&watched, &bomb),
                    door => ask(home.path(), door, &bomb),
                }
            });
            let seconds = begun.elapsed().as_secs_f64();
            println!(
                "| {name} | {} | {door} | {seconds:.1} | {said} | {} | {} | {:.1} | {:.1} |",
                bytes.len(),
                memory.most() >> 10,
                gateway.peak_kib() >> 10,
                answers.at(0.5),
                answers.at(1.0),
            );
            beside.0.extend(answers.0);
            if door == "watched" {
                gateway.restore(&watched);
            }
        }
    }
    for (what, answers) in [("quiet", &quiet), ("beside bombs", &beside)] {
        let (count, p50, p99) = (answers.0.len(), answers.at(0.5), answers.at(0.99));
        println!("{what}: {count} answers, p50 {p50:.1} ms, p99 {p99:.1} ms, slowest {:.1} ms", answers.at(1.0));
    }
    println!("p99 beside bombs is {:.1} times that of a quiet gateway", beside.at(0.99) / quiet.at(0.99));
}

/// Runs a command on a component and returns the reason for the refusal.
fn ask(home: &Path, door: &str, bomb: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pmk-host"));
    command.arg("--home").arg(home).args(["policy", door]).arg(bomb).env_clear();
    let done = command.output().expect("the program");
    assert!(!done.status.success(), "a bomb is refused");
    short(&String::from_utf8_lossy(&done.stderr))
}

/// The reason without the name of the file.
fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.rsplit_once("wasm` ").map_or(line, |(_, reason)| reason).to_owned()
}

fn strict() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/strict.wasm")
}

/// Answer times, in milliseconds.
struct Answers(Vec<f64>);

impl Answers {
    fn at(&self, share: f64) -> f64 {
        let mut times = self.0.clone();
        times.sort_by(f64::total_cmp);
        times[((times.len() - 1) as f64 * share) as usize]
    }
}

struct Gateway {
    child: Child,
    home: PathBuf,
    times: Arc<Mutex<Vec<f64>>>,
    stop: Arc<AtomicBool>,
}

impl Gateway {
    fn start(home: &Path, policy: &Path) -> Gateway {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pmk-host"));
        command.arg("--home").arg(home).args(["run", "--front", "console", "--model", "sim", "--policy"]).arg(policy);
        command.env_clear().env("PMK_LOG", "off").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the gateway starts");
        let (stdin, stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let (asked, times, stop) = <(Arc<Mutex<Vec<Instant>>>, Arc<Mutex<Vec<f64>>>, Arc<AtomicBool>)>::default();
        thread::spawn({
            let (asked, times) = (Arc::clone(&asked), Arc::clone(&times));
            move || hear(stdout, &asked, &times)
        });
        thread::spawn({
            let stop = Arc::clone(&stop);
            move || question(stdin, &asked, &stop)
        });
        Gateway { child, home: home.to_owned(), times, stop }
    }

    /// Returns the times of the answers that came while `work` ran.
    fn answers_while(&self, work: impl FnOnce()) -> Answers {
        let from = self.times.lock().expect("the times").len();
        work();
        // Makes sure that there are some answers.
        thread::sleep(10 * PAUSE);
        let times = self.times.lock().expect("the times")[from..].to_vec();
        assert!(times.len() >= 5, "the gateway answers");
        Answers(times)
    }

    /// Replaces the serving policy's file by a bomb, and waits until it is refused.
    fn replace(&self, watched: &Path, bomb: &Path) -> String {
        let before = self.events("policy.refused").len();
        fs::copy(bomb, watched).expect("a file");
        loop {
            if let Some(refused) = self.events("policy.refused").get(before) {
                return short(refused["reason"].as_str().unwrap_or_default());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn restore(&self, watched: &Path) {
        fs::copy(strict(), watched).expect("a file");
        thread::sleep(Duration::from_secs(3));
    }

    fn events(&self, kind: &str) -> Vec<Value> {
        let folder = fs::read_dir(self.home.join("gateway")).expect("the gateway's folder").flatten();
        let ledger = folder.filter(|entry| entry.file_name().to_string_lossy().starts_with("events-"));
        let text: String = ledger.map(|entry| fs::read_to_string(entry.path()).expect("the ledger")).collect();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.filter(|event| event["type"] == kind).collect()
    }

    fn peak_kib(&self) -> u64 {
        peak_kib(self.child.id()).expect("the gateway lives")
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks twenty questions a second.
fn question(mut stdin: ChildStdin, asked: &Mutex<Vec<Instant>>, stop: &AtomicBool) {
    for n in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let (user, turns) = (n % CONVERSATIONS, n / CONVERSATIONS / 8);
        asked.lock().expect("the times").push(Instant::now());
        let line = format!(
            r#"{{"type":"message","user":"U{user}","channel":"D{user}","thread_ts":"{turns}.0","text":"How much?","event_id":"Ev{n}"}}"#
        );
        if writeln!(stdin, "{line}").is_err() {
            return;
        }
        thread::sleep(PAUSE);
    }
}

fn hear(stdout: ChildStdout, asked: &Mutex<Vec<Instant>>, times: &Mutex<Vec<f64>>) {
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        let line: Value = serde_json::from_str(&line).expect("JSON");
        let number = line["event_id"].as_str().and_then(|id| id.strip_prefix("Ev")?.parse::<usize>().ok());
        if let (true, Some(number)) = (line["type"] == "reply", number) {
            let took = asked.lock().expect("the times")[number].elapsed();
            times.lock().expect("the times").push(took.as_secs_f64() * 1_000.0);
        }
    }
}

/// The peak memory of the compilers that run meanwhile, in KiB.
struct Memory {
    most: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Memory {
    fn watch() -> Memory {
        let (most, stop) = <(Arc<AtomicU64>, Arc<AtomicBool>)>::default();
        thread::spawn({
            let (most, stop) = (Arc::clone(&most), Arc::clone(&stop));
            move || {
                while !stop.load(Ordering::Relaxed) {
                    compilers().filter_map(peak_kib).for_each(|kib| _ = most.fetch_max(kib, Ordering::Relaxed));
                    thread::sleep(Duration::from_millis(20));
                }
            }
        });
        Memory { most, stop }
    }

    fn most(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.most.load(Ordering::Relaxed)
    }
}

fn compilers() -> impl Iterator<Item = u32> {
    let processes = fs::read_dir("/proc").expect("Linux's /proc").flatten();
    let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
    numbers.filter(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(pmk_policy::compile::COMMAND.as_bytes())
    })
}

fn peak_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().trim_end_matches(" kB").parse().ok()
}
