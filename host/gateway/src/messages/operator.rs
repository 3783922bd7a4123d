//! Texts of an operator's terminal: notices at the start, and the status of the gateway.

use std::borrow::Cow;

use pmk_policy::{ChangedSettings, Suspension};

use super::{Messages, terminal};
use crate::{chat::Connection, ledger::LedgerBacklog};

/// A choice that was made for the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The variable of that name keeps the gateway from writing to Slack.
    DryRun(&'static str),
    /// There are no tokens.
    Console,
    /// There are no tokens, although gateway.json has a Slack section.
    NoTokens,
    /// No model is configured.
    Sim,
}

impl Messages {
    /// The choice, and its hint.
    pub fn notice(&self, notice: Notice) -> (String, String) {
        match notice {
            Notice::DryRun(variable) => {
                (self.text("note-dry-run", [("variable", variable.into())]), self.text("note-dry-run-hint", []))
            }
            Notice::Console => (self.text("note-console", []), self.text("note-console-hint", [])),
            Notice::NoTokens => (self.text("note-no-tokens", []), self.text("note-no-tokens-hint", [])),
            Notice::Sim => (self.text("note-sim", []), self.text("note-sim-hint", [])),
        }
    }

    /// The status level in words.
    pub fn status_level(&self, level: &str) -> String {
        self.text("status-level", [("level", level.into())])
    }

    /// A reason for the level, with its count: a label and a value, as in the following functions.
    pub fn status_because(&self, reason: &str, count: u64) -> (String, String) {
        (self.text("status-because", []), self.text(&format!("reason-{reason}"), [("count", count.into())]))
    }

    /// The level and the reasons in one line.
    pub fn status_in_a_line<'a>(&self, level: &str, reasons: impl IntoIterator<Item = (&'a str, u64)>) -> String {
        let (level, reasons) = (self.status_level(level), self.status_reasons(reasons));
        if reasons.is_empty() {
            return level;
        }
        self.text("status-in-a-line", [("level", level.into()), ("reasons", reasons.into())])
    }

    /// All reasons for the level.
    pub fn status_reasons<'a>(&self, reasons: impl IntoIterator<Item = (&'a str, u64)>) -> String {
        let reasons: Vec<String> =
            reasons.into_iter().map(|(reason, count)| self.status_because(reason, count).1).collect();
        reasons.join(&self.text("status-reasons-between", []))
    }

    /// The process id.
    pub fn status_process(&self, pid: u32) -> (String, String) {
        (self.text("status-process", []), pid.to_string())
    }

    /// A command that has the home to itself.
    pub fn status_work(&self, command: &str, pid: u32) -> (String, String) {
        let filled = [("command", command.into()), ("pid", pid.to_string().into())];
        (self.text("status-work", []), self.text("status-work-is", filled))
    }

    /// The phase, and since when.
    pub fn status_phase(&self, phase: &str, since: &str) -> (String, String) {
        let filled = [("phase", phase.into()), ("since", since.into())];
        (self.text("status-phase", []), self.text("status-phase-is", filled))
    }

    /// Whether the gateway is supervised.
    pub fn status_supervised(&self, supervised: bool) -> (String, String) {
        let supervised = if supervised { "yes" } else { "no" };
        (self.text("status-supervised", []), self.text("status-supervised-is", [("supervised", supervised.into())]))
    }

    /// The heartbeat, with its age in seconds if there is one.
    pub fn status_heartbeat(&self, heartbeat: &str, seconds: Option<u64>) -> (String, String) {
        let value = match seconds {
            Some(seconds) => {
                self.text("status-heartbeat-is", [("heartbeat", heartbeat.into()), ("seconds", seconds.into())])
            }
            None => self.text("status-heartbeat-none", []),
        };
        (self.text("status-heartbeat", []), value)
    }

    /// The database that the store is in, and how many hosts use it, or why that is unknown.
    pub fn status_store(&self, name: &str, hosts: Result<usize, &str>) -> (String, String) {
        let (state, hosts, error) = match hosts {
            Ok(0) => ("free", 0, Cow::default()),
            Ok(hosts) => ("used", hosts, Cow::default()),
            Err(error) => ("unknown", 0, terminal::translated(error, self.language)),
        };
        let filled = [
            ("name", name.to_owned().into()),
            ("state", state.into()),
            ("hosts", hosts.into()),
            ("error", error.into_owned().into()),
        ];
        (self.text("status-store", []), self.text("status-store-is", filled))
    }

    /// Why nothing can be stored.
    pub fn status_unstorable(&self, why: &str) -> (String, String) {
        (self.text("status-store", []), self.error(why))
    }

    /// What to do about that.
    pub fn status_unstorable_hint(&self) -> String {
        self.text("status-unstorable-hint", [])
    }

    /// A host of that database: home and machine, state, version, since when, and the seconds since it was last heard
    /// of.
    pub fn status_host(
        &self,
        name: String,
        does: &str,
        version: &str,
        since: String,
        seconds: u64,
        turns: u64,
    ) -> (String, String) {
        let filled = [
            ("turns", turns.into()),
            ("name", name.into()),
            ("does", does.into()),
            ("version", version.to_owned().into()),
            ("since", since.into()),
            ("seconds", seconds.into()),
        ];
        (self.text("status-host", []), self.text("status-host-is", filled))
    }

    /// The policies that decide on a host, with the settings that somebody has changed, and why they are not those chosen
    /// for all hosts.
    pub fn status_policies(
        &self,
        policies: String,
        settings: Option<&ChangedSettings>,
        refused: Option<&str>,
    ) -> (String, String) {
        let policies = match settings.filter(|settings| !settings.is_empty()) {
            Some(settings) => {
                let filled = [("policies", policies.into()), ("settings", settings.to_string().into())];
                self.text("status-policies-with", filled)
            }
            None => policies,
        };
        let is_refused = if refused.is_some() { "yes" } else { "no" };
        let why = terminal::translated(refused.unwrap_or_default(), self.language).into_owned();
        let filled = [("policies", policies.into()), ("refused", is_refused.into()), ("why", why.into())];
        (self.text("status-policies", []), self.text("status-policies-is", filled))
    }

    /// A decision for which a policy is skipped at present.
    pub fn status_suspended(&self, suspension: &Suspension) -> (String, String) {
        (self.text("status-suspended", []), self.suspension(suspension))
    }

    /// What Slack refuses.
    pub fn status_refusal(&self, what: &str) -> (String, String) {
        (self.text("status-refusal", []), self.error(what))
    }

    /// Why gateway.json is not in use.
    pub fn status_config(&self, why: &str) -> (String, String) {
        (self.text("status-config", []), self.error(why))
    }

    /// What to do about that; the command checks the file.
    pub fn status_config_hint(&self, command: &str) -> String {
        self.text("status-config-hint", [("command", command.into())])
    }

    /// An experiment that was not started, or goes on without a change, and why.
    pub fn status_experiment(&self, experiment: &str, why: &str, goes_on: bool) -> (String, String) {
        let filled = [("experiment", experiment.into()), ("why", self.error(why).into())];
        let key = if goes_on { "status-experiment-goes-on" } else { "status-experiment-is" };
        (self.text("status-config", []), self.text(key, filled))
    }

    /// What to do about that.
    pub fn status_experiment_hint(&self, command: &str) -> String {
        self.text("status-experiment-hint", [("command", command.into())])
    }

    /// The sockets of the connection.
    pub fn status_sockets(&self, Connection { open, of, reconnects }: Connection) -> (String, String) {
        let filled =
            [("open", open.to_string().into()), ("of", of.to_string().into()), ("reconnects", reconnects.into())];
        (self.text("status-sockets", []), self.text("status-sockets-are", filled))
    }

    /// The error that keeps lines of the ledger from being written.
    pub fn status_ledger(&self, LedgerBacklog { error, since, .. }: &LedgerBacklog) -> (String, String) {
        let error = terminal::translated(error, self.language).into_owned();
        let filled = [("since", since.clone().into()), ("error", error.into())];
        (self.text("status-ledger", []), self.text("status-ledger-is", filled))
    }

    /// What to do about that.
    pub fn status_ledger_hint(&self) -> String {
        self.text("status-ledger-hint", [])
    }
}

#[cfg(test)]
pub(super) fn everything(messages: &Messages) -> Vec<String> {
    let notices = [Notice::DryRun("PMK_DRY_RUN"), Notice::Console, Notice::NoTokens, Notice::Sim];
    let notices = notices.map(|notice| messages.notice(notice));
    let trouble = LedgerBacklog { error: "no room".into(), since: "now".into(), waiting: 1 };
    let reasons = [
        "nobody",
        "starting",
        "heart-stopped",
        "heart-late",
        "silent",
        "leaving",
        "reconnecting",
        "reconnects",
        "token-refused",
        "store-away",
        "config-unused",
        "waiting",
    ];
    let lines = [
        messages.status_process(7),
        messages.status_work("store restore", 7),
        messages.status_supervised(true),
        messages.status_heartbeat("fresh", Some(3)),
        messages.status_heartbeat("stale", None),
        messages.status_sockets(Connection { open: 1, of: 2, reconnects: 0 }),
        messages.status_config("not a JSON object: expected value at line 1 column 1"),
        messages.status_experiment("less", "arm `b`: no such file", false),
        messages.status_experiment("less", "arm `b`: no such file", true),
        messages.status_refusal("Slack ended Socket Mode: `link_disabled`"),
        messages.status_ledger(&trouble),
        messages.status_store("postgres://pmk@db/pmk", Ok(1)),
        messages.status_store("postgres://pmk@db/pmk", Ok(3)),
        messages.status_store("postgres://pmk@db/pmk", Ok(0)),
        messages.status_store("postgres://pmk@db/pmk", Err(&trouble.error)),
        messages.status_host("a:/home".into(), "works", "1.0.0", "now".into(), 0, 1),
        messages.status_host("b:/home".into(), "works", "1.0.0", "now".into(), 1, 7),
        messages.status_host("c:/home".into(), "silent", "1.0.0", "now".into(), 77, 0),
        messages.status_phase("ready", "now"),
        messages.status_suspended(&super::commands::suspended(0)),
    ];
    let lines = lines.into_iter().chain(reasons.iter().map(|reason| messages.status_because(reason, 2))).chain(notices);
    let line = messages.status_in_a_line("degraded", [("starting", 0), ("waiting", 2)]);
    let levels = ["healthy", "degraded", "down"].map(|level| messages.status_level(level));
    lines
        .flat_map(|(one, two)| [one, two])
        .chain(levels)
        .chain([
            messages.status_ledger_hint(),
            messages.status_unstorable_hint(),
            messages.status_config_hint("pmk-host config check"),
            messages.status_experiment_hint("pmk-host experiment stop"),
            line,
        ])
        .collect()
}
