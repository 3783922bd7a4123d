//! Measures the cost and the benefit of a store in PostgreSQL: one host on it against one on a file, with a model that
//! answers at once; and three hosts on it against one, with a model that takes 200 ms and a limited share of the
//! processors for each host. The built gateways run as separate processes, with a simulated workspace on loopback
//! without rate limits, and a PostgreSQL server of the bench's own with durable commits.
//!
//! `cargo bench --workspace --bench hosts`, by a user who may create control groups. The rest of the machine is for the
//! database and the simulated servers. `PMK_BENCH_SHARE` is the percentage of one processor that each of those hosts
//! gets, and `PMK_TEST_PROGRAM` names another build of the gateway, to be compared within the same minutes. Words after
//! `--` select the measurements whose name contains one of them.

use std::{
    cell::RefCell,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use pmk_stand_ins::{
    anthropic::{Anthropic, Behaviour},
    postgres,
    slack::{LATE, Slack, SlackRules, dm_channel},
    surroundings, usage,
};

const CONVERSATIONS: usize = 200;
const TURNS_EACH: usize = 20;
/// In percent of one processor: small enough that three hosts, the database and the simulated servers fit on two.
const SHARE: u32 = 12;
const MODEL_TAKES: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(120);

/// One measurement.
struct Case {
    program: (&'static str, OsString),
    name: &'static str,
    hosts: usize,
    store: Store,
    model_takes: Duration,
    /// In percent of one processor, for each host; `None` if it is not limited.
    share: Option<u32>,
}

#[derive(Clone, Copy)]
enum Store {
    File,
    Database,
}

#[tokio::main]
async fn main() {
    let (options, only): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|word| word.starts_with('-'));
    // `cargo test --benches` only checks that it builds.
    if !options.iter().any(|option| option == "--bench") {
        return;
    }
    let is_wanted = |name: &str| only.is_empty() || only.iter().any(|only| name.contains(only.as_str()));
    let share = std::env::var("PMK_BENCH_SHARE").map_or(SHARE, |share| share.parse().expect("a percentage"));
    let this = ("", OsString::from(env!("CARGO_BIN_EXE_pmk-host")));
    let other = std::env::var_os("PMK_TEST_PROGRAM").map(|other| ("other build: ", other));
    let programs: Vec<_> = other.into_iter().chain([this]).collect();
    // Alternating, because the load of the machine varies over time.
    for _ in 0..2 {
        for (name, store) in [("one host, a file", Store::File), ("one host, PostgreSQL", Store::Database)]
            .into_iter()
            .filter(|(name, _)| is_wanted(name))
        {
            for program in programs.clone() {
                measure(&Case { program, name, hosts: 1, store, model_takes: Duration::ZERO, share: None }).await;
            }
        }
    }
    println!("each slow host has {share} % of a processor, and the model takes {} ms:", MODEL_TAKES.as_millis());
    for _ in 0..2 {
        for (name, hosts) in
            [("one slow host", 1), ("three slow hosts", 3)].into_iter().filter(|(name, _)| is_wanted(name))
        {
            for program in programs.clone() {
                let (store, share) = (Store::Database, Some(share));
                measure(&Case { program, name, hosts, store, model_takes: MODEL_TAKES, share }).await;
            }
        }
    }
}

async fn measure(case: &Case) {
    let store = match case.store {
        Store::File => None,
        Store::Database => match postgres::durable() {
            Some(server) => Some(server.nearby(&server.database())),
            None => return,
        },
    };
    // A host with a small share of a processor may acknowledge late.
    let rules = SlackRules::default().unlimited().without_statuses().expecting([LATE]);
    let slack = Slack::start(rules).await;
    let anthropic = Anthropic::start().await;
    // The answer comes in four pieces.
    anthropic.when("budget", Behaviour::slow("About half of it.", case.model_takes / 4));
    let group = case.share.map(Group::new);
    let (which, program) = &case.program;
    let start = |number| Host::start(program, number, store.as_deref(), &slack, &anthropic, group.as_ref());
    let hosts: Vec<Host> = (0..case.hosts).map(start).collect();
    let begun = Instant::now();
    while slack.sockets() < hosts.len() {
        assert!(begun.elapsed() < PATIENCE, "all of them connect");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Counts replies: an answer posted at once has no update.
    let answered =
        || (0..CONVERSATIONS).map(|user| slack.replies(&dm_channel(&format!("U{user}"))).len()).sum::<usize>();
    let turns = CONVERSATIONS * TURNS_EACH;
    let cpu = || hosts.iter().map(|host| usage::cpu_seconds(host.child.id())).sum::<f64>();
    let (used, begun) = (cpu(), Instant::now());
    for turn in 0..TURNS_EACH {
        for user in 0..CONVERSATIONS {
            slack.dm(&format!("U{user}"), &format!("Question {turn}: how much of the budget is left?"));
        }
    }
    while answered() < turns {
        assert!(begun.elapsed() < PATIENCE, "the turns end: {} of {turns}", answered());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let name = format!("{which}{}", case.name);
    let (speed, milliseconds) = (turns as f64 / seconds, (cpu() - used) * 1_000.0 / turns as f64);
    println!("{name:<36} {speed:>5.0} turns/s over {CONVERSATIONS} conversations, {milliseconds:.2} ms of CPU a turn");
}

/// A control group for each host, which limits it to its share of a processor.
struct Group {
    folder: PathBuf,
    share: u32,
    places: RefCell<Vec<PathBuf>>,
}

impl Group {
    fn new(share: u32) -> Group {
        let first = Path::new("/sys/fs/cgroup/cpu");
        let folder = if first.is_dir() { first } else { Path::new("/sys/fs/cgroup") };
        Group { folder: folder.to_owned(), share, places: RefCell::default() }
    }

    /// Puts a process into the group of that number.
    fn hold(&self, number: usize, pid: u32) {
        let place = self.folder.join(format!("pmk-bench-{}-{number}", std::process::id()));
        self.places.borrow_mut().push(place.clone());
        fs::create_dir_all(&place).expect("a control group, which root may make");
        // In microseconds. With a longer period a host would pause for long at a time, and delay other hosts that still
        // have their share.
        let (period, quota) = (10_000, self.share * 100);
        let set = |file: &str, value: String| fs::write(place.join(file), value).is_ok();
        let is_held = set("cpu.max", format!("{quota} {period}"))
            || (set("cpu.cfs_period_us", period.to_string()) && set("cpu.cfs_quota_us", quota.to_string()));
        assert!(is_held, "no controller of processors in {}", self.folder.display());
        fs::write(place.join("cgroup.procs"), pid.to_string()).expect("a process of ours");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for place in self.places.borrow().iter() {
            // The process in it may not have exited yet.
            let _ = fs::remove_dir(place);
        }
    }
}

/// A gateway process; killed when dropped.
struct Host {
    child: Child,
    _home: tempfile::TempDir,
}

impl Host {
    fn start(
        program: &OsString,
        number: usize,
        store: Option<&str>,
        slack: &Slack,
        anthropic: &Anthropic,
        group: Option<&Group>,
    ) -> Host {
        let home = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new(program);
        command.arg("--home").arg(home.path()).args(["run", "--front", "slack", "--model", "anthropic-api"]);
        if let Some(store) = store {
            command.args(["--store", store]);
        }
        surroundings::only(&mut command, slack, anthropic);
        let child = command.stdin(Stdio::null()).spawn().expect("the gateway starts");
        if let Some(group) = group {
            group.hold(number, child.id());
        }
        Host { child, _home: home }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
