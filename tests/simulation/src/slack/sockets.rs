//! The sockets of several hosts: each event is sent to one of them, and to another one if it is not acknowledged.

use std::{collections::BTreeSet, ops::Range, time::Duration};

use tokio::time::Instant;

use super::{Sending, State};
use crate::{random::one_of, scenario::Harm, world::World};

/// How long Slack waits for an acknowledgement.
const PATIENCE: u64 = 3_000;

/// How often it looks for a connected host.
const LOOK_EVERY: u64 = 1_000;

/// A delay beyond this means that the host was suspended in the meantime.
const STOOD_STILL: Duration = Duration::from_millis(500);

/// A call that does not get through fails after at most this time.
const NOTHING_WITHIN: u64 = 10_000;

#[derive(Default)]
pub(super) struct Sockets {
    open: BTreeSet<usize>,
    /// Since when nobody has listened, or somebody was about to.
    silent_since: Option<u64>,
    /// When nobody listened, until somebody did or was about to.
    silences: Vec<Range<u64>>,
    /// Events in the sockets of hosts that have been sent to other hosts since.
    stale: Vec<Sending>,
}

impl Sockets {
    pub(super) fn begins(&mut self, now: u64) {
        if let Some(since) = &mut self.silent_since {
            self.silences.push(std::mem::replace(since, now)..now);
        }
    }

    pub(super) fn opened(&mut self, host: usize, now: u64) {
        self.begins(now);
        self.silent_since = None;
        self.open.insert(host);
    }

    pub(super) fn closed(&mut self, host: usize, now: u64) {
        self.open.remove(&host);
        if self.open.is_empty() {
            self.silent_since.get_or_insert(now);
        }
        self.stale.retain(|sending| sending.to.is_some_and(|(to, _)| to != host));
    }

    pub(super) fn silences(&self) -> &[Range<u64>] {
        &self.silences
    }

    pub(super) fn somebody_listens(&self) -> bool {
        !self.open.is_empty()
    }

    pub(super) fn next_stale(&mut self, host: usize) -> Option<Sending> {
        let place = self.stale.iter().position(|sending| sending.to.is_some_and(|(to, _)| to == host))?;
        Some(self.stale.remove(place))
    }
}

impl State {
    /// Sends what is due to connected hosts; returns those hosts.
    pub(super) fn hand_out(&mut self, world: &World, now: u64) -> Vec<usize> {
        let reaches = |host: usize| !world.scenario.is_hit(Harm::OffSlack, host, now);
        let open: Vec<usize> = self.sockets.open.iter().copied().filter(|host| reaches(*host)).collect();
        let mut handed_out = Vec::new();
        for sending in self.deliveries.iter_mut().filter(|sending| sending.due <= now) {
            if let Some((to, since)) = sending.to
                && since + PATIENCE <= now
                && keeps_silent(world, to, now)
            {
                if !std::mem::take(&mut sending.is_under_way) {
                    self.sockets.stale.push(sending.clone());
                }
                (sending.to, sending.tries) = (None, sending.tries + 1);
            }
            if sending.to.is_none() && !open.is_empty() {
                let to = if open.len() == 1 { open[0] } else { one_of(&mut world.dice("socket"), &open) };
                sending.to = Some((to, now));
                handed_out.push(to);
            }
        }
        handed_out
    }

    /// When there may be something to send that no host waits for.
    pub(super) fn looks_again(&self, world: &World, now: u64) -> Option<u64> {
        let when = |sending: &Sending| match sending.to {
            Some((to, since)) => keeps_silent(world, to, now).then_some(now.max(since + PATIENCE) + 1),
            None => Some(now + LOOK_EVERY),
        };
        self.deliveries.iter().filter(|sending| sending.due <= now).filter_map(when).min()
    }
}

/// Whether a host cannot acknowledge anything now.
fn keeps_silent(world: &World, host: usize, now: u64) -> bool {
    world.hosts() > 1 && [Harm::Stopped, Harm::OffSlack].iter().any(|harm| world.scenario.is_hit(*harm, host, now))
}

/// When something arrived, sent between a host and Slack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    InTime,
    /// Other hosts may have done what this one was about to do.
    Late,
}

/// Whether something with this delay arrives. If the host is suspended in the meantime, it is lost or arrives when the
/// host continues.
pub(super) async fn arrives(world: &World, takes: Duration) -> Option<Came> {
    if world.is_hit(Harm::OffSlack) {
        let waits = world.dice("no answer").u64(10..NOTHING_WITHIN);
        tokio::time::sleep(Duration::from_millis(waits)).await;
        return None;
    }
    let since = Instant::now();
    tokio::time::sleep(takes).await;
    if world.hosts() == 1 || since.elapsed() < takes + STOOD_STILL {
        return Some(Came::InTime);
    }
    let comes = world.dice("late").bool().then_some(Came::Late);
    world.say(|| format!("what was under way {}", if comes.is_some() { "comes late" } else { "is lost" }));
    comes
}
