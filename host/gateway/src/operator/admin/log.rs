//! The admin log: who changed what, and what was refused. One JSON line per change in
//! `<home>/gateway/admin-YYYY-MM.log` (UTC month), in the format of pmk (specification 003 §11).

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use pmk_system::home;
use serde::Serialize;
use thiserror::Error;

use super::actor::Actor;
use crate::ledger::Month;

/// The prefix of the names of its files.
pub(super) const PREFIX: &str = "admin";

/// The log of one home, for the changes of one person.
#[derive(Clone, Debug)]
pub struct AdminLog {
    folder: PathBuf,
    actor: Actor,
}

/// A line could not be written.
#[derive(Debug, Error)]
#[error("cannot write `{}`: {source}", path.display())]
pub struct AdminLogError {
    path: PathBuf,
    source: io::Error,
}

#[derive(Serialize)]
struct Line<'a> {
    at: String,
    actor: String,
    origin: &'static str,
    action: &'a str,
    args: &'a str,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl AdminLog {
    /// Creates the log. No file is opened before the first line.
    pub fn new(home: &Path, actor: Actor) -> Self {
        AdminLog { folder: home::gateway_dir(home), actor }
    }

    /// Writes the outcome of a change with the current time. `action` is, for example, `audience.set`; an error is the
    /// reason why the change was refused or failed. The line is on disk when this returns.
    ///
    /// # Errors
    /// The line cannot be written.
    pub fn note(&self, action: &str, args: &str, outcome: Result<(), &str>) -> Result<(), AdminLogError> {
        let at = Timestamp::now();
        let line = Line {
            at: format!("{at:.3}"),
            actor: self.actor.to_string(),
            origin: self.actor.origin(),
            action,
            args,
            ok: outcome.is_ok(),
            reason: outcome.err(),
        };
        let path = self.folder.join(Month::of(at).name(PREFIX));
        let written = serde_json::to_string(&line).map_err(io::Error::from).and_then(|line| {
            home::create_private_dir(&self.folder)?;
            append_line(&path, &line)
        });
        written.map_err(|source| AdminLogError { path, source })
    }
}

/// Appends a line. If the last line was cut off by a crash or a full disk, it is ended first, so that the new line
/// stays intact; the lock keeps other writers from interleaving.
fn append_line(path: &Path, line: &str) -> io::Result<()> {
    let mut file = home::append_private_file(path)?;
    file.lock()?;
    let end = if ends_in_a_line(&mut file)? { "" } else { "\n" };
    file.write_all(format!("{end}{line}\n").as_bytes())?;
    file.sync_data()
}

fn ends_in_a_line(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use serde_json::Value;

    use super::*;

    fn log(home: &Path) -> AdminLog {
        AdminLog::new(home, Actor::Slack { user: "U0HANFOUR".into() })
    }

    fn file(home: &Path) -> PathBuf {
        let mut files = fs::read_dir(home::gateway_dir(home)).unwrap();
        let path = files.next().unwrap().unwrap().path();
        assert!(files.next().is_none(), "one month, one file");
        path
    }

    #[test]
    fn a_change_and_a_refusal_are_a_line_each() {
        let home = tempfile::tempdir().unwrap();
        log(home.path()).note("audience.set", "U0XYZ pm", Ok(())).unwrap();
        log(home.path()).note("audience.set", "U0XYZ king", Err("`king` is\nno audience")).unwrap();
        let path = file(home.path());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        let at: Value = serde_json::from_str::<Value>(lines[0]).unwrap()["at"].take();
        let at = at.as_str().unwrap();
        let month = path.file_name().unwrap().to_str().unwrap().strip_prefix("admin-").unwrap().to_owned();
        assert_eq!((at.len(), format!("{}.log", &at[..7])), ("2026-04-28T02:13:36.133Z".len(), month));
        assert_eq!(
            lines[0],
            format!(
                r#"{{"at":"{at}","actor":"U0HANFOUR","origin":"slack","action":"audience.set","args":"U0XYZ pm","ok":true}}"#
            )
        );
        assert!(lines[1].ends_with(r#""args":"U0XYZ king","ok":false,"reason":"`king` is\nno audience"}"#), "{text}");
    }

    #[test]
    fn a_torn_line_does_not_swallow_the_next() {
        let home = tempfile::tempdir().unwrap();
        log(home.path()).note("first", "", Ok(())).unwrap();
        let path = file(home.path());
        let torn = fs::read_to_string(&path).unwrap().trim_end().replace("true}", "tr");
        fs::write(&path, &torn).unwrap();
        log(home.path()).note("second", "", Ok(())).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (2, torn.as_str()));
        assert_eq!(serde_json::from_str::<Value>(lines[1]).unwrap()["action"], "second");
    }

    #[test]
    fn lines_of_many_never_mix() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        std::thread::scope(|scope| {
            for n in 0..16 {
                scope.spawn(move || log(home).note("a", &n.to_string().repeat(2_000), Ok(())).unwrap());
            }
        });
        let text = fs::read_to_string(file(home)).unwrap();
        assert_eq!(text.lines().filter(|line| serde_json::from_str::<Value>(line).is_ok()).count(), 16);
    }
}
