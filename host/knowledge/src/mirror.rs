//! The folder of atoms as one of several that are kept in sync: its content, and changes from other hosts.
//!
//! The content of a folder is what the library reads there. Nothing is written outside of it, and no text is
//! overwritten that was not seen before: people edit files at any time without using the lock, so a file that is
//! replaced is checked once more, and saved beside it if it is not the expected one.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    fmt, fs,
    io::{self, ErrorKind},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use pmk_system::home;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{
    catalogue::Stamp,
    files::{AtomFiles, FileError, MAX_FILE_BYTES, exchange, io_error, read_text, sync_folder},
    watch::Watch,
};

/// The longest name of a scope or of an atom's file, in bytes: temporary and saved files have longer names.
const MAX_NAME_BYTES: usize = 200;

/// The maximum size of an atom's text.
pub const MAX_TEXT_BYTES: u64 = MAX_FILE_BYTES;

/// How many digits of a digest distinguish the texts that are saved beside one file.
const SHOWN_OF_DIGEST: usize = 16;

/// The file of the folder that distinguishes it from any other. File systems give the inode of a deleted folder to the
/// next one, and the root of each file system has the same.
const MARK: &str = ".id";

/// The maximum number of texts saved beside one file under the same name, distinguished by a number.
const MOST_OF_ONE_NAME: usize = 100;

/// The path of an atom's file within the folder, in every home: `SCOPE/NAME.md`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AtomPath(String);

impl AtomPath {
    /// Validates a path from another host; `None` if no library would have a file there: it leads out of the folder, is
    /// not exactly one level deep, is hidden, is not Markdown, or is longer than a file system allows.
    pub fn parse(path: &str) -> Option<AtomPath> {
        let (scope, name) = path.split_once('/')?;
        let is_plain = [scope, name].into_iter().all(is_plain);
        (is_plain && name.ends_with(".md")).then(|| AtomPath(path.to_owned()))
    }

    fn of(scope: &str, name: &str) -> Option<AtomPath> {
        AtomPath::parse(&format!("{scope}/{name}"))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn parts(&self) -> (&str, &str) {
        self.0.split_once('/').unwrap_or_default()
    }
}

impl fmt::Display for AtomPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn is_plain(name: &str) -> bool {
    let is_part = |c: char| c != '/' && !c.is_control();
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.starts_with('.') && name.chars().all(is_part)
}

/// The digest of a text: SHA-256, hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TextDigest(Arc<str>);

impl TextDigest {
    /// Computes the digest of a text.
    pub fn of(text: &str) -> TextDigest {
        let digest: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
        TextDigest(digest.into())
    }

    /// A digest from another host.
    pub fn written(digest: &str) -> TextDigest {
        TextDigest(digest.into())
    }

    /// The digest as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The local state of an atom's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Local {
    /// Nothing.
    Missing,
    /// A text.
    Text(TextDigest),
    /// Something else, or it cannot be determined. It is left alone.
    Unusable(String),
}

/// The last seen state of a scope.
#[derive(Debug)]
enum Scope {
    /// Its files, by name.
    Seen(BTreeMap<String, (Stamp, Local)>),
    /// The scope cannot be used, and is left alone.
    Unusable(String),
}

impl Scope {
    fn files(&self) -> Option<&BTreeMap<String, (Stamp, Local)>> {
        match self {
            Scope::Seen(files) => Some(files),
            Scope::Unusable(_) => None,
        }
    }
}

/// The folder of atoms.
#[derive(Debug)]
pub struct Mirror {
    files: AtomFiles,
    identity: TextDigest,
    watch: Watch,
    wake: Wake,
    scopes: BTreeMap<String, Scope>,
    /// Files whose names other homes could not have.
    odd: BTreeSet<PathBuf>,
}

/// Called when something may have changed.
#[derive(Clone)]
struct Wake(Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for Wake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wake")
    }
}

/// The result of replacing a file.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It was replaced.
    Done,
    /// The file is not as it was last seen, and must be looked at again.
    Changed,
}

impl Mirror {
    /// Opens the folder of a home, creating it if it is missing. `wake` is called on another thread whenever something
    /// in it has changed, as far as the operating system reports it.
    ///
    /// # Errors
    /// If it cannot be created or read.
    pub fn open(home: &Path, wake: impl Fn() + Send + Sync + 'static) -> Result<Mirror, FileError> {
        let files = AtomFiles::open(home)?;
        let wake = Wake(Arc::new(wake));
        let (identity, watch) = (identity(&files)?, watch(&files, &wake));
        Ok(Mirror { files, identity, watch, wake, scopes: BTreeMap::new(), odd: BTreeSet::new() })
    }

    /// Distinguishes this folder from another one that replaces it.
    pub fn identity(&self) -> &TextDigest {
        &self.identity
    }

    /// Processes possible changes since the last call, and returns the files that have changed. At first all are new.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn look(&mut self) -> Result<BTreeSet<AtomPath>, FileError> {
        let mut differing = BTreeSet::new();
        let now = identity(&self.files)?;
        if now != self.identity {
            (self.identity, self.watch) = (now, watch(&self.files, &self.wake));
        }
        let looked = self.look_at_scopes(&mut differing);
        if looked.is_err() {
            // What was seen during the change counts but is not reported; everything is new the next time.
            self.watch.forget();
            self.scopes.clear();
        }
        looked.map(|()| differing)
    }

    fn look_at_scopes(&mut self, differing: &mut BTreeSet<AtomPath>) -> Result<(), FileError> {
        let (scopes, unusable) = self.list()?;
        let changed = self.watch.changed(&scopes).map_err(|source| io_error(self.files.root(), "looked at", source))?;
        let is_gone = |known: &&String| !scopes.contains(known) && !unusable.contains_key(*known);
        let gone: Vec<String> = self.scopes.keys().filter(is_gone).cloned().collect();
        for scope in gone {
            self.is_now(&scope, None, differing);
        }
        for (scope, why) in unusable {
            self.is_now(&scope, Some(Scope::Unusable(why)), differing);
        }
        for scope in changed {
            let now = self.sweep(&scope);
            self.is_now(&scope, Some(now), differing);
        }
        Ok(())
    }

    /// The scopes' folders, and what may be one but is unusable, with the reason. Only an entry that certainly does not
    /// exist is missing.
    fn list(&self) -> Result<(Vec<String>, BTreeMap<String, String>), FileError> {
        let failed = |source| io_error(self.files.root(), "listed", source);
        let (mut scopes, mut unusable) = (Vec::new(), BTreeMap::new());
        for entry in fs::read_dir(self.files.root()).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Some(name) = entry.file_name().to_str().filter(|name| !name.starts_with('.')).map(str::to_owned) else {
                continue;
            };
            match fs::symlink_metadata(entry.path()) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Ok(meta) if meta.is_file() => {}
                _ => match check_scope(&entry.path(), &name) {
                    Ok(()) => scopes.push(name),
                    Err(why) => drop(unusable.insert(name, why)),
                },
            }
        }
        Ok((scopes, unusable))
    }

    /// Stores the state of a scope, and which of its files have changed.
    fn is_now(&mut self, scope: &str, now: Option<Scope>, differing: &mut BTreeSet<AtomPath>) {
        let before = self.scopes.remove(scope);
        let nothing = BTreeMap::new();
        let [old, new] = [&before, &now].map(|scope| scope.as_ref().and_then(Scope::files).unwrap_or(&nothing));
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        let is_other =
            |name: &&String| old.get(*name).map(|(_, local)| local) != new.get(*name).map(|(_, local)| local);
        differing.extend(names.into_iter().filter(is_other).filter_map(|name| AtomPath::of(scope, name)));
        if let Some(Scope::Unusable(why)) = &now
            && !matches!(&before, Some(Scope::Unusable(before)) if before == why)
        {
            tracing::warn!("the atoms of `{scope}` are not shared: {why}");
        }
        self.scopes.extend(now.map(|now| (scope.to_owned(), now)));
    }

    /// The state of a scope. Unchanged files are not read again.
    fn sweep(&mut self, scope: &str) -> Scope {
        let folder = self.files.root().join(scope);
        let names = match self.files.names(scope) {
            Ok(names) => names,
            Err(error) => return Scope::Unusable(error.to_string()),
        };
        let before = self.scopes.get(scope).and_then(Scope::files);
        let mut files = BTreeMap::new();
        for name in names {
            let file = folder.join(&name);
            if AtomPath::of(scope, &name).is_none() {
                if self.odd.insert(file.clone()) {
                    tracing::warn!(
                        "`{}` is not shared: its name is too long, or contains invalid characters",
                        file.display()
                    );
                }
                continue;
            }
            let seen = before.and_then(|files| files.get(&name));
            let (stamp, local) = look_at(&file, seen);
            match &local {
                Local::Missing => continue,
                Local::Unusable(why) if seen.is_none_or(|(_, before)| *before != local) => {
                    tracing::warn!("{why}; it is skipped and not shared");
                }
                Local::Unusable(_) | Local::Text(_) => {}
            }
            files.insert(name, (stamp, local));
        }
        Scope::Seen(files)
    }

    /// The last seen state of a path.
    pub fn local(&self, path: &AtomPath) -> Local {
        let (scope, name) = path.parts();
        match self.scopes.get(scope) {
            Some(Scope::Seen(files)) => files.get(name).map_or(Local::Missing, |(_, local)| local.clone()),
            Some(Scope::Unusable(why)) => Local::Unusable(why.clone()),
            None => Local::Missing,
        }
    }

    /// Every path at which something was seen.
    pub fn paths(&self) -> impl Iterator<Item = AtomPath> {
        self.scopes.iter().flat_map(|(scope, seen)| {
            seen.files().into_iter().flat_map(BTreeMap::keys).filter_map(move |name| AtomPath::of(scope, name))
        })
    }

    /// The current text of a file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn text(&self, path: &AtomPath) -> Result<String, FileError> {
        read_text(&self.file(path))
    }

    /// The file of a path.
    pub fn file(&self, path: &AtomPath) -> PathBuf {
        self.files.root().join(path.as_str())
    }

    /// Replaces a file with a text from another host, or deletes it, provided that it is as it was last seen.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn put(&mut self, path: &AtomPath, text: Option<&str>) -> Result<Put, FileError> {
        let file = self.file(path);
        let _lock = self.files.lock()?;
        let seen = self.local(path);
        if seen != look_at(&file, None).1 {
            self.forget(path);
            return Ok(Put::Changed);
        }
        let put = match (seen, text) {
            (Local::Unusable(_), _) => Put::Changed,
            (Local::Missing, None) => Put::Done,
            (Local::Missing, Some(text)) => self.put_new(path, &file, text)?,
            (Local::Text(expected), Some(text)) => {
                if let Some(old) = exchange(&file, text, None)? {
                    self.keep_what_came(&file, old.path(), &expected)?;
                }
                Put::Done
            }
            (Local::Text(expected), None) => {
                let failed = |source| io_error(&file, "deleted", source);
                let aside = home::stage_private_file(&file, &[]).map_err(failed)?;
                match fs::rename(&file, aside.path()) {
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    moved => {
                        moved.map_err(failed)?;
                        self.keep_what_came(&file, aside.path(), &expected)?;
                        sync_folder(&file)?;
                    }
                }
                Put::Done
            }
        };
        if put == Put::Done {
            self.is_there(path, text);
        }
        Ok(put)
    }

    fn put_new(&self, path: &AtomPath, file: &Path, text: &str) -> Result<Put, FileError> {
        let folder = self.files.root().join(path.parts().0);
        let failed = |source| io_error(&folder, "created", source);
        // Only one level: the folder of all scopes exists, or has been deleted and must not be created again.
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                check_scope(&folder, path.parts().0).map_err(|why| failed(io::Error::other(why)))?;
            }
            made => made.map_err(failed)?,
        }
        let failed = |source| io_error(file, "written", source);
        let staged = home::stage_private_file(file, text.as_bytes()).map_err(failed)?;
        match staged.persist_noclobber(file) {
            Ok(_) => sync_folder(file)?,
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => return Ok(Put::Changed),
            Err(error) => return Err(failed(error.error)),
        }
        Ok(Put::Done)
    }

    /// Saves a copy of a file beside it, under a name that is not an atom's. The same text is saved once.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn keep(&self, path: &AtomPath) -> Result<PathBuf, FileError> {
        let file = self.file(path);
        keep_beside(&file, &read_text(&file)?)
    }

    /// Saves the old content of a file that was replaced, if it is not the expected one. If that fails, the old content is put
    /// back, as it exists nowhere else.
    fn keep_what_came(&self, file: &Path, found: &Path, expected: &TextDigest) -> Result<(), FileError> {
        let kept = read_text(found).and_then(|text| {
            if TextDigest::of(&text) != *expected {
                tell_kept(file, &keep_beside(file, &text)?);
            }
            Ok(())
        });
        if kept.is_err() {
            fs::rename(found, file).map_err(|source| io_error(file, "written", source))?;
        }
        kept
    }

    fn is_there(&mut self, path: &AtomPath, text: Option<&str>) {
        let (scope, name) = path.parts();
        let Scope::Seen(files) = self.scopes.entry(scope.to_owned()).or_insert_with(|| Scope::Seen(BTreeMap::new()))
        else {
            return;
        };
        match text {
            Some(text) => drop(files.insert(name.to_owned(), (Stamp::unsettled(), Local::Text(TextDigest::of(text))))),
            None => drop(files.remove(name)),
        }
    }

    /// Makes the next call of [`look`](Mirror::look) read a file again.
    fn forget(&mut self, path: &AtomPath) {
        let (scope, name) = path.parts();
        self.watch.forget();
        if let Entry::Occupied(mut seen) = self.scopes.entry(scope.to_owned())
            && let Scope::Seen(files) = seen.get_mut()
            && let Some((stamp, _)) = files.get_mut(name)
        {
            *stamp = Stamp::unsettled();
        }
    }
}

/// Logs which file was replaced, and where the local version was saved.
pub fn tell_kept(file: &Path, kept: &Path) {
    tracing::warn!(
        "`{}` was changed here and on another host: the version of the other host is used, and the one from here is kept in `{}`",
        file.display(),
        kept.display()
    );
}

fn watch(files: &AtomFiles, wake: &Wake) -> Watch {
    let Wake(wake) = wake.clone();
    Watch::new(files.root(), move || wake())
}

/// Returns what no other folder in the place of this one has, also no copy of it. Marks the folder if it has no mark yet.
fn identity(files: &AtomFiles) -> Result<TextDigest, FileError> {
    let inode = fs::metadata(files.root()).map_err(|source| io_error(files.root(), "looked at", source))?.ino();
    let path = files.root().join(MARK);
    let mark = match read_text(&path) {
        Err(error) if error.is_missing() => {
            let mark = format!("{:032x}\n", fastrand::u128(..));
            // Where nothing can be written, no atom is fetched or deleted either.
            if home::replace_private_file(&path, mark.as_bytes()).is_ok() { mark } else { String::new() }
        }
        read => read?,
    };
    Ok(TextDigest::of(&format!("{inode} {mark}")))
}

/// A link is not accepted, because it may lead out of the folder.
fn check_scope(folder: &Path, scope: &str) -> Result<(), String> {
    match fs::symlink_metadata(folder) {
        _ if !is_plain(scope) => Err(format!("`{}` has a name that other homes cannot use", folder.display())),
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => Err(format!("`{}` is not a folder, or is a link to one", folder.display())),
        Err(error) => Err(format!("cannot access `{}`: {error}", folder.display())),
    }
}

/// The state of a path. An unchanged file is not read again.
fn look_at(file: &Path, before: Option<&(Stamp, Local)>) -> (Stamp, Local) {
    let unusable = |why: String| (Stamp::unsettled(), Local::Unusable(why));
    let meta = match fs::symlink_metadata(file) {
        Ok(meta) => meta,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return (Stamp::unsettled(), Local::Missing);
        }
        Err(error) => return unusable(format!("cannot access `{}`: {error}", file.display())),
    };
    let stamp = Stamp::of(&meta);
    if let Some((before, local)) = before
        && *before == stamp
    {
        return (stamp, local.clone());
    }
    if !meta.is_file() {
        return unusable(format!("`{}` is not a file", file.display()));
    }
    match read_text(file) {
        // A database cannot store it.
        Ok(text) if text.contains('\0') => unusable(format!("`{}` contains a NUL character", file.display())),
        Ok(text) => (stamp, Local::Text(TextDigest::of(&text))),
        Err(error) if error.is_missing() => (stamp, Local::Missing),
        Err(error) => unusable(error.to_string()),
    }
}

fn keep_beside(file: &Path, text: &str) -> Result<PathBuf, FileError> {
    let digest = TextDigest::of(text);
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let kept = format!("{name}.kept-{}", &digest.as_str()[..SHOWN_OF_DIGEST]);
    for number in 0..MOST_OF_ONE_NAME {
        let number = if number == 0 { String::new() } else { format!("-{number}") };
        let path = file.with_file_name(format!("{kept}{number}"));
        let failed = |source| io_error(&path, "written", source);
        let staged = home::stage_private_file(&path, text.as_bytes()).map_err(failed)?;
        match staged.persist_noclobber(&path) {
            Ok(_) => {
                sync_folder(&path)?;
                return Ok(path);
            }
            // Saved before a crash; or somebody has edited it.
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {
                if read_text(&path).is_ok_and(|there| there == text) {
                    return Ok(path);
                }
            }
            Err(error) => return Err(failed(error.error)),
        }
    }
    Err(io_error(&file.with_file_name(kept), "written", ErrorKind::AlreadyExists.into()))
}

#[cfg(test)]
mod tests;
