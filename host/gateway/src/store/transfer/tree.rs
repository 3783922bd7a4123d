//! The folder tree in which pmk keeps conversations.
//!
//! `users/U/session.json` is a person's direct messages, `channels/C/messages.jsonl` a channel (`chat-session.json`
//! before pmk 0.13); both have a `threads/TS` for every thread. Conversations of the console, which pmk does not
//! have, are under `console`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use pmk_core::{FrontName, Place, SessionKey, session_key};

use super::TransferError;

/// The file of a direct message conversation.
const DM_FILE: &str = "session.json";
/// The file of a channel's conversation; every version of pmk reads it.
const CHANNEL_FILE: &str = "chat-session.json";
/// pmk's names for its files, the newest first: where a folder has several, the first is the current one.
const FILES: [&str; 4] = ["messages.jsonl", DM_FILE, CHANNEL_FILE, "main.chat-session.json"];
const META: &str = "meta.json";
const USERS: &str = "users";
const CHANNELS: &str = "channels";
const THREADS: &str = "threads";
const CONSOLE: &str = "console";

/// A conversation of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub key: SessionKey,
    pub path: PathBuf,
    /// Older files of the same conversation.
    pub superseded: Vec<PathBuf>,
}

/// Returns every conversation of a tree such as `~/.pmk/gateway/slack`, in the order of their keys, and what cannot
/// be read in it.
pub fn scan(root: &Path) -> (Vec<Found>, Vec<TransferError>) {
    let mut scan = Scan::default();
    for (front, root) in [(FrontName::Slack, root.to_owned()), (FrontName::Console, root.join(CONSOLE))] {
        scan.places(front, &root.join(USERS), Place::Dm);
        scan.places(front, &root.join(CHANNELS), Place::Channel);
    }
    scan.found.sort_by(|a, b| a.key.cmp(&b.key));
    (scan.found, scan.problems)
}

#[derive(Default)]
struct Scan {
    found: Vec<Found>,
    problems: Vec<TransferError>,
}

impl Scan {
    fn places(&mut self, front: FrontName, folder: &Path, place: fn(String) -> Place) {
        for (id, folder) in self.folders(folder) {
            let key = SessionKey { front, place: place(id), thread: None };
            self.conversation(&key, &folder);
            for (thread, folder) in self.folders(&folder.join(THREADS)) {
                self.conversation(&SessionKey { thread: Some(thread), ..key.clone() }, &folder);
            }
        }
    }

    fn conversation(&mut self, key: &SessionKey, folder: &Path) {
        let mut files = FILES.iter().map(|name| folder.join(name)).filter(|path| path.is_file());
        if let Some(path) = files.next() {
            self.found.push(Found { key: key.clone(), path, superseded: files.collect() });
        }
    }

    /// Returns the folders in a folder, by the ids they are named after; none where the folder does not exist.
    fn folders(&mut self, folder: &Path) -> Vec<(String, PathBuf)> {
        let failed = |source| TransferError::Read { path: folder.to_owned(), source };
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return vec![],
            Err(error) => {
                self.problems.push(failed(error));
                return vec![];
            }
        };
        let mut folders = Vec::new();
        for entry in entries {
            match entry {
                Ok(entry) if !entry.path().is_dir() => {}
                Ok(entry) => match entry.file_name().into_string().ok().filter(|id| session_key::is_id(id)) {
                    Some(id) => folders.push((id, entry.path())),
                    None => self.problems.push(TransferError::NoId { path: entry.path() }),
                },
                Err(error) => self.problems.push(failed(error)),
            }
        }
        folders
    }
}

/// The file of a channel in which pmk keeps its open case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    pub front: FrontName,
    pub channel: String,
    pub path: PathBuf,
}

/// Returns those of a tree. [`scan`] reports what cannot be read.
pub fn metas(root: &Path) -> Vec<Meta> {
    let mut metas = Vec::new();
    for (front, root) in [(FrontName::Slack, root.to_owned()), (FrontName::Console, root.join(CONSOLE))] {
        let folders = Scan::default().folders(&root.join(CHANNELS)).into_iter();
        let found = folders.map(|(channel, folder)| Meta { front, channel, path: folder.join(META) });
        metas.extend(found.filter(|meta| meta.path.is_file()));
    }
    metas.sort_by(|a, b| a.path.cmp(&b.path));
    metas
}

/// Returns the conversation that a file of a tree holds, by its path.
pub fn key_of(path: &Path) -> Option<SessionKey> {
    let mut above = path.parent()?.iter().rev().map(|part| part.to_str());
    let mut next = || above.next().flatten();
    let (mut id, mut kind) = (next()?, next()?);
    let thread = (kind == THREADS).then_some(id);
    if thread.is_some() {
        (id, kind) = (next()?, next()?);
    }
    let place = match kind {
        USERS => Place::Dm,
        CHANNELS => Place::Channel,
        _ => return None,
    };
    let front = if next() == Some(CONSOLE) { FrontName::Console } else { FrontName::Slack };
    let ids = [Some(id), thread];
    let key = SessionKey { front, place: place(id.to_owned()), thread: thread.map(str::to_owned) };
    ids.into_iter().flatten().all(session_key::is_id).then_some(key)
}

/// Whether a file is called as pmk calls those of conversations.
pub fn is_named(path: &Path) -> bool {
    path.file_name().is_some_and(|name| FILES.iter().any(|file| name == *file))
}

/// Returns the file because of which one of pmk's must not be written: the newest of the same conversation, which pmk
/// would read instead. It may be that one itself.
pub fn in_the_way(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|_| is_named(path))?;
    FILES.iter().map(|name| folder.join(name)).find(|path| path.exists())
}

/// Returns the path of a conversation's file.
///
/// # Errors
/// [`TransferError::NoPath`]: one of its ids would lead out of the tree.
pub fn path_of(root: &Path, key: &SessionKey) -> Result<PathBuf, TransferError> {
    let (kind, id, file) = match &key.place {
        Place::Dm(user) => (USERS, user, DM_FILE),
        Place::Channel(channel) => (CHANNELS, channel, CHANNEL_FILE),
    };
    if ![Some(id), key.thread.as_ref()].into_iter().flatten().all(|id| is_segment(id)) {
        return Err(TransferError::NoPath { key: key.clone() });
    }
    let mut path = root.to_owned();
    path.extend((key.front == FrontName::Console).then_some(CONSOLE));
    path.extend([kind, id]);
    path.extend(key.thread.iter().flat_map(|thread| [THREADS, thread]));
    path.push(file);
    Ok(path)
}

/// Whether an id can be the name of one folder, and leads nowhere else.
fn is_segment(id: &str) -> bool {
    id != "." && id != ".." && !id.contains(['/', '\\', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> SessionKey {
        text.parse().expect("a key")
    }

    #[test]
    fn a_path_tells_the_key_and_the_key_the_path() {
        for (text, path) in [
            ("slack:dm:U1", "users/U1/session.json"),
            ("slack:dm:U1:17.01", "users/U1/threads/17.01/session.json"),
            ("slack:channel:C1", "channels/C1/chat-session.json"),
            ("slack:channel:C1:17.01", "channels/C1/threads/17.01/chat-session.json"),
            ("console:dm:U1", "console/users/U1/session.json"),
        ] {
            let found = path_of(Path::new("/tree"), &key(text)).expect("a path");
            assert_eq!(found, Path::new("/tree").join(path));
            assert_eq!(key_of(&found), Some(key(text)));
        }
        for path in ["session.json", "/U1/session.json", "/home/han/session.json", "/users/U:1/session.json"] {
            assert_eq!(key_of(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn no_id_leads_out_of_the_tree() {
        for text in ["slack:dm:..", "slack:dm:../../etc", "slack:dm:a\\b", "slack:dm:U1:..", "slack:channel:."] {
            let error = path_of(Path::new("/tree"), &key(text)).expect_err(text);
            assert!(matches!(error, TransferError::NoPath { .. }), "{error}");
        }
    }

    #[test]
    fn every_version_of_the_tree_is_found() {
        let root = tempfile::tempdir().expect("a folder");
        for file in [
            "users/U1/session.json",
            "users/U1/threads/17.01/session.json",
            "users/U2/threads/18.01/session.json",
            "users/U:3/session.json",
            "users/notes.txt",
            "channels/C1/chat-session.json",
            "channels/C1/messages.jsonl",
            "channels/C1/meta.json",
            "channels/C2/main.chat-session.json",
            "channels/C2/threads/19.01/messages.jsonl",
            "channels/C3/meta.json",
            "console/users/U1/session.json",
            "escalations/C1__1.1.json",
        ] {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, "").expect("a file");
        }
        let (found, problems) = scan(root.path());
        let keys: Vec<String> = found.iter().map(|found| found.key.to_string()).collect();
        let wanted = [
            "slack:dm:U1",
            "slack:dm:U1:17.01",
            "slack:dm:U2:18.01",
            "slack:channel:C1",
            "slack:channel:C2",
            "slack:channel:C2:19.01",
            "console:dm:U1",
        ];
        assert_eq!(keys, wanted);
        assert!(found[3].path.ends_with("messages.jsonl") && found[3].superseded[0].ends_with("chat-session.json"));
        let with_meta: Vec<String> = metas(root.path()).into_iter().map(|meta| meta.channel).collect();
        assert_eq!(with_meta, ["C1", "C3"]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].to_string().ends_with("is not named like the id of a user, a channel or a thread"));
    }
}
