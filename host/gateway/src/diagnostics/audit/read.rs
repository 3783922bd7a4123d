//! Reads the ledger: the monthly files, and pmk's single `events.log` if it exists.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde_json::Value;

use super::Record;
use crate::ledger::{Month, Series};

/// A longer line is not an event.
const MAX_LINE_BYTES: usize = 1 << 20;

/// Returns the events since a time, oldest file first, and the number of lines that are not events. A folder that does
/// not exist has none.
///
/// # Errors
/// The folder, or a file of it, cannot be read.
pub fn events(folder: &Path, since: Timestamp) -> io::Result<(Vec<Record>, u64)> {
    let mut records = Vec::new();
    let mut unreadable = 0;
    for path in files(folder, since)? {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("`{}`: {error}", path.display()));
        let Some(file) = open(&path).map_err(named)? else { continue };
        let mut lines = BufReader::new(file);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).map_err(named)? > 0 {
            match record(&line) {
                Some(record) if record.at >= since => records.push(record),
                Some(_) => {}
                None if line.trim_ascii().is_empty() => {}
                None => unreadable += 1,
            }
            line.clear();
        }
    }
    Ok((records, unreadable))
}

/// Opens the file, unless a running gateway has just deleted it because its month is no longer kept.
fn open(path: &Path) -> io::Result<Option<File>> {
    let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match fs::metadata(path) {
        // Reading from a pipe in the file's place would never end.
        Ok(found) if !found.is_file() => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        Ok(_) => File::open(path).map(Some).or_else(|error| if is_gone(&error) { Ok(None) } else { Err(error) }),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn record(line: &[u8]) -> Option<Record> {
    if line.len() > MAX_LINE_BYTES {
        return None;
    }
    let event: Value = serde_json::from_slice(line).ok()?;
    let at = event.get("at")?.as_str()?.parse().ok()?;
    event.get("type")?.as_str()?;
    Some(Record { at, event })
}

/// Returns the files that may contain events since that time.
fn files(folder: &Path, since: Timestamp) -> io::Result<Vec<PathBuf>> {
    let first_month = Month::of(since);
    let is_in_time = |name: &str| Month::of_file(Series::Events, name).is_some_and(|month| month >= first_month);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        Err(error) => return Err(error),
    };
    let mut names: Vec<String> = entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<_>>>()?
        .into_iter()
        .filter(|name| name == "events.log" || is_in_time(name))
        .collect();
    names.sort();
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_window_are_read_and_what_is_no_event_is_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
        write("events-2026-03.log", "{\"at\":\"2026-03-31T23:59:59.000Z\",\"type\":\"turn.processed\"}\n");
        write(
            "events-2026-04.log",
            "{\"at\":\"2026-04-01T00:00:00.000Z\",\"type\":\"turn.processed\"}\n\n{\"at\":\"20\n{\"type\":\"x\"}\n\
             {\"at\":\"2026-04-20T08:00:00.000Z\",\"type\":\"turn.processed\"}",
        );
        write("events.log", "{\"at\":\"2026-04-19T08:00:00.000Z\",\"type\":\"mra-ask.end\"}\n");
        write("admin-2026-04.log", "{\"at\":\"2026-04-20T08:00:00.000Z\",\"type\":\"no\"}\n");
        let since = "2026-04-10T00:00:00Z".parse().expect("a time");
        let (records, unreadable) = events(folder.path(), since).expect("readable");
        assert_eq!((records.len(), unreadable), (2, 2));
        let none = events(Path::new("/no/such/folder"), since).expect("no folder is no events");
        assert_eq!((none.0.len(), none.1), (0, 0));
    }
}
