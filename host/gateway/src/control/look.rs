//! The status of the gateway of a home: from the gateway itself if it answers, otherwise from its files. gateway.json
//! is not read, so no command that supplies a secret is run.

use std::{path::Path, time::Duration};

use pmk_system::{
    clock,
    error::Failure,
    home::{Holder, HomeLock},
};

use super::{Reply, Request, ask_within};
use crate::presence::{
    LivenessFiles,
    health::{Freshness, Level, Reason, Report, Signals, judge},
    state::State,
};

/// How long a running gateway may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is known of the gateway.
#[derive(Debug)]
pub struct Look {
    /// A command that has the home, so that no gateway can run there.
    pub work: Option<Holder>,
    pub pid: Option<u32>,
    pub state: Option<State>,
    pub beat_ms: Option<i64>,
    pub age: Option<Duration>,
    /// Its own report; `None` if it does not answer.
    pub report: Option<Report>,
    pub level: Level,
    pub heartbeat: Freshness,
    pub reasons: Vec<Reason>,
}

/// Determines the status of the gateway of this home.
///
/// # Errors
/// It cannot be determined whether one is running.
pub fn look(home: &Path) -> Result<Look, Failure> {
    let (holder, work) = match HomeLock::holder_of(home)? {
        Some(holder) if !holder.is_gateway() => (None, Some(holder)),
        holder => (holder, None),
    };
    let pid = holder.as_ref().map(|holder| holder.pid);
    // State left by another process says nothing about this one.
    let state = State::read(home).filter(|state| Some(state.pid) == pid);
    let beat_ms = LivenessFiles::of(home).read().beat_ms;
    let now_ms = clock::now_ms();
    let age = beat_ms.and_then(|beat| Freshness::age(beat, now_ms));
    let report = match holder {
        Some(_) => match ask_within(home, &Request::Status, PATIENCE) {
            Ok(Reply::Status(report)) => Some(report),
            Ok(_) | Err(_) => None,
        },
        None => None,
    };
    let heartbeat = Freshness::of_beat(beat_ms, now_ms, report.is_some());
    let signals = Signals {
        is_alive: holder.is_some(),
        phase: state.as_ref().map(|state| state.phase),
        heartbeat,
        report: report.clone(),
    };
    let (level, reasons) = judge(&signals);
    Ok(Look { work, pid, state, beat_ms, age, report, level, heartbeat, reasons })
}
