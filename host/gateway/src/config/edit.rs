//! Changes `gateway.json` while other processes may read or change it.
//!
//! A writer holds a lock, reads the file again, and replaces it as a whole: a reader sees the old file or the new one,
//! and no concurrent change is lost. Unknown keys stay as they were.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use pmk_system::{
    error::Failure,
    files,
    home::{self, HomeLock},
};
use thiserror::Error;

use super::{
    Config, NO_FILE, VERSION,
    document::{Object, WrongShape},
    is_no_file,
};

/// The length of the lock file if a gateway has read the configuration file since it started: the one memory of that.
const READ: u64 = 1;

/// Why the file was not changed.
#[derive(Debug, Error)]
pub enum EditError {
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    /// Somebody else could have written it.
    #[error("{}", .0.message())]
    Untrusted(Failure),
    #[error("`{}` no longer exists, and the gateway goes by what it said", path.display())]
    Gone { path: PathBuf },
    #[error("`{}`: {what}", path.display())]
    Invalid { path: PathBuf, what: String },
    #[error("gateway.json: {0}")]
    Shape(#[from] WrongShape),
}

impl EditError {
    /// Returns what to do about it.
    pub fn hint(&self) -> &str {
        match self {
            EditError::Io { source, .. } if is_no_file(source.kind()) => NO_FILE,
            EditError::Io { .. } => {
                "check that you own the folder, that you can write to it and that the disk has free space, or use another `--home`"
            }
            EditError::Untrusted(failure) => failure.advice().unwrap_or_default(),
            EditError::Gone { .. } => {
                "put it back, or stop the gateway first: a new file would lift the blocklist and forget the admins"
            }
            EditError::Invalid { .. } | EditError::Shape(_) => "correct the file by hand first; it was not changed",
        }
    }
}

/// Notes, as a gateway starts, whether it has read the file. If the file is lost while the gateway runs, [`edit`] does not
/// begin another one: that would have nothing of the blocklist and the admins that are still in effect.
///
/// # Errors
/// It cannot be noted.
pub fn note_start(home: &Path, is_read: bool) -> Result<(), EditError> {
    let (lock, path) = lock_file(home)?;
    lock.lock().map_err(failed("lock", &path))?;
    lock.set_len(if is_read { READ } else { 0 }).map_err(failed("write", &path))
}

/// Notes that a running gateway has read the file. Waits for nobody: until the gateway ends, nobody notes anything else.
///
/// # Errors
/// It cannot be noted.
pub fn note_read(home: &Path) -> Result<(), EditError> {
    if was_read(home)? {
        return Ok(());
    }
    let (lock, path) = lock_file(home)?;
    lock.set_len(READ).map_err(failed("write", &path))
}

/// Whether a gateway has read the file since the last start.
///
/// # Errors
/// It cannot be determined.
pub fn was_read(home: &Path) -> Result<bool, EditError> {
    let (lock, path) = lock_file(home)?;
    is_noted(&lock).map_err(failed("read", &path))
}

/// Refuses, in a running gateway, to go by the defaults where it has not found the file, unless it never had one.
///
/// # Errors
/// It has read the file before, or that cannot be determined.
pub(super) fn refuse_lost(home: &Path) -> Result<(), EditError> {
    if was_read(home)? {
        return Err(EditError::Gone { path: home::config_file(home) });
    }
    Ok(())
}

fn is_noted(lock: &File) -> io::Result<bool> {
    Ok(lock.metadata()?.len() == READ)
}

/// Checks that the file is not lost while a running gateway goes by what it said: then nothing here says what is in
/// effect, and nobody may take the defaults for it. Creates nothing.
///
/// # Errors
/// It is lost.
pub fn check_kept(home: &Path) -> Result<(), Failure> {
    let was_read = fs::metadata(lock_path(home)).is_ok_and(|lock| lock.len() == READ);
    refuse_gone(home, &home::config_file(home), was_read).map_err(|error| Failure::new(&error).hint(error.hint()))
}

fn refuse_gone(home: &Path, path: &Path, was_read: bool) -> Result<(), EditError> {
    if was_read && !path.exists() && HomeLock::is_held(home).unwrap_or(true) {
        return Err(EditError::Gone { path: path.to_owned() });
    }
    Ok(())
}

/// Changes the file of this home. A missing file is created, unless a running gateway has read it; one that this build
/// cannot read, and one for which `change` fails, stays as it was.
///
/// # Errors
/// [`EditError`], or the error of `change`.
pub fn edit<T, E: From<EditError>>(home: &Path, change: impl FnOnce(&mut Object) -> Result<T, E>) -> Result<T, E> {
    let (lock, path) = lock_file(home)?;
    lock.lock().map_err(failed("lock", &path))?;
    edit_locked(home, &lock, |text| Config::usable(text, home).map(drop), change)
}

/// Does the same without waiting, for a file that `is_usable` accepts; returns `None` if somebody else holds the lock.
///
/// # Errors
/// As [`edit`].
pub(super) fn edit_if_free<T, E: From<EditError>>(
    home: &Path,
    is_usable: impl FnOnce(&str) -> Result<(), String>,
    change: impl FnOnce(&mut Object) -> Result<T, E>,
) -> Result<Option<T>, E> {
    let (lock, path) = lock_file(home)?;
    match lock.try_lock() {
        Ok(()) => edit_locked(home, &lock, is_usable, change).map(Some),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(failed("lock", &path)(source).into()),
    }
}

fn edit_locked<T, E: From<EditError>>(
    home: &Path,
    lock: &File,
    is_usable: impl FnOnce(&str) -> Result<(), String>,
    change: impl FnOnce(&mut Object) -> Result<T, E>,
) -> Result<T, E> {
    let (path, mut root) = current(home, lock, is_usable)?;
    let changed = change(&mut root)?;
    replace(&path, &root, lock)?;
    Ok(changed)
}

/// Returns the file's real path, and what it says.
fn current(
    home: &Path,
    lock: &File,
    is_usable: impl FnOnce(&str) -> Result<(), String>,
) -> Result<(PathBuf, Object), EditError> {
    home::check_trusted(home).map_err(EditError::Untrusted)?;
    let path = real_path(home)?;
    home::forget_staged(&path);
    let was_read = is_noted(lock).map_err(failed("read", &path))?;
    refuse_gone(home, &path, was_read)?;
    let root = read(&path, is_usable)?;
    Ok((path, root))
}

/// Writes the file; if it is missing from now on, somebody has deleted it.
fn replace(path: &Path, root: &Object, lock: &File) -> Result<(), EditError> {
    write(path, root)?;
    lock.set_len(READ).map_err(failed("write", path))
}

/// Opens the lock file. The lock is a file of its own because the configuration file itself is replaced.
fn lock_file(home: &Path) -> Result<(File, PathBuf), EditError> {
    let folder = home::gateway_dir(home);
    home::create_private_dir(&folder).map_err(failed("create", &folder))?;
    let path = lock_path(home);
    let file = home::open_private_file(&path).map_err(failed("create", &path))?;
    Ok((file, path))
}

fn lock_path(home: &Path) -> PathBuf {
    home::gateway_dir(home).join("config.lock")
}

/// Returns the real path of the file, so that a link to it stays a link.
fn real_path(home: &Path) -> Result<PathBuf, EditError> {
    let path = home::config_file(home);
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path),
        real => real.map_err(failed("read", &path)),
    }
}

fn read(path: &Path, is_usable: impl FnOnce(&str) -> Result<(), String>) -> Result<Object, EditError> {
    let invalid = |what| EditError::Invalid { path: path.to_owned(), what };
    let text = match files::read_text(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut root = Object::default();
            root.set("version", VERSION);
            return Ok(root);
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(invalid(error.to_string())),
        text => text.map_err(failed("read", path))?,
    };
    is_usable(&text).map_err(invalid)?;
    serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))
}

fn write(path: &Path, root: &Object) -> Result<(), EditError> {
    let written = serde_json::to_string_pretty(root)
        .map_err(io::Error::from)
        .and_then(|text| home::replace_private_file(path, format!("{text}\n").as_bytes()));
    written.map_err(failed("write", path))
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> EditError {
    let path = path.to_owned();
    move |source| EditError::Io { action, path, source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::{super::WatchedConfig, *};

    fn set(home: &Path, key: &str) -> Result<(), EditError> {
        edit(home, |root| {
            root.set(key, "new");
            Ok(())
        })
    }

    #[test]
    fn a_missing_file_is_made_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("new");
        set(&home, "model").unwrap();
        let path = home::config_file(&home);
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\n  \"version\": 1,\n  \"model\": \"new\"\n}\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&home).unwrap().permissions().mode() & 0o777, 0o700);
    }

    /// The new one had a single key, so the blocklist was lifted.
    #[test]
    fn a_file_that_is_lost_while_a_gateway_goes_by_it_is_not_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (home, path) = (folder.path(), home::config_file(folder.path()));
        fs::write(&path, r#"{"version":1,"blocklist":["U9"]}"#).unwrap();
        let lock = HomeLock::take(home).unwrap();
        note_start(home, true).unwrap();
        fs::remove_file(&path).unwrap();
        let refused = set(home, "model").unwrap_err();
        assert!(matches!(refused, EditError::Gone { .. }) && !path.exists(), "{refused}");
        drop(lock);
        // Nobody goes by it any more: somebody starts over.
        set(home, "model").unwrap();
        fs::remove_file(&path).unwrap();
        let _lock = HomeLock::take(home).unwrap();
        note_start(home, false).unwrap();
        // This gateway has never had one.
        set(home, "model").unwrap();
        fs::remove_file(&path).unwrap();
        assert!(matches!(set(home, "model"), Err(EditError::Gone { .. })));
    }

    /// Regression: commands that only read it took the defaults for what was in effect.
    #[test]
    fn a_file_that_was_lost_while_a_gateway_goes_by_it_was_taken_for_one_that_never_was() {
        let folder = tempfile::tempdir().unwrap();
        let (home, path) = (folder.path(), home::config_file(folder.path()));
        check_kept(home).unwrap();
        assert!(!home::gateway_dir(home).exists(), "looking makes nothing");
        fs::write(&path, r#"{"version":1,"admins":["U1"]}"#).unwrap();
        let lock = HomeLock::take(home).unwrap();
        note_start(home, true).unwrap();
        check_kept(home).unwrap();
        fs::remove_file(&path).unwrap();
        let lost = check_kept(home).unwrap_err();
        assert!(lost.message().contains("no longer exists"), "{lost}");
        assert!(lost.advice().is_some_and(|hint| hint.starts_with("put it back, or stop the gateway first")), "{lost}");
        assert_eq!(Config::load_for_command(home).unwrap_err().message(), lost.message());
        drop(lock);
        assert!(!Config::load_for_command(home).unwrap().0.exists);
    }

    /// Regression: whoever swapped policies just then went by the defaults, which allow every component.
    #[test]
    fn a_gateway_that_found_its_file_lost_went_by_the_defaults() {
        let folder = tempfile::tempdir().unwrap();
        let (home, path) = (folder.path(), home::config_file(folder.path()));
        assert!(!Config::load_in_gateway(home).unwrap().0.exists, "it never had one");
        fs::write(&path, r#"{"version":1,"policy":{"allow":[]}}"#).unwrap();
        assert_eq!(Config::load_in_gateway(home).unwrap().0.policy.allow, Some(vec![]));
        fs::remove_file(&path).unwrap();
        let lost = Config::load_in_gateway(home).unwrap_err();
        assert!(lost.message().contains("no longer exists"), "{lost}");
        assert!(lost.advice().is_some_and(|hint| hint.starts_with("put it back")), "{lost}");
    }

    /// It was noted at starts and changes alone.
    #[test]
    fn a_file_that_was_put_there_by_hand_and_read_is_not_begun_anew_either() {
        let folder = tempfile::tempdir().unwrap();
        let (home, path) = (folder.path(), home::config_file(folder.path()));
        let _lock = HomeLock::take(home).unwrap();
        note_start(home, false).unwrap();
        let watched = WatchedConfig::new(home, &Config::load(home).unwrap().0);
        fs::write(&path, r#"{"version":1,"blocklist":["U9"]}"#).unwrap();
        assert_eq!((watched.now().blocklist.len(), was_read(home).unwrap()), (1, true));
        fs::remove_file(&path).unwrap();
        assert!(matches!(set(home, "model"), Err(EditError::Gone { .. })) && !path.exists());
    }

    #[test]
    fn a_file_that_cannot_be_read_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let path = home::config_file(home.path());
        for text in ["{", "[]", "{}", r#"{"version":2}"#, r#"{"version":1,"policy":7}"#] {
            fs::write(&path, text).unwrap();
            let error = set(home.path(), "model").unwrap_err();
            assert!(matches!(error, EditError::Invalid { .. }), "{text}: {error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_refused_change_is_not_written() {
        let home = tempfile::tempdir().unwrap();
        let refused: Result<(), EditError> = edit(home.path(), |root| {
            root.set("model", "new");
            root.object_at(&["model"])?;
            Ok(())
        });
        assert_eq!(refused.unwrap_err().to_string(), "gateway.json: `model` is not an object");
        assert!(!home::config_file(home.path()).exists());
    }

    /// Regression: what others had written was kept, in a file that looked private from then on.
    #[test]
    fn a_change_adopted_a_file_that_others_could_write() {
        let home = tempfile::tempdir().unwrap();
        let path = home::config_file(home.path());
        fs::write(&path, r#"{"version":1,"admins":["U9"]}"#).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let refused = set(home.path(), "model").unwrap_err();
        assert!(matches!(refused, EditError::Untrusted(_)) && refused.hint().contains("chmod go-w"), "{refused}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o666);
    }

    #[test]
    fn a_link_to_the_file_stays_a_link() {
        let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let real = elsewhere.path().join("shared.json");
        fs::write(&real, r#"{"version":1}"#).unwrap();
        symlink(&real, home::config_file(home.path())).unwrap();
        set(home.path(), "model").unwrap();
        assert!(home::config_file(home.path()).is_symlink());
        assert!(fs::read_to_string(&real).unwrap().contains("new"));
    }

    #[test]
    fn what_a_killed_change_has_left_is_taken_away_by_the_next() {
        let home = tempfile::tempdir().unwrap();
        set(home.path(), "model").unwrap();
        let file = home::config_file(home.path());
        let (left, others) = (home::stage_private_file(&file, b"{}").unwrap(), home.path().join(".others"));
        let (_, left) = left.keep().unwrap();
        fs::write(&others, "").unwrap();
        set(home.path(), "other").unwrap();
        assert_eq!((left.exists(), others.exists()), (false, true));
    }

    #[test]
    fn no_change_of_many_at_once_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        std::thread::scope(|scope| {
            for n in 0..16 {
                scope.spawn(move || set(home, &format!("key{n}")).unwrap());
            }
        });
        let text = fs::read_to_string(home::config_file(home)).unwrap();
        assert_eq!(text.matches("\"new\"").count(), 16, "{text}");
    }
}
