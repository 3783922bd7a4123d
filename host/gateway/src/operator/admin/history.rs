//! Reads the [log](super::AdminLog): the last changes, including those in the `admin.log` of an older pmk.

use std::{
    collections::VecDeque,
    fs::{self, File},
    io::{self, BufReader},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use pmk_system::{home, lines::Lines};
use serde::{Deserialize, Serialize};

use super::log::PREFIX;
use crate::ledger::Month;

/// How many changes are shown by default.
pub const SHOWN: usize = 20;

/// The single log file of older pmk versions, before there was one file a month. It is never written.
const OLD_FILE: &str = "admin.log";

/// One line of the log. Fields that an older pmk left out are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogEntry {
    /// The time as text, as it was written.
    pub at: String,
    /// `cli:NAME`, or a user's id.
    pub actor: String,
    /// The interface: `cli`, `slack` or `console`.
    pub origin: String,
    /// For example `audience.set`.
    pub action: String,
    pub args: String,
    /// Whether it was done.
    pub ok: bool,
    /// Why it was not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An entry with its time; an entry without a valid time has that of the entry before it.
type Dated = (Timestamp, LogEntry);

/// Returns the last entries of a home, at most `most`, the oldest first. Lines that are not JSON entries are skipped.
///
/// # Errors
/// A file exists and cannot be read.
pub fn last_changes(home: &Path, most: usize) -> io::Result<Vec<LogEntry>> {
    Ok(last_dated(home, most)?.into_iter().map(|(_, entry)| entry).collect())
}

fn last_dated(home: &Path, most: usize) -> io::Result<Vec<Dated>> {
    let folder = home::gateway_dir(home);
    let mut entries: Vec<Dated> = tail(&folder.join(OLD_FILE), most)?.into();
    let mut of_months = VecDeque::new();
    for path in months(&folder)?.iter().rev() {
        for entry in tail(path, most - of_months.len())?.into_iter().rev() {
            of_months.push_front(entry);
        }
        if of_months.len() == most {
            break;
        }
    }
    entries.extend(of_months);
    // Both are written when somebody switches back and forth between the two programs.
    entries.sort_by_key(|(at, _)| *at);
    Ok(entries.split_off(entries.len().saturating_sub(most)))
}

/// Returns the latest logged outcome of an action, if the log has an entry for it from `since` or later.
///
/// # Errors
/// A file exists and cannot be read.
pub fn outcome_since(home: &Path, since: Timestamp, is_it: impl Fn(&LogEntry) -> bool) -> io::Result<Option<LogEntry>> {
    /// More entries than are written between a crash and the next start.
    const LOOKED_AT: usize = 1_000;
    let entries = last_dated(home, LOOKED_AT)?;
    Ok(entries.into_iter().rfind(|(at, entry)| *at >= since && is_it(entry)).map(|(_, entry)| entry))
}

/// Returns the monthly files, the oldest first.
fn months(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let files = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        files => files?,
    };
    let mut months = Vec::new();
    for file in files {
        let file = file?;
        let name = file.file_name();
        if let Some(month) = name.to_str().and_then(|name| Month::named(PREFIX, name))
            && file.path().is_file()
        {
            months.push((month, file.path()));
        }
    }
    months.sort();
    Ok(months.into_iter().map(|(_, path)| path).collect())
}

/// Returns the last entries of one file.
fn tail(path: &Path, most: usize) -> io::Result<VecDeque<Dated>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(VecDeque::new()),
        file => file?,
    };
    let mut last = VecDeque::with_capacity(most.min(SHOWN));
    let mut moment = Timestamp::MIN;
    for line in Lines::new(BufReader::new(file)) {
        let line = line?;
        let Ok(value) = serde_json::from_slice::<serde_json::Value>(&line) else { continue };
        // Only objects are entries: a JSON array would otherwise be read by position.
        let Some(entry) = value.is_object().then(|| LogEntry::deserialize(value).ok()).flatten() else { continue };
        if entry.action.is_empty() {
            continue;
        }
        moment = entry.at.parse().unwrap_or(moment);
        last.push_back((moment, entry));
        if last.len() > most {
            last.pop_front();
        }
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::admin::{Actor, AdminLog};

    fn home_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let home = tempfile::tempdir().expect("a home");
        fs::create_dir(home::gateway_dir(home.path())).expect("a folder");
        for (name, text) in files {
            fs::write(home::gateway_dir(home.path()).join(name), text).expect("a log");
        }
        home
    }

    fn line(at: &str, action: &str) -> String {
        format!(r#"{{"at":"{at}","actor":"U1","origin":"slack","action":"{action}","args":"","ok":true}}"#) + "\n"
    }

    fn actions(home: &Path, most: usize) -> Vec<String> {
        last_changes(home, most).expect("a log").into_iter().map(|entry| entry.action).collect()
    }

    #[test]
    fn the_last_are_found_over_all_months_and_the_old_file_the_oldest_first() {
        let broken = "not json\n[1]\n\"x\"\n{\"at\":7}\n{}\n";
        let home = home_with(&[
            ("admin.log", &(line("2026-02-01T00:00:00.000Z", "a") + broken + &line("2026-03-15T00:00:00.000Z", "d"))),
            ("admin-2026-03.log", &(line("2026-03-01T00:00:00.000Z", "b") + &line("2026-03-02T00:00:00.000Z", "c"))),
            ("admin-2026-04.log", &(line("2026-04-01T00:00:00.000Z", "e") + &line("some day", "and f"))),
            ("admin-notes.log", &line("2026-05-01T00:00:00.000Z", "no month")),
        ]);
        assert_eq!(actions(home.path(), 20), ["a", "b", "c", "d", "e", "and f"]);
        assert_eq!(actions(home.path(), 3), ["d", "e", "and f"]);
        assert_eq!(actions(home.path(), 0), [] as [&str; 0]);
        AdminLog::new(home.path(), Actor::Cli { user: "han".into() }).note("f", "", Err("because")).expect("written");
        let last = last_changes(home.path(), 1).expect("a log").remove(0);
        assert_eq!((last.action.as_str(), last.ok, last.reason.as_deref()), ("f", false, Some("because")));
        let old = fs::read_to_string(home::gateway_dir(home.path()).join("admin.log")).expect("the old file");
        assert!(!old.contains("because"), "it is read and never written");
    }

    #[test]
    fn a_home_without_a_log_has_no_changes() {
        let home = tempfile::tempdir().expect("a home");
        assert_eq!(actions(home.path(), 20), [] as [&str; 0]);
    }

    #[test]
    fn what_came_of_a_change_is_found_and_not_before_it_was_begun() {
        let home = home_with(&[("admin-2026-04.log", &line("2026-04-01T00:00:00.500Z", "atoms.reject"))]);
        let found = |action: &str, since: &str| {
            let since = since.parse().expect("a time");
            outcome_since(home.path(), since, |entry| entry.action == action).expect("a log").is_some()
        };
        assert!(found("atoms.reject", "2026-04-01T00:00:00.500Z"));
        assert!(!found("atoms.reject", "2026-04-01T00:00:00.501Z"));
        assert!(!found("atoms.approve", "2026-04-01T00:00:00Z"));
    }
}
