//! Runs a world: the lives of each of its processes, one after the other and interleaved where there are several, until
//! everything has been answered that ever will be.

use std::sync::Arc;

use crate::{
    aging, damage,
    database::WorldsDatabase,
    disk,
    life::{End, Life, Site},
    scenario::{Harm, What},
    slack::Slack,
    wire::Wire,
    world::World,
};

/// How often a process is started at most after the last trouble.
const MOST_LIVES: usize = 5;

/// One in this many processes that have ended stays away for good, if others are left.
const STAY_AWAY: u8 = 8;

/// How long after the last trouble its effects are over, in milliseconds; then each process runs for up to `CALM_SPAN`
/// before the next does.
const CALMS_WITHIN: u64 = 20_000;
const CALM_SPAN: u64 = 1_000;

/// A process and its lives.
struct Host<'a> {
    site: &'a Site<'a>,
    wire: Option<&'a Arc<Wire>>,
    life: Option<Life<'a>>,
    /// When its next life begins.
    begins_at: u64,
    lives: usize,
    calm_lives: usize,
    /// The damage that has been done to its files, by event number.
    damaged: Vec<usize>,
    is_done: bool,
}

/// Runs all processes of a world.
pub fn run(
    world: &Arc<World>,
    slack: &Slack,
    sites: &[Site<'_>],
    wires: &[Arc<Wire>],
    database: Option<&WorldsDatabase>,
) {
    let judge = Arc::clone(world);
    let _disk = disk::behave(move |doing| judge.disk(doing));
    let begin = |(number, site)| Host {
        site,
        wire: wires.get(number),
        life: None,
        begins_at: 0,
        lives: 0,
        calm_lives: 0,
        damaged: vec![],
        is_done: false,
    };
    let mut hosts: Vec<Host<'_>> = sites.iter().enumerate().map(begin).collect();
    let mut laid = vec![];
    while hosts.iter().any(|host| !host.is_done) {
        if hosts.iter().all(|host| host.life.is_none()) {
            // No process is alive until then.
            let next = hosts.iter().filter(|host| !host.is_done).map(|host| host.begins_at).min();
            world.comes_of_age(next.unwrap_or_default());
        }
        let now = world.now();
        if let Some(database) = database {
            database.set_clock(world.common_clock(now));
            aging::watch_database(world, slack, database);
        }
        lay(world, wires, &mut laid);
        // A process that is alone runs to its end. After the last trouble the processes need not be interleaved as
        // closely as before.
        let span = if now > world.scenario.calm_at + CALMS_WITHIN { CALM_SPAN } else { world.scenario.setting.span };
        let until = database.map(|_| now + world.dice("span").u64(1..=span));
        let first = world.dice("first").usize(..hosts.len());
        for turn in 0..hosts.len() {
            let number = (first + turn) % hosts.len();
            world.turn_to(number);
            hosts[number].go_on(world, slack, until);
        }
        if let Some(until) = until {
            world.comes_of_age(until);
        }
    }
}

/// Sets the fuses of statement events that are due.
fn lay(world: &World, wires: &[Arc<Wire>], laid: &mut Vec<usize>) {
    let now = world.now();
    for event in world.scenario.events.iter().filter(|event| event.at <= now) {
        if let What::Statement { host, fuse } = event.what
            && !laid.contains(&event.number)
        {
            laid.push(event.number);
            wires[host].lay(fuse);
        }
    }
}

impl Host<'_> {
    fn go_on(&mut self, world: &Arc<World>, slack: &Slack, until: Option<u64>) {
        if self.is_done || world.is_hit(Harm::Stopped) {
            return;
        }
        if self.life.is_none() && !self.begin(world, slack) {
            return;
        }
        if let Some(wire) = self.wire {
            match world.is_hit(Harm::OffDatabase) {
                true => wire.cut(),
                false => wire.mend(),
            }
        }
        let Some(life) = self.life.take() else { return };
        match life.go_on(until) {
            Ok(life) => self.life = Some(life),
            Err(end) => self.ends(&end, world, slack),
        }
    }

    /// Begins the next life, if it is due.
    fn begin(&mut self, world: &Arc<World>, slack: &Slack) -> bool {
        if world.now() < self.begins_at {
            return false;
        }
        if self.lives > 0 {
            slack.give_up();
            damage::damage(world, &self.site.home, &mut self.damaged);
        }
        if self.calm_lives == MOST_LIVES {
            world.breach("it never came to rest, however often it was started".to_owned());
            self.is_done = true;
            return false;
        }
        self.lives += 1;
        self.calm_lives += usize::from(world.time() > world.scenario.ends_at());
        if let Some(wire) = self.wire {
            let (world, host) = (Arc::downgrade(world), world.host());
            wire.begins(move || {
                if let Some(world) = world.upgrade() {
                    world.dies(host);
                }
            });
        }
        self.life = Some(Life::begin(self.site));
        true
    }

    fn ends(&mut self, end: &End, world: &World, slack: &Slack) {
        world.say(|| match end {
            End::Failed(why) => format!("the gateway gives up: {}", World::why(why)),
            end => format!("the life is over: {end:?}"),
        });
        slack.hang_up();
        match end {
            End::Killed => slack.forgets(),
            End::Failed(_) => slack.gives_up(),
            End::Asked { .. } => {}
        }
        if let End::Asked { is_over: true } = end {
            self.is_done = true;
            return;
        }
        if world.hosts() > 1 && world.dice("for good").u8(0..STAY_AWAY) == 0 && world.goes_for_good() {
            world.say(|| "it never comes back".to_owned());
            self.is_done = true;
            return;
        }
        let mut rest = world.dice("rest").u64(500..20_000);
        // Long enough for Slack to give up on events, where missed messages are read back.
        if world.hosts() == 1 && world.scenario.setting.presence && world.dice("long rest").u8(0..4) == 0 {
            rest += world.dice("long rest").u64(5..60) * 60_000;
        }
        self.begins_at = world.time() + rest;
    }
}
