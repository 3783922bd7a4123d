//! Whether somebody has mended the files of arms that could not be loaded.

use pmk_system::stamp::Stamp;

use crate::{config::ExperimentConfig, embedded};

/// The files of all arms, as they were when they were loaded last.
pub(super) struct ArmFiles {
    loaded: Vec<Option<Stamp>>,
    /// As they were at the last look: what has changed since is still being written.
    seen: Vec<Option<Stamp>>,
}

impl ArmFiles {
    /// Looks at the files as they are; to be called before they are loaded.
    pub(super) fn of(config: &ExperimentConfig) -> ArmFiles {
        let loaded = stamps(config);
        ArmFiles { seen: loaded.clone(), loaded }
    }

    /// Looks once more; returns whether they have changed since they were loaded, are all there, and have stayed the same
    /// since the last look.
    pub(super) fn are_mended(&mut self, config: &ExperimentConfig) -> bool {
        let now = stamps(config);
        let before = std::mem::replace(&mut self.seen, now);
        self.seen != self.loaded && self.seen == before && self.seen.iter().all(Option::is_some)
    }
}

/// Embedded components cannot change.
fn stamps(config: &ExperimentConfig) -> Vec<Option<Stamp>> {
    let files = config.arms.iter().filter_map(|arm| arm.policy.as_ref()).flat_map(|policy| &policy.files);
    files.filter(|file| embedded::component(file).is_none()).map(|file| Stamp::of(file)).collect()
}
