//! The lock that prevents a second gateway in the same home.

use std::{
    fmt,
    fs::{self, File, TryLockError},
    io::{self, Read, Seek, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use pmk_core::text;
use thiserror::Error;

use super::{create_private_dir, gateway_dir, open_private_file};
use crate::error::Failure;

/// How long [`HomeLock::take`] waits: a killed process keeps its lock until the kernel has cleaned it up, which takes a
/// while on a busy machine, and another process may hold it briefly to check whether it is free.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often it tries in the meantime.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How often the holder is looked for.
const HOLDER_LOOKS: u32 = 100;

/// How much of the holder's command line is shown, in characters.
const MOST_OF_A_COMMAND: usize = 200;

/// Why a home cannot be used.
#[derive(Debug, Error)]
pub enum HomeError {
    /// A `run`, or a command that needs the home for itself, is active there.
    #[error("`{}` is in use by `pmk-host {}` ({})", home.display(), holder.as_ref().map_or(Purpose::Run, |holder| holder.purpose).command(), holder.as_ref().map_or_else(|| "pid unknown".to_owned(), ToString::to_string))]
    InUse {
        /// The home as it was named.
        home: PathBuf,
        /// That process, if it can be determined.
        holder: Option<Holder>,
    },
    /// A file or folder of the home cannot be created or read.
    #[error("cannot use `{}`: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// What a home is locked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A gateway, which runs until somebody stops it.
    Run,
    /// `store restore`. As the others below, it ends by itself, and changes the store, so it must not be stopped halfway.
    Restore,
    /// `store renew`.
    Renew,
    /// `store copy`.
    Copy,
}

impl Purpose {
    /// The command of `pmk-host` that it is.
    pub const fn command(self) -> &'static str {
        match self {
            Purpose::Run => "run",
            Purpose::Restore => "store restore",
            Purpose::Renew => "store renew",
            Purpose::Copy => "store copy",
        }
    }
}

/// The process that uses a home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The process id of the holder of the lock, as its own container counts processes.
    pub pid: u32,
    /// What it needs the home for.
    pub purpose: Purpose,
    /// Its command line, if the system reports it.
    pub command: Option<String>,
}

impl Holder {
    /// Whether it is a gateway.
    pub fn is_gateway(&self) -> bool {
        self.purpose == Purpose::Run
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid {}", self.pid)?;
        match &self.command {
            Some(command) => write!(f, ": {command}"),
            None => Ok(()),
        }
    }
}

impl HomeError {
    /// Whether a gateway is in the way, which somebody would have to stop. A holder that is unknown counts as one.
    pub fn is_of_a_gateway(&self) -> bool {
        matches!(self, HomeError::InUse { holder, .. } if holder.as_ref().is_none_or(Holder::is_gateway))
    }

    /// What the user can do about it.
    fn hint(&self) -> &'static str {
        match self {
            HomeError::InUse { .. } if self.is_of_a_gateway() => "stop it first, or use another `--home`",
            HomeError::InUse { .. } => "wait until it has finished, or use another `--home`",
            HomeError::Io { .. } => {
                "check that you own the folder, that you can write to it and that the disk has free space, or use another `--home`"
            }
        }
    }
}

impl From<HomeError> for Failure {
    fn from(error: HomeError) -> Self {
        Failure::new(&error).hint(error.hint())
    }
}

/// The exclusive right to `run` in a home, or to change its store, held until it is dropped.
///
/// An operating-system lock on `<home>/gateway/run.lock`: it is released when the process ends, in whatever way, so a
/// stale lock cannot be left behind. The file contains the process id, and below it the command unless that is `run`.
#[derive(Debug)]
pub struct HomeLock {
    home: PathBuf,
    /// Unlocks when closed.
    _file: File,
}

impl HomeLock {
    /// Takes the lock for a `run`; creates the home if it is missing. While another process holds it, waits for up to
    /// 5 s.
    ///
    /// # Errors
    /// [`HomeError::InUse`] if another process still holds it.
    pub fn take(home: &Path) -> Result<HomeLock, HomeError> {
        HomeLock::take_for(home, Purpose::Run)
    }

    /// As [`take`](HomeLock::take), for another command.
    ///
    /// # Errors
    /// As for it.
    pub fn take_for(home: &Path, purpose: Purpose) -> Result<HomeLock, HomeError> {
        HomeLock::take_pausing(home, purpose, thread::sleep)
    }

    /// As [`take_for`](HomeLock::take_for), with `pause` for waiting.
    fn take_pausing(home: &Path, purpose: Purpose, mut pause: impl FnMut(Duration)) -> Result<HomeLock, HomeError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| HomeError::Io { path, source }
        };
        let dir = gateway_dir(home);
        create_private_dir(&dir).map_err(at(&dir))?;
        let path = lock_file(home);
        let mut file = open_private_file(&path).map_err(at(&path))?;
        let mut waited = Duration::ZERO;
        while let Err(error) = file.try_lock() {
            match error {
                TryLockError::Error(source) => return Err(HomeError::Io { path, source }),
                TryLockError::WouldBlock if waited < PATIENCE => pause(LOOK_EVERY),
                TryLockError::WouldBlock => {
                    return Err(HomeError::InUse { home: home.to_owned(), holder: holder(&file) });
                }
            }
            waited += LOOK_EVERY;
        }
        write_holder(&mut file, purpose).map_err(at(&path))?;
        Ok(HomeLock { home: home.to_owned(), _file: file })
    }

    /// The home that it locks.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Whether this home is in use.
    ///
    /// # Errors
    /// If the lock file exists but cannot be checked.
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

impl HomeLock {
    /// The process that uses this home, if any.
    ///
    /// # Errors
    /// If the lock file exists but cannot be checked, or does not contain the holder.
    pub fn holder_of(home: &Path) -> Result<Option<Holder>, HomeError> {
        // A process that has just taken the lock writes its id a moment later.
        for _ in 0..HOLDER_LOOKS {
            if !HomeLock::is_held(home)? {
                return Ok(None);
            }
            if let Some(holder) = File::open(lock_file(home)).ok().and_then(|file| holder(&file)) {
                return Ok(Some(holder));
            }
            thread::sleep(LOOK_EVERY);
        }
        let source = io::Error::other("it is locked by an unknown process");
        Err(HomeError::Io { path: lock_file(home), source })
    }

    /// Whether the process that has this number here has the lock file open. The number in the file may be counted by
    /// another container or machine, and be that of somebody else here. Only the account of the process can look.
    pub fn is_open_in(home: &Path, pid: u32) -> bool {
        File::open(lock_file(home)).is_ok_and(|file| is_open_in(&file, pid))
    }
}

fn lock_file(home: &Path) -> PathBuf {
    gateway_dir(home).join("run.lock")
}

fn write_holder(file: &mut File, purpose: Purpose) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    let pid = std::process::id();
    // Written at once: a reader that saw only the first line would take it for a gateway.
    file.write_all(
        match purpose {
            Purpose::Run => pid.to_string(),
            other => format!("{pid}\n{}", other.command()),
        }
        .as_bytes(),
    )
}

fn holder(mut file: &File) -> Option<Holder> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    let mut lines = text.lines();
    let pid = lines.next()?.trim().parse().ok()?;
    let purpose = match lines.next() {
        None => Purpose::Run,
        Some(command) => {
            let all = [Purpose::Run, Purpose::Restore, Purpose::Renew, Purpose::Copy];
            all.into_iter().find(|purpose| purpose.command() == command)?
        }
    };
    let command = is_open_in(file, pid).then(|| command_of(pid)).flatten();
    Some(Holder { pid, purpose, command })
}

/// Whether the process of this number has this file open. Only Linux has the folder, and for other users' processes it
/// is unreadable.
fn is_open_in(file: &File, pid: u32) -> bool {
    let (Ok(file), Ok(open)) = (file.metadata(), fs::read_dir(format!("/proc/{pid}/fd"))) else { return false };
    let is_it = |it: fs::Metadata| (it.dev(), it.ino()) == (file.dev(), file.ino());
    open.flatten().any(|descriptor| fs::metadata(descriptor.path()).is_ok_and(is_it))
}

/// The command line of a process, on one line. Only Linux has this file, and for other users' processes it may be
/// unreadable.
fn command_of(pid: u32) -> Option<String> {
    let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let line = String::from_utf8_lossy(&words).replace(|c: char| c.is_control(), " ");
    let line = text::shortened(line.trim(), MOST_OF_A_COMMAND);
    (!line.is_empty()).then(|| line.into_owned())
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
        let mut waited = Duration::ZERO;
        let refused = HomeLock::take_pausing(home.path(), Purpose::Run, |pause| waited += pause).unwrap_err();
        assert_eq!(waited, PATIENCE);
        let pid = std::process::id();
        assert!(matches!(&refused, HomeError::InUse { holder: Some(holder), .. } if holder.pid == pid), "{refused}");
        let shown = Failure::from(refused).to_string();
        let program = std::env::current_exe().unwrap();
        let program = program.file_name().unwrap().to_string_lossy();
        let (_, who) = shown.split_once(&format!("in use by `pmk-host run` (pid {pid}: ")).expect(&shown);
        assert!(cfg!(not(target_os = "linux")) || who.contains(&*program), "{shown}");
        assert!(shown.contains("hint: stop it first"), "{shown}");
        drop(first);
        assert!(!HomeLock::is_held(home.path()).unwrap());
        HomeLock::take(home.path()).unwrap();
    }

    #[test]
    fn a_killed_run_that_the_kernel_takes_seconds_to_end_does_not_refuse_the_next() {
        let home = tempfile::tempdir().unwrap();
        let mut killed = Some(HomeLock::take(home.path()).unwrap());
        let mut waited = Duration::ZERO;
        HomeLock::take_pausing(home.path(), Purpose::Run, |pause| {
            waited += pause;
            if waited >= Duration::from_millis(4_900) {
                drop(killed.take());
            }
        })
        .unwrap();
    }

    #[test]
    fn a_process_that_cannot_be_looked_at_is_named_by_its_number() {
        assert_eq!(command_of(u32::MAX), None);
        assert_eq!(Holder { pid: 7, purpose: Purpose::Run, command: None }.to_string(), "pid 7");
    }

    #[test]
    fn a_store_command_that_has_the_home_is_waited_for_and_not_taken_for_a_gateway() {
        let home = tempfile::tempdir().unwrap();
        let lock = HomeLock::take_for(home.path(), Purpose::Restore).unwrap();
        let holder = HomeLock::holder_of(home.path()).unwrap().unwrap();
        assert_eq!((holder.pid, holder.purpose), (std::process::id(), Purpose::Restore));
        let refused = HomeLock::take_pausing(home.path(), Purpose::Run, |_| ()).unwrap_err();
        assert!(!refused.is_of_a_gateway());
        let shown = Failure::from(refused).to_string();
        assert!(shown.contains("is in use by `pmk-host store restore` (pid "), "{shown}");
        assert!(shown.contains("hint: wait until it has finished"), "{shown}");
        drop(lock);
        let _lock = HomeLock::take(home.path()).unwrap();
        assert!(HomeLock::holder_of(home.path()).unwrap().unwrap().is_gateway());
    }

    /// Its process id is counted by another container or machine.
    #[test]
    fn a_number_in_the_lock_that_is_another_process_here_is_not_shown_with_its_command() {
        let home = tempfile::tempdir().unwrap();
        let lock = HomeLock::take(home.path()).unwrap();
        assert!(HomeLock::is_open_in(home.path(), std::process::id()));
        let other = std::os::unix::process::parent_id();
        fs::write(lock_file(home.path()), other.to_string()).unwrap();
        assert!(!HomeLock::is_open_in(home.path(), other));
        let found = Holder { pid: other, purpose: Purpose::Run, command: None };
        assert_eq!(HomeLock::holder_of(home.path()).unwrap(), Some(found));
        drop(lock);
    }

    #[test]
    fn asking_whether_a_home_is_free_does_not_refuse_a_run() {
        let home = tempfile::tempdir().unwrap();
        drop(HomeLock::take(home.path()).unwrap());
        let asking = File::open(lock_file(home.path())).unwrap();
        asking.lock_shared().unwrap();
        let mut asking = Some(asking);
        HomeLock::take_pausing(home.path(), Purpose::Run, |_| drop(asking.take())).unwrap();
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
