//! Measures the cost of a turn, from a person's message in Slack to the answer in its place: the built gateway as a
//! separate process, a simulated workspace on loopback without rate limits, everything durable.
//!
//! `cargo bench --workspace --bench turns`. Prints turns per second over 200 conversations, the time of one turn at a
//! time, CPU time per turn and peak memory of the process. The simulated servers share the machine. `PMK_TEST_PROGRAM`
//! names another build of the gateway, to be compared within the same minutes; `PMK_BENCH_PYTHON` names a Python that
//! has slack_bolt and aiohttp, for a bot based on it that only echoes (`turns/bolt.py`).

use std::{
    ffi::OsString,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use pmk_stand_ins::{
    anthropic::Anthropic,
    slack::{Slack, SlackRules},
    surroundings, usage,
};

const CONVERSATIONS: usize = 200;
const TURNS_EACH: usize = 20;
const ONE_BY_ONE: usize = 500;
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::main]
async fn main() {
    // `cargo test --benches` only checks that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let other = std::env::var_os("PMK_TEST_PROGRAM").map(|other| ("other build", other));
    let this = ("this build", OsString::from(env!("CARGO_BIN_EXE_pmk-host")));
    for (name, program) in other.into_iter().chain([this]) {
        for model in ["sim", "anthropic-api"] {
            let home = tempfile::tempdir().expect("a temporary folder");
            let mut command = Command::new(&program);
            command.arg("--home").arg(home.path()).args(["run", "--front", "slack", "--model", model]);
            measure(&format!("{name}, {model}"), command).await;
        }
    }
    match std::env::var_os("PMK_BENCH_PYTHON") {
        Some(python) => {
            let mut command = Command::new(python);
            command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/turns/bolt.py"));
            measure("slack_bolt, echo", command).await;
        }
        None => println!("slack_bolt: not measured, PMK_BENCH_PYTHON names no Python"),
    }
}

async fn measure(name: &str, command: Command) {
    let slack = Slack::start(SlackRules::default().unlimited().without_statuses()).await;
    let anthropic = Anthropic::start().await;
    let bot = Bot::start(command, &slack, &anthropic);
    assert!(slack.await_connected(PATIENCE).await, "the bot connects");

    let warm_up = slack.dm("UWARM", "hello");
    assert!(slack.await_reply(&warm_up, PATIENCE).await.is_some(), "the bot answers");

    let mut times: Vec<f64> = Vec::with_capacity(ONE_BY_ONE);
    for n in 0..ONE_BY_ONE {
        // A new conversation each time, so that the result does not grow with the window.
        let begun = Instant::now();
        let asked = slack.dm(&format!("UONE{n}"), "How much of the budget is left?");
        assert!(slack.await_reply(&asked, PATIENCE).await.is_some(), "turn {n} is answered");
        times.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];

    let turns = CONVERSATIONS * TURNS_EACH;
    let answered = slack.call_count("chat.update");
    let spent = || [bot.0.id(), std::process::id()].map(usage::cpu_seconds);
    let (before, begun) = (spent(), Instant::now());
    for turn in 0..TURNS_EACH {
        for user in 0..CONVERSATIONS {
            slack.dm(&format!("U{user}"), &format!("Question {turn}: how much of the budget is left?"));
        }
    }
    while slack.call_count("chat.update") < answered + turns {
        assert!(begun.elapsed() < PATIENCE, "the turns end");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (seconds, after) = (begun.elapsed().as_secs_f64(), spent());
    let each = |of: usize| (after[of] - before[of]) * 1_000.0 / turns as f64;
    assert_eq!(slack.violations(), Vec::<String>::new());
    println!(
        "{name:<24} {:>6.0} turns/s over {CONVERSATIONS} conversations, {:.2} ms CPU a turn (the stand-ins {:.2} ms); one \
         at a time p50 {:.1} ms, p99 {:.1} ms; {} MB at peak",
        turns as f64 / seconds,
        each(0),
        each(1),
        at(0.5),
        at(0.99),
        usage::peak_kib(bot.0.id()) / 1_024,
    );
}

/// The bot process; killed when dropped.
struct Bot(Child);

impl Bot {
    fn start(mut command: Command, slack: &Slack, anthropic: &Anthropic) -> Bot {
        surroundings::only(&mut command, slack, anthropic);
        Bot(command.stdin(Stdio::null()).spawn().expect("the bot starts"))
    }
}

impl Drop for Bot {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
