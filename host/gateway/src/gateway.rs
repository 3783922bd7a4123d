//! The running gateway: takes messages in, and works on many conversations at once, one turn at a time
//! in each.

use std::{
    collections::{HashMap, VecDeque},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use pmk_core::SessionKey;
use pmk_policy::Stack;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    audience::{Audience, Prompts, Toolbox},
    calibration::Calibration,
    clock,
    config::{Config, QueueConfig, QueueMode, Watched},
    directive,
    error::Failure,
    experiment::{
        arms::Load,
        live::{self, Live},
        signals::{self, Questions},
    },
    front::{Accepted, Delivery, Front, FrontError, Inbound, Intake, Reaction, ReplyTo, Speech},
    knowledge::{Library, LibraryError, Seeder},
    ledger::Ledger,
    model::{Model, Tool},
    mra::Mra,
    policies::Policies,
    progress::{self, Updates},
    say::Say,
    store::{InboxId, SessionId, Store, StoreError},
    turn::{self, Preamble, Room},
};

mod verdict;

/// Turns that run at once; more wait their turn.
pub const MAX_RUNNING_TURNS: usize = 256;

/// How often messages that keep coming put off an answer.
const MAX_DEBOUNCES: usize = 10;

/// How long running turns get to finish once the gateway is told to stop.
pub const DRAIN_TIME: Duration = Duration::from_secs(30);

/// Everything a turn needs.
pub struct Gateway {
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
    /// Held while an atom gets its notice or its verdict.
    pub(crate) judging: tokio::sync::Mutex<()>,
    library: Arc<Mutex<Library>>,
    calibration: Mutex<Calibration>,
    toolbox: Toolbox,
    /// For each audience, without tools and with those there are.
    preambles: [[Arc<Preamble>; 2]; Audience::ALL.len()],
    /// Cancelled when nothing new may begin.
    pub(crate) stop: CancellationToken,
    queues: Mutex<HashMap<SessionKey, VecDeque<Waiting>>>,
    workers: TaskTracker,
    running: Semaphore,
}

/// A stored message that waits for its turn.
struct Waiting {
    inbox: InboxId,
    ts: String,
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
        let tools: Arc<[Tool]> =
            if parts.model.has_tools() { directive::tools::definitions().into() } else { [].into() };
        let preambles = Audience::ALL.map(|audience| {
            let system = parts.prompts.system(audience, toolbox);
            [[].into(), Arc::clone(&tools)].map(|tools| Arc::new(Preamble::new(system.clone(), tools)))
        });
        Arc::new(Gateway {
            store: parts.store,
            policies: Policies::new(&parts.stack),
            toolbox,
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
            updates: Updates::new(progress::Settings::default()),
            judging: tokio::sync::Mutex::default(),
            library: Arc::new(Mutex::new(parts.library)),
            calibration: Mutex::new(parts.calibration),
            stop,
            queues: Mutex::default(),
            workers: TaskTracker::new(),
            running: Semaphore::new(MAX_RUNNING_TURNS),
        })
    }

    /// Goes on with whatever an earlier run left unfinished, takes messages in until the front's input ends or
    /// the gateway is stopped, and lets the turns that have begun finish.
    ///
    /// # Errors
    /// The front or the store cannot go on.
    pub async fn run(self: &Arc<Self>) -> Result<(), Failure> {
        self.experiment.follow(self).await;
        // The store gives them in order, and they go before whatever comes in now.
        for pending in self.store.open_work().await? {
            self.enqueue(pending.key, Waiting { inbox: pending.inbox, ts: String::new() });
        }
        let following = tokio::spawn(follow(Arc::clone(self)));
        let listened = self.front.listen(&Door(Arc::clone(self)), self.stop.clone()).await;
        following.abort();
        // It holds the gateway, which writes its last events when it goes.
        let _ = following.await;
        let drained = self.drain().await;
        match listened {
            Ok(()) | Err(FrontError::Closed) => drained,
            Err(FrontError::Fatal { what, hint }) => Err(Failure::new(what).hint(hint)),
            Err(error) => Err(Failure::new(error)),
        }
    }

    /// Whether the model asks for things by tool calls rather than by fenced directives.
    pub(crate) fn uses_tools(&self) -> bool {
        self.toolbox == Toolbox::Native
    }

    /// What the model is told about itself, its readers and, where it may call any, its tools.
    pub(crate) fn preamble(&self, audience: Audience, with_tools: bool) -> Arc<Preamble> {
        Arc::clone(&self.preambles[audience as usize][usize::from(with_tools)])
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
        let speech = Speech { text, pings: vec![] };
        for admin in &self.people.now().admins {
            let (front, speech) = (Arc::clone(&self.front), speech.clone());
            // A direct message: Slack takes the user's id for the channel.
            let reply_to = ReplyTo { channel: admin.clone(), thread_ts: None };
            self.workers.spawn(async move {
                if let Err(error) = front.deliver(Delivery::notice("", &reply_to, &speech)).await {
                    tracing::warn!(admin = reply_to.channel, %error, "an admin was not told");
                }
            });
        }
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

    /// Does something that nobody waits for, except the gateway before it ends.
    pub(crate) fn aside(&self, work: impl FnOnce() + Send + 'static) {
        self.workers.spawn_blocking(work);
    }

    /// Waits for the turns: all of them at the end of the input, those that have begun when stopped.
    async fn drain(&self) -> Result<(), Failure> {
        self.workers.close();
        let stopped = async {
            self.stop.cancelled().await;
            tokio::time::sleep(DRAIN_TIME).await;
        };
        tokio::select! {
            () = self.workers.wait() => Ok(()),
            () = stopped => Err(Failure::new(format!(
                "{} conversations did not finish within {} s",
                self.workers.len(),
                DRAIN_TIME.as_secs()
            ))
            .hint("they are stored and go on at the next start")),
        }
    }

    fn lock_queues(&self) -> MutexGuard<'_, HashMap<SessionKey, VecDeque<Waiting>>> {
        // A queue is never left half changed, so a panic elsewhere does not spoil it.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message in the queue of its conversation, and gives the conversation a worker if it has none.
    fn enqueue(self: &Arc<Self>, key: SessionKey, waiting: Waiting) {
        let mut queues = self.lock_queues();
        if let Some(queue) = queues.get_mut(&key) {
            // Sockets do not keep order; Slack's ts does. Where there is none, arrival decides.
            let place = queue.iter().rposition(|other| other.ts <= waiting.ts).map_or(0, |at| at + 1);
            queue.insert(place, waiting);
            return;
        }
        queues.insert(key.clone(), VecDeque::from([waiting]));
        drop(queues);
        let gateway = Arc::clone(self);
        self.workers.spawn(async move { gateway.work(key).await });
    }

    /// Works through one conversation's queue, first in, first out.
    async fn work(self: Arc<Self>, key: SessionKey) {
        loop {
            let batch = self.next_batch(&key).await;
            if batch.is_empty() {
                return;
            }
            let Ok(_permit) = self.running.acquire().await else { return };
            if self.stop.is_cancelled() {
                // What has not begun stays in the inbox for the next start.
                self.lock_queues().remove(&key);
                return;
            }
            turn::run(&self, batch).await;
        }
    }

    /// What is to be answered next: one message, or under `collect` and `steer` those that have come, once no
    /// more are coming. Empty when the conversation has no messages left, and then no worker.
    async fn next_batch(&self, key: &SessionKey) -> Vec<InboxId> {
        let first = {
            let mut queues = self.lock_queues();
            match queues.get_mut(key).and_then(VecDeque::pop_front) {
                Some(first) => first,
                None => {
                    queues.remove(key);
                    return vec![];
                }
            }
        };
        let QueueConfig { mode, debounce_ms, most } = self.config.queue;
        let mut batch = vec![first.inbox];
        if mode != QueueMode::Sequential {
            let waiting = || self.lock_queues().get(key).map_or(0, VecDeque::len);
            let mut seen = waiting();
            for _ in 0..MAX_DEBOUNCES {
                tokio::select! {
                    () = self.stop.cancelled() => break,
                    () = tokio::time::sleep(Duration::from_millis(debounce_ms)) => {}
                }
                let now = waiting();
                if now == seen || now + 1 >= most {
                    break;
                }
                seen = now;
            }
            batch.extend(self.take_waiting(key, most - 1));
        }
        batch
    }

    /// Takes messages of a conversation that wait, at most so many.
    pub(crate) fn take_waiting(&self, key: &SessionKey, most: usize) -> Vec<InboxId> {
        let mut queues = self.lock_queues();
        let Some(queue) = queues.get_mut(key) else { return vec![] };
        let taken = queue.len().min(most);
        queue.drain(..taken).map(|waiting| waiting.inbox).collect()
    }
}

/// Looks now and then whether gateway.json begins an experiment, or ends one.
async fn follow(gateway: Arc<Gateway>) {
    loop {
        tokio::time::sleep(live::LOOK_EVERY).await;
        gateway.experiment.follow(&gateway).await;
    }
}

/// Takes messages in: stores them, then queues them.
struct Door(Arc<Gateway>);

#[async_trait]
impl Intake for Door {
    async fn accept(&self, message: Inbound) -> Result<Accepted, StoreError> {
        let Some(inbox) = self.0.store.accept(&message, clock::now_ms()).await? else {
            return Ok(Accepted::Duplicate);
        };
        self.0.enqueue(message.key, Waiting { inbox, ts: message.ts });
        Ok(Accepted::New)
    }

    async fn react(&self, reaction: Reaction) -> Result<(), LibraryError> {
        signals::react(&self.0, &reaction).await;
        verdict::judge(&self.0, reaction).await
    }
}
