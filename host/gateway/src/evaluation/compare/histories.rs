//! Finds the conversations of a folder and opens them one by one.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

use pmk_core::SessionKey;

use super::{kept, recording::Recording};
use crate::store::{
    Store,
    transfer::{
        TransferError,
        full::{self, Conversations},
        tree,
    },
};

/// A file that contains conversations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryFile {
    /// Its path within the folder, which names the conversation.
    pub name: String,
    pub path: PathBuf,
    /// The key of the conversation, if the path reveals it.
    pub key: Option<SessionKey>,
}

/// Where a conversation comes from.
#[derive(Clone)]
pub enum Source {
    /// A file, which may contain several.
    File(HistoryFile),
    /// The store of a home.
    Kept(Store, SessionKey),
}

impl From<HistoryFile> for Source {
    fn from(found: HistoryFile) -> Source {
        Source::File(found)
    }
}

/// A conversation to be replayed.
pub enum Conversation {
    /// In a file, not read yet.
    File(HistoryFile),
    /// In a store, not read yet.
    Kept(Store, SessionKey),
    /// Already read from a full export.
    Read { name: String, recording: Box<Recording> },
}

impl Conversation {
    /// Returns the conversation, and the names by which questions may refer to it; the first is the name in the report.
    ///
    /// # Errors
    /// The file cannot be read, or is not a history.
    pub fn open(self) -> Result<(Vec<String>, Recording), TransferError> {
        match self {
            Conversation::File(HistoryFile { name, path, key }) => {
                let recording = Recording::read(&path, key.clone())?;
                let key = key.map(|key| key.to_string());
                let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
                let file = path.file_name().map(|file| file.to_string_lossy().into_owned());
                let short = Path::new(&name).with_extension("").to_string_lossy().into_owned();
                let names = key.into_iter().chain([short, name]).chain(stem).chain(file).collect();
                Ok((names, recording))
            }
            Conversation::Kept(store, key) => match store.replayable(&key) {
                Ok(kept) => Ok((vec![key.to_string()], kept::recording(kept))),
                Err(source) => Err(TransferError::Unreadable { key, source: Box::new(source) }),
            },
            Conversation::Read { name, recording } => Ok((vec![name], *recording)),
        }
    }
}

/// Finds the files of a folder that may contain conversations, sorted by path, and returns the problems of what cannot
/// be read. `except` is a file that is not a history. Instead of a folder, `folder` may be one file.
///
/// # Errors
/// The folder itself cannot be read.
pub fn find(folder: &Path, except: Option<&Path>) -> Result<(Vec<HistoryFile>, Vec<TransferError>), TransferError> {
    if folder.is_file() {
        let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
        let found = HistoryFile { name, path: folder.to_owned(), key: tree::key_of(folder) };
        return Ok((vec![found], vec![]));
    }
    let except = except.and_then(|path| path.canonicalize().ok());
    let (conversations, mut problems) = tree::scan(folder);
    let mut found: Vec<HistoryFile> = Vec::new();
    // Of a tree written by pmk, only conversations that are still active are replayed.
    let superseded: HashSet<PathBuf> = conversations.iter().flat_map(|found| found.superseded.clone()).collect();
    let mut folders = vec![folder.to_owned()];
    let mut is_first = true;
    while let Some(next) = folders.pop() {
        let entries = match fs::read_dir(&next) {
            Ok(entries) => entries,
            Err(source) if is_first => return Err(TransferError::Read { path: next, source }),
            Err(source) => {
                problems.push(TransferError::Read { path: next, source });
                continue;
            }
        };
        is_first = false;
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if is_history(&path)
                && !superseded.contains(&path)
                && (except.is_none() || path.canonicalize().ok() != except)
            {
                let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
                found.push(HistoryFile { name, key: tree::key_of(&path), path });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok((found, problems))
}

/// Whether a file may contain conversations. pmk stores data about a channel beside its messages.
fn is_history(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("json" | "jsonl" | "ndjson")) && path.file_name().is_some_and(|name| name != "meta.json")
        || full::is_full(path)
}

/// A conversation of a source, or why it cannot be read, and its key if that is known.
pub type Found = Result<Conversation, Box<(Option<SessionKey>, TransferError)>>;

/// Returns the conversations of a source; each is read when it is needed.
pub fn of_source(source: Source) -> Box<dyn Iterator<Item = Found>> {
    let found = match source {
        Source::File(found) => found,
        Source::Kept(store, key) => return Box::new(std::iter::once(Ok(Conversation::Kept(store, key)))),
    };
    if !full::is_full(&found.path) {
        return Box::new(std::iter::once(Ok(Conversation::File(found))));
    }
    match Conversations::open(&found.path) {
        Ok(conversations) => Box::new(conversations.map(|read| match read {
            Ok((dump, _)) => {
                let name = dump.key.to_string();
                Ok(Conversation::Read { name, recording: Box::new(Recording::of_dump(dump)) })
            }
            Err(unread) => Err(Box::new(unread)),
        })),
        Err(error) => Box::new(std::iter::once(Err(Box::new((None, error))))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_history_of_a_folder_is_found_once() {
        let folder = tempfile::tempdir().expect("a folder");
        for file in [
            "b.jsonl",
            "a.json",
            "notes.txt",
            "questions.jsonl",
            "users/U1/session.json",
            "channels/C1/messages.jsonl",
            "channels/C1/chat-session.json",
            "channels/C1/meta.json",
        ] {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, "[{\"role\":\"user\",\"content\":\"q\"}]").expect("a file");
        }
        let questions = folder.path().join("questions.jsonl");
        let (found, problems) = find(folder.path(), Some(&questions)).expect("a folder");
        assert!(problems.is_empty(), "{problems:?}");
        let names: Vec<&str> = found.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, ["a.json", "b.jsonl", "channels/C1/messages.jsonl", "users/U1/session.json"]);
        let (names, _) = Conversation::File(found[3].clone()).open().expect("a history");
        assert_eq!(names[..2], ["slack:dm:U1", "users/U1/session"]);
        assert!(find(&folder.path().join("nowhere"), None).is_err());
    }
}
