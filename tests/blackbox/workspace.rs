//! The gateway in a workspace: the built program between a home and a stand-in Slack.

use std::{
    fs::File,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use pmk_stand_ins::{
    anthropic::{self, Anthropic},
    slack::{LATE, Message, Slack, SlackRules},
};
use serde_json::Value;

use crate::support::{Home, PATIENCE, until_async};

/// Slack's rules, with waits that a test can afford and a deadline that no machine is too slow for.
pub fn rules() -> SlackRules {
    SlackRules { ack_deadline: PATIENCE, ..SlackRules::quick() }
}

/// The same for a gateway that is killed: what it took along comes again soon, and as often as it takes. Slack's own
/// three times would be over before a slow machine has started a gateway anew. Such a machine may acknowledge late,
/// which does no harm.
pub fn rules_for_kills() -> SlackRules {
    SlackRules { retry_delays: vec![Duration::from_millis(200); 600], ..SlackRules::quick() }.expecting([LATE])
}

/// What people are told when the last host goes and when one is back.
pub fn is_of_presence(message: &Message) -> bool {
    let shown = message.shown();
    shown.contains(":zzz:") || shown.contains(":wave:")
}

/// A workspace, a home, and a model that counts what it is asked.
pub struct Scene {
    pub slack: Slack,
    pub home: Home,
    pub anthropic: Anthropic,
}

impl Scene {
    /// With these rules of Slack's, which limits nothing, and this gateway.json.
    pub async fn new(rules: SlackRules, config: &Value) -> Scene {
        let (slack, home) = (Slack::start(rules.unlimited()).await, Home::new());
        home.write("gateway.json", config.to_string());
        Scene { slack, home, anthropic: Anthropic::start().await }
    }

    /// Starts a gateway, and waits until it hears.
    pub async fn start(&self) -> Gateway {
        let gateway = Gateway::asking(&self.home, &self.slack, &self.anthropic, &[]);
        assert!(self.slack.await_connected(PATIENCE).await);
        gateway
    }

    /// Nothing was done that Slack or the model does not allow.
    pub fn behaved(&self) {
        assert_eq!(self.slack.violations(), Vec::<String>::new());
        let refused: Vec<String> = self.anthropic.requests().into_iter().filter_map(|asked| asked.refused).collect();
        assert_eq!(refused, [] as [&str; 0]);
    }
}

/// A running gateway, killed when dropped.
pub struct Gateway {
    child: Child,
    log: PathBuf,
    /// How much those before it have written there.
    before: usize,
}

impl Gateway {
    /// Starts one that answers with these arguments.
    pub fn start(home: &Home, slack: &Slack, more: &[&str]) -> Gateway {
        Gateway::spawn(home, command(home, slack, more))
    }

    /// Starts one that asks a stand-in's model.
    pub fn asking(home: &Home, slack: &Slack, anthropic: &Anthropic, more: &[&str]) -> Gateway {
        let mut command = command(home, slack, &[&["--model", "anthropic-api"], more].concat());
        command.env("ANTHROPIC_API_KEY", anthropic::KEY).env("ANTHROPIC_BASE_URL", anthropic.url());
        Gateway::spawn(home, command)
    }

    /// Starts one by this command.
    pub fn spawn(home: &Home, mut command: Command) -> Gateway {
        let log = home.path().join("stderr.log");
        let stderr = File::options().create(true).append(true).open(&log).expect("a file in the home");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
        let before = std::fs::metadata(&log).expect("the log").len() as usize;
        Gateway { child: command.spawn().expect("the program starts"), log, before }
    }

    /// What it has written to standard error, and those before it in this home.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("the log")
    }

    /// Waits until it listens for signals.
    pub async fn await_ready(&self) {
        until_async("it is ready", || self.log()[self.before..].contains(" ready version=").then_some(())).await;
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().expect("SIGKILL");
        self.child.wait().expect("it is gone");
    }

    /// How the program has ended, once it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it can be asked")
    }

    /// SIGTERM, and how the program ends.
    pub fn terminate(mut self) -> ExitStatus {
        self.end()
    }

    /// The same, so that what it has logged is still there.
    pub fn end(&mut self) -> ExitStatus {
        let status = Command::new("kill").arg(self.child.id().to_string()).status().expect("kill is installed");
        assert!(status.success());
        self.child.wait().expect("it is stopping")
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
    }
}

/// The command that connects a home to a workspace; the model is `sim` unless another is named.
pub fn command(home: &Home, slack: &Slack, more: &[&str]) -> Command {
    let mut arguments = vec!["run", "--front", "slack"];
    arguments.extend(more);
    if !more.contains(&"--model") {
        arguments.extend(["--model", "sim"]);
    }
    let mut command = home.command(&arguments);
    command
        .env("PMK_SLACK_API_URL", slack.api_url())
        .env("PMK_SLACK_APP_TOKEN", &slack.rules().app_token)
        .env("PMK_SLACK_BOT_TOKEN", &slack.rules().bot_token);
    if slack.rules().limits.is_none() {
        command.env("PMK_SLACK_LIMITS", "refusals");
    }
    command
}
