//! Detects changes in a project.
//!
//! The operating system reports that something has happened; the content shows whether a file has changed, so that a
//! build that rewrites a file unchanged does not start another build. Where nothing is reported, as on some network
//! file systems, the files are polled.

use std::{
    collections::{BTreeMap, BTreeSet, hash_map::DefaultHasher},
    fs,
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::{sync::Notify, time::sleep};

/// How long nothing may have been saved: an editor saves in several steps, and people save several files.
const SETTLES_AFTER: Duration = Duration::from_millis(150);
/// How often files are polled although no change was reported.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(2);

/// Larger files are compared by size and time.
const MAX_READ_BYTES: u64 = 1 << 20;

/// Folders that tools fill. Files and folders that begin with a dot are ignored, too.
const LEFT_OUT: [&str; 3] = ["target", "node_modules", "__pycache__"];

/// The contents of a project's files at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents(BTreeMap<PathBuf, u64>);

/// Watches the files of a project.
pub struct Watch {
    folder: PathBuf,
    /// What builds write, which are no sources.
    built: [PathBuf; 2],
    told: Arc<Notify>,
    watcher: Option<RecommendedWatcher>,
    followed: BTreeSet<PathBuf>,
}

impl Watch {
    /// Watches a folder, except for the components that are built in it.
    pub fn new(folder: &Path, built: [PathBuf; 2]) -> Watch {
        let told = Arc::new(Notify::new());
        let teller = Arc::clone(&told);
        let tell = move |event: notify::Result<Event>| {
            if !event.is_ok_and(|event| matches!(event.kind, EventKind::Access(_))) {
                teller.notify_one();
            }
        };
        let watcher = notify::recommended_watcher(tell)
            .inspect_err(|error| tracing::debug!(%error, "cannot watch the project; polling it instead"))
            .ok();
        Watch { folder: folder.to_owned(), built, told, watcher, followed: BTreeSet::new() }
    }

    /// Returns the current contents.
    pub fn look(&mut self) -> Contents {
        let mut contents = Contents::default();
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            self.follow(&folder);
            // A file that disappears meanwhile is noticed the next time.
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let (path, name) = (entry.path(), entry.file_name());
                let Ok(kind) = entry.file_type() else { continue };
                if is_left_out(&name.to_string_lossy()) || self.built.contains(&path) {
                    continue;
                }
                if kind.is_dir() {
                    folders.push(path);
                } else if let Some(content) = content(&path) {
                    contents.0.insert(path, content);
                }
            }
        }
        contents
    }

    /// Waits until the contents differ from `seen` and have stayed the same for a moment.
    pub async fn other_than(&mut self, seen: &Contents) {
        let mut last = self.look();
        loop {
            if last != *seen {
                sleep(SETTLES_AFTER).await;
                let now = self.look();
                if now == last {
                    return;
                }
                last = now;
                continue;
            }
            tokio::select! {
                () = self.told.notified() => {}
                () = sleep(LOOKED_AT_EVERY) => {}
            }
            last = self.look();
        }
    }

    /// Watches each folder individually: `target` has tens of thousands of files.
    fn follow(&mut self, folder: &Path) {
        let Some(watcher) = &mut self.watcher else { return };
        if !self.followed.contains(folder) && watcher.watch(folder, RecursiveMode::NonRecursive).is_ok() {
            self.followed.insert(folder.to_owned());
        }
    }
}

/// Whether tools create files of that name: hidden files, lock files, editor backups.
fn is_left_out(name: &str) -> bool {
    name.starts_with('.') || name.ends_with('~') || name.ends_with(".lock") || LEFT_OUT.contains(&name)
}

fn content(path: &Path) -> Option<u64> {
    let metadata = path.metadata().ok().filter(fs::Metadata::is_file)?;
    let mut hasher = DefaultHasher::new();
    if metadata.len() > MAX_READ_BYTES {
        (metadata.len(), metadata.modified().ok()).hash(&mut hasher);
    } else {
        fs::read(path).ok()?.hash(&mut hasher);
    }
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    //! These tests run in virtual time, on real files.

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_storm_of_saves_is_one_change() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, content: &str| fs::write(folder.path().join(name), content).expect("a file");
        write("lib.rs", "0");
        let mut watch = Watch::new(folder.path(), [PathBuf::new(), PathBuf::new()]);
        let seen = watch.look();
        let storm = async {
            for save in 1..=5 {
                write("lib.rs", &save.to_string());
                sleep(SETTLES_AFTER - Duration::from_millis(1)).await;
            }
        };
        let begun = Instant::now();
        tokio::join!(watch.other_than(&seen), storm);
        assert!(begun.elapsed() >= 5 * (SETTLES_AFTER - Duration::from_millis(1)));
        assert_eq!(fs::read_to_string(folder.path().join("lib.rs")).expect("a file"), "5");
    }

    #[test]
    fn what_tools_leave_and_what_stays_the_same_is_no_change() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, content: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, content).expect("a file");
        };
        write("src/lib.rs", "1");
        let built = ["mine.wasm", "mine.good.wasm"].map(|name| folder.path().join(name));
        let mut watch = Watch::new(folder.path(), built);
        let seen = watch.look();
        let others = ["Cargo.lock", "target/x/y.rs", ".git/HEAD", "src/.lib.rs.swp", "src/lib.rs~"];
        for name in ["mine.wasm", "mine.good.wasm"].into_iter().chain(others) {
            write(name, "2");
            assert_eq!(watch.look(), seen, "{name}");
        }
        write("src/lib.rs", "1");
        assert_eq!(watch.look(), seen, "saved as it was");
        write("src/more/other.rs", "1");
        assert_ne!(watch.look(), seen, "in a new folder");
    }
}
