//! What a run says about itself while it runs: `gateway/state.json`. It counts only while that process lives.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use pmk_system::files;
use pmk_system::home;
use serde::{Deserialize, Serialize};

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Nobody can reach it yet.
    Starting,
    Ready,
    /// It takes nothing in any more, and finishes what it has begun.
    Leaving,
}

impl Phase {
    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Starting => "starting",
            Phase::Ready => "ready",
            Phase::Leaving => "leaving",
        }
    }
}

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    pub pid: u32,
    pub started_at: String,
    pub phase: Phase,
    /// Whether something starts it again when it ends.
    pub supervised: bool,
}

impl State {
    /// That of this process, which starts now.
    pub fn of_this_process() -> State {
        State {
            pid: std::process::id(),
            started_at: format!("{:.3}", Timestamp::now()),
            phase: Phase::Starting,
            supervised: is_supervised(),
        }
    }

    /// Writes it. A home that cannot be written in is told by whatever needs it more.
    pub fn write(&self, home: &Path) {
        let path = path(home);
        let written = serde_json::to_string(self)
            .map_err(std::io::Error::from)
            .and_then(|text| home::replace_private_file(&path, format!("{text}\n").as_bytes()));
        if let Err(error) = written {
            tracing::warn!("cannot write `{}`, so `status` will show less: {error}", path.display());
        }
    }

    /// Reads it; what is no state is none.
    pub fn read(home: &Path) -> Option<State> {
        serde_json::from_str(&files::read_text(&path(home)).ok()?).ok()
    }
}

fn path(home: &Path) -> PathBuf {
    home::gateway_dir(home).join("state.json")
}

/// Whether systemd or launchd has started this process.
fn is_supervised() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
    ["INVOCATION_ID", "NOTIFY_SOCKET", "XPC_SERVICE_NAME"].into_iter().any(is_set)
}
