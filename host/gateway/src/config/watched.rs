//! What of gateway.json a running gateway follows: who is ignored, who reads, who is asked, and which
//! experiment is on. An admin who changes that does not have to restart anything; the next turn goes by it.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{Config, ExperimentConfig, PolicyConfig};
use pmk_system::{home, stamp::Stamp};

use crate::access::people::People;

/// The parts of a configuration that may change, as the file has them now.
#[derive(Debug)]
pub struct WatchedConfig {
    home: PathBuf,
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    stamp: Option<Stamp>,
    people: Arc<People>,
    trial: Arc<Trial>,
}

/// What an experiment goes by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trial {
    pub experiment: Option<ExperimentConfig>,
    /// What every arm has beside its files and settings, and what a promoted arm becomes.
    pub policy: PolicyConfig,
}

impl WatchedConfig {
    /// Whose it is.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Begins with what was read.
    pub fn new(home: &Path, config: &Config) -> Self {
        let trial = Trial { experiment: config.experiment.clone(), policy: config.policy.clone() };
        let seen = Seen { stamp: config.stamp, people: Arc::new(config.people.clone()), trial: Arc::new(trial) };
        WatchedConfig { home: home.to_owned(), seen: Mutex::new(seen) }
    }

    /// The people as of now.
    pub fn now(&self) -> Arc<People> {
        Arc::clone(&self.look().people)
    }

    /// The experiment as of now.
    pub fn trial(&self) -> Arc<Trial> {
        Arc::clone(&self.look().trial)
    }

    /// A file that became unusable is told once, and what it said before still holds.
    fn look(&self) -> MutexGuard<'_, Seen> {
        // Replaced as a whole, so a panic elsewhere leaves nothing half changed.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = Stamp::of(&home::config_file(&self.home));
        if stamp != seen.stamp {
            seen.stamp = stamp;
            if stamp.is_none() {
                // Not even for the moment in which an editor replaces it may a blocklist be lifted.
                tracing::warn!("gateway.json no longer exists: its last settings for people stay in effect");
                return seen;
            }
            match Config::load(&self.home) {
                Ok((config, warnings)) => {
                    for warning in warnings {
                        tracing::warn!("{warning}");
                    }
                    tracing::info!(
                        "gateway.json has changed: people, experiment and Slack tokens apply now, the rest after the next start"
                    );
                    seen.people = Arc::new(config.people);
                    seen.trial = Arc::new(Trial { experiment: config.experiment, policy: config.policy });
                }
                Err(failure) => tracing::warn!("gateway.json has changed but cannot be used: {}", failure.message()),
            }
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_change_is_followed_and_a_slip_of_the_pen_changes_nothing() {
        let home = tempfile::tempdir().expect("a home");
        let watched = WatchedConfig::new(home.path(), &Config::default());
        assert_eq!(watched.now().blocklist, [] as [&str; 0]);
        let write = |text: &str| fs::write(home::config_file(home.path()), text).expect("a file");
        write(r#"{"version":1,"blocklist":["U9"]}"#);
        assert_eq!(watched.now().blocklist, ["U9"]);
        let experiment = r#"{"name":"x","control":"a","arms":[{"name":"a"},{"name":"b"}]}"#;
        write(&format!(r#"{{"version":1,"blocklist":["U9"],"experiment":{experiment}}}"#));
        assert_eq!(watched.trial().experiment.as_ref().map(|it| it.name.clone()).as_deref(), Some("x"));
        write(r#"{"version":1,"blocklist":"U10 and more"}"#);
        assert_eq!(watched.now().blocklist, ["U9"]);
        write(r#"{"version":1,"blocklist":["U10", "U11"]}"#);
        assert_eq!(watched.now().blocklist, ["U10", "U11"]);
        fs::remove_file(home::config_file(home.path())).expect("gone");
        assert_eq!(watched.now().blocklist, ["U10", "U11"]);
    }
}
