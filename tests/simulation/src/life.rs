//! A life of the gateway, which is opened as by `run`, in a runtime with one thread: from its start until it is stopped
//! or killed.

use std::{
    path::PathBuf,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use pmk_host::{
    access::audience::Prompts,
    calibration::Calibration,
    config::Config,
    front::Front,
    gateway::Gateway,
    ledger::Ledger,
    messages::Messages,
    mra::{self, Mra},
    policies::TurnPolicies,
    presence::{Presence, health_check::HealthCheck, manager::Manager},
    services::{Parts, Services, SharedLibrary},
    store::{Opening, Place, Store},
};
use pmk_knowledge::Library;
use pmk_system::{clock::Clock, error::Failure, home, home::HomeLock, threads::Threads};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::{
    aging,
    damage::{self, Written},
    erasing,
    model::WorldsModel,
    policies::Policies,
    retrying,
    scenario::{Event, What},
    slack::{Slack, Wired},
    world::World,
};

/// The time within which everything begun is over after the last trouble: the longest wait there is, with a margin.
const SETTLES_WITHIN: u64 = 2 * 60 * 60 * 1_000;

/// The time within which a gateway that starts when all is well has read back what it missed, in milliseconds.
const READS_BACK_WITHIN: u64 = 60_000;

/// How a life ended.
#[derive(Debug)]
pub enum End {
    Killed,
    /// It was asked to stop, or there was nothing left to do.
    Asked {
        is_over: bool,
    },
    /// It ended with an error.
    Failed(String),
}

/// The environment of a gateway.
pub struct Site<'a> {
    pub world: &'a Arc<World>,
    pub slack: &'a Arc<Slack>,
    pub policies: &'a Policies,
    pub home: PathBuf,
    /// The location of its store.
    pub place: Place,
}

/// A gateway from its start to its end, in a separate runtime.
pub struct Life<'a> {
    world: &'a World,
    goes_on: Pin<Box<dyn Future<Output = (End, Option<Written>)> + 'a>>,
    has_begun: bool,
    // Dropped after what runs in it.
    runtime: Runtime,
}

impl<'a> Life<'a> {
    pub fn begin(site: &'a Site<'_>) -> Life<'a> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        let goes_on = Box::pin(async move {
            let killed = async {
                site.world.killed().await;
                damage::written(&site.home)
            };
            tokio::select! {
                biased;
                written = killed => (End::Killed, Some(written)),
                served = serve(site) => (served.unwrap_or_else(|failure| End::Failed(failure.message().to_owned())), None),
            }
        });
        Life { world: site.world, goes_on, has_begun: false, runtime }
    }

    /// Continues until the world reaches this age, or to the end of the life; returns how it ended, if it did.
    pub fn go_on(mut self, until: Option<u64>) -> Result<Life<'a>, End> {
        self.world.runs(true);
        let ended = self.runtime.block_on(async {
            match self.has_begun {
                true => self.world.catch_up().await,
                false => self.world.begin_life(),
            }
            let is_time = self.world.until(until.unwrap_or_default());
            let ended = tokio::select! {
                biased;
                ended = &mut self.goes_on => ended,
                // A gateway that was killed at this very moment notices.
                () = is_time, if until.is_some() => match self.world.is_dead() {
                    true => (&mut self.goes_on).await,
                    false => return None,
                },
            };
            self.world.end_life();
            Some(ended)
        });
        self.world.runs(false);
        self.has_begun = true;
        let Some((end, written)) = ended else { return Ok(self) };
        // A killed process has not cleaned anything up.
        drop(self);
        if let Some(written) = written {
            written.and_no_more();
        }
        Err(end)
    }
}

async fn serve(site: &Site<'_>) -> Result<End, Failure> {
    let Site { world, slack, policies, home, place } = site;
    retrying::retry_before(world, slack, place).await;
    let lock = HomeLock::take(home)?;
    let (config, _) = Config::load(home)?;
    let (time, pace) = (Arc::clone(world), Arc::clone(world));
    let clock = Clock::of(move || time.clock());
    let threads = Threads::None(Arc::new(move || pace.pace()));
    let store = Store::open_with(place.clone(), &Opening { clock: clock.clone(), threads: threads.clone() })?;
    let last_sign = store.take_over(&lock).await?;
    slack.speaks(home, store.fence());
    let front: Arc<dyn Front> = match world.scenario.setting.wired {
        Some(_) => {
            let wired = Wired::connect(slack, store.fence(), config.language).await;
            Arc::new(wired.map_err(|error| Failure::new(error.to_string()))?)
        }
        None => Arc::<Slack>::clone(slack),
    };
    let learnt = store.calibration("simulated", "oracle").await?;
    let takes_tools = store.takes_tools("simulated", "oracle").await?;
    let library = Library::open(home).map_err(Failure::new)?;
    let ledger = Ledger::open_with(Arc::new(store.clone()), home::gateway_dir(home), threads);
    let (prompts, _) = Prompts::load(home);
    let stop = CancellationToken::new();
    let arm = policies.stack(world.scenario.setting.arm.unwrap_or_default());
    let chosen_at = world.time();
    let parts = Parts {
        home,
        clock,
        store: store.clone(),
        stack: policies.stack(world.serving()),
        model: Arc::new(WorldsModel::new(Arc::clone(world))),
        front,
        ledger,
        library: SharedLibrary::new(library),
        calibration: Calibration::new(learnt.fit, learnt.bounds),
        takes_tools,
        prompts: prompts.speaking(config.language),
        mra: Mra::new(mra::Config::default()),
        seeder: None,
        load: Arc::new(move |_, _| Ok(arm.clone())),
        config,
    };
    let services = Services::new(parts, stop.clone());
    let gateway = Gateway::new(&services);
    let presence = match world.scenario.setting.presence {
        true => {
            let vitals = HealthCheck::starting(home);
            let manager = Manager::of_environment(Arc::clone(&vitals), Messages::new(services.config.language));
            Some(Presence::begin(home, gateway.presence(vitals, Arc::new(manager)), last_sign).await?)
        }
        false => None,
    };
    let ran = tokio::select! {
        biased;
        how = store.lost() => {
            stop.cancel();
            services.take_back().await;
            Err(Failure::new(how))
        }
        why = gateway.cut_off(), if store.is_shared() => Err(why),
        // A gateway that ends with an error is over, whatever else was planned for this life.
        ran = async {
            let conducted = async { Ok(conduct(world, slack, &store, &stop).await) };
            tokio::select! {
                biased;
                done = async { tokio::try_join!(run(&gateway, presence.as_deref(), &stop), conducted) } => done,
                never = swap(world, policies, &services, chosen_at) => never,
                never = erasing::keep_erasing(world, slack, place) => never,
                never = retrying::keep_retrying(world, slack, place, gateway.dispatcher()) => never,
                never = aging::keep_watching(world, slack, home) => never,
            }
        } => ran.map(|((), is_over)| is_over),
    };
    ran.map(|is_over| End::Asked { is_over })
}

/// Runs the gateway, and announces its start and end.
async fn run(gateway: &Gateway, presence: Option<&Presence>, stop: &CancellationToken) -> Result<(), Failure> {
    let Some(presence) = presence else { return gateway.run().await };
    let mut running = pin!(gateway.run());
    tokio::select! {
        biased;
        ran = &mut running => ran,
        () = stop.cancelled() => tokio::join!(presence.leave(), running).1,
        never = presence.keep() => match never {},
    }
}

/// Swaps policies when it is due; swaps that were due during the start happen at once.
async fn swap(world: &World, policies: &Policies, services: &Services, chosen_at: u64) -> ! {
    for event in world.scenario.events.iter().filter(|event| event.at > chosen_at) {
        if let What::Swap(to) = event.what {
            world.until(event.at).await;
            world.say(|| format!("{to:?} take over"));
            services.policies.swap(TurnPolicies::new(&policies.stack(to)));
        }
    }
    std::future::pending().await
}

/// Stops it when that is planned, or when everything is done; returns whether everything is.
async fn conduct(world: &World, slack: &Slack, store: &Store, stop: &CancellationToken) -> bool {
    let begun = world.time();
    let is_asked = |event: &&Event| matches!(event.what, What::Restart) && event.number % world.hosts() == world.host();
    let next = world.scenario.events.iter().filter(is_asked).map(|event| event.at).find(|&at| at > begun);
    let watch = async {
        // One that has just started may still be about to read back what it missed.
        let settled = if world.scenario.setting.presence { begun + READS_BACK_WITHIN } else { begun };
        world.until(world.scenario.ends_at().max(settled)).await;
        let since = world.time().max(world.scenario.ends_at());
        loop {
            let open = what_is_open(slack, store).await;
            world.rests(open.is_none());
            if world.is_over() {
                return;
            }
            if world.time() > since + SETTLES_WITHIN {
                let open = open.as_deref().unwrap_or("another host finds no rest");
                world.breach(format!("long after nothing goes wrong any more, {open}"));
                return;
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    };
    let is_over = tokio::select! {
        biased;
        () = stop.cancelled() => false,
        () = world.until(next.unwrap_or(u64::MAX)), if next.is_some() => false,
        () = watch => true,
    };
    stop.cancel();
    is_over
}

/// What is not done yet; `None` if everything is done.
async fn what_is_open(slack: &Slack, store: &Store) -> Option<String> {
    if !slack.is_quiet() {
        return Some("Slack still sends".to_owned());
    }
    let (Ok(open), Ok(parked)) = (store.open_work().await, store.parked().await) else {
        return Some("the store cannot be read".to_owned());
    };
    if let Some(pending) = open.pending.first() {
        return Some(format!("{} is stuck", pending.key));
    }
    if let Some((_, why)) = open.unreadable.first() {
        return Some(format!("a question cannot be read: {why}"));
    }
    let untold = parked.iter().find(|parked| !parked.told)?;
    Some(format!("nobody was told of what is parked in {}: {}", untold.key, untold.why))
}
