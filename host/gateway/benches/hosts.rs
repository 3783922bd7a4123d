//! Three hosts on one PostgreSQL against one, where the model takes 200 ms and each host may use no more of the processors than
//! its share: what more machines are worth. The built gateways as processes of their own, a stand-in workspace on loopback
//! without rate limits, a PostgreSQL of the bench's own.
//!
//! `cargo bench --workspace --bench hosts`, by somebody who may make control groups. What is left of the machine is for the
//! database and the stand-ins; `PMK_BENCH_SHARE` is the percentage of one processor that each host has.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use pmk_stand_ins::{
    anthropic::{Anthropic, Behaviour, KEY},
    postgres,
    slack::{Slack, SlackRules},
};

const CONVERSATIONS: usize = 200;
const TURNS_EACH: usize = 10;
const HOSTS: [usize; 4] = [1, 3, 1, 3];
/// Of one processor, in percent: so little that three of them, the database and the stand-ins have room on two.
const SHARE: u32 = 12;
const MODEL_TAKES: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(300);

#[tokio::main]
async fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let share = std::env::var("PMK_BENCH_SHARE").map_or(SHARE, |share| share.parse().expect("a percentage"));
    for hosts in HOSTS {
        measure(hosts, share).await;
    }
}

async fn measure(hosts: usize, share: u32) {
    let Some(server) = postgres::server() else { return };
    let (store, group) = (server.database(), Group::new(share));
    let slack = Slack::start(SlackRules::default().unlimited().without_statuses()).await;
    let anthropic = Anthropic::start().await;
    // It comes in four pieces.
    anthropic.when("budget", Behaviour::slow("About half of it.", MODEL_TAKES / 4));
    let hosts: Vec<Host> = (0..hosts).map(|number| Host::start(number, &store, &slack, &anthropic, &group)).collect();
    let begun = Instant::now();
    while slack.sockets() < hosts.len() {
        assert!(begun.elapsed() < PATIENCE, "all of them connect");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let answered = || slack.calls("chat.update").len();
    let turns = CONVERSATIONS * TURNS_EACH;
    let begun = Instant::now();
    for turn in 0..TURNS_EACH {
        for user in 0..CONVERSATIONS {
            slack.dm(&format!("U{user}"), &format!("Question {turn}: how much of the budget is left?"));
        }
    }
    while answered() < turns {
        assert!(begun.elapsed() < PATIENCE, "the turns end: {} of {turns}", answered());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{} host{} with {share} % of a processor each: {:>5.0} turns/s over {CONVERSATIONS} conversations",
        hosts.len(),
        if hosts.len() == 1 { " " } else { "s" },
        turns as f64 / seconds
    );
}

/// A control group for each host, below which nothing has more than its share of a processor.
struct Group {
    folder: PathBuf,
    share: u32,
}

impl Group {
    fn new(share: u32) -> Group {
        let first = Path::new("/sys/fs/cgroup/cpu");
        let folder = if first.is_dir() { first } else { Path::new("/sys/fs/cgroup") };
        Group { folder: folder.to_owned(), share }
    }

    fn place(&self, number: usize) -> PathBuf {
        self.folder.join(format!("pmk-bench-{}-{number}", std::process::id()))
    }

    /// Has a process be in the group of that number.
    fn hold(&self, number: usize, pid: u32) {
        let place = self.place(number);
        fs::create_dir_all(&place).expect("a control group, which root may make");
        let (period, quota) = (100_000, self.share * 1_000);
        let unified = fs::write(place.join("cpu.max"), format!("{quota} {period}"));
        let is_held = unified.is_ok() || fs::write(place.join("cpu.cfs_quota_us"), quota.to_string()).is_ok();
        assert!(is_held, "no controller of processors in {}", self.folder.display());
        fs::write(place.join("cgroup.procs"), pid.to_string()).expect("a process of ours");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for number in 0..HOSTS.into_iter().max().unwrap_or_default() {
            // The last of its processes may not be gone for good yet.
            let _ = fs::remove_dir(self.place(number));
        }
    }
}

/// A gateway, as a process; killed when dropped.
struct Host {
    child: Child,
    _home: tempfile::TempDir,
}

impl Host {
    fn start(number: usize, store: &str, slack: &Slack, anthropic: &Anthropic, group: &Group) -> Host {
        let home = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_pmk-host"));
        command.arg("--home").arg(home.path()).args(["run", "--front", "slack", "--model", "anthropic-api"]);
        command
            .args(["--store", store])
            .env_clear()
            .env("PMK_LOG", "warn")
            .env("PMK_SLACK_API_URL", slack.api_url())
            .env("PMK_SLACK_LIMITS", "refusals")
            .env("PMK_SLACK_APP_TOKEN", &slack.rules().app_token)
            .env("PMK_SLACK_BOT_TOKEN", &slack.rules().bot_token)
            .env("ANTHROPIC_API_KEY", KEY)
            .env("ANTHROPIC_BASE_URL", anthropic.url());
        let child = command.stdin(Stdio::null()).spawn().expect("the gateway starts");
        group.hold(number, child.id());
        Host { child, _home: home }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
