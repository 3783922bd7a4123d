//! The lock that keeps a second gateway out of a home.

use std::{
    fs::{File, TryLockError},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use thiserror::Error;

use super::{create_private_dir, gateway_dir, open_private_file};
use crate::error::Failure;

/// How long [`HomeLock::take`] tries: another process may hold the lock for a moment to see whether
/// it is free.
const PATIENCE: Duration = Duration::from_millis(250);

/// Why a home cannot be used.
#[derive(Debug, Error)]
pub enum HomeError {
    /// Another `run` works in this home.
    #[error("`{}` is in use by another `pmk-host run`{}", home.display(), process(*pid))]
    InUse {
        home: PathBuf,
        /// The other one's process, where it can be told.
        pid: Option<u32>,
    },
    /// A file or folder of the home cannot be made or read.
    #[error("cannot use `{}`: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

fn process(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
}

impl HomeError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            HomeError::InUse { .. } => "stop it first, or give this one another `--home`",
            HomeError::Io { .. } => "check that you own the folder and may write to it, or give another `--home`",
        }
    }
}

impl From<HomeError> for Failure {
    fn from(error: HomeError) -> Self {
        Failure::new(&error).hint(error.hint())
    }
}

/// The right to be the one `run` of a home, held until it is dropped.
///
/// An operating-system lock on `<home>/gateway/run.lock`: it goes with the process, however that
/// ends, so a lock can never be left behind. The file holds the process id, for people.
#[derive(Debug)]
pub struct HomeLock {
    home: PathBuf,
    /// Unlocks when it is closed.
    _file: File,
}

impl HomeLock {
    /// Takes the lock; makes the home where it is missing.
    ///
    /// # Errors
    /// [`HomeError::InUse`] when another process has it.
    pub fn take(home: &Path) -> Result<HomeLock, HomeError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| HomeError::Io { path, source }
        };
        let dir = gateway_dir(home);
        create_private_dir(&dir).map_err(at(&dir))?;
        let path = lock_file(home);
        let mut file = open_private_file(&path).map_err(at(&path))?;
        let started = Instant::now();
        while let Err(error) = file.try_lock() {
            match error {
                TryLockError::Error(source) => return Err(HomeError::Io { path, source }),
                TryLockError::WouldBlock if started.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(10)),
                TryLockError::WouldBlock => return Err(HomeError::InUse { home: home.to_owned(), pid: holder(&file) }),
            }
        }
        write_pid(&mut file).map_err(at(&path))?;
        Ok(HomeLock { home: home.to_owned(), _file: file })
    }

    /// The home it locks.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Whether a `run` is alive in this home.
    ///
    /// # Errors
    /// The lock file is there but cannot be asked.
    pub fn is_held(home: &Path) -> Result<bool, HomeError> {
        let path = lock_file(home);
        let asked = match File::open(&path) {
            Ok(file) => file.try_lock_shared(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(TryLockError::Error(error)),
        };
        match asked {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(source)) => Err(HomeError::Io { path, source }),
        }
    }
}

fn lock_file(home: &Path) -> PathBuf {
    gateway_dir(home).join("run.lock")
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    write!(file, "{}", std::process::id())
}

fn holder(mut file: &File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_second_run_is_refused_and_told_who_has_the_home() {
        let home = tempfile::tempdir().unwrap();
        assert!(!HomeLock::is_held(home.path()).unwrap());
        let first = HomeLock::take(home.path()).unwrap();
        assert!(HomeLock::is_held(home.path()).unwrap());
        let refused = HomeLock::take(home.path()).unwrap_err();
        assert!(matches!(refused, HomeError::InUse { pid: Some(pid), .. } if pid == std::process::id()), "{refused}");
        let shown = Failure::from(refused).to_string();
        assert!(shown.contains(&format!("in use by another `pmk-host run` (pid {})", std::process::id())), "{shown}");
        assert!(shown.contains("hint: stop it first"), "{shown}");
        drop(first);
        assert!(!HomeLock::is_held(home.path()).unwrap());
        HomeLock::take(home.path()).unwrap();
    }

    #[test]
    fn asking_whether_a_home_is_free_does_not_refuse_a_run() {
        let home = tempfile::tempdir().unwrap();
        drop(HomeLock::take(home.path()).unwrap());
        let asking = File::open(lock_file(home.path())).unwrap();
        asking.lock_shared().unwrap();
        let asked = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            drop(asking);
        });
        HomeLock::take(home.path()).unwrap();
        asked.join().unwrap();
    }

    #[test]
    fn a_home_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = HomeLock::take(&file).unwrap_err();
        assert!(error.to_string().starts_with(&format!("cannot use `{}", file.display())), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_can_look_in() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("a/b");
        drop(HomeLock::take(&home).unwrap());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&home), 0o700);
        assert_eq!(mode(&gateway_dir(&home)), 0o700);
        assert_eq!(mode(&lock_file(&home)), 0o600);
        fs::set_permissions(lock_file(&home), fs::Permissions::from_mode(0o644)).unwrap();
        drop(HomeLock::take(&home).unwrap());
        assert_eq!(mode(&lock_file(&home)), 0o600);
    }
}
