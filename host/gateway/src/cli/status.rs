//! `status`: how the gateway of a home does. Asked of itself where it answers, read from its files where it does not.
//! Of gateway.json nothing but the language is looked at, so no command that names a secret is run.

use std::{fmt::Write, process::ExitCode, time::Duration};

use clap::Args;
use jiff::Timestamp;
use pmk_system::{clock, error::Failure, home::HomeLock};
use serde_json::{Value, json};

use super::{
    context::Context,
    output::{note, print, print_json},
};
use crate::{
    control::{self, Reply, Request},
    ledger::Trouble,
    messages::Messages,
    presence::{
        Signs,
        health::{Freshness, Level, Reason, Report, Signals, judge},
        state::State,
    },
};

/// How long a running gateway may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The exit code where nobody is there, as of service scripts.
const NOT_RUNNING: u8 = 3;
/// The one where nobody can tell, as of service scripts; 1 says that a gateway is there.
pub(super) const UNKNOWN: u8 = 4;

#[derive(Debug, Args)]
pub(super) struct StatusCommand {}

/// Everything that is shown.
struct Shown {
    pid: Option<u32>,
    state: Option<State>,
    beat_ms: Option<i64>,
    age: Option<Duration>,
    report: Option<Report>,
    level: Level,
    heartbeat: Freshness,
    reasons: Vec<Reason>,
}

impl StatusCommand {
    pub(super) fn execute(self, context: &Context) -> Result<ExitCode, Failure> {
        let shown = look(context)?;
        if context.json {
            print_json(&shown.document())?;
        } else {
            let messages = Messages::new(context.language);
            print(&shown.page(&messages))?;
            if shown.trouble().is_some() {
                note(format_args!("  hint: {}", messages.status_ledger_hint()));
            }
        }
        Ok(match shown.level {
            Level::Down => ExitCode::from(NOT_RUNNING),
            Level::Degraded => ExitCode::FAILURE,
            Level::Healthy => ExitCode::SUCCESS,
        })
    }
}

fn look(context: &Context) -> Result<Shown, Failure> {
    let home = &context.home;
    let holder = HomeLock::holder_of(home)?;
    let pid = holder.as_ref().map(|holder| holder.pid);
    // What another process has left says nothing about this one.
    let state = State::read(home).filter(|state| Some(state.pid) == pid);
    let beat_ms = Signs::of(home).read().beat_ms;
    let age = beat_ms.and_then(|beat| Freshness::age(beat, clock::now_ms()));
    let report = match holder {
        Some(_) => match control::ask_within(home, &Request::Status, PATIENCE) {
            Ok(Reply::Status(report)) => Some(report),
            Ok(_) | Err(_) => None,
        },
        None => None,
    };
    let heartbeat = Freshness::of(age);
    let signals = Signals {
        is_alive: holder.is_some(),
        phase: state.as_ref().map(|state| state.phase),
        heartbeat,
        report: report.clone(),
    };
    let (level, reasons) = judge(&signals);
    Ok(Shown { pid, state, beat_ms, age, report, level, heartbeat, reasons })
}

impl Shown {
    /// What keeps lines of the ledger from being written.
    fn trouble(&self) -> Option<&Trouble> {
        self.report.as_ref()?.ledger.as_ref()
    }

    fn page(&self, messages: &Messages) -> String {
        let mut page = format!("{}\n", messages.status_level(self.level.name()));
        let mut line = |(name, value): (String, String)| {
            // A Chinese character takes the room of two others.
            let wide = name.chars().filter(|c| !c.is_ascii()).count();
            let _ = writeln!(page, "  {name:<room$} {value}", room = 12 - wide.min(12));
        };
        for reason in &self.reasons {
            line(messages.status_because(reason.name(), reason.count()));
        }
        if let Some(pid) = self.pid {
            line(messages.status_process(pid));
        }
        if let Some(state) = &self.state {
            line(messages.status_phase(state.phase.name(), &state.started_at));
            line(messages.status_supervised(state.supervised));
        }
        line(messages.status_heartbeat(self.heartbeat.name(), self.age.map(|age| age.as_secs())));
        if let Some(connection) = self.report.as_ref().and_then(|report| report.connection) {
            line(messages.status_sockets(connection));
        }
        if let Some(trouble) = self.trouble() {
            line(messages.status_ledger(trouble));
        }
        page
    }

    fn document(&self) -> Value {
        let connection = self.report.as_ref().and_then(|report| report.connection);
        json!({
            "level": self.level,
            "reasons": self.reasons,
            "pid": self.pid,
            "phase": self.state.as_ref().map(|state| state.phase),
            "started_at": self.state.as_ref().map(|state| &state.started_at),
            "supervised": self.state.as_ref().map(|state| state.supervised),
            "heartbeat": {
                "freshness": self.heartbeat,
                "at": self.beat_ms.and_then(|beat| Timestamp::from_millisecond(beat).ok()).map(|at| format!("{at:.3}")),
                "age_seconds": self.age.map(|age| age.as_secs()),
            },
            "answers": self.report.is_some(),
            "sockets": connection,
            "ledger": self.trouble(),
        })
    }
}
