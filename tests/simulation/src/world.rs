//! What a gateway lives in: time, trouble, and the moment it is killed.

use std::{
    collections::BTreeMap,
    future::pending,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fastrand::Rng;
use tokio::{sync::Notify, time::Instant};

use crate::{
    disk::{Doing, Verdict},
    random::dice,
    scenario::{Point, Scenario, Trouble, What},
    witness::Witness,
};

/// When every world begins: milliseconds since the epoch.
pub const EPOCH_MS: i64 = 1_750_000_000_000;

/// A world.
pub struct World {
    pub scenario: Scenario,
    state: Mutex<State>,
    /// Told when the process is killed.
    killed: Notify,
    /// Whether to say what happens.
    pub is_loud: bool,
    /// What people have changed by now.
    pub witness: Witness,
}

#[derive(Default)]
struct State {
    /// Milliseconds that went by before this life.
    before: u64,
    begun: Option<Instant>,
    /// How often the dice were thrown for something.
    throws: BTreeMap<String, u64>,
    /// How often what a kill waits for has happened, by the number of its event.
    reached: BTreeMap<usize, u32>,
    is_dead: bool,
    /// What was asked of Slack, and whether it is refused.
    refused: BTreeMap<String, bool>,
    /// What must never be, and was.
    breaches: Vec<String>,
}

impl World {
    pub fn new(scenario: Scenario, is_loud: bool) -> World {
        World { scenario, state: Mutex::default(), killed: Notify::new(), is_loud, witness: Witness::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds since the world began, which nobody can set.
    pub fn time(&self) -> u64 {
        let state = self.state();
        let here = state.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        state.before + u64::try_from(here.as_millis()).unwrap_or(u64::MAX)
    }

    /// What the machine's clock says: milliseconds since the epoch.
    pub fn clock(&self) -> i64 {
        let now = self.time();
        let set: i64 = self
            .scenario
            .events
            .iter()
            .filter(|event| event.at <= now)
            .map(|event| if let What::Clock { by } = event.what { by } else { 0 })
            .sum();
        EPOCH_MS + i64::try_from(now).unwrap_or(i64::MAX) + set
    }

    /// A life begins, in the runtime of whoever calls.
    pub fn begin_life(&self) {
        let mut state = self.state();
        state.begun = Some(Instant::now());
        state.is_dead = false;
    }

    /// It is over; whoever calls is in its runtime still.
    pub fn end_life(&self) {
        let before = self.time();
        let mut state = self.state();
        (state.before, state.begun) = (before, None);
    }

    /// Nobody lives for so long.
    pub fn pass(&self, time_ms: u64) {
        self.state().before += time_ms;
    }

    /// Waits until the world is so old.
    pub async fn until(&self, time: u64) {
        let now = self.time();
        if time > now {
            tokio::time::sleep(Duration::from_millis(time - now)).await;
        }
    }

    /// Waits until the process is killed.
    pub async fn killed(&self) {
        self.killed.notified().await;
    }

    /// Whether the process goes on, and has never been started again.
    pub fn is_in_its_first_life(&self) -> bool {
        let state = self.state();
        state.before == 0 && state.begun.is_some() && !state.is_dead
    }

    pub fn is_dead(&self) -> bool {
        self.state().is_dead
    }

    /// Dice for this.
    pub fn dice(&self, about: &str) -> Rng {
        let mut state = self.state();
        let throws = state.throws.entry(about.to_owned()).or_default();
        *throws += 1;
        dice(self.scenario.seed, (about, *throws))
    }

    /// How often this was asked before.
    pub fn count(&self, of: &str) -> u64 {
        let mut state = self.state();
        let times = state.throws.entry(of.to_owned()).or_default();
        *times += 1;
        *times - 1
    }

    /// The policies that serve now: those of the last swap.
    pub fn serving(&self) -> &'static [&'static str] {
        let now = self.time();
        let swaps = self.scenario.events.iter().filter(|event| event.at <= now);
        let mut to = swaps.filter_map(|event| if let What::Swap(to) = event.what { Some(to) } else { None });
        to.next_back().unwrap_or(self.scenario.setting.policies)
    }

    /// Whether this trouble strikes now.
    pub fn strikes(&self, trouble: Trouble) -> bool {
        let now = self.time();
        let windows = self.scenario.events.iter().filter(|event| event.at <= now);
        let hits = windows.filter_map(|event| match event.what {
            What::Trouble { kind, lasts, percent } if kind == trouble && now < event.at + lasts => {
                Some((event.number, percent))
            }
            _ => None,
        });
        hits.into_iter().any(|(number, percent)| self.dice(&format!("trouble {number}")).u8(0..100) < percent)
    }

    /// Whether this is refused, now and for ever.
    pub fn refuses(&self, what: &str) -> bool {
        if let Some(&known) = self.state().refused.get(what) {
            return known;
        }
        let refuses = self.strikes(Trouble::Refuses);
        self.state().refused.insert(what.to_owned(), refuses);
        refuses
    }

    /// Whether nothing works in this place now.
    pub fn is_down(&self, channel: &str) -> bool {
        let now = self.time();
        self.scenario.events.iter().any(|event| match event.what {
            What::Trouble { kind: Trouble::PlaceDown, lasts, .. } => {
                event.at <= now
                    && now < event.at + lasts
                    && dice(self.scenario.seed, ("down", event.number, channel)).u8(0..3) == 0
            }
            _ => false,
        })
    }

    /// The process comes to this point; whether it is killed there, or was before.
    pub fn comes_to(&self, point: Point) -> bool {
        let now = self.time();
        let mut state = self.state();
        if state.is_dead {
            return true;
        }
        for event in self.scenario.events.iter().filter(|event| event.at <= now) {
            let What::Kill { point: at, times } = event.what else { continue };
            if at != point {
                continue;
            }
            let reached = state.reached.entry(event.number).or_default();
            *reached += 1;
            if *reached == times {
                state.is_dead = true;
            }
        }
        let is_dead = state.is_dead;
        drop(state);
        if is_dead {
            self.say(|| format!("killed at {point:?}"));
            self.killed.notify_one();
        }
        is_dead
    }

    /// The same for what can wait: who is killed never comes back.
    pub async fn step(&self, point: Point) {
        if self.comes_to(point) {
            pending::<()>().await;
        }
    }

    /// What the disk does.
    pub fn disk(&self, doing: Doing) -> Verdict {
        if self.is_dead() {
            return if doing == Doing::Read { Verdict::Fine } else { Verdict::Broken };
        }
        match doing {
            Doing::Read if self.strikes(Trouble::DiskUnread) => Verdict::Broken,
            Doing::Write if self.comes_to(Point::DiskWrite) => Verdict::Broken,
            Doing::Write if self.strikes(Trouble::DiskFull) => Verdict::Full,
            Doing::Sync if self.comes_to(Point::DiskSync) => Verdict::Broken,
            Doing::Sync if self.strikes(Trouble::DiskBroken) => Verdict::Broken,
            _ => Verdict::Fine,
        }
    }

    /// How long a commit takes.
    pub fn pace(&self) -> Duration {
        let mut rng = self.dice("pace");
        match self.strikes(Trouble::DiskSlow) {
            true => Duration::from_millis(rng.u64(0..4_000)),
            false => Duration::from_millis(rng.u64(0..3)),
        }
    }

    /// Something is as it must never be.
    pub fn breach(&self, what: String) {
        self.say(|| format!("BREACH {what}"));
        self.state().breaches.push(what);
    }

    pub fn breaches(&self) -> Vec<String> {
        self.state().breaches.clone()
    }

    pub fn say(&self, what: impl FnOnce() -> String) {
        if self.is_loud {
            eprintln!("{:>9} {}", self.time(), what());
        }
    }
}
