//! What a gateway lives in: time, trouble, and the moment it is killed.

use std::{
    collections::BTreeMap,
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fastrand::Rng;
use tokio::{sync::Notify, time::Instant};

use crate::{
    disk::{Doing, Verdict},
    random::dice,
    scenario::{Harm, Point, Scenario, Trouble, What},
    wire::Wire,
    witness::Witness,
};

/// When every world begins: milliseconds since the epoch.
pub const EPOCH_MS: i64 = 1_750_000_000_000;

/// A world.
pub struct World {
    pub scenario: Scenario,
    state: Mutex<State>,
    /// The processes that live in it.
    hosts: Vec<Host>,
    /// Whether to say what happens.
    pub is_loud: bool,
    /// What people have changed by now.
    pub witness: Witness,
}

/// A process, as far as the world knows it.
struct Host {
    /// Told when it is killed.
    killed: Notify,
    /// Its way to the database, where the store is in one.
    wire: Option<Arc<Wire>>,
}

#[derive(Default)]
struct State {
    /// Which of them works; all of them do so in one thread, by turns.
    host: usize,
    /// Its runtime runs, and tells the time.
    runs: bool,
    lives: Vec<Life>,
    /// Milliseconds that have gone by for all.
    now: u64,
    /// The latest that any of them has seen: what one does after another is later, though both do it in the same span.
    latest: u64,
    /// How often the dice were thrown for something.
    throws: BTreeMap<String, u64>,
    /// How often what a kill waits for has happened, by the number of its event.
    reached: BTreeMap<usize, u32>,
    /// What was asked of Slack, and whether it is refused.
    refused: BTreeMap<String, bool>,
    /// What must never be, and was.
    breaches: Vec<String>,
    /// All is done that ever will be.
    is_over: bool,
}

/// The life that a process leads.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    /// How old the world was when it began.
    before: u64,
    begun: Option<Instant>,
    is_dead: bool,
    /// It is not the first.
    is_another: bool,
    /// Nothing is left to do, as far as it knows.
    rests: bool,
    /// It never comes back.
    is_gone: bool,
}

impl World {
    /// One with so many processes, which have these ways to their database, where they have one.
    pub fn new(scenario: Scenario, hosts: usize, wires: &[Arc<Wire>], is_loud: bool) -> World {
        let state = State { lives: vec![Life::default(); hosts], ..State::default() };
        let host = |number| Host { killed: Notify::new(), wire: wires.get(number).cloned() };
        let hosts = (0..hosts).map(host).collect();
        World { scenario, state: Mutex::new(state), hosts, is_loud, witness: Witness::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many processes there are.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// The one that works now.
    pub fn host(&self) -> usize {
        self.state().host
    }

    /// From now on this one works.
    pub fn turn_to(&self, host: usize) {
        self.state().host = host;
    }

    /// Milliseconds since the world began, which nobody can set.
    pub fn time(&self) -> u64 {
        let mut state = self.state();
        state.latest = state.latest.max(state.here());
        state.latest
    }

    /// What the clock of the machine says on which the process that works now is: milliseconds since the epoch.
    pub fn clock(&self) -> i64 {
        let now = self.time();
        let set: i64 = self
            .scenario
            .events
            .iter()
            .filter(|event| event.at <= now)
            .map(|event| if let What::Clock { by } = event.what { by } else { 0 })
            .sum();
        let wrong = self.scenario.setting.wrong_clocks.get(self.host()).copied().unwrap_or(0);
        EPOCH_MS + i64::try_from(now).unwrap_or(i64::MAX) + set + wrong
    }

    /// A life of the process that works begins, in the runtime of whoever calls.
    pub fn begin_life(&self) {
        let mut state = self.state();
        let (now, host) = (state.now, state.host);
        let is_another = state.lives[host].begun_before();
        state.lives[host] = Life { before: now, begun: Some(Instant::now()), is_another, ..Life::default() };
    }

    /// It is over; whoever calls is in its runtime still.
    pub fn end_life(&self) {
        let now = self.time();
        let mut state = self.state();
        let host = state.host;
        state.lives[host].begun = None;
        state.lives[host].is_another = true;
        if state.lives.len() == 1 {
            state.now = now;
        }
    }

    /// The runtime of the process that works runs from now on, or stands still.
    pub fn runs(&self, runs: bool) {
        self.state().runs = runs;
    }

    /// How old the world is for all.
    pub fn now(&self) -> u64 {
        self.state().now
    }

    /// The world gets so old.
    pub fn comes_of_age(&self, now: u64) {
        let mut state = self.state();
        state.now = now.max(state.now);
        state.latest = state.latest.max(state.now);
    }

    /// What has gone by while the process that works was stopped goes by for it, too.
    pub async fn catch_up(&self) {
        let behind = {
            let state = self.state();
            state.now.saturating_sub(state.here())
        };
        if behind > 0 {
            tokio::time::advance(Duration::from_millis(behind)).await;
        }
    }

    /// Waits until the world is so old.
    pub async fn until(&self, time: u64) {
        let here = self.state().here();
        if time > here {
            tokio::time::sleep(Duration::from_millis(time - here)).await;
        }
    }

    /// The process that works has nothing left to do, or something.
    pub fn rests(&self, rests: bool) {
        let mut state = self.state();
        let host = state.host;
        state.lives[host].rests = rests;
        state.is_over |= state.lives.iter().all(|life| life.rests);
    }

    /// The process that works is to be gone for good; whether it is: one stays.
    pub fn goes_for_good(&self) -> bool {
        let mut state = self.state();
        let host = state.host;
        if state.lives.iter().filter(|life| !life.is_gone).count() == 1 {
            return false;
        }
        (state.lives[host].is_gone, state.lives[host].rests) = (true, true);
        true
    }

    /// Whether all is done that ever will be.
    pub fn is_over(&self) -> bool {
        self.state().is_over
    }

    /// Waits until the process that works is killed.
    pub async fn killed(&self) {
        self.hosts[self.host()].killed.notified().await;
    }

    /// Whether the only process goes on, and has never been started again.
    pub fn is_in_its_first_life(&self) -> bool {
        let state = self.state();
        let [life] = state.lives.as_slice() else { return false };
        !life.is_another && life.begun.is_some() && !life.is_dead
    }

    pub fn is_dead(&self) -> bool {
        let state = self.state();
        state.lives[state.host].is_dead
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
        let host = state.host;
        if state.lives[host].is_dead {
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
                state.lives[host].is_dead = true;
            }
        }
        let is_dead = state.lives[host].is_dead;
        drop(state);
        if is_dead {
            self.say(|| format!("killed at {point:?}"));
            self.dies(host);
        }
        is_dead
    }

    /// This process is killed: from now on nothing of it reaches anybody.
    pub fn dies(&self, host: usize) {
        self.state().lives[host].is_dead = true;
        let Host { killed, wire } = &self.hosts[host];
        // Before it finds out by the other: this may be on another thread.
        killed.notify_one();
        if let Some(wire) = wire {
            wire.cut();
        }
    }

    /// Whether this harm is done to the process that works.
    pub fn is_hit(&self, harm: Harm) -> bool {
        let (now, host) = (self.time(), self.host());
        self.scenario.is_hit(harm, host, now)
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

    /// Why something has failed, without where its database is: that is elsewhere in each run.
    pub fn why(failure: &str) -> &str {
        failure.split(" `postgres://").next().unwrap_or(failure)
    }

    pub fn say(&self, what: impl FnOnce() -> String) {
        if self.is_loud {
            let who = if self.hosts() > 1 { format!("{} ", self.host()) } else { String::new() };
            eprintln!("{:>9} {who}{}", self.time(), what());
        }
    }
}

impl State {
    /// How old the world is where the process is that works.
    fn here(&self) -> u64 {
        match self.lives[self.host] {
            Life { before, begun: Some(begun), .. } if self.runs => {
                before + u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
            }
            Life { .. } => self.now,
        }
    }
}

impl Life {
    fn begun_before(self) -> bool {
        self.is_another || self.begun.is_some()
    }
}
