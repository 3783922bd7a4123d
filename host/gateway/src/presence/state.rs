//! What a running gateway says about itself: `gateway/state.json`. It counts only while that process is
//! alive.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use pmk_system::files;
use pmk_system::home;
use serde::{Deserialize, Serialize};

/// The phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// It cannot be reached yet.
    Starting,
    Ready,
    /// It takes nothing in any more, and finishes what it has begun.
    Leaving,
}

impl Phase {
    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Starting => "starting",
            Phase::Ready => "ready",
            Phase::Leaving => "leaving",
        }
    }
}

/// The contents of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    pub pid: u32,
    pub started_at: String,
    pub phase: Phase,
    /// Whether something restarts it when it ends.
    pub supervised: bool,
}

impl State {
    /// Returns the state of this process, which is starting.
    pub fn of_this_process() -> State {
        State {
            pid: std::process::id(),
            started_at: format!("{:.3}", Timestamp::now()),
            phase: Phase::Starting,
            supervised: is_supervised(),
        }
    }

    /// Writes the file. A failure is only a warning here: components that need the home more report
    /// it themselves.
    pub fn write(&self, home: &Path) {
        let path = path(home);
        let written = serde_json::to_string(self)
            .map_err(std::io::Error::from)
            .and_then(|text| home::replace_private_file(&path, format!("{text}\n").as_bytes()));
        if let Err(error) = written {
            tracing::warn!("cannot write `{}`, so `status` will show less: {error}", path.display());
        }
    }

    /// Reads the file; `None` if it is missing or invalid.
    pub fn read(home: &Path) -> Option<State> {
        serde_json::from_str(&files::read_text(&path(home)).ok()?).ok()
    }
}

fn path(home: &Path) -> PathBuf {
    home::gateway_dir(home).join("state.json")
}

/// Returns whether systemd or launchd has started this process.
fn is_supervised() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
    ["INVOCATION_ID", "NOTIFY_SOCKET", "XPC_SERVICE_NAME"].into_iter().any(is_set)
}
