//! The sections of gateway.json that only this gateway has, with their defaults. The allowed values are in
//! [`keys`](super::keys).

use std::{net::SocketAddr, num::NonZeroU32};

use serde::Deserialize;

use crate::{access::audience::ToolCallFormat, front::progress, mra};

/// How `mra` is called.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MraConfig {
    /// The program and its first arguments.
    pub command: Vec<String>,
    /// Environment variables that are passed to it besides the harmless ones.
    pub environment: Vec<String>,
    /// How long one call may take.
    pub time_limit_seconds: f64,
}

impl Default for MraConfig {
    fn default() -> Self {
        MraConfig {
            command: vec!["mra".into()],
            environment: vec![],
            time_limit_seconds: mra::DEFAULT_TIME_LIMIT.as_secs_f64(),
        }
    }
}

impl MraConfig {
    /// Whether the operator has configured a command: then no workspace is needed.
    pub fn names_a_command(&self) -> bool {
        self.command != MraConfig::default().command
    }
}

/// How the model calls the tools of the gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolStyle {
    /// By tool calls if the provider supports them, otherwise by fenced directives.
    #[default]
    Auto,
    /// Always by fenced directives.
    Fenced,
}

impl ToolStyle {
    /// Returns the tool call format that the system prompt explains, depending on whether the model supports tool
    /// calls.
    pub fn toolbox(self, has_tools: bool) -> ToolCallFormat {
        if has_tools && self == ToolStyle::Auto { ToolCallFormat::Native } else { ToolCallFormat::Fenced }
    }
}

/// What happens to messages that arrive while one is being answered (specification 004 §6).
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct QueueConfig {
    pub mode: QueueMode,
    /// How long to wait for more if several have arrived, in milliseconds; not in `sequential`.
    pub debounce_ms: u64,
    /// The largest number that is answered together.
    pub most: usize,
}

impl Default for QueueConfig {
    fn default() -> Self {
        QueueConfig { mode: QueueMode::Sequential, debounce_ms: 1_000, most: 20 }
    }
}

/// How waiting messages are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueMode {
    /// One after the other, each with its own reply.
    #[default]
    Sequential,
    /// All that have arrived in the meantime together, with one reply.
    Collect,
    /// As `collect`; in addition, messages that arrive while something is looked up for the model are shown to it at
    /// once.
    Steer,
}

/// Time limits, in seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Between two pieces of an answer.
    pub model_idle_seconds: f64,
    /// For a whole answer.
    pub model_total_seconds: f64,
    /// For one Web API call.
    pub slack_call_seconds: f64,
    /// Between two lines of progress on one message.
    pub progress_seconds: f64,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        LimitsConfig {
            model_idle_seconds: 60.0,
            model_total_seconds: 600.0,
            slack_call_seconds: 10.0,
            progress_seconds: progress::MIN_GAP.as_secs_f64(),
        }
    }
}

/// Which answers have thumbs up and down buttons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Feedback {
    /// Those of an experiment, which counts the votes.
    #[default]
    Auto,
    On,
    Off,
}

impl Feedback {
    /// Whether an answer has the buttons.
    pub fn asks(self, in_experiment: bool) -> bool {
        match self {
            Feedback::Auto => in_experiment,
            Feedback::On => true,
            Feedback::Off => false,
        }
    }
}

/// What people are told when the gateway is away.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PresenceConfig {
    /// Whether people are told when the gateway goes away and comes back.
    pub broadcast: bool,
    /// Whether messages written in the meantime are read back and answered.
    pub read_missed: bool,
}

impl Default for PresenceConfig {
    fn default() -> Self {
        PresenceConfig { broadcast: true, read_missed: true }
    }
}

/// Where health probes are answered.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HealthConfig {
    /// The address that answers over HTTP; without it, none does.
    pub listen: Option<SocketAddr>,
}

/// How long the ledger is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LedgerConfig {
    /// For how many months files are kept, including the current one; without it, all are kept.
    pub keep_months: Option<NonZeroU32>,
}

/// How long conversations are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SessionsConfig {
    /// For how many days a conversation is kept in which nobody writes any more; without it, all are kept.
    pub keep_days: Option<NonZeroU32>,
}

/// How many questions to others are allowed per hour, for one person and for one conversation.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HourlyConfig {
    /// Questions to people.
    pub escalations: u32,
    /// Questions to `mra`.
    pub mra_questions: u32,
}

impl Default for HourlyConfig {
    fn default() -> Self {
        HourlyConfig { escalations: 20, mra_questions: 120 }
    }
}
