//! The services that turns use, built once. Each is a port of its own, so that code that needs only one or two can
//! take just those.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use pmk_knowledge::Seeder;
use pmk_models::Model;
use pmk_policy::Stack;
use pmk_system::clock::Clock;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    access::{audience::Prompts, people::People},
    calibration::{Calibration, Calibrator},
    config::{Config, WatchedConfig},
    directive::AvailableDirectives,
    front::{Front, progress},
    ledger::Ledger,
    messages::Messages,
    mra::Mra,
    operator::{
        admins::Admins,
        model_trouble::ModelTrouble,
        permissions::{Permissions, contacts, has_contacts},
    },
    policies::{
        Policies,
        experiment::{
            arms::Load,
            live::{self, RunningExperiment},
            signals::Questions,
        },
    },
    preambles::{Learning, Preambles},
    store::Store,
};

mod channel_locks;
mod image_room;
mod library;

use channel_locks::ChannelLocks;
use image_room::ImageRoom;
pub use library::SharedLibrary;

#[cfg(test)]
pub(crate) mod tests;

/// How long a gateway that may no longer write to the store waits for the messages it was about to post: two calls,
/// each within its time limit.
const TAKEN_BACK_WITHIN: Duration = Duration::from_secs(20);

/// The services.
pub struct Services {
    pub(crate) home: PathBuf,
    pub clock: Clock,
    pub store: Store,
    pub policies: Arc<Policies>,
    pub(crate) model: Arc<dyn Model>,
    pub front: Arc<dyn Front>,
    pub ledger: Ledger,
    /// The settings that do not change before the next start.
    pub config: Config,
    pub people: Arc<Permissions>,
    pub admins: Admins,
    pub messages: Arc<Messages>,
    pub(crate) library: SharedLibrary,
    pub(crate) calibrator: Calibrator,
    pub(crate) preambles: Preambles,
    pub(crate) experiment: Arc<RunningExperiment>,
    /// Recent questions, to detect questions that are asked again.
    pub(crate) questions: Questions,
    pub(crate) mra: Mra,
    /// Packs the documents that open a session, if there are any.
    pub(crate) seeder: Option<Arc<Seeder>>,
    /// The settings of progress updates; all `chat.update`s are counted together.
    pub(crate) progress: progress::Settings,
    /// What the admins know of a model that refuses everybody.
    pub(crate) model_trouble: ModelTrouble,
    /// Held while a message that asks for a verdict is posted, and while a verdict on one in that channel is taken.
    pub(crate) judging: ChannelLocks,
    /// Held while new notes of a case are determined and stored: two threads of a channel may bring up the same
    /// note.
    pub(crate) tracking: tokio::sync::Mutex<()>,
    /// The memory for images that are fetched, and for those that are sent to the model.
    pub(crate) images_fetched: ImageRoom,
    pub(crate) images_sent: ImageRoom,
    /// Cancelled when nothing new may begin.
    pub stop: CancellationToken,
    /// Tasks that must end before the gateway does.
    pub tasks: TaskTracker,
    /// Posted messages that the store does not know of yet.
    pub(crate) unknown: TaskTracker,
}

/// The parts that the services are built from.
pub struct Parts<'a> {
    pub home: &'a Path,
    pub clock: Clock,
    pub store: Store,
    pub stack: Stack,
    pub model: Arc<dyn Model>,
    pub front: Arc<dyn Front>,
    pub ledger: Ledger,
    pub config: Config,
    pub library: SharedLibrary,
    pub calibration: Calibration,
    /// Whether the model's server accepts tools, if known.
    pub takes_tools: Option<bool>,
    pub prompts: Prompts,
    pub mra: Mra,
    pub seeder: Option<Seeder>,
    /// Loads the arms of experiments.
    pub load: Load,
}

impl Services {
    /// Builds the services.
    pub fn new(parts: Parts<'_>, stop: CancellationToken) -> Arc<Services> {
        let Parts { home, clock, store, stack, model, front, ledger, config, library, .. } = parts;
        let tasks = TaskTracker::new();
        let messages = Arc::new(Messages::new(config.language));
        let watched = Arc::new(WatchedConfig::new(home, &config));
        let people = Arc::new(Permissions::new(Arc::clone(&watched), ledger.clone()));
        let admins = Admins::new(Arc::clone(&front), Arc::clone(&people), tasks.clone());
        let policies = Arc::new(Policies::new(&stack));
        let learning = Learning {
            model: Arc::clone(&model),
            store: store.clone(),
            ledger: ledger.clone(),
            admins: admins.clone(),
            messages: Arc::clone(&messages),
        };
        let toolbox = config.tools.toolbox(model.has_tools());
        let preambles = Preambles::new(&parts.prompts, toolbox, parts.takes_tools, learning);
        let experiment = RunningExperiment::new(live::Ports {
            clock: clock.clone(),
            watched: Arc::clone(&watched),
            store: store.clone(),
            policies: Arc::clone(&policies),
            ledger: ledger.clone(),
            admins: admins.clone(),
            messages: Arc::clone(&messages),
            tasks: tasks.clone(),
            load: parts.load,
        });
        let min_gap = Duration::from_secs_f64(config.limits.progress_seconds);
        Arc::new(Services {
            home: home.to_owned(),
            clock,
            store,
            policies,
            calibrator: Calibrator::new(model.window(), parts.calibration),
            model,
            front,
            ledger,
            config,
            people,
            admins,
            messages,
            library,
            preambles,
            experiment: Arc::new(experiment),
            questions: Questions::default(),
            mra: parts.mra,
            seeder: parts.seeder.map(Arc::new),
            progress: progress::Settings { min_gap, ..progress::Settings::default() },
            model_trouble: ModelTrouble::default(),
            judging: ChannelLocks::default(),
            tracking: tokio::sync::Mutex::default(),
            images_fetched: ImageRoom::default(),
            images_sent: ImageRoom::default(),
            stop,
            tasks,
            unknown: TaskTracker::new(),
        })
    }

    /// Waits until messages that the store no longer accepts are removed again.
    pub async fn take_back(&self) {
        if !self.store.is_shared() {
            return;
        }
        self.unknown.close();
        let _ = tokio::time::timeout(TAKEN_BACK_WITHIN, self.unknown.wait()).await;
    }

    /// Returns the current time in milliseconds since the epoch.
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Returns the directives that can be carried out now on behalf of this person.
    pub(crate) fn offer(&self, people: &People, asker: &str) -> AvailableDirectives {
        AvailableDirectives {
            mra: self.config.uses_mra() && self.mra.check().is_ok(),
            people: has_contacts(people, asker, |id| self.front.is_person(id)),
        }
    }

    /// Returns the contacts to ask about a repository on behalf of `asker`; empty if there are none.
    pub(crate) fn contacts(&self, repo: Option<&str>, asker: &str) -> Vec<String> {
        contacts(&self.people.people(), repo, asker, |id| self.front.is_person(id))
    }
}
