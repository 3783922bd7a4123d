//! Imports the pending markers of an existing pmk.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use pmk_system::files::{self, FileReadError};
use thiserror::Error;

use super::{BadMarker, Marker};

/// The largest marker file that is read, in bytes.
const MAX_MARKER_BYTES: u64 = 1 << 20;

/// A file or folder that was left out.
#[derive(Debug, Error)]
pub enum ImportProblem {
    #[error("`{}` cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("`{}` has {bytes} bytes; a marker has at most {MAX_MARKER_BYTES}", path.display())]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error("`{}`: {source}", path.display())]
    Bad { path: PathBuf, source: BadMarker },
}

/// Reads every marker of a folder such as `~/.pmk/gateway/slack/escalations`, oldest first. A file
/// that is not a marker is reported and left alone; a folder that does not exist has none.
pub fn import(folder: &Path) -> (Vec<Marker>, Vec<ImportProblem>) {
    let mut markers = Vec::new();
    let mut problems = Vec::new();
    let unreadable = |path: &Path, source| ImportProblem::Unreadable { path: path.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return (markers, problems),
        Err(error) => return (markers, vec![unreadable(folder, error)]),
    };
    for entry in entries {
        match entry.map_err(|error| unreadable(folder, error)).and_then(|entry| read(entry.path())) {
            Ok(marker) => markers.extend(marker),
            Err(problem) => problems.push(problem),
        }
    }
    markers.sort_by(|a, b| (a.pending_since, &a.thread_ts).cmp(&(b.pending_since, &b.thread_ts)));
    (markers, problems)
}

/// Reads one file; `None` if it is not a marker by pmk's rules.
fn read(path: PathBuf) -> Result<Option<Marker>, ImportProblem> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|name| name.ends_with(".json")) else {
        return Ok(None);
    };
    match files::read(&path, MAX_MARKER_BYTES) {
        Ok(json) => match Marker::parse(name, &json) {
            Ok(marker) if marker.is_seen_by_contacts() => Ok(Some(marker)),
            Ok(_) => Err(ImportProblem::Bad { path, source: BadMarker::Unseen }),
            Err(source) => Err(ImportProblem::Bad { path, source }),
        },
        Err(FileReadError::TooLarge { bytes, .. }) => Err(ImportProblem::TooLarge { path, bytes }),
        Err(error) => Err(ImportProblem::Unreadable { path, source: error.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_ones_come_oldest_first_and_bad_ones_are_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, json: &str| fs::write(folder.path().join(name), json).expect("a file");
        let json = |ts: &str, since: u64| {
            format!(
                r#"{{"channelId":"C1","threadTs":"{ts}","question":"q","pendingSince":{since},"mentionedUserIds":["U2"]}}"#
            )
        };
        write("C1__2.2.json", &json("2.2", 7));
        write("C1__1.1.json", &json("1.1", 9));
        write("C1__3.3.json", "{}");
        write("C1__4.4.json", &"x".repeat(MAX_MARKER_BYTES as usize + 1));
        write("C1__1.1.json.claimed", "left by pmk");
        fs::create_dir(folder.path().join("C1__5.5.json")).expect("a folder");
        let (markers, problems) = import(folder.path());
        assert_eq!(markers.iter().map(|marker| marker.thread_ts.as_str()).collect::<Vec<_>>(), ["2.2", "1.1"]);
        assert_eq!(problems.len(), 3, "{problems:?}");
    }

    #[test]
    fn a_direct_message_that_its_contacts_cannot_see_was_taken_over() {
        let folder = tempfile::tempdir().expect("a folder");
        for (channel, asker) in [("D1", "U1"), ("D2", "U2"), ("C1", "U1")] {
            let json = serde_json::json!({
                "channelId": channel, "threadTs": "1.1", "question": "q", "pendingSince": 1, "mentionedUserIds": ["U2"],
                "askerUserId": asker,
            });
            fs::write(folder.path().join(format!("{channel}__1.1.json")), json.to_string()).expect("a file");
        }
        let (markers, problems) = import(folder.path());
        let mut taken: Vec<&str> = markers.iter().map(|marker| marker.channel_id.as_str()).collect();
        taken.sort_unstable();
        assert_eq!(taken, ["C1", "D2"]);
        let [problem] = &problems[..] else { panic!("{problems:?}") };
        let told = problem.to_string();
        assert!(told.contains("D1__1.1.json") && told.ends_with("cannot see this direct message: ask again"), "{told}");
    }

    #[test]
    fn no_folder_is_no_problem() {
        let (markers, problems) = import(Path::new("/no/such/folder"));
        assert!(markers.is_empty() && problems.is_empty());
    }
}
