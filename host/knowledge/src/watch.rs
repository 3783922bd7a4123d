//! Tells which scopes may have changed since they were last looked at, without looking at every file.
//!
//! A folder's own time of change says that a file was added, removed or replaced by a rename. Only a file
//! that is overwritten in place leaves no trace there; for those the operating system is asked to tell.
//! Where it cannot be asked, every scope always counts as changed.

use std::{
    collections::{BTreeSet, HashMap},
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use super::files::is_atom_name;

/// File systems stamp by the tick of a coarse clock: a folder changed this recently may change again
/// without its stamp showing it.
const SETTLES_AFTER: Duration = Duration::from_millis(100);

/// What was seen since the last look.
#[derive(Debug, Default)]
struct Seen {
    scopes: BTreeSet<String>,
    /// Events were lost, or cannot be told apart.
    everything: bool,
}

/// Watches a folder of scopes.
#[derive(Debug)]
pub(super) struct Watch {
    root: PathBuf,
    seen: Arc<Mutex<Seen>>,
    /// Stops telling when it is dropped; `None` where nobody tells.
    watcher: Option<RecommendedWatcher>,
    /// When each scope's folder last changed, as far as it has settled.
    settled: HashMap<String, SystemTime>,
    /// When the folder of the scopes did.
    root_settled: Option<SystemTime>,
}

impl Watch {
    /// Begins to watch. Everything counts as changed at first. `wake` is called, on a thread of its own, whenever something has
    /// changed, as far as the operating system tells.
    pub(super) fn new(root: &Path, wake: impl Fn() + Send + 'static) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let watcher = watcher(root, Arc::clone(&seen), wake)
            .inspect_err(|error| {
                tracing::warn!(%error, folder = %root.display(), "cannot watch the folder: every turn checks every atom");
            })
            .ok();
        Watch { root: root.to_owned(), seen, watcher, settled: HashMap::new(), root_settled: None }
    }

    /// Those of `scopes` that may have changed since the last call.
    pub(super) fn changed(&mut self, scopes: &[String]) -> io::Result<Vec<String>> {
        let seen = std::mem::take(&mut *lock(&self.seen));
        let all = seen.everything || self.watcher.is_none();
        self.root_settled = modified(&self.root).filter(|modified| has_settled(*modified));
        self.settled.retain(|scope, _| scopes.contains(scope));
        let mut changed = Vec::new();
        for scope in scopes {
            let modified = match fs::metadata(self.root.join(scope)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                meta => meta?.modified()?,
            };
            if all || seen.scopes.contains(scope) || self.settled.get(scope) != Some(&modified) {
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

    /// Whether no scope has come or gone since the last look: asked of one folder, whatever is in it.
    pub(super) fn is_as_settled(&self) -> bool {
        self.root_settled.is_some() && self.root_settled == modified(&self.root)
    }

    /// The next call of [`changed`](Self::changed) names every scope.
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

/// Whether there is anything to note: reading is no change, and neither are temporary files and the lock.
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

fn modified(folder: &Path) -> Option<SystemTime> {
    fs::metadata(folder).and_then(|meta| meta.modified()).ok()
}

/// Whether a folder that was changed then would show it if it were changed again.
fn has_settled(modified: SystemTime) -> bool {
    SystemTime::now().duration_since(modified).is_ok_and(|age| age > SETTLES_AFTER)
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use pmk_stand_ins::patience::until;

    use super::*;

    /// A folder of scopes, one of which is only there to be told of.
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

        /// Waits until everything that happened so far was told: events keep their order.
        fn until_told(&self) {
            lock(&self.watch.seen).scopes.remove("told");
            fs::write(self.path("told/old.md"), "y").unwrap();
            until("a change is told", || lock(&self.watch.seen).scopes.contains("told").then_some(()));
        }

        /// Waits until nothing of what happened so far makes a scope count as changed.
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
}
