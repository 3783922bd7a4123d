//! The environment of a gateway: time, trouble, and the moment it is killed.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fastrand::Rng;
use tokio::{sync::Notify, time::Instant};

use crate::{
    aging::Seen,
    disk::{Doing, Verdict},
    erasing::Erasures,
    random::dice,
    retrying::Given,
    scenario::{Harm, Point, Scenario, Trouble, What},
    wire::Wire,
    witness::Witness,
};

/// The start of every world, in milliseconds since the epoch.
pub const EPOCH_MS: i64 = 1_750_000_000_000;

/// A simulated world.
pub struct World {
    pub scenario: Scenario,
    state: Mutex<State>,
    /// Its processes.
    hosts: Vec<Host>,
    /// Whether to print what happens.
    pub is_loud: bool,
    /// The changes that people have made so far.
    pub witness: Witness,
    /// What has been done about what is to be erased.
    pub erasures: Erasures,
    /// The commands to retry parked messages that were given.
    pub retried: Given,
    /// What was seen of conversations that age.
    pub seen: Seen,
}

/// A process, from the world's view.
struct Host {
    /// Notified when it is killed.
    killed: Notify,
    /// Its connection to the database, if its store is in one.
    wire: Option<Arc<Wire>>,
}

#[derive(Default)]
struct State {
    /// The process that is running; all of them run in one thread, by turns.
    host: usize,
    /// Whether its runtime is running, and determines the time.
    runs: bool,
    lives: Vec<Life>,
    /// The time that has passed for all processes, in milliseconds.
    now: u64,
    /// The latest time that any process has seen: what happens after something else is later, even within the same
    /// span.
    latest: u64,
    /// How often the generator was used for each purpose.
    throws: BTreeMap<String, u64>,
    /// How often the point of a kill was reached, by the number of its event.
    reached: BTreeMap<usize, u32>,
    /// What was asked of Slack, and whether it is refused.
    refused: BTreeMap<String, bool>,
    /// What damage has left of lines of the ledger.
    torn: BTreeSet<String>,
    /// Violations of what must always hold.
    breaches: Vec<String>,
    /// Everything is done that ever will be.
    is_over: bool,
}

/// The current life of a process.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    /// The world's age when it began.
    before: u64,
    begun: Option<Instant>,
    is_dead: bool,
    /// It is not the first life.
    is_another: bool,
    /// There is nothing left to do, as far as it knows.
    rests: bool,
    /// It never comes back.
    is_gone: bool,
}

impl World {
    /// Creates a world with this many processes, with these connections to their database, if any.
    pub fn new(scenario: Scenario, hosts: usize, wires: &[Arc<Wire>], is_loud: bool) -> World {
        let state = State { lives: vec![Life::default(); hosts], ..State::default() };
        let host = |number| Host { killed: Notify::new(), wire: wires.get(number).cloned() };
        let hosts = (0..hosts).map(host).collect();
        let (witness, erasures, seen) = (Witness::default(), Erasures::default(), Seen::default());
        let retried = Given::default();
        World { scenario, state: Mutex::new(state), hosts, is_loud, witness, erasures, retried, seen }
    }

    /// Notes what damage has left of a line of the ledger.
    pub fn tears(&self, line: String) {
        self.state().torn.insert(line);
    }

    /// Whether damage has left this of a line of the ledger.
    pub fn has_torn(&self, line: &str) -> bool {
        self.state().torn.contains(line)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of processes.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// The process that is running now.
    pub fn host(&self) -> usize {
        self.state().host
    }

    /// Switches to another process.
    pub fn turn_to(&self, host: usize) {
        self.state().host = host;
    }

    /// Milliseconds since the world began; cannot be set.
    pub fn time(&self) -> u64 {
        let mut state = self.state();
        state.latest = state.latest.max(state.here());
        state.latest
    }

    /// The clock of the running process's machine, in milliseconds since the epoch.
    pub fn clock(&self) -> i64 {
        self.clock_of(self.host(), self.time())
    }

    pub fn clock_of(&self, host: usize, now: u64) -> i64 {
        self.common_clock(now) + self.is_wrong_by(host, now)
    }

    /// The clock of the only machine, or of the database of several.
    pub fn common_clock(&self, now: u64) -> i64 {
        EPOCH_MS + i64::try_from(now).unwrap_or(i64::MAX) + self.is_set_by(now)
    }

    /// By how much all clocks have been set.
    pub fn is_set_by(&self, now: u64) -> i64 {
        let events = self.scenario.events.iter().filter(|event| event.at <= now);
        events.map(|event| if let What::Clock { by } = event.what { by } else { 0 }).sum()
    }

    /// How far the clock of one of several hosts is ahead of the database's.
    pub fn is_wrong_by(&self, host: usize, now: u64) -> i64 {
        let events = self.scenario.events.iter().filter(|event| event.at <= now);
        let set = events.filter_map(|event| match event.what {
            What::ClockOf { host: of, by } if of == host => Some(by),
            _ => None,
        });
        self.scenario.setting.wrong_clocks.get(host).copied().unwrap_or(0) + set.sum::<i64>()
    }

    /// The times at which the clock of one of the machines showed this.
    pub fn times_of_clocks(&self, shown: i64) -> Vec<u64> {
        let mut since: Vec<u64> = self
            .scenario
            .events
            .iter()
            .filter(|event| matches!(event.what, What::Clock { .. } | What::ClockOf { .. }))
            .map(|event| event.at)
            .collect();
        since.insert(0, 0);
        let times = (0..self.hosts()).flat_map(|host| {
            since.iter().filter_map(move |&since| {
                let time = since.checked_add_signed(shown - self.clock_of(host, since))?;
                (self.clock_of(host, time) == shown).then_some(time)
            })
        });
        times.collect()
    }

    /// Begins a life of the running process, in the caller's runtime.
    pub fn begin_life(&self) {
        let mut state = self.state();
        let (now, host) = (state.now, state.host);
        let is_another = state.lives[host].begun_before();
        state.lives[host] = Life { before: now, begun: Some(Instant::now()), is_another, ..Life::default() };
    }

    /// Ends the life; called within its runtime.
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

    /// Starts or suspends the runtime of the running process.
    pub fn runs(&self, runs: bool) {
        self.state().runs = runs;
    }

    /// The world's age for all processes.
    pub fn now(&self) -> u64 {
        self.state().now
    }

    /// Advances the world's age.
    pub fn comes_of_age(&self, now: u64) {
        let mut state = self.state();
        state.now = now.max(state.now);
        state.latest = state.latest.max(state.now);
    }

    /// Lets the time that has passed while the running process was suspended pass for it as well.
    pub async fn catch_up(&self) {
        let behind = {
            let state = self.state();
            state.now.saturating_sub(state.here())
        };
        if behind > 0 {
            tokio::time::advance(Duration::from_millis(behind)).await;
        }
    }

    /// Waits until the world has this age.
    pub async fn until(&self, time: u64) {
        let here = self.state().here();
        if time > here {
            tokio::time::sleep(Duration::from_millis(time - here)).await;
        }
    }

    /// Sets whether the running process has nothing left to do.
    pub fn rests(&self, rests: bool) {
        let mut state = self.state();
        let host = state.host;
        state.lives[host].rests = rests;
        state.is_over |= state.lives.iter().all(|life| life.rests);
    }

    /// Removes the running process for good, and returns whether that was done: the last one stays.
    pub fn goes_for_good(&self) -> bool {
        let mut state = self.state();
        let host = state.host;
        if state.lives.iter().filter(|life| !life.is_gone).count() == 1 {
            return false;
        }
        (state.lives[host].is_gone, state.lives[host].rests) = (true, true);
        true
    }

    /// The machine on which a command with this number is given: one whose process has not gone for good.
    pub fn machine_of(&self, number: usize) -> usize {
        let state = self.state();
        let all = (0..state.lives.len()).map(|step| (number + step) % state.lives.len());
        all.into_iter().find(|host| !state.lives[*host].is_gone).unwrap_or_default()
    }

    /// Whether everything is done that ever will be.
    pub fn is_over(&self) -> bool {
        self.state().is_over
    }

    /// Waits until the running process is killed.
    pub async fn killed(&self) {
        self.hosts[self.host()].killed.notified().await;
    }

    /// When the current life of this process began, if it is alive.
    pub fn lives_since(&self, host: usize) -> Option<u64> {
        let life = self.state().lives[host];
        (life.begun.is_some() && !life.is_dead).then_some(life.before)
    }

    /// Whether there is one process, which is alive and was never restarted.
    pub fn is_in_its_first_life(&self) -> bool {
        let state = self.state();
        let [life] = state.lives.as_slice() else { return false };
        !life.is_another && life.begun.is_some() && !life.is_dead
    }

    pub fn is_dead(&self) -> bool {
        let state = self.state();
        state.lives[state.host].is_dead
    }

    /// A generator for this purpose.
    pub fn dice(&self, about: &str) -> Rng {
        let mut state = self.state();
        let throws = state.throws.entry(about.to_owned()).or_default();
        *throws += 1;
        dice(self.scenario.seed, (about, *throws))
    }

    /// How often this was called before.
    pub fn count(&self, of: &str) -> u64 {
        let mut state = self.state();
        let times = state.throws.entry(of.to_owned()).or_default();
        *times += 1;
        *times - 1
    }

    /// The policies in force now: those of the last swap.
    pub fn serving(&self) -> &'static [&'static str] {
        let now = self.time();
        let swaps = self.scenario.events.iter().filter(|event| event.at <= now);
        let mut to = swaps.filter_map(|event| if let What::Swap(to) = event.what { Some(to) } else { None });
        to.next_back().unwrap_or(self.scenario.setting.policies)
    }

    /// Whether this trouble occurs now.
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

    /// Whether this is refused, now and in future.
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

    /// The running process reaches this point; returns whether it is killed there, or was before.
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

    /// Kills this process: from now on nothing from it has any effect.
    pub fn dies(&self, host: usize) {
        self.state().lives[host].is_dead = true;
        let Host { killed, wire } = &self.hosts[host];
        // Before the process notices by the wire: this may be on another thread.
        killed.notify_one();
        if let Some(wire) = wire {
            wire.cut();
        }
    }

    /// How many fuses of the running process's connection to the database have blown.
    pub fn blown(&self) -> u32 {
        self.hosts[self.host()].wire.as_ref().map_or(0, |wire| wire.blown())
    }

    /// Whether the running process is affected by this fault.
    pub fn is_hit(&self, harm: Harm) -> bool {
        let (now, host) = (self.time(), self.host());
        self.scenario.is_hit(harm, host, now)
    }

    /// As [`comes_to`](World::comes_to), for async code: a killed process never continues.
    pub async fn step(&self, point: Point) {
        if self.comes_to(point) {
            pending::<()>().await;
        }
    }

    /// The outcome of a disk operation.
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

    /// The duration of a commit.
    pub fn pace(&self) -> Duration {
        let mut rng = self.dice("pace");
        match self.strikes(Trouble::DiskSlow) {
            true => Duration::from_millis(rng.u64(0..4_000)),
            false => Duration::from_millis(rng.u64(0..3)),
        }
    }

    /// Records a violation.
    pub fn breach(&self, what: String) {
        self.say(|| format!("BREACH {what}"));
        self.state().breaches.push(what);
    }

    pub fn breaches(&self) -> Vec<String> {
        self.state().breaches.clone()
    }

    /// An error message without the address of the database, which differs between runs.
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
    /// The world's age as seen by the running process.
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
