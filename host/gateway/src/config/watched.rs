//! The parts of gateway.json that a running gateway follows: the blocklist, the admins, the audiences, the contacts,
//! and the experiment. A change applies from the next turn on, without a restart.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    Config, EXPERIMENT, EditError, ExperimentConfig, PolicyConfig,
    followed::{PEOPLE, alone},
};
use pmk_system::{home, stamp::Stamp};

use crate::access::people::People;

/// The followed parts of a configuration, as the file has them now.
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
    /// Why the file is not used as it is.
    trouble: Option<String>,
}

/// The configuration of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trial {
    pub experiment: Option<ExperimentConfig>,
    /// The `policy` section: the base of every arm, apart from its files and settings, and what a promoted arm becomes.
    pub policy: PolicyConfig,
}

impl WatchedConfig {
    /// Returns the home.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Starts with the configuration that was read.
    pub fn new(home: &Path, config: &Config) -> Self {
        let trial = Trial { experiment: config.experiment.clone(), policy: config.policy.clone() };
        let seen = Seen {
            stamp: config.stamp,
            people: Arc::new(config.people.clone()),
            trial: Arc::new(trial),
            trouble: None,
        };
        WatchedConfig { home: home.to_owned(), seen: Mutex::new(seen) }
    }

    /// Returns the current people.
    pub fn now(&self) -> Arc<People> {
        Arc::clone(&self.look().people)
    }

    /// Returns the current experiment.
    pub fn trial(&self) -> Arc<Trial> {
        Arc::clone(&self.look().trial)
    }

    /// Returns why the file cannot be used as it is now, if it cannot.
    pub fn trouble(&self) -> Option<String> {
        self.look().trouble.clone()
    }

    /// Reads the file again if it has changed, and while it is unusable: a folder that becomes trusted leaves the file
    /// as it was. Each reason is reported once, and the last usable content stays in effect; but the people are taken
    /// from the file where they alone are usable, and so is the experiment: a key of a newer version lifts no
    /// blocklist, and keeps no experiment going that was stopped on another host.
    fn look(&self) -> MutexGuard<'_, Seen> {
        // Replaced as a whole, so a panic elsewhere cannot leave it half changed.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = Stamp::of(&home::config_file(&self.home));
        if stamp != seen.stamp || seen.trouble.is_some() {
            seen.stamp = stamp;
            if stamp.is_none() {
                // A blocklist must not be lifted, not even for the moment in which an editor replaces the file.
                let gone = EditError::Gone { path: home::config_file(&self.home) }.to_string();
                if seen.meets(gone) {
                    tracing::warn!("gateway.json no longer exists: its last settings for people stay in effect");
                }
                return seen;
            }
            match Config::load_in_gateway(&self.home) {
                // It was lost meanwhile, which the next look finds.
                Ok((config, _)) if !config.exists => {}
                Ok((config, warnings)) => {
                    for warning in warnings {
                        tracing::warn!("{warning}");
                    }
                    tracing::info!(
                        "gateway.json has changed: people, experiment and Slack tokens apply now, the rest after the next start"
                    );
                    seen.trouble = None;
                    seen.people = Arc::new(config.people);
                    seen.trial = Arc::new(Trial { experiment: config.experiment, policy: config.policy });
                }
                Err(failure) => {
                    if seen.meets(failure.message().to_owned()) {
                        tracing::warn!("gateway.json has changed but cannot be used: {}", failure.message());
                    }
                    if let Some(Config { people, .. }) = alone(&self.home, &PEOPLE)
                        && people != *seen.people
                    {
                        tracing::info!("the people in gateway.json apply now all the same");
                        seen.people = Arc::new(people);
                    }
                    if let Some(Config { experiment, .. }) = alone(&self.home, &[EXPERIMENT])
                        && experiment != seen.trial.experiment
                    {
                        tracing::info!("the experiment in gateway.json applies now all the same");
                        let policy = seen.trial.policy.clone();
                        seen.trial = Arc::new(Trial { experiment, policy });
                    }
                }
            }
        }
        seen
    }
}

impl Seen {
    /// Notes why the file is not used; returns whether that is new.
    fn meets(&mut self, trouble: String) -> bool {
        let is_new = self.trouble.as_ref() != Some(&trouble);
        self.trouble = Some(trouble);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

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
        assert_eq!(watched.trouble(), None);
        fs::remove_file(home::config_file(home.path())).expect("gone");
        assert_eq!(watched.now().blocklist, ["U10", "U11"]);
        assert!(watched.trouble().is_some());
    }

    /// Regression: whoever was blocked from then on was heard.
    #[test]
    fn a_key_of_a_newer_version_ended_the_following_of_the_blocklist() {
        let home = tempfile::tempdir().expect("a home");
        let watched = WatchedConfig::new(home.path(), &Config::default());
        let write = |text: &str| fs::write(home::config_file(home.path()), text).expect("a file");
        write(r#"{"version":1,"blocklist":["U9"],"limits":{"aKeyOfTomorrow":1}}"#);
        assert_eq!(watched.now().blocklist, ["U9"]);
        assert!(watched.trouble().is_some_and(|why| why.contains("aKeyOfTomorrow")), "{:?}", watched.trouble());
        write(r#"{"version":1,"blocklist":["U9","U10"],"experiment":{"name":"x","armsOfTomorrow":[]}}"#);
        assert_eq!(watched.now().blocklist, ["U9", "U10"]);
        assert!(watched.trouble().is_some_and(|why| why.contains("experiment")), "{:?}", watched.trouble());
        write(r#"{"version":2,"blocklist":[]}"#);
        assert_eq!(watched.now().blocklist, ["U9", "U10"], "of which nobody knows what it means there");
        write("not JSON");
        assert_eq!(watched.now().blocklist, ["U9", "U10"]);
        write(r#"{"version":1,"blocklist":["U9"]}"#);
        assert_eq!(watched.trouble(), None);
    }

    /// Regression: it went on where another host had stopped it, or promoted one of its arms.
    #[test]
    fn an_experiment_did_not_end_in_a_file_with_a_key_of_a_newer_version() {
        let home = tempfile::tempdir().expect("a home");
        let watched = WatchedConfig::new(home.path(), &Config::default());
        let write = |text: &str| fs::write(home::config_file(home.path()), text).expect("a file");
        let name = || watched.trial().experiment.as_ref().map(|it| it.name.clone());
        let experiment = r#"{"name":"x","control":"a","arms":[{"name":"a"},{"name":"b"}]}"#;
        let policy = r#""policy":{"seedMayGo":true}"#;
        write(&format!(r#"{{"version":1,{policy},"experiment":{experiment}}}"#));
        assert_eq!(name().as_deref(), Some("x"));
        write(r#"{"version":1,"limits":{"aKeyOfTomorrow":1},"experiment":{"name":"x","armsOfTomorrow":[]}}"#);
        assert_eq!(name().as_deref(), Some("x"), "an invalid one ends nothing");
        write(r#"{"version":1,"limits":{"aKeyOfTomorrow":1},"blocklist":"everybody"}"#);
        assert_eq!(name(), None);
        assert!(watched.trial().policy.seed_may_go, "the rest stays as it was last valid");
    }

    /// Regression: it was looked at again only once its content had changed.
    #[test]
    fn a_file_that_others_could_write_was_ignored_after_that_was_mended() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().join("home");
        fs::create_dir(&home).expect("a home");
        let watched = WatchedConfig::new(&home, &Config::default());
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
        set(&home, 0o700);
        for (part, list) in [(home::config_file(&home), "U9"), (home.clone(), "U10")] {
            fs::write(home::config_file(&home), format!(r#"{{"version":1,"blocklist":["{list}"]}}"#)).expect("a file");
            set(&part, 0o777);
            assert!(watched.trouble().is_some_and(|why| why.contains("mode 777")), "{:?}", watched.trouble());
            set(&part, 0o700);
            assert_eq!((watched.now().blocklist.clone(), watched.trouble()), (vec![list.to_owned()], None));
        }
    }

    /// Regression: people and experiment were taken from the file all the same.
    #[test]
    fn a_file_that_others_could_write_made_them_admins() {
        let home = tempfile::tempdir().expect("a home");
        let watched = WatchedConfig::new(home.path(), &Config::default());
        let path = home::config_file(home.path());
        let experiment = r#"{"name":"x","control":"a","arms":[{"name":"a"},{"name":"b"}]}"#;
        fs::write(&path, format!(r#"{{"version":1,"admins":["U9"],"experiment":{experiment}}}"#)).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("a mode");
        assert_eq!((watched.now().admins.len(), watched.trial().experiment.clone()), (0, None));
        assert!(watched.trouble().is_some_and(|why| why.contains("mode 666")), "{:?}", watched.trouble());
    }
}
