//! What operators have retried: parked messages, as `sessions retry` does, by the running gateway or, before one starts or
//! where others run, by a process of its own.

use std::{
    collections::BTreeSet,
    future::pending,
    sync::{Arc, Mutex, PoisonError},
};

use pmk_core::SessionKey;
use pmk_host::{
    dispatch::Dispatcher,
    store::{Opening, Place, Store, StoreError, Unparked},
};
use pmk_system::{clock::Clock, threads::Threads};

use crate::{
    deeds,
    random::{dice, one_of},
    scenario::{Trouble, What},
    slack::Slack,
    world::World,
};

/// Worlds of smaller seeds are known from before anything was retried, and stay as they were.
const FIRST: u64 = 2_600;

/// The same of worlds of several hosts.
const FIRST_OF_SEVERAL: u64 = 7_000;

/// The last command is given within this time after the last trouble, in milliseconds: when all is well.
const WHEN_ALL_IS_WELL: u64 = 30 * 60_000;
const WHEN_ALL_IS_WELL_OF_SEVERAL: u64 = 30_000;

/// What is to be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// What is parked in the conversation of this question.
    Of(usize),
    All,
}

/// Whether anything is retried in the world of this seed. None of the seeds that were kept before ends in these digits.
fn is_in(seed: u64, hosts: usize) -> bool {
    let first = if hosts > 1 { FIRST_OF_SEVERAL } else { FIRST };
    seed >= first && matches!(seed % 10, 7 | 8) && !matches!(seed / 10 % 10, 1 | 2 | 9)
}

/// Trouble that has messages parked: Slack takes nothing in some places for as long as it takes to give a message up.
pub fn trouble(seed: u64, events: &[(u64, What)]) -> Vec<(u64, What)> {
    let asked = deeds::asked(events);
    if !is_in(seed, 1) || asked.is_empty() {
        return vec![];
    }
    let mut rng = dice(seed, "parking");
    let trouble = (0..rng.usize(1..4)).map(|_| {
        let (_, asked_at) = one_of(&mut rng, &asked);
        let lasts = rng.u64(20 * 60_000..40 * 60_000);
        (asked_at, What::Trouble { kind: Trouble::PlaceDown, lasts, percent: 100 })
    });
    trouble.collect()
}

/// The commands in a world with these questions.
pub fn of(seed: u64, hosts: usize, events: &[(u64, What)], calm_at: u64) -> Vec<(u64, What)> {
    let asked = deeds::asked(events);
    if !is_in(seed, hosts) || asked.is_empty() {
        return vec![];
    }
    let mut rng = dice(seed, "retrying");
    let mut commands: Vec<(u64, What)> = (0..rng.usize(1..8))
        .map(|_| {
            let (about, asked_at) = one_of(&mut rng, &asked);
            let at = asked_at + rng.u64(0..calm_at.saturating_sub(asked_at).max(1));
            (at, What::Retries(if rng.bool() { Wanted::Of(about) } else { Wanted::All }))
        })
        .collect();
    let within = if hosts > 1 { WHEN_ALL_IS_WELL_OF_SEVERAL } else { WHEN_ALL_IS_WELL };
    commands.push((calm_at + rng.u64(0..within), What::Retries(Wanted::All)));
    commands
}

/// The numbers of the commands that were given.
#[derive(Default)]
pub struct Given(Mutex<BTreeSet<usize>>);

impl Given {
    fn is(&self, number: usize) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&number)
    }

    fn gives(&self, number: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(number);
    }
}

/// A command, with the number and the time of its event.
#[derive(Clone, Copy)]
struct Command {
    number: usize,
    at: u64,
    wanted: Wanted,
}

/// The commands of the running host's machine that were not given yet, in order.
fn to_give(world: &World) -> Vec<Command> {
    let commands = world.scenario.events.iter().filter_map(|event| match event.what {
        What::Retries(wanted) => Some(Command { number: event.number, at: event.at, wanted }),
        _ => None,
    });
    let is_ours = |command: &Command| world.machine_of(command.number) == world.host();
    commands.filter(is_ours).filter(|command| !world.retried.is(command.number)).collect()
}

/// Gives the commands that were due while no gateway ran on the machine, before one starts: what they reopen, it finds.
pub async fn retry_before(world: &Arc<World>, slack: &Slack, place: &Place) {
    let now = world.time();
    for command in to_give(world).into_iter().filter(|command| command.at <= now) {
        let Ok(key) = command.key(slack) else { continue };
        command.done(world, apart(world, place, key.as_ref()).await);
    }
}

/// Gives the commands to the running gateway when they are due; of several hosts, some by a process of its own.
pub async fn keep_retrying(world: &Arc<World>, slack: &Slack, place: &Place, dispatcher: &Arc<Dispatcher>) -> ! {
    for command in to_give(world) {
        world.until(command.at).await;
        let Ok(key) = command.key(slack) else { continue };
        let is_apart = world.hosts() > 1 && world.dice("retried apart").u8(0..3) == 0;
        let outcome = match is_apart {
            true => apart(world, place, key.as_ref()).await,
            false => dispatcher.retry(key.as_ref()).await,
        };
        command.done(world, outcome);
    }
    pending().await
}

/// Retries them by another process: the gateway's store knows nothing of what this one changes.
async fn apart(world: &Arc<World>, place: &Place, key: Option<&SessionKey>) -> Result<Unparked, StoreError> {
    let (time, pace) = (Arc::clone(world), Arc::clone(world));
    let clock = Clock::of(move || time.clock());
    let threads = Threads::None(Arc::new(move || pace.pace()));
    Store::open_with(place.clone(), &Opening { clock, threads })?.reopen(key, world.clock()).await
}

/// Nothing was asked in the conversation that is to be retried.
struct Unknown;

impl Command {
    /// The conversation to retry; `None` for all.
    fn key(&self, slack: &Slack) -> Result<Option<SessionKey>, Unknown> {
        let Wanted::Of(number) = self.wanted else { return Ok(None) };
        let asked = slack.questions().into_iter().find(|question| question.number == number);
        asked.map(|question| Some(question.inbound.key)).ok_or(Unknown)
    }

    fn done(&self, world: &World, outcome: Result<Unparked, StoreError>) {
        world.retried.gives(self.number);
        match outcome {
            Ok(unparked) => world.say(|| format!("{} messages are retried", unparked.messages())),
            // They stay parked.
            Err(_) => world.say(|| "nothing is retried".to_owned()),
        }
    }
}
