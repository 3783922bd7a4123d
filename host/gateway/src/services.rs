//! What turns need of the world, built once. Each is a port of its own: whoever needs one or two of them takes those.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use pmk_knowledge::Seeder;
use pmk_models::Model;
use pmk_policy::Stack;
use pmk_system::clock::Clock;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    access::audience::Prompts,
    calibration::{Calibration, Calibrator},
    chat::Inbound,
    config::{Config, WatchedConfig},
    directive::AvailableDirectives,
    dispatch::Dispatcher,
    front::{Front, progress},
    ledger::Ledger,
    messages::Messages,
    mra::Mra,
    operator::{admins::Admins, permissions::Permissions},
    policies::{
        Policies,
        experiment::{
            arms::Load,
            live::{self, RunningExperiment},
            signals::Questions,
        },
    },
    preambles::{Learning, Preambles},
    store::{Store, StoreError},
};

mod library;

pub use library::SharedLibrary;

/// How long a gateway that may write nothing any more waits for what it was about to post: two calls, each within its time limit.
const TAKEN_BACK_WITHIN: Duration = Duration::from_secs(20);

/// The ports.
pub struct Services {
    pub(crate) home: PathBuf,
    pub clock: Clock,
    pub store: Store,
    pub policies: Arc<Policies>,
    pub(crate) model: Arc<dyn Model>,
    pub front: Arc<dyn Front>,
    pub ledger: Ledger,
    /// What does not change before the next start.
    pub config: Config,
    pub people: Arc<Permissions>,
    pub(crate) admins: Admins,
    pub messages: Arc<Messages>,
    pub(crate) library: SharedLibrary,
    pub(crate) calibrator: Calibrator,
    pub(crate) preambles: Preambles,
    pub(crate) experiment: Arc<RunningExperiment>,
    /// What people have just asked.
    pub(crate) questions: Questions,
    pub(crate) mra: Mra,
    /// Packs what opens a session, where something does.
    pub(crate) seeder: Option<Arc<Seeder>>,
    /// All `chat.update`s together.
    pub(crate) progress: progress::Settings,
    /// Held while something that asks for a verdict is posted, and while a verdict is taken.
    pub(crate) judging: tokio::sync::Mutex<()>,
    /// Held from looking what is new of a case until it is kept: two threads of a channel may bring up the same.
    pub(crate) tracking: tokio::sync::Mutex<()>,
    /// Cancelled when nothing new may begin.
    pub stop: CancellationToken,
    /// What must end before the gateway does.
    pub tasks: TaskTracker,
    /// Messages that nobody knows of before the store does.
    pub(crate) unknown: TaskTracker,
    /// Where messages are taken in that come of a turn.
    intake: OnceLock<Weak<Dispatcher>>,
}

/// What they are made of.
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
    /// Whether the model's server takes tools, where that was seen before.
    pub takes_tools: Option<bool>,
    pub prompts: Prompts,
    pub mra: Mra,
    pub seeder: Option<Seeder>,
    /// Loads the arms of experiments.
    pub load: Load,
}

impl Services {
    /// Puts the parts together.
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
            judging: tokio::sync::Mutex::default(),
            tracking: tokio::sync::Mutex::default(),
            stop,
            tasks,
            unknown: TaskTracker::new(),
            intake: OnceLock::new(),
        })
    }

    /// Waits for those messages that the store does not take any more to be taken back.
    pub async fn take_back(&self) {
        if !self.store.is_shared() {
            return;
        }
        self.unknown.close();
        let _ = tokio::time::timeout(TAKEN_BACK_WITHIN, self.unknown.wait()).await;
    }

    /// Milliseconds since the epoch.
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Has this take in what comes of a turn. The first serves; there is only one.
    pub(crate) fn hand_in_to(&self, dispatcher: &Arc<Dispatcher>) {
        let _ = self.intake.set(Arc::downgrade(dispatcher));
    }

    /// Takes a message in that a turn has made, as one from outside.
    ///
    /// # Errors
    /// It is not stored.
    pub(crate) async fn take_in(&self, message: Inbound) -> Result<(), StoreError> {
        match self.intake.get().and_then(Weak::upgrade) {
            Some(dispatcher) => dispatcher.take_in(message).await.map(drop),
            // The gateway ends: it is found in the inbox at the next start.
            None => self.store.accept(&message, self.now_ms()).await.map(drop),
        }
    }

    /// What can be carried out now of what the model may want, on behalf of this person.
    pub(crate) fn offer(&self, asker: &str) -> AvailableDirectives {
        let Config { mra, mra_workspace, .. } = &self.config;
        AvailableDirectives {
            mra: mra_workspace.is_some() || mra.names_a_command(),
            people: self.people.has_contacts(asker),
        }
    }
}
