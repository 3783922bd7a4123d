//! Detects which scopes may have changed since the last check, without checking every file.
//!
//! A folder's modification time shows that a file was added, removed or replaced by a rename. Only a file that is
//! overwritten in place leaves no trace there; such changes are reported by the operating system. Where it cannot
//! report them, every scope always counts as changed. So does a scope with a link to a file, which may change anywhere.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ffi::OsStr,
    fs::{self, DirEntry},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use super::files::is_atom_name;

/// File systems use a coarse clock: a folder changed this recently may change again without a new modification time.
const SETTLES_AFTER: Duration = Duration::from_millis(100);

/// Changes since the last check.
#[derive(Debug, Default)]
struct Seen {
    scopes: BTreeSet<String>,
    /// Events were lost, or cannot be attributed to a scope.
    everything: bool,
}

/// Distinguishes a folder from another one in its place: device, inode, and when it was created, as file systems give
/// the inode of a deleted folder to the next one.
type Identity = (u64, u64, Option<SystemTime>);

/// Watches a folder of scopes.
#[derive(Debug)]
pub(super) struct Watch {
    root: PathBuf,
    /// The watched folder; `None` if it did not exist.
    identity: Option<Identity>,
    seen: Arc<Mutex<Seen>>,
    /// Stops watching when dropped; `None` if the operating system cannot report changes.
    watcher: Option<RecommendedWatcher>,
    /// The modification time of each scope's folder, once it has settled.
    settled: HashMap<String, SystemTime>,
    /// The scopes with a link among their files.
    linked: HashSet<String>,
    /// The same as `settled` for the folder of the scopes.
    root_settled: Option<SystemTime>,
}

impl Watch {
    /// Starts watching. At first everything counts as changed. `wake` is called on a separate thread whenever something
    /// has changed, as far as the operating system reports it.
    pub(super) fn new(root: &Path, wake: impl Fn() + Send + 'static) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let identity = identity(root);
        let watcher = watcher(root, Arc::clone(&seen), wake)
            .inspect_err(|error| {
                tracing::warn!(%error, folder = %root.display(), "cannot watch the folder: every turn checks every atom");
            })
            .ok();
        let (settled, linked) = (HashMap::new(), HashSet::new());
        Watch { root: root.to_owned(), identity, seen, watcher, settled, linked, root_settled: None }
    }

    /// Those of `scopes` that may have changed since the last call.
    pub(super) fn changed(&mut self, scopes: &[String]) -> io::Result<Vec<String>> {
        let seen = std::mem::take(&mut *lock(&self.seen));
        let all = seen.everything || self.watcher.is_none();
        self.root_settled = modified(&self.root).filter(|modified| has_settled(*modified));
        self.settled.retain(|scope, _| scopes.contains(scope));
        self.linked.retain(|scope| scopes.contains(scope));
        let mut changed = Vec::new();
        for scope in scopes {
            let modified = match fs::metadata(self.root.join(scope)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                meta => meta?.modified()?,
            };
            let may_differ = all || seen.scopes.contains(scope) || self.settled.get(scope) != Some(&modified);
            // Without a watcher, every scope always counts as changed.
            if may_differ && self.watcher.is_some() {
                if has_link(&self.root.join(scope)) {
                    self.linked.insert(scope.clone());
                } else {
                    self.linked.remove(scope);
                }
            }
            if may_differ || self.linked.contains(scope) {
                changed.push(scope.clone());
            }
            if has_settled(modified) {
                self.settled.insert(scope.clone(), modified);
            } else {
                self.settled.remove(scope);
            }
        }
        Ok(changed)
    }

    /// Whether no scope was added or removed since the last check; takes one look at the folder, whatever its size.
    pub(super) fn is_as_settled(&self) -> bool {
        self.root_settled.is_some() && self.root_settled == modified(&self.root)
    }

    /// Whether another folder is in the place of the watched one: the operating system reports nothing of it.
    pub(super) fn is_outdated(&self) -> bool {
        self.identity != identity(&self.root)
    }

    /// Makes the next call of [`changed`](Self::changed) return every scope.
    pub(super) fn forget(&mut self) {
        self.root_settled = None;
        self.settled.clear();
    }
}

fn watcher(
    root: &Path,
    seen: Arc<Mutex<Seen>>,
    wake: impl Fn() + Send + 'static,
) -> notify::Result<RecommendedWatcher> {
    let folder = root.to_owned();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        let is_new = match event {
            Ok(event) if !event.need_rescan() => note(&mut lock(&seen), &folder, &event),
            _ => {
                lock(&seen).everything = true;
                true
            }
        };
        if is_new {
            wake();
        }
    })?;
    watcher.watch(root, RecursiveMode::Recursive)?;
    Ok(watcher)
}

/// Records an event, and returns whether it is a change: reads, temporary files and the lock are ignored.
fn note(seen: &mut Seen, root: &Path, event: &Event) -> bool {
    if matches!(event.kind, EventKind::Access(_)) {
        return false;
    }
    let mut is_new = false;
    for path in &event.paths {
        let Ok(inside) = path.strip_prefix(root) else {
            (seen.everything, is_new) = (true, true);
            continue;
        };
        let parts: Vec<&OsStr> = inside.iter().collect();
        if let [scope, _] = parts.as_slice()
            && is_atom_name(inside)
            && let Some(scope) = scope.to_str()
        {
            seen.scopes.insert(scope.to_owned());
            is_new = true;
        }
    }
    is_new
}

/// Whether one of a scope's files is a link to an atom's.
fn has_link(scope: &Path) -> bool {
    let Ok(entries) = fs::read_dir(scope) else { return false };
    let is_link = |entry: &DirEntry| entry.file_type().is_ok_and(|file| file.is_symlink());
    entries.flatten().any(|entry| is_link(&entry) && is_atom_name(&entry.path()))
}

fn identity(folder: &Path) -> Option<Identity> {
    let meta = fs::metadata(folder).ok()?;
    Some((meta.dev(), meta.ino(), meta.created().ok()))
}

fn modified(folder: &Path) -> Option<SystemTime> {
    fs::metadata(folder).and_then(|meta| meta.modified()).ok()
}

/// Whether a folder with this modification time would show a further change.
fn has_settled(modified: SystemTime) -> bool {
    SystemTime::now().duration_since(modified).is_ok_and(|age| age > SETTLES_AFTER)
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::unix::fs::symlink};

    use pmk_stand_ins::patience::until;

    use super::*;

    /// A folder of two scopes, one of which only serves to wait for events.
    struct Scopes {
        folder: tempfile::TempDir,
        names: [String; 2],
        watch: Watch,
    }

    impl Scopes {
        fn new() -> Scopes {
            let folder = tempfile::tempdir().unwrap();
            for scope in ["crm", "erp", "told"] {
                fs::create_dir(folder.path().join(scope)).unwrap();
                fs::write(folder.path().join(scope).join("old.md"), "x").unwrap();
            }
            let watch = Watch::new(&folder.path().canonicalize().unwrap(), || ());
            Scopes { folder, names: ["crm".to_owned(), "erp".to_owned()], watch }
        }

        fn path(&self, file: &str) -> PathBuf {
            self.folder.path().join(file)
        }

        fn changed(&mut self) -> Vec<String> {
            self.watch.changed(&self.names).unwrap()
        }

        /// Waits until all previous changes were reported: events keep their order.
        fn until_told(&self) {
            lock(&self.watch.seen).scopes.remove("told");
            fs::write(self.path("told/old.md"), "y").unwrap();
            until("a change is told", || lock(&self.watch.seen).scopes.contains("told").then_some(()));
        }

        /// Waits until no previous change makes a scope count as changed.
        fn settle(&mut self) {
            self.until_told();
            until("the folders settle", || self.changed().is_empty().then_some(()));
        }
    }

    #[test]
    fn only_a_scope_that_changed_is_named() {
        let mut scopes = Scopes::new();
        assert_eq!(scopes.changed(), scopes.names);
        scopes.settle();

        fs::write(scopes.path("erp/new.md"), "x").unwrap();
        assert_eq!(scopes.changed(), ["erp"]);
        scopes.settle();

        fs::write(scopes.path("crm/old.md"), "y").unwrap();
        scopes.until_told();
        assert_eq!(scopes.changed(), ["crm"], "edited in place");
        scopes.settle();

        fs::read(scopes.path("crm/old.md")).unwrap();
        scopes.until_told();
        assert_eq!(scopes.changed(), [] as [&str; 0], "only read");
    }

    #[test]
    fn a_scope_with_a_link_always_counts_as_changed() {
        let mut scopes = Scopes::new();
        let link = scopes.path("erp/link.md");
        symlink(scopes.path("told/old.md"), &link).unwrap();
        // As if long settled.
        let long_ago = SystemTime::now() - Duration::from_secs(3600);
        for scope in &scopes.names {
            File::open(scopes.path(scope)).unwrap().set_modified(long_ago).unwrap();
        }
        scopes.until_told();
        assert_eq!(scopes.changed(), scopes.names);
        assert_eq!(scopes.changed(), ["erp"]);
        fs::remove_file(link).unwrap();
        scopes.settle();
    }
}
