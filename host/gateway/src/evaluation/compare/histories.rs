//! Finds the conversations of a folder and opens them one by one.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap, HashSet},
    ffi::OsStr,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use pmk_core::SessionKey;
use thiserror::Error;

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
    /// Shorter names that no other file of the folder goes by.
    pub short: Vec<String>,
    pub path: PathBuf,
    /// The key of the conversation, if the path reveals it.
    pub key: Option<SessionKey>,
}

/// Returns what a file may be called for short: its path within the folder without the extension, and its mere file
/// name without and with the extension.
pub(super) fn short_names(name: &str) -> [String; 3] {
    let path = Path::new(name);
    let words = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    [words(Some(path.with_extension("").as_os_str())), words(path.file_stem()), words(path.file_name())]
}

/// Gives each file the short names that it alone goes by.
fn shorten_names(found: &mut [HistoryFile]) {
    let mut files: HashMap<String, usize> = HashMap::new();
    for HistoryFile { name, .. } in &*found {
        let names: BTreeSet<String> = short_names(name).into_iter().chain([name.clone()]).collect();
        names.into_iter().for_each(|name| *files.entry(name).or_default() += 1);
    }
    for HistoryFile { name, short, .. } in found {
        *short = short_names(name).into_iter().filter(|name| files.get(name) == Some(&1)).collect();
    }
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

impl Source {
    /// Returns when it was last written, if it is a file.
    fn written_at(&self) -> Option<SystemTime> {
        match self {
            Source::File(found) => fs::metadata(&found.path).ok()?.modified().ok(),
            Source::Kept(..) => None,
        }
    }
}

/// A conversation to be replayed.
pub enum Conversation {
    /// In a file, not read yet.
    File(HistoryFile),
    /// In a store, not read yet.
    Kept(Store, SessionKey),
    /// Already read from this full export.
    Read { path: PathBuf, name: String, created_at_ms: i64, recording: Box<Recording> },
}

impl Conversation {
    /// Returns the conversation, and the names by which questions may refer to it; the first is the name in the report.
    ///
    /// # Errors
    /// The file cannot be read, or is not a history.
    pub fn open(self) -> Result<(Vec<String>, Recording), TransferError> {
        match self {
            Conversation::File(HistoryFile { name, short, path, key }) => {
                let recording = Recording::read(&path, key.clone())?;
                let key = key.map(|key| key.to_string());
                // The path is what it is called by in the report.
                let (paths, mere): (Vec<_>, Vec<_>) =
                    short.into_iter().partition(|short| name.starts_with(short.as_str()));
                Ok((key.into_iter().chain(paths).chain([name]).chain(mere).collect(), recording))
            }
            Conversation::Kept(store, key) => match store.replayable(&key) {
                Ok(kept) => Ok((vec![key.to_string()], kept::recording(kept))),
                Err(source) => Err(TransferError::Unreadable { key, source: Box::new(source) }),
            },
            Conversation::Read { name, recording, .. } => Ok((vec![name], *recording)),
        }
    }

    /// Returns the key of a conversation that may be in several files, and the file.
    fn copied(&self) -> Option<(&SessionKey, &Path)> {
        match self {
            Conversation::File(HistoryFile { path, key: Some(key), .. }) if tree::is_named(path) => {
                Some((key, path.as_path()))
            }
            Conversation::Read { path, recording, .. } => Some((recording.key.as_ref()?, path.as_path())),
            Conversation::File(_) | Conversation::Kept(..) => None,
        }
    }

    /// Returns how it began; `None` if it cannot be replayed.
    fn beginning(&self) -> Option<Beginning> {
        match self {
            Conversation::File(HistoryFile { path, .. }) => Beginning::of_file(path),
            Conversation::Read { created_at_ms, recording, .. } => Beginning::of(Some(*created_at_ms), recording),
            Conversation::Kept(..) => None,
        }
    }
}

/// How a conversation began, which tells it from others of the same key.
struct Beginning {
    /// When, which only exports tell.
    at_ms: Option<i64>,
    /// The hash of its first question, unless that is gone.
    first: Option<u64>,
}

impl Beginning {
    fn of_file(path: &Path) -> Option<Beginning> {
        Beginning::of(None, &Recording::read(path, None).ok()?)
    }

    fn of(at_ms: Option<i64>, recording: &Recording) -> Option<Beginning> {
        let first = recording.turns.first()?.start;
        let mut hasher = DefaultHasher::new();
        recording.entries[first].message.plain_text().hash(&mut hasher);
        Some(Beginning { at_ms, first: (recording.dropped_turns == 0).then(|| hasher.finish()) })
    }

    /// Whether both may be of one conversation.
    fn is_as(&self, other: &Beginning) -> bool {
        match (self.at_ms, other.at_ms) {
            (Some(one), Some(other)) => one == other,
            _ => self.first.zip(other.first).is_none_or(|(one, other)| one == other),
        }
    }
}

/// The conversations that were found so far.
#[derive(Default)]
pub struct Met(HashMap<SessionKey, Copies>);

/// The files with conversations of one key.
#[derive(Default)]
struct Copies {
    /// The first one, which is not read as long as it is the only one.
    unread: Option<PathBuf>,
    read: Vec<Beginning>,
}

impl Met {
    /// Returns a conversation, or that it was found before: a folder may contain several exports of one store.
    fn once(&mut self, conversation: Conversation) -> Found {
        let Some((key, path)) = conversation.copied() else { return Ok(conversation) };
        let copies = self.0.entry(key.clone()).or_default();
        let is_first = copies.unread.is_none() && copies.read.is_empty();
        if is_first && matches!(conversation, Conversation::File(_)) {
            copies.unread = Some(path.to_owned());
            return Ok(conversation);
        }
        // Of what cannot be replayed, nothing else is a copy; who opens it says why.
        let Some(beginning) = conversation.beginning() else { return Ok(conversation) };
        copies.read.extend(copies.unread.take().and_then(|path| Beginning::of_file(&path)));
        if copies.read.iter().any(|other| beginning.is_as(other)) {
            return Err(Box::new(LeftOut::Again { key: key.clone(), path: path.to_owned() }));
        }
        copies.read.push(beginning);
        Ok(conversation)
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
        let found = HistoryFile { name, short: vec![], path: folder.to_owned(), key: tree::key_of(folder) };
        let mut found = vec![found];
        shorten_names(&mut found);
        return Ok((found, vec![]));
    }
    let except = except.and_then(|path| path.canonicalize().ok());
    let (conversations, mut problems) = tree::scan(folder);
    let mut found: Vec<HistoryFile> = Vec::new();
    // Of a tree written by pmk, only conversations that are still active are replayed.
    let superseded: HashSet<PathBuf> = conversations.iter().flat_map(|found| found.superseded.clone()).collect();
    // A link may lead to what is found anyway, or back to a folder that it is in.
    let mut seen = HashSet::new();
    let mut is_new = |path: &Path| fs::metadata(path).ok().is_none_or(|file| seen.insert((file.dev(), file.ino())));
    is_new(folder);
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
        // What is there itself comes before what a link leads to.
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort_by_cached_key(|path| (path.is_symlink(), path.clone()));
        for path in paths {
            if path.is_dir() {
                if is_new(&path) {
                    folders.push(path);
                }
            } else if is_history(&path)
                && !superseded.contains(&path)
                && (except.is_none() || path.canonicalize().ok() != except)
                && is_new(&path)
            {
                let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
                found.push(HistoryFile { name, short: vec![], key: tree::key_of(&path), path });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    shorten_names(&mut found);
    Ok((found, problems))
}

/// Whether a file may contain conversations. pmk stores data about a channel beside its messages.
fn is_history(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("json" | "jsonl" | "ndjson")) && path.file_name().is_some_and(|name| name != "meta.json")
        || full::is_full(path)
}

/// Why a conversation of a source is left out.
#[derive(Debug, Error)]
pub enum LeftOut {
    /// It cannot be read. The key is there if it is known.
    #[error("{error}")]
    Unread { key: Option<SessionKey>, error: TransferError },
    /// Another file has it.
    #[error("`{key}` is in another file as well; the copy in `{}` is left out", path.display())]
    Again { key: SessionKey, path: PathBuf },
}

/// A conversation of a source, or why it is left out.
pub type Found = Result<Conversation, Box<LeftOut>>;

/// The place of a conversation: that of its source among all, and its own within the source.
pub type Position = (usize, usize);

/// Returns the conversations of these sources with their places, each once: those of the newest file come first, and
/// what was met before is left out.
pub fn each_once(sources: Vec<Source>, met: &mut Met) -> impl Iterator<Item = (Position, Found)> {
    let mut sources: Vec<(usize, Source)> = sources.into_iter().enumerate().collect();
    sources.sort_by_cached_key(|(_, source)| Reverse(source.written_at()));
    let each = |(place, source): (usize, Source)| {
        of_source(source).enumerate().map(move |(at, conversation)| ((place, at), conversation))
    };
    let found = sources.into_iter().flat_map(each);
    found.map(move |(position, found)| (position, found.and_then(|conversation| met.once(conversation))))
}

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
        Ok(conversations) => Box::new(conversations.map(move |read| match read {
            Ok((dump, _)) => {
                let name = dump.key.to_string();
                let (path, created_at_ms) = (found.path.clone(), dump.created_at_ms);
                Ok(Conversation::Read { path, name, created_at_ms, recording: Box::new(Recording::of_dump(dump)) })
            }
            Err((key, error)) => Err(Box::new(LeftOut::Unread { key, error })),
        })),
        Err(error) => Box::new(std::iter::once(Err(Box::new(LeftOut::Unread { key: None, error })))),
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::symlink, time::Duration};

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
        assert_eq!(found[1].short, ["b", "b", "b.jsonl"]);
        let (names, _) = Conversation::File(found[3].clone()).open().expect("a history");
        assert_eq!(names[..2], ["slack:dm:U1", "users/U1/session"]);
        assert!(find(&folder.path().join("nowhere"), None).is_err());
    }

    /// Regression: a link to its own folder made two files 82 conversations; with two such links it never ended.
    #[test]
    fn what_a_link_leads_to_was_found_again() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("older")).expect("a folder");
        for file in ["a.json", "older/b.json"] {
            fs::write(folder.path().join(file), "[{\"role\":\"user\",\"content\":\"q\"}]").expect("a file");
        }
        for (target, link) in [(".", "again"), (".", "older/and-again"), ("older", "all"), ("a.json", "0.json")] {
            symlink(folder.path().join(target), folder.path().join(link)).expect("a link");
        }
        let (found, problems) = find(folder.path(), None).expect("a folder");
        let names: Vec<&str> = found.iter().map(|found| found.name.as_str()).collect();
        assert!(problems.is_empty() && names == ["a.json", "older/b.json"], "{problems:?} {names:?}");
    }

    /// Writes these files, each a day newer than the one before, and returns which are left out of what is found.
    fn left_out(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        for ((file, content), day) in files.iter().zip(1..) {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(&path, content).expect("a file");
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(day * 86_400);
            fs::File::options().write(true).open(&path).expect("a file").set_modified(at).expect("a time");
        }
        let sources = find(folder.path(), None).expect("a folder").0.into_iter().map(Source::from).collect();
        let mut met = Met::default();
        let left = each_once(sources, &mut met).filter_map(|(_, found)| match *found.err()? {
            LeftOut::Again { path, .. } => path.strip_prefix(folder.path()).ok()?.to_str().map(str::to_owned),
            LeftOut::Unread { .. } => None,
        });
        left.collect()
    }

    const FIRST: &str = r#"[{"role":"user","content":"q"}]"#;
    const OTHER: &str = r#"[{"role":"user","content":"another question"}]"#;

    /// Regression: it counted as met before anybody had read it.
    #[test]
    fn a_broken_copy_of_a_conversation_removed_the_good_one() {
        for broken in ["{\"messages\":", r#"[{"role":"assistant","content":"a"}]"#] {
            let (old, new) = ("old/users/U1/session.json", "new/users/U1/session.json");
            assert_eq!(left_out(&[(old, FIRST), (new, broken)]), [""; 0]);
            assert_eq!(left_out(&[(old, broken), (new, FIRST)]), [""; 0]);
            let both = [("older/users/U1/session.json", FIRST), (old, FIRST), (new, broken)];
            assert_eq!(left_out(&both), ["older/users/U1/session.json"]);
        }
    }

    /// Regression: of monthly copies, the oldest counted; of two homes, one had nothing to say.
    #[test]
    fn of_two_conversations_with_one_key_the_first_file_counted() {
        let (one, other) = ("a/users/U9/session.json", "b/users/U9/session.json");
        assert_eq!(left_out(&[(one, FIRST), (other, FIRST)]), [one]);
        assert_eq!(left_out(&[(other, FIRST), (one, FIRST)]), [other]);
        assert_eq!(left_out(&[(one, FIRST), (other, OTHER)]), [""; 0]);
        let export = |created_at_ms: i64| {
            let session = serde_json::json!({"session": {
                "key": "slack:dm:U9", "created_at_ms": created_at_ms, "active_at_ms": 9, "turns": 1, "dropped_turns": 0,
                "marker": null, "messages": 1, "live": 0,
            }});
            let message = serde_json::json!({"message": {
                "id": 1, "role": "user", "origin": "user", "blocks": [{"type": "text", "text": "q"}], "tokens": 1,
                "created_at_ms": created_at_ms,
            }});
            format!("{}\n{session}\n{message}\n{}\n", r#"{"pmk-host-sessions":{"version":3}}"#, r#"{"end":{}}"#)
        };
        assert_eq!(left_out(&[("a.jsonl", &*export(1)), ("b.jsonl", &*export(1))]), ["a.jsonl"]);
        assert_eq!(left_out(&[("a.jsonl", &*export(1)), ("b.jsonl", &*export(2))]), [""; 0]);
    }

    /// Regression: `chat` stood for both, and a question about it was asked twice.
    #[test]
    fn a_file_name_that_several_files_have_stood_for_each_of_them() {
        let folder = tempfile::tempdir().expect("a folder");
        for file in ["a/chat.json", "b/chat.json", "b/other.json"] {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, "[{\"role\":\"user\",\"content\":\"q\"}]").expect("a file");
        }
        let (found, _) = find(folder.path(), None).expect("a folder");
        let names = found.into_iter().map(|found| Conversation::File(found).open().expect("a history").0);
        let wanted = [
            vec!["a/chat", "a/chat.json"],
            vec!["b/chat", "b/chat.json"],
            vec!["b/other", "b/other.json", "other", "other.json"],
        ];
        assert_eq!(names.collect::<Vec<_>>(), wanted);
    }
}
