//! What of the ledger could not be written: `audit-write-failures.json` counts it over restarts, until somebody who has
//! seen to it deletes the file.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use pmk_system::files;
use pmk_system::home;
use serde::{Deserialize, Serialize};

/// Its name, beside the ledger.
pub const FILE_NAME: &str = "audit-write-failures.json";

/// The count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WriteFailures {
    /// Lines that are lost; 0 where there is such a file and nobody can tell how many it counts.
    pub count: u64,
    pub last_error: String,
    pub last_at: String,
}

impl WriteFailures {
    /// What the file in this folder says; `None` where nothing was lost. One that cannot be read says that something was.
    pub fn read(folder: &Path) -> Option<WriteFailures> {
        let damaged = |why: String| WriteFailures {
            last_error: format!("`{FILE_NAME}` cannot be read: {why}"),
            ..WriteFailures::default()
        };
        match files::read_text(&path(folder)) {
            Ok(text) => Some(serde_json::from_str(&text).unwrap_or_else(|error| damaged(error.to_string()))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => Some(damaged(error.to_string())),
        }
    }

    /// What is lost, in words.
    pub fn told(&self) -> String {
        match self.count {
            0 => "lines of the ledger could not be written, nobody knows how many".to_owned(),
            1 => "1 line of the ledger could not be written".to_owned(),
            count => format!("{count} lines of the ledger could not be written"),
        }
    }

    /// Adds lines that are lost.
    ///
    /// # Errors
    /// They are not counted.
    pub(super) fn add(folder: &Path, lines: u64, error: &str) -> std::io::Result<()> {
        let before = WriteFailures::read(folder).map_or(0, |failures| failures.count);
        let failures = WriteFailures {
            count: before.saturating_add(lines),
            last_error: error.to_owned(),
            last_at: format!("{:.3}", Timestamp::now()),
        };
        let text = serde_json::to_string(&failures).map_err(std::io::Error::from)?;
        home::replace_private_file(&path(folder), format!("{text}\n").as_bytes())
    }
}

fn path(folder: &Path) -> PathBuf {
    folder.join(FILE_NAME)
}
