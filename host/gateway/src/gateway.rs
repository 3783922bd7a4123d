//! The running gateway: everything a turn needs, and the way from the front to the dispatcher.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

use async_trait::async_trait;
use pmk_policy::Stack;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    audience::{Audience, Prompts, Toolbox},
    calibration::Calibration,
    clock,
    config::{Config, Watched},
    directive::{self, Offer},
    dispatch::{Batch, Dispatcher, Stuck, Turns},
    error::Failure,
    experiment::{
        arms::Load,
        live::{self, Live},
        signals::{self, Questions},
    },
    front::{
        Accepted, Delivery, Front, FrontError, Inbound, Intake, Invocation, Notice, ReactError, Reaction, ReplyTo,
        Speech,
    },
    knowledge::{Library, LibraryError, Seeder, reaction::Verdict},
    ledger::{Event, Ledger},
    may::Action,
    model::Model,
    mra::Mra,
    panics,
    policies::Policies,
    presence::health::Report,
    progress::{self, Updates},
    say::Say,
    store::{Parked, SessionId, Store, StoreError},
    turn::{self, Preamble, Room},
};

mod notice;
mod parked;
mod permission;
mod proposal;
mod tools;
mod verdict;

/// Everything a turn needs.
pub struct Gateway {
    pub(crate) home: PathBuf,
    pub(crate) store: Store,
    pub(crate) policies: Policies,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) front: Arc<dyn Front>,
    pub(crate) ledger: Ledger,
    pub(crate) config: Config,
    /// Who is who and which experiment is on, as gateway.json has it now.
    pub(crate) people: Watched,
    pub(crate) experiment: Live,
    /// What people have just asked.
    pub(crate) questions: Questions,
    pub(crate) say: Say,
    pub(crate) mra: Mra,
    /// Packs what opens a session, where something does.
    pub(crate) seeder: Option<Arc<Seeder>>,
    /// All `chat.update`s together.
    pub(crate) updates: Updates,
    /// Held while something that asks for a verdict is posted, and while a verdict is taken.
    pub(crate) judging: tokio::sync::Mutex<()>,
    /// Held from looking what is new of a case until it is kept: two threads of a channel may bring up the same.
    pub(crate) tracking: tokio::sync::Mutex<()>,
    library: Arc<Mutex<Library>>,
    calibration: Mutex<Calibration>,
    toolbox: Toolbox,
    /// Whether the model's server takes tools, once that was seen.
    takes_tools: Mutex<Option<bool>>,
    /// Held while that is learnt, so that the store is told in the same order.
    learning_tools: tokio::sync::Mutex<()>,
    /// For each audience and offer: without tools, with those there are, and for a server that takes none.
    preambles: [[[Arc<Preamble>; 3]; Offer::EACH.len()]; Audience::ALL.len()],
    /// Cancelled when nothing new may begin.
    pub(crate) stop: CancellationToken,
    /// What must end before the gateway does.
    tasks: TaskTracker,
    /// What the admins have been told of parked messages.
    told: parked::Told,
    /// Where messages are taken in that come of a turn.
    intake: OnceLock<Weak<Dispatcher>>,
}

/// What a gateway is made of.
pub struct Parts<'a> {
    pub home: &'a Path,
    pub store: Store,
    pub stack: Stack,
    pub model: Arc<dyn Model>,
    pub front: Arc<dyn Front>,
    pub ledger: Ledger,
    pub config: Config,
    pub library: Library,
    pub calibration: Calibration,
    /// Whether the model's server takes tools, where that was seen before.
    pub takes_tools: Option<bool>,
    pub prompts: Prompts,
    pub mra: Mra,
    pub seeder: Option<Seeder>,
    /// Loads the arms of experiments.
    pub load: Load,
}

impl Gateway {
    /// Puts the parts together.
    pub fn new(parts: Parts<'_>, stop: CancellationToken) -> Arc<Gateway> {
        let toolbox = parts.config.tools.toolbox(parts.model.has_tools());
        let has_tools = parts.model.has_tools();
        let preambles = Audience::ALL.map(|audience| {
            Offer::EACH.map(|offer| {
                let tools = if has_tools { directive::tools::definitions(offer) } else { vec![] };
                let system = parts.prompts.system(audience, toolbox, offer);
                let fenced = Preamble::without_tools(parts.prompts.system(audience, Toolbox::Fenced, offer));
                [Preamble::new(system.clone(), []), Preamble::new(system, tools), fenced].map(Arc::new)
            })
        });
        let min_gap = Duration::from_secs_f64(parts.config.limits.progress_seconds);
        Arc::new(Gateway {
            home: parts.home.to_owned(),
            store: parts.store,
            policies: Policies::new(&parts.stack),
            toolbox,
            takes_tools: Mutex::new(parts.takes_tools),
            learning_tools: tokio::sync::Mutex::default(),
            preambles,
            model: parts.model,
            front: parts.front,
            ledger: parts.ledger,
            say: Say::new(parts.config.language),
            people: Watched::new(parts.home, &parts.config),
            experiment: Live::new(parts.load),
            questions: Questions::default(),
            config: parts.config,
            mra: parts.mra,
            seeder: parts.seeder.map(Arc::new),
            updates: Updates::new(progress::Settings { min_gap, ..progress::Settings::default() }),
            judging: tokio::sync::Mutex::default(),
            tracking: tokio::sync::Mutex::default(),
            library: Arc::new(Mutex::new(parts.library)),
            calibration: Mutex::new(parts.calibration),
            stop,
            tasks: TaskTracker::new(),
            told: parked::Told::default(),
            intake: OnceLock::new(),
        })
    }

    /// What hands the messages of this gateway to its turns.
    pub fn dispatcher(self: &Arc<Self>) -> Arc<Dispatcher> {
        let turns = Arc::clone(self) as Arc<dyn Turns>;
        let dispatcher =
            Dispatcher::new(turns, self.store.clone(), self.config.queue, self.tasks.clone(), self.stop.clone());
        // The first serves; there is only one.
        let _ = self.intake.set(Arc::downgrade(&dispatcher));
        dispatcher
    }

    /// Takes a message in that a turn has made, as one from outside.
    ///
    /// # Errors
    /// It is not stored.
    pub(crate) async fn take_in(&self, message: Inbound) -> Result<(), StoreError> {
        match self.intake.get().and_then(Weak::upgrade) {
            Some(dispatcher) => dispatcher.take_in(message).await.map(drop),
            // The gateway ends: it is found in the inbox at the next start.
            None => self.store.accept(&message, clock::now_ms()).await.map(drop),
        }
    }

    /// Goes on with whatever an earlier run left unfinished, takes messages in until the front's input ends or
    /// the gateway is stopped, and lets the turns that have begun finish.
    ///
    /// # Errors
    /// The front or the store cannot go on.
    pub async fn run(self: &Arc<Self>, dispatcher: &Arc<Dispatcher>) -> Result<(), Failure> {
        panics::note_places();
        self.experiment.follow(self).await;
        let sweeping = dispatcher.start().await?;
        let following = tokio::spawn(follow(Arc::clone(self)));
        let door = Door { gateway: Arc::clone(self), dispatcher: Arc::clone(dispatcher) };
        let listened = self.front.listen(&door, self.stop.clone()).await;
        // They hold the gateway, which writes its last events when it goes.
        for task in [following, sweeping] {
            task.abort();
            let _ = task.await;
        }
        dispatcher.drain().await?;
        match listened {
            Ok(()) | Err(FrontError::Closed) => Ok(()),
            Err(FrontError::Fatal { what, hint }) => Err(Failure::new(what).hint(hint)),
            Err(error) => Err(Failure::new(error)),
        }
    }

    /// How the model's window is shared out for a conversation now, beside this preamble.
    pub(crate) fn room(&self, session: SessionId, preamble: &Preamble) -> Room {
        Room::calibrated(self.model.window(), preamble.tokens, session, &self.calibration(), clock::now_ms())
    }

    /// What is known of how the model counts.
    pub(crate) fn calibration(&self) -> MutexGuard<'_, Calibration> {
        // Sums and anchors are whole after each of its methods.
        self.calibration.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the admins of gateway.json something, beside whatever else is going on. A message that does not
    /// reach them is only logged: the ledger has it, too.
    pub(crate) fn tell_admins(&self, text: String) {
        for admin in self.admins() {
            let (front, text) = (Arc::clone(&self.front), text.clone());
            self.tasks.spawn(async move { tell_admin(&*front, admin, text).await });
        }
    }

    /// The same, and whether it has reached any of them.
    pub(crate) async fn reach_admins(&self, text: &str) -> bool {
        let told = self.admins().into_iter().map(|admin| tell_admin(&*self.front, admin, text.to_owned()));
        futures_util::future::join_all(told).await.contains(&true)
    }

    /// Does something with the knowledge base, which blocks on the disk.
    ///
    /// # Errors
    /// The work's own.
    pub(crate) async fn with_library<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Library) -> Result<T, LibraryError> + Send + 'static,
    ) -> Result<T, LibraryError> {
        let library = Arc::clone(&self.library);
        tokio::task::spawn_blocking(move || {
            // The library keeps nothing that a panic could leave half changed: files and cache are.
            work(&mut library.lock().unwrap_or_else(PoisonError::into_inner))
        })
        .await
        .expect("the knowledge base does not panic")
    }

    /// How it does, for an operator.
    pub(crate) fn report(&self) -> Report {
        Report { connection: self.front.connection(), ledger: self.ledger.trouble() }
    }

    /// Does something that nobody waits for, except the gateway before it ends.
    pub(crate) fn aside(&self, work: impl FnOnce() + Send + 'static) {
        self.tasks.spawn_blocking(work);
    }
}

async fn tell_admin(front: &dyn Front, admin: String, text: String) -> bool {
    // A direct message: Slack takes the user's id for the channel.
    let (reply_to, speech) = (ReplyTo { channel: admin, thread_ts: None }, Speech { text, pings: vec![] });
    let told = front.deliver(Delivery::notice("", &reply_to, &speech)).await;
    if let Err(error) = &told {
        tracing::warn!(admin = reply_to.channel, %error, "an admin was not told");
    }
    told.is_ok()
}

/// Looks now and then whether gateway.json begins an experiment, or ends one.
async fn follow(gateway: Arc<Gateway>) {
    loop {
        tokio::time::sleep(live::LOOK_EVERY).await;
        gateway.experiment.follow(&gateway).await;
    }
}

#[async_trait]
impl Turns for Gateway {
    async fn run(&self, batch: &Batch) -> Result<(), Stuck> {
        turn::run(self, batch).await
    }

    async fn tell_parked(&self, parked: &Parked) -> bool {
        parked::tell(self, parked).await
    }

    fn note(&self, event: Event) {
        self.ledger.note(event);
    }
}

/// Where the front hands in what people say and do.
struct Door {
    gateway: Arc<Gateway>,
    dispatcher: Arc<Dispatcher>,
}

#[async_trait]
impl Intake for Door {
    async fn accept(&self, message: Inbound) -> Result<Accepted, StoreError> {
        self.dispatcher.take_in(message).await
    }

    async fn react(&self, reaction: Reaction) -> Result<(), ReactError> {
        let action = match Verdict::of_reaction(&reaction.reaction) {
            Some(_) => Action::Judge,
            None if signals::opinion(&reaction.reaction).is_some() => Action::Vote,
            // Most say nothing here.
            None => return Ok(()),
        };
        if !self.gateway.may(&reaction.user, action, Some(&reaction.channel)).is_allowed() {
            return Ok(());
        }
        signals::react(&self.gateway, &reaction).await;
        proposal::judge(&self.gateway, &self.dispatcher, &reaction).await?;
        Ok(verdict::judge(&self.gateway, reaction).await?)
    }

    fn invoke(&self, Invocation { user, channel }: Invocation) {
        if self.gateway.may(&user, Action::Interact, channel.as_deref()).is_allowed() {
            tracing::debug!(user, "nothing here handles a click");
        }
    }

    fn notice(&self, notice: Notice) {
        notice::take(&self.gateway, notice);
    }
}
