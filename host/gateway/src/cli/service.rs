//! How a command is run with what a service manager passes to the service alone.

use std::{borrow::Cow, os::unix::fs::MetadataExt, path::Path};

/// The variables of the unit in `packaging`.
pub(super) const ENVIRONMENT_FILE: &str = "/etc/pmk-host/environment";

/// Returns the command line that runs `pmk-host` with these words as the account that the home belongs to, with the
/// credentials and the unit's variables.
pub(super) fn command<'a>(home: &Path, credentials: impl IntoIterator<Item = &'a str>, words: &[String]) -> String {
    let user = std::fs::metadata(home).map_or_else(|_| rustix::process::getuid().as_raw(), |home| home.uid());
    let credentials: String =
        credentials.into_iter().map(|name| format!(" -p LoadCredential={}", quoted(name))).collect();
    let words: String = words.iter().map(|word| format!(" {}", quoted(word))).collect();
    // Relative paths are meant from here; with the `-`, it runs although that account may not be allowed in here.
    let folder = std::env::current_dir().unwrap_or_else(|_| home.to_owned());
    let folder = folder.to_string_lossy();
    let folder = quoted(&folder);
    format!(
        "systemd-run --pty -p WorkingDirectory=-{folder} -p User={user} -p EnvironmentFile=-{ENVIRONMENT_FILE}{credentials} \
         pmk-host{words}"
    )
}

/// A word as a shell takes it.
fn quoted(word: &str) -> Cow<'_, str> {
    shlex::try_quote(word).unwrap_or_else(|_| word.into())
}
