//! `status`: how the gateway of a home does.

use std::{fmt::Write, process::ExitCode};

use clap::Args;
use jiff::Timestamp;
use pmk_system::error::Failure;
use serde_json::{Value, json};

use super::{
    context::Context,
    output::{note, print, print_json},
};
use crate::{
    control::{Look, look},
    ledger::Trouble,
    presence::{health::Level, state::State},
};

/// The exit code where nobody is there, as of service scripts.
const NOT_RUNNING: u8 = 3;
/// The one where nobody can tell, as of service scripts; 1 says that a gateway is there.
pub(super) const UNKNOWN: u8 = 4;

#[derive(Debug, Args)]
pub(super) struct StatusCommand {}

impl StatusCommand {
    pub(super) fn execute(self, context: &Context) -> Result<ExitCode, Failure> {
        let shown = Shown(look(&context.home)?);
        if context.json {
            print_json(&shown.document())?;
        } else {
            print(&shown.page())?;
            if shown.trouble().is_some() {
                note(
                    "  hint: is there room on the disk, and may it write there? They are kept, and written once they can be",
                );
            }
        }
        Ok(match shown.0.level {
            Level::Down => ExitCode::from(NOT_RUNNING),
            Level::Degraded => ExitCode::FAILURE,
            Level::Healthy => ExitCode::SUCCESS,
        })
    }
}

/// Everything that is shown.
struct Shown(Look);

impl Shown {
    /// What keeps lines of the ledger from being written.
    fn trouble(&self) -> Option<&Trouble> {
        self.0.report.as_ref()?.ledger.as_ref()
    }

    fn page(&self) -> String {
        let mut page = format!("{}\n", self.0.level.name());
        let mut line = |name: &str, value: String| {
            let _ = writeln!(page, "  {name:<12} {value}");
        };
        for reason in &self.0.reasons {
            line("because", reason.clone());
        }
        if let Some(pid) = self.0.pid {
            line("process", pid.to_string());
        }
        if let Some(State { started_at, phase, supervised, .. }) = &self.0.state {
            line("phase", format!("{}, started {started_at}", phase.name()));
            line("supervised", if *supervised { "yes" } else { "no" }.to_owned());
        }
        line(
            "heartbeat",
            match self.0.age {
                Some(age) => format!("{}, {} s ago", self.0.heartbeat.name(), age.as_secs()),
                None => "none".to_owned(),
            },
        );
        if let Some(connection) = self.0.report.as_ref().and_then(|report| report.connection) {
            let (open, of, reconnects) = (connection.open, connection.of, connection.reconnects);
            line("sockets", format!("{open} of {of} connected, {reconnects} reconnects in the last 10 minutes"));
        }
        if let Some(Trouble { error, since, .. }) = self.trouble() {
            line("ledger", format!("since {since}: {error}"));
        }
        page
    }

    fn document(&self) -> Value {
        let connection = self.0.report.as_ref().and_then(|report| report.connection);
        json!({
            "level": self.0.level,
            "reasons": self.0.reasons,
            "pid": self.0.pid,
            "phase": self.0.state.as_ref().map(|state| state.phase),
            "started_at": self.0.state.as_ref().map(|state| &state.started_at),
            "supervised": self.0.state.as_ref().map(|state| state.supervised),
            "heartbeat": {
                "freshness": self.0.heartbeat,
                "at": self.0.beat_ms.and_then(|beat| Timestamp::from_millisecond(beat).ok()).map(|at| format!("{at:.3}")),
                "age_seconds": self.0.age.map(|age| age.as_secs()),
            },
            "answers": self.0.report.is_some(),
            "sockets": connection,
            "ledger": self.trouble(),
        })
    }
}
