//! What of gateway.json a running gateway follows: who is ignored, who reads, who is asked. An admin who
//! changes that does not have to restart anything; the next turn goes by it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use super::{Config, People};
use crate::home;

/// The people of a configuration, as the file has them now.
#[derive(Debug)]
pub struct Watched {
    home: PathBuf,
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    stamp: Option<Stamp>,
    people: Arc<People>,
}

/// What differs when a file was written anew: `None` for no file.
type Stamp = (u64, u64, Option<SystemTime>);

impl Watched {
    /// Begins with what was read.
    pub fn new(home: &Path, people: People) -> Self {
        let seen = Seen { stamp: stamp(home), people: Arc::new(people) };
        Watched { home: home.to_owned(), seen: Mutex::new(seen) }
    }

    /// The people as of now. A file that became unusable is told once, and what it said before still holds.
    pub fn now(&self) -> Arc<People> {
        // Replaced as a whole, so a panic elsewhere leaves nothing half changed.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stamp(&self.home);
        if stamp != seen.stamp {
            seen.stamp = stamp;
            if stamp.is_none() {
                // Not even for the moment in which an editor replaces it may a blocklist be lifted.
                tracing::warn!("gateway.json is gone: people are as it said last");
                return Arc::clone(&seen.people);
            }
            match Config::load(&self.home) {
                Ok((config, warnings)) => {
                    for warning in warnings {
                        tracing::warn!("{warning}");
                    }
                    tracing::info!("gateway.json has changed: people are as it says now, the rest at the next start");
                    seen.people = Arc::new(config.people);
                }
                Err(failure) => tracing::warn!("gateway.json has changed and cannot be used: {}", failure.message()),
            }
        }
        Arc::clone(&seen.people)
    }
}

fn stamp(home: &Path) -> Option<Stamp> {
    let meta = fs::metadata(home::config_file(home)).ok()?;
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&meta);
    #[cfg(not(unix))]
    let inode = 0;
    Some((inode, meta.len(), meta.modified().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_followed_and_a_slip_of_the_pen_changes_nothing() {
        let home = tempfile::tempdir().expect("a home");
        let watched = Watched::new(home.path(), People::default());
        assert_eq!(watched.now().blocklist, [] as [&str; 0]);
        let write = |text: &str| fs::write(home::config_file(home.path()), text).expect("a file");
        write(r#"{"version":1,"blocklist":["U9"]}"#);
        assert_eq!(watched.now().blocklist, ["U9"]);
        write(r#"{"version":1,"blocklist":"U10 and more"}"#);
        assert_eq!(watched.now().blocklist, ["U9"]);
        write(r#"{"version":1,"blocklist":["U10", "U11"]}"#);
        assert_eq!(watched.now().blocklist, ["U10", "U11"]);
        fs::remove_file(home::config_file(home.path())).expect("gone");
        assert_eq!(watched.now().blocklist, ["U10", "U11"]);
    }
}
