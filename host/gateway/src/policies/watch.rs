//! Watches the files of the serving policies and reloads them when they change.
//!
//! The operating system reports that something happened in a file's folder; the stamp shows whether the file itself has
//! changed. Where nothing is reported, as on some network file systems, the stamps are polled. A changed file is only
//! loaded once it has stayed the same for a moment; a missing one may be about to be replaced.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use pmk_system::{home, stamp::Stamp};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::swap::{Followed, Reloaded, Swapper};
use crate::embedded;

/// How long files must stay unchanged before they are loaded.
const SETTLES_AFTER: Duration = Duration::from_millis(500);
/// How often the stamps are polled although no change was reported.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(2);
/// How long a file may be missing before that is reported.
const MAY_BE_GONE: Duration = Duration::from_secs(5);
/// The delay before files that the other hosts could not be sent are tried again.
const LATER: Duration = Duration::from_secs(5);

/// Swaps changed files in, for as long as it is polled. A swap takes precedence: once other policies serve, what was
/// seen of the previous files is discarded, and loading them is cancelled.
pub async fn follow(swapper: Arc<Swapper>) {
    let mut serving = swapper.followed();
    let mut folders = Folders::default();
    loop {
        let followed = serving.borrow_and_update().clone();
        let files = on_disk(&followed);
        folders.follow(&files);
        tokio::select! {
            biased;
            changed = serving.changed() => if changed.is_err() { return },
            never = keep_up(&swapper, &followed, &files, &folders) => match never {},
        }
    }
}

/// Reloads the files of the serving policies whenever they change. Files that change while they are being loaded are
/// loaded again: a component that takes long to be refused does not delay its replacement. Refused files are also loaded
/// again once gateway.json changes or the home can be trusted: that may be what they were refused for. Files that could
/// not be sent to the other hosts, as during an outage of the database, are tried again until they are.
async fn keep_up(swapper: &Arc<Swapper>, followed: &Followed, files: &[PathBuf], folders: &Folders) -> Infallible {
    let config = home::config_file(&swapper.home);
    let mut watched = files.to_vec();
    let mut seen = stamps(&watched);
    let mut is_due = swapper.is_stale(followed).await;
    let (mut awaits_trust, mut is_delayed) = (false, false);
    if is_due {
        seen = settled(&watched).await;
    }
    loop {
        let config_seen = Stamp::of(&config);
        let was_trusted = home::check_trusted(&swapper.home).is_ok();
        // A component that has finished loading is swapped in even if its file may have changed by then; that is seen
        // next.
        tokio::select! {
            biased;
            reloaded = swapper.reload_changed(followed, is_delayed), if is_due => {
                let is_usable = reloaded != Reloaded::Unusable;
                is_due = false;
                is_delayed = reloaded == Reloaded::Later;
                awaits_trust = !is_usable && !was_trusted;
                watched.truncate(files.len());
                seen.truncate(files.len());
                if !is_usable {
                    watched.push(config.clone());
                    seen.push(config_seen);
                }
            }
            () = other_than(&seen, &watched, folders) => {
                seen = settled(&watched).await;
                is_due = true;
            }
            () = trusted(&swapper.home), if awaits_trust => {
                awaits_trust = false;
                is_due = true;
            }
            () = sleep(LATER), if is_delayed && !is_due => is_due = true,
        }
    }
}

/// The files that can change: embedded components cannot.
fn on_disk(followed: &Followed) -> Vec<PathBuf> {
    followed.from.files.iter().filter(|file| embedded::component(file).is_none()).cloned().collect()
}

/// Waits until the files differ from these stamps.
async fn other_than(seen: &[Option<Stamp>], files: &[PathBuf], folders: &Folders) {
    while stamps(files) == seen {
        tokio::select! {
            biased;
            () = folders.told.notified() => {}
            () = sleep(LOOKED_AT_EVERY) => {}
        }
    }
}

/// Waits until the home can be trusted. A folder above it may be at fault, so no stamp shows that.
async fn trusted(home: &Path) {
    while home::check_trusted(home).is_err() {
        sleep(LOOKED_AT_EVERY).await;
    }
}

/// Returns the stamps of the files once they no longer change.
async fn settled(files: &[PathBuf]) -> Vec<Option<Stamp>> {
    let begun = Instant::now();
    let mut seen = stamps(files);
    loop {
        sleep(SETTLES_AFTER).await;
        let now = stamps(files);
        let are_all_there = now.iter().all(Option::is_some);
        if now == seen && (are_all_there || begun.elapsed() > MAY_BE_GONE) {
            return now;
        }
        seen = now;
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Option<Stamp>> {
    files.iter().map(|file| Stamp::of(file)).collect()
}

/// The watched folders of the files. One watcher for all of them, kept for the whole run: each is a thread and one of
/// few handles that the system provides.
#[derive(Default)]
struct Folders {
    told: Arc<Notify>,
    watcher: Option<RecommendedWatcher>,
    followed: BTreeSet<PathBuf>,
}

impl Folders {
    /// Watches the folders of these files, and no others. Folders that cannot be watched are covered by polling.
    fn follow(&mut self, files: &[PathBuf]) {
        let wanted: BTreeSet<PathBuf> = files.iter().flat_map(|file| folders_of(file)).collect();
        let followed = std::mem::take(&mut self.followed);
        let Some(watcher) = self.watcher() else { return };
        for gone in followed.difference(&wanted) {
            // A folder that was deleted meanwhile is no longer watched anyway.
            let _ = watcher.unwatch(gone);
        }
        let mut watch = |folder: &PathBuf| {
            let watched = followed.contains(folder) || watcher.watch(folder, RecursiveMode::NonRecursive).is_ok();
            if !watched {
                tracing::debug!(folder = %folder.display(), "cannot watch the folder of a policy; polling it instead");
            }
            watched
        };
        self.followed = wanted.into_iter().filter(|folder| watch(folder)).collect();
    }

    fn watcher(&mut self) -> Option<&mut RecommendedWatcher> {
        if self.watcher.is_none() {
            let told = Arc::clone(&self.told);
            let tell = move |event: notify::Result<Event>| {
                if !event.is_ok_and(|event| matches!(event.kind, EventKind::Access(_))) {
                    told.notify_one();
                }
            };
            self.watcher = notify::recommended_watcher(tell)
                .inspect_err(|error| tracing::debug!(%error, "cannot watch the folders of policies"))
                .ok();
        }
        self.watcher.as_mut()
    }
}

/// The folders in which a file may be replaced: its own, and that of its target if it is a link.
fn folders_of(file: &Path) -> Vec<PathBuf> {
    let real = file.canonicalize().ok();
    [Some(file), real.as_deref()].into_iter().flatten().filter_map(Path::parent).map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    //! These tests run in virtual time, on real files.

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_written_bit_by_bit_is_taken_once_it_is_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = [folder.path().join("policy.wasm")];
        let write = |content: &str| std::fs::write(&files[0], content).expect("a file");
        write("o");
        let copy = async {
            for content in ["on", "one", "one ", "one whole"] {
                sleep(SETTLES_AFTER - Duration::from_millis(1)).await;
                write(content);
            }
        };
        let begun = Instant::now();
        let (seen, ()) = tokio::join!(settled(&files), copy);
        assert_eq!(seen, stamps(&files));
        assert_eq!(begun.elapsed(), 5 * SETTLES_AFTER);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_gone_is_waited_for_but_not_for_ever() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = [folder.path().join("policy.wasm")];
        let replace = async {
            sleep(MAY_BE_GONE - Duration::from_millis(1)).await;
            std::fs::write(&files[0], "replaced").expect("a file");
        };
        let (seen, ()) = tokio::join!(settled(&files), replace);
        assert_eq!(seen, [Stamp::of(&files[0])]);
        std::fs::remove_file(&files[0]).expect("a file");
        let begun = Instant::now();
        assert_eq!(settled(&files).await, [None]);
        assert!(begun.elapsed() > MAY_BE_GONE);
    }
}
