//! The sections of gateway.json that only this gateway has: each with its defaults. What makes sense in it is in [`keys`](super::keys).

use std::{net::SocketAddr, num::NonZeroU32};

use serde::Deserialize;

use crate::{access::audience::ToolCallFormat, front::progress, mra};

/// How `mra` is called.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MraConfig {
    /// The program and its first arguments.
    pub command: Vec<String>,
    /// Variables of the gateway's environment that it gets to see beside the harmless ones.
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
    /// Whether the operator has said what to run: then it may do without a workspace.
    pub fn names_a_command(&self) -> bool {
        self.command != MraConfig::default().command
    }
}

/// How the model asks for what the gateway can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolStyle {
    /// By tool calls where the provider has them, else by fenced directives.
    #[default]
    Auto,
    /// By fenced directives always.
    Fenced,
}

impl ToolStyle {
    /// What the system prompt explains to a model that has tool calls, or has none.
    pub fn toolbox(self, has_tools: bool) -> ToolCallFormat {
        if has_tools && self == ToolStyle::Auto { ToolCallFormat::Native } else { ToolCallFormat::Fenced }
    }
}

/// What becomes of messages that come while one is being answered (specification 004 §6).
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct QueueConfig {
    pub mode: QueueMode,
    /// How long to wait for more where several have come, in milliseconds; not in `sequential`.
    pub debounce_ms: u64,
    /// How many are answered together at most.
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
    /// One after the other, each with a reply of its own.
    #[default]
    Sequential,
    /// Those that have come meanwhile together, with one reply.
    Collect,
    /// As `collect`, and what comes while the model has something looked up is shown to it at once.
    Steer,
}

/// How long things may take, in seconds.
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

/// Under which answers people find two thumbs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Feedback {
    /// Those of an experiment, which counts them.
    #[default]
    Auto,
    On,
    Off,
}

impl Feedback {
    /// Whether an answer has them.
    pub fn asks(self, in_experiment: bool) -> bool {
        match self {
            Feedback::Auto => in_experiment,
            Feedback::On => true,
            Feedback::Off => false,
        }
    }
}

/// What people get to know of the gateway's being away.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PresenceConfig {
    /// Whether they are told when it goes and is back.
    pub broadcast: bool,
    /// Whether what they wrote meanwhile is read back and answered.
    pub read_missed: bool,
}

impl Default for PresenceConfig {
    fn default() -> Self {
        PresenceConfig { broadcast: true, read_missed: true }
    }
}

/// Where a machine asks how the gateway does.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HealthConfig {
    /// The address that answers over HTTP; without one, none does.
    pub listen: Option<SocketAddr>,
}

/// How long the ledger is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LedgerConfig {
    /// The files of so many months, the present one among them; without it all are.
    pub keep_months: Option<NonZeroU32>,
}

/// How often others are asked within an hour on behalf of one person, and in one conversation.
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
