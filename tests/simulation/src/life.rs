//! The gateway, opened as `run` opens it, in a runtime of one thread: started, killed, started again.

use std::{path::Path, pin::pin, sync::Arc, time::Duration};

use pmk_host::{
    audience::Prompts,
    calibration::Calibration,
    config::Config,
    gateway::Gateway,
    ledger::Ledger,
    messages::Messages,
    mra::{self, Mra},
    presence::{self, Presence, manager::Manager, vitals::Vitals},
    services::{Parts, Services, SharedLibrary},
    store::{Opening, Store},
};
use pmk_knowledge::Library;
use pmk_system::{clock::Clock, error::Failure, home, home::HomeLock, threads::Threads};
use tokio_util::sync::CancellationToken;

use crate::{damage, disk, model::WorldsModel, policies::Policies, scenario::What, slack::Slack, world::World};

/// How often a process is started at most once nothing goes wrong any more.
const MOST_LIVES: usize = 5;

/// What was begun when nothing goes wrong any more is over after this: the longest wait there is, and some more.
const SETTLES_WITHIN: u64 = 2 * 60 * 60 * 1_000;

/// How a life has ended.
#[derive(Debug)]
enum End {
    Killed,
    /// It was asked to end, or nothing is left to be done.
    Asked {
        is_over: bool,
    },
    /// It gave up.
    Failed(String),
}

/// Lives until everything was answered that ever will be.
pub fn live(world: &Arc<World>, slack: &Arc<Slack>, home: &Path, policies: &Policies) {
    let judge = Arc::clone(world);
    let _disk = disk::behave(move |doing| judge.disk(doing));
    let (mut calm_lives, mut damaged) = (0, vec![]);
    while calm_lives < MOST_LIVES {
        calm_lives += usize::from(world.time() > world.scenario.calm_at);
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        let (end, written) = runtime.block_on(async {
            world.begin_life();
            let killed = async {
                world.killed().await;
                damage::written(home)
            };
            let end = tokio::select! {
                biased;
                written = killed => (End::Killed, Some(written)),
                served = serve(world, slack, home, policies) => {
                    (served.unwrap_or_else(|failure| End::Failed(failure.message().to_owned())), None)
                }
            };
            world.end_life();
            end
        });
        // Whoever was killed has tidied nothing up.
        drop(runtime);
        if let Some(written) = written {
            written.and_no_more();
        }
        world.say(|| match &end {
            End::Failed(why) => format!("the gateway gives up: {why}"),
            end => format!("the life is over: {end:?}"),
        });
        slack.hang_up();
        if let End::Asked { is_over: true } = end {
            return;
        }
        let mut rest = world.dice("rest").u64(500..20_000);
        // Long enough for Slack to give up, where what it gives up is read back.
        if world.scenario.setting.presence && world.dice("long rest").u8(0..4) == 0 {
            rest += world.dice("long rest").u64(5..60) * 60_000;
        }
        world.pass(rest);
        slack.give_up();
        damage::damage(world, home, &mut damaged);
    }
    world.breach("it never came to rest, however often it was started".to_owned());
}

async fn serve(world: &Arc<World>, slack: &Arc<Slack>, home: &Path, policies: &Policies) -> Result<End, Failure> {
    let lock = HomeLock::take(home)?;
    let (config, _) = Config::load(home)?;
    let (time, pace) = (Arc::clone(world), Arc::clone(world));
    let clock = Clock::of(move || time.clock());
    let threads = Threads::None(Arc::new(move || pace.pace()));
    let store = Store::open_with(home, &Opening { clock: clock.clone(), threads: threads.clone() })?;
    store.take_over(&lock).await?;
    let learnt = store.calibration("simulated", "oracle").await?;
    let takes_tools = store.takes_tools("simulated", "oracle").await?;
    let library = Library::open(home).map_err(Failure::new)?;
    let ledger = Ledger::open_with(Arc::new(store.clone()), home::gateway_dir(home), threads);
    let (prompts, _) = Prompts::load(home);
    let stop = CancellationToken::new();
    let arm = policies.stack(world.scenario.setting.arm.unwrap_or_default());
    let parts = Parts {
        home,
        clock,
        store: store.clone(),
        stack: policies.stack(world.serving()),
        model: Arc::new(WorldsModel::new(Arc::clone(world))),
        front: Arc::<Slack>::clone(slack),
        ledger,
        library: SharedLibrary::new(library),
        calibration: Calibration::new(learnt.fit, learnt.bounds),
        takes_tools,
        prompts: prompts.speaking(config.language),
        mra: Mra::new(mra::Config::default()),
        seeder: None,
        load: Arc::new(move |_| Ok(arm.clone())),
        config,
    };
    let services = Services::new(parts, stop.clone());
    let gateway = Gateway::new(&services);
    let presence = match world.scenario.setting.presence {
        true => Some(Presence::begin(home, presence(home, &services, &gateway), None).await?),
        false => None,
    };
    let ran = tokio::select! {
        biased;
        how = store.lost() => Err(Failure::new(how)),
        // A gateway that gives up is over, whatever else was to come in its life.
        ran = async {
            let conducted = async { Ok(conduct(world, slack, &store, &stop).await) };
            tokio::select! {
                biased;
                done = async { tokio::try_join!(run(&gateway, presence.as_deref(), &stop), conducted) } => done,
                never = swap(world, policies, &services) => never,
            }
        } => ran.map(|((), is_over)| is_over),
    };
    ran.map(|is_over| End::Asked { is_over })
}

/// What presence needs of the world.
fn presence(home: &Path, services: &Services, gateway: &Gateway) -> presence::Ports {
    let vitals = Vitals::starting(home);
    let manager = Manager::of_environment(Arc::clone(&vitals), Messages::new(services.config.language));
    presence::Ports {
        clock: services.clock.clone(),
        store: services.store.clone(),
        front: Arc::clone(&services.front),
        ledger: services.ledger.clone(),
        people: Arc::clone(&services.people),
        messages: Arc::clone(&services.messages),
        settings: services.config.presence,
        stop: services.stop.clone(),
        tasks: services.tasks.clone(),
        dispatcher: Arc::clone(gateway.dispatcher()),
        vitals,
        manager: Arc::new(manager),
    }
}

/// Runs it, and says that it is there and that it goes.
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

/// Has other policies take over when it is time.
async fn swap(world: &World, policies: &Policies, services: &Services) -> ! {
    let begun = world.time();
    for event in world.scenario.events.iter().filter(|event| event.at > begun) {
        if let What::Swap(to) = event.what {
            world.until(event.at).await;
            world.say(|| format!("{to:?} take over"));
            services.policies.swap(&policies.stack(to));
        }
    }
    std::future::pending().await
}

/// Has it end when it is asked to, or when all is done; whether all is.
async fn conduct(world: &World, slack: &Slack, store: &Store, stop: &CancellationToken) -> bool {
    let begun = world.time();
    let restarts = world.scenario.events.iter().filter(|event| matches!(event.what, What::Restart));
    let next = restarts.map(|event| event.at).find(|&at| at > begun);
    let watch = async {
        world.until(world.scenario.calm_at).await;
        let since = world.time().max(world.scenario.calm_at);
        loop {
            let Some(open) = what_is_open(slack, store).await else { return };
            if world.time() > since + SETTLES_WITHIN {
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

/// What is not done yet; `None` where everything is.
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
