//! Measures how long each of many people waits for the answer of an instant model, at the rate limits that Slack
//! documents.
//!
//! `cargo bench --workspace --bench rush`: 120 people within 12 s in their direct messages, where 90 % must have their
//! answer within 5 s; then 60 within 12 s in threads of one channel, where Slack accepts one post a second. There 90 %
//! cannot have theirs within 5 s: the 54th post is sent 52.5 s after the first (docs/slack.md). The requirement there
//! is that no post is refused, and none is sent twice.

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use pmk_stand_ins::{
    patience::PATIENCE,
    slack::{Sent, Slack, SlackRules},
};

/// The longest wait in direct messages for 90 % of the people, in seconds.
const PROMISED: f64 = 5.0;

#[tokio::main]
async fn main() {
    // `cargo test --benches` only checks that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let in_direct_messages =
        rush(120, Duration::from_millis(100), |slack, number| slack.dm(&format!("U{number}"), "hello"));
    let [_, nine_in_ten, _] = tell("120 people in 12 s", in_direct_messages.await);
    assert!(nine_in_ten <= PROMISED, "nine in ten wait for {nine_in_ten} s");
    let in_threads = rush(60, Duration::from_millis(200), |slack, number| {
        let root = slack.talk("C1", &format!("U{number}"), "a topic", None);
        slack.mention("C1", &format!("U{number}"), "hello", Some(&root.ts))
    });
    tell("60 threads of one channel in 12 s", in_threads.await);
}

/// Has this many people ask, one after the other with this pause, and returns the sorted waits in seconds.
async fn rush(people: usize, pause: Duration, ask: impl Fn(&Slack, usize) -> Sent) -> Vec<f64> {
    let slack = Slack::start(SlackRules::default()).await;
    let home = tempfile::tempdir().expect("a temporary folder");
    let _gateway = Gateway::start(home.path(), &slack);
    assert!(slack.await_connected(PATIENCE).await, "it connects");
    let mut asked = Vec::new();
    for number in 0..people {
        asked.push(ask(&slack, number));
        tokio::time::sleep(pause).await;
    }
    let mut waits = Vec::new();
    for question in &asked {
        let reply = slack.await_reply(question, PATIENCE).await.expect("an answer");
        waits.push(seconds(&reply.ts) - seconds(&question.ts));
    }
    assert_eq!(slack.call_count("chat.postMessage"), people, "nothing is refused, and nothing said twice");
    assert_eq!(slack.violations(), Vec::<String>::new());
    waits.sort_by(f64::total_cmp);
    waits
}

fn seconds(ts: &str) -> f64 {
    ts.parse().expect("a time")
}

/// Prints and returns the 50th and the 90th percentile, and the longest wait.
fn tell(what: &str, waits: Vec<f64>) -> [f64; 3] {
    let told = [50, 90, 100].map(|percent| waits[(waits.len() * percent).div_ceil(100) - 1]);
    let [half, nine_in_ten, last] = told;
    println!("{what:<36} p50 {half:.2} s, p90 {nine_in_ten:.2} s, the last {last:.2} s");
    told
}

/// The gateway process; killed when dropped.
struct Gateway(Child);

impl Gateway {
    fn start(home: &std::path::Path, slack: &Slack) -> Gateway {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pmk-host"));
        command.arg("--home").arg(home).args(["run", "--front", "slack", "--model", "sim"]);
        command
            .env_clear()
            .env("PMK_LOG", "warn")
            .env("PMK_SLACK_API_URL", slack.api_url())
            .env("PMK_SLACK_APP_TOKEN", &slack.rules().app_token)
            .env("PMK_SLACK_BOT_TOKEN", &slack.rules().bot_token);
        Gateway(command.stdin(Stdio::null()).spawn().expect("it starts"))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
