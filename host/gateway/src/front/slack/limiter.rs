//! How often Slack may be called: one limiter for all calls, by method and, for posts, by channel and by workspace.
//!
//! Slack counts calls a minute by the tier of a method, and posts by the channel. What is asked for beyond that is refused,
//! answers with the rest. So nothing is sent before there is room for it, and what there is room for goes to what is most
//! [urgent](Priority). A refusal all the same ("429") means that somebody else uses the token, or that a tier is lower
//! than it is documented to be: the lane waits as long as Slack says, and is narrower afterwards, until it has gone well for a while.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

/// The span of time in which Slack counts by tiers: a minute, and what calls may be late on their way.
const MINUTE: Duration = Duration::from_secs(61);

/// So many posts in so long into one channel: one a second, in short bursts.
const POSTS: Rate = Rate { calls: 5, window: Duration::from_millis(5_250) };

/// Slack lets an app post "several hundred messages a minute" into a workspace, and says no number. Where it has refused posts
/// into several channels, it takes fewer.
const POSTS_OF_ALL: Rate = Rate { calls: 600, window: MINUTE };

/// A lane that was narrowed becomes wider by one part in so many in each of its spans of time.
const WIDENS_BY: usize = 50;

/// Of the calls that a lane has room for, one in so many is left to answers. Progress has 40 of the 50 updates a minute
/// then (specification 003 §6).
const KEPT_FOR_ANSWERS: usize = 5;

/// More lanes than this are not remembered once nothing goes on in them.
const MAX_LANES: usize = 1_000;

/// What Slack limits together: a method, and for posts the channel with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lane {
    pub(super) method: &'static str,
    pub(super) channel: Option<String>,
}

/// Which limits are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limits {
    /// Those that Slack documents, and whatever it refuses all the same.
    #[default]
    Documented,
    /// Whatever is refused, for a server that speaks Slack's protocol and has other limits.
    Refusals,
}

/// How many gateways call with the same tokens. Of what a method has room for each has its part; of what a channel has room for
/// each has all, for as a rule one of them speaks there.
#[derive(Clone)]
pub struct Sharers(Arc<dyn Fn() -> usize + Send + Sync>);

impl Sharers {
    /// As many as this says, whenever it is asked.
    pub fn of(count: impl Fn() -> usize + Send + Sync + 'static) -> Sharers {
        Sharers(Arc::new(count))
    }

    fn count(&self) -> usize {
        (self.0)().max(1)
    }
}

impl Default for Sharers {
    /// Nobody else.
    fn default() -> Sharers {
        Sharers::of(|| 1)
    }
}

impl fmt::Debug for Sharers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sharers").field(&self.count()).finish()
    }
}

/// What goes first. What waits goes in the order in which it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priority {
    /// Goes now or not at all, for an answer that has another way to go.
    AtOnce,
    /// Waits for room: what people wait for, and what belongs to it.
    Answer,
    /// Waits for room behind all answers, and leaves them some: what has to arrive, and answers nobody.
    Notice,
    /// Goes now or not at all, and not where an answer waits.
    Progress,
    /// Waits for room behind everything else.
    Courtesy,
}

/// So many calls in any span of that length.
#[derive(Clone, Copy, Debug)]
struct Rate {
    calls: usize,
    window: Duration,
}

/// What Slack documents of a method; `None` where it says nothing in numbers.
fn documented(lane: &Lane) -> Option<Rate> {
    let calls = match lane.method {
        "chat.postMessage" if lane.channel.is_some() => return Some(POSTS),
        "chat.postMessage" => return Some(POSTS_OF_ALL),
        // Tier 2.
        "chat.startStream" | "chat.stopStream" => 20,
        // Tier 3.
        "chat.update" | "chat.delete" | "conversations.history" | "conversations.replies" | "reactions.add" => 50,
        "conversations.open" | "apps.connections.open" => 50,
        // Tier 4.
        "chat.appendStream" | "chat.postEphemeral" | "files.getUploadURLExternal" => 100,
        "files.completeUploadExternal" => 100,
        _ => return None,
    };
    Some(Rate { calls, window: MINUTE })
}

impl Lane {
    pub(super) const fn of(method: &'static str) -> Lane {
        Lane { method, channel: None }
    }

    /// That of all channels together.
    fn of_all(&self) -> Option<Lane> {
        self.channel.as_ref().map(|_| Lane::of(self.method))
    }
}

/// Lets calls go when there is room for them.
#[derive(Debug)]
pub(super) struct Limiter {
    limits: Limits,
    sharers: Sharers,
    lanes: Mutex<HashMap<Lane, Arc<Traffic>>>,
    /// Cancelled when nothing waits any more, because the program ends.
    closed: CancellationToken,
}

/// What goes on in one lane.
#[derive(Debug)]
struct Traffic {
    state: Mutex<State>,
    sharers: Sharers,
    /// Told when somebody comes or goes.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    documented: Option<Rate>,
    /// Our part of it.
    part: Option<Rate>,
    /// What it has turned out to be: never more than that.
    calls: usize,
    /// When the newest calls went, the oldest first.
    made: VecDeque<Instant>,
    /// Slack wants to hear nothing until then.
    paused_until: Option<Instant>,
    /// Since when it goes well.
    well_since: Option<Instant>,
    /// The channel that a call was refused in last, and until when: of a lane of all channels.
    refused_in: Option<(String, Instant)>,
    /// Who waits, in the order in which they go.
    waiting: BTreeSet<(Priority, u64)>,
    last: u64,
}

/// Somebody who waits; gone when dropped.
struct Waiting<'a> {
    traffic: &'a Traffic,
    place: (Priority, u64),
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.traffic.state().waiting.remove(&self.place);
        self.traffic.changed.notify_waiters();
    }
}

impl Limiter {
    pub(super) fn new(limits: Limits, sharers: Sharers) -> Limiter {
        Limiter { limits, sharers, lanes: Mutex::default(), closed: CancellationToken::new() }
    }

    /// Nothing waits from now on: what there is no room for at once is put off.
    pub(super) fn close(&self) {
        self.closed.cancel();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Returns when the call may be made.
    ///
    /// # Errors
    /// It is not to be made now; for how long, as far as can be told.
    pub(super) async fn turn(&self, lane: &Lane, urgency: Priority) -> Result<(), Duration> {
        if let Some(of_all) = lane.of_all() {
            self.turn_in(&of_all, urgency).await?;
        }
        self.turn_in(lane, urgency).await
    }

    async fn turn_in(&self, lane: &Lane, urgency: Priority) -> Result<(), Duration> {
        let traffic = self.lane(lane);
        if let Priority::AtOnce | Priority::Progress = urgency {
            return traffic.state().pass(urgency, Instant::now());
        }
        let waiting = traffic.wait(urgency);
        loop {
            let changed = traffic.changed.notified();
            let again = match traffic.state().go(waiting.place, Instant::now()) {
                Ok(()) => return Ok(()),
                Err(again) => again,
            };
            if self.closed.is_cancelled() {
                return Err(again.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now())));
            }
            let room = async {
                match again {
                    Some(at) => sleep_until(at).await,
                    // Somebody else goes first.
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = changed => {}
                () = room => {}
                () = self.closed.cancelled() => {}
            }
        }
    }

    /// Slack has refused a call for so long. It does not say which of its limits that was: where another channel is refused as
    /// well, it is the one of all.
    pub(super) fn refused(&self, lane: &Lane, wait: Duration) {
        let now = Instant::now();
        let traffic = self.lane(lane);
        traffic.state().refused(now, wait);
        traffic.changed.notify_waiters();
        if let (Some(of_all), Some(channel)) = (lane.of_all(), &lane.channel) {
            let traffic = self.lane(&of_all);
            traffic.state().refused_in(channel, now, wait);
            traffic.changed.notify_waiters();
        }
    }

    fn lane(&self, lane: &Lane) -> Arc<Traffic> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(traffic) = lanes.get(lane) {
            return Arc::clone(traffic);
        }
        if lanes.len() >= MAX_LANES {
            let now = Instant::now();
            lanes.retain(|_, traffic| Arc::strong_count(traffic) > 1 || !traffic.state().is_idle(now));
        }
        let rate = match self.limits {
            Limits::Documented => documented(lane),
            Limits::Refusals => None,
        };
        let sharers = if lane.channel.is_some() { Sharers::default() } else { self.sharers.clone() };
        let traffic = Arc::new(Traffic::new(rate, sharers));
        lanes.insert(lane.clone(), Arc::clone(&traffic));
        traffic
    }
}

impl Traffic {
    fn new(documented: Option<Rate>, sharers: Sharers) -> Traffic {
        let state = State {
            documented,
            part: documented,
            calls: documented.map_or(usize::MAX, |rate| rate.calls),
            made: VecDeque::new(),
            paused_until: None,
            well_since: None,
            refused_in: None,
            waiting: BTreeSet::new(),
            last: 0,
        };
        Traffic { state: Mutex::new(state), sharers, changed: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whole after each of its methods.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.share(self.sharers.count());
        state
    }

    fn wait(&self, urgency: Priority) -> Waiting<'_> {
        let mut state = self.state();
        state.last += 1;
        let place = (urgency, state.last);
        state.waiting.insert(place);
        Waiting { traffic: self, place }
    }
}

impl State {
    /// So many have a part of it.
    fn share(&mut self, sharers: usize) {
        let (Some(whole), Some(part)) = (self.documented, &mut self.part) else { return };
        let calls = (whole.calls / sharers).max(1);
        if calls == part.calls {
            return;
        }
        // One that was narrowed gets wider by itself.
        self.calls = if self.calls == part.calls { calls } else { self.calls.min(calls) };
        part.calls = calls;
    }

    /// The next call is made by who waits at this place, if there is room; else when to look again, for who is first.
    fn go(&mut self, place: (Priority, u64), now: Instant) -> Result<(), Option<Instant>> {
        if self.waiting.first() != Some(&place) {
            return Err(None);
        }
        let spared = if place.0 == Priority::Answer { 0 } else { self.spared() };
        match self.room(now, spared) {
            None => {
                self.count(now);
                Ok(())
            }
            Some(at) => Err(Some(at)),
        }
    }

    /// What is left to answers.
    fn spared(&self) -> usize {
        if self.part.is_some() { self.calls / KEPT_FOR_ANSWERS } else { 0 }
    }

    /// A call that does not wait.
    fn pass(&mut self, urgency: Priority, now: Instant) -> Result<(), Duration> {
        let is_progress = urgency == Priority::Progress;
        let behind_answers =
            is_progress && self.waiting.first().is_some_and(|(urgency, _)| *urgency == Priority::Answer);
        match self.room(now, if is_progress { self.spared() } else { 0 }) {
            Some(at) => Err(at - now),
            None if behind_answers => Err(Duration::ZERO),
            None => {
                self.count(now);
                Ok(())
            }
        }
    }

    /// `None` where there is room for a call, with so many to spare; else when there will be.
    fn room(&mut self, now: Instant, spared: usize) -> Option<Instant> {
        if let Some(until) = self.paused_until {
            if now < until {
                return Some(until);
            }
            self.paused_until = None;
        }
        let Rate { window, calls: most } = self.part?;
        self.widen(now, most, window);
        while self.made.front().is_some_and(|first| now.duration_since(*first) >= window) {
            self.made.pop_front();
        }
        let room = self.calls.saturating_sub(spared).max(1);
        let taken = self.made.len();
        (taken >= room).then(|| self.made[taken - room] + window)
    }

    fn count(&mut self, now: Instant) {
        if self.part.is_some() {
            self.made.push_back(now);
        }
    }

    fn refused(&mut self, now: Instant, wait: Duration) {
        let until = now + wait;
        // Of calls that were under way together each is refused.
        let is_new = self.paused_until.is_none_or(|paused| paused < now);
        self.paused_until = self.paused_until.max(Some(until));
        self.well_since = Some(until);
        if is_new && self.part.is_some() {
            self.calls = (self.calls * 3 / 4).max(1);
        }
    }

    /// A call into that channel was refused, in the lane of all.
    fn refused_in(&mut self, channel: &str, now: Instant, wait: Duration) {
        let is_second = self.refused_in.as_ref().is_some_and(|(other, until)| other != channel && now <= *until);
        if is_second && self.part.is_some() {
            // Only so many went, and that was too much.
            self.calls = self.calls.min(self.made.len().max(1));
        }
        if is_second {
            self.refused(now, wait);
        }
        self.refused_in = Some((channel.to_owned(), now + wait));
    }

    /// A lane that was narrowed has room for more calls after each span of time in which nothing was refused.
    fn widen(&mut self, now: Instant, most: usize, window: Duration) {
        let Some(since) = self.well_since else { return };
        let spans = now.saturating_duration_since(since).as_millis() / window.as_millis().max(1);
        let more = usize::try_from(spans).unwrap_or(usize::MAX).saturating_mul((most / WIDENS_BY).max(1));
        if more > 0 {
            self.calls = self.calls.saturating_add(more).min(most);
            self.well_since = (self.calls < most).then_some(now);
        }
    }

    /// Nobody waits, and nothing is remembered that would keep anybody waiting.
    fn is_idle(&mut self, now: Instant) -> bool {
        self.waiting.is_empty() && self.room(now, 0).is_none() && self.made.is_empty() && self.well_since.is_none()
    }
}

#[cfg(test)]
mod tests;
