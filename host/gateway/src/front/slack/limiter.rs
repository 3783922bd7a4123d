//! The rate limiter for all calls to Slack, by method and, for posts, by channel and by workspace.
//!
//! Slack counts calls per minute by the tier of a method, and posts by channel. Calls beyond that are refused, answers
//! among them. So nothing is sent before there is room for it, and the room goes to the most [urgent](Priority) call. A
//! refusal all the same ("429") means that somebody else uses the token, or that a tier is lower than documented: the
//! lane waits as long as Slack says, and is narrower afterwards, until it has worked without a refusal for a while.

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

/// Opens a direct message.
pub(super) const OPENS_DIRECT: &str = "conversations.open";

/// The window in which Slack counts by tiers: a minute, plus a margin for delays in transit.
const MINUTE: Duration = Duration::from_secs(61);

/// The limit of posts into one channel: one per second, in short bursts.
const POSTS: Rate = Rate { calls: 5, window: Duration::from_millis(5_250) };

/// Slack lets an app post "several hundred messages a minute" into a workspace, without giving a number. If it has
/// refused posts into several channels, the limit is lower.
const POSTS_OF_ALL: Rate = Rate { calls: 600, window: MINUTE };

/// A narrowed lane widens by 1/`WIDENS_BY` of its calls in each of its windows.
const WIDENS_BY: usize = 50;

/// One in this many of a lane's calls is reserved for answers. That leaves 40 of the 50 updates a minute to progress
/// (specification 003 §6).
const KEPT_FOR_ANSWERS: usize = 5;

/// Above this number, idle lanes are removed.
const MAX_LANES: usize = 1_000;

/// What Slack limits together: a method and, for posts, its channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lane {
    pub(super) method: &'static str,
    pub(super) channel: Option<String>,
}

/// Which limits are applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limits {
    /// Those that Slack documents, and its refusals.
    #[default]
    Documented,
    /// Only refusals, for a server that speaks Slack's protocol and has other limits.
    Refusals,
}

/// How many gateways call with the same tokens. Each has its share of a method's limit, but all of a channel's limit,
/// because usually only one of them posts there.
#[derive(Clone)]
pub struct Sharers(Arc<dyn Fn() -> usize + Send + Sync>);

impl Sharers {
    /// Counts with this function each time.
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

/// The priorities, the most urgent first. Calls of the same priority go in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priority {
    /// Sent now or not at all, for an answer that can be sent in another way.
    AtOnce,
    /// Waits for room: what people wait for, and what belongs to it.
    Answer,
    /// Waits for room behind all answers, and leaves some for them: messages that must arrive but
    /// answer nobody.
    Notice,
    /// Sent now or not at all, and not while an answer waits.
    Progress,
    /// Waits for room behind everything else.
    Courtesy,
}

/// The most calls in any window of that length.
#[derive(Clone, Copy, Debug)]
struct Rate {
    calls: usize,
    window: Duration,
}

/// Returns the limit that Slack documents for a method; `None` if it gives no number.
fn documented(lane: &Lane) -> Option<Rate> {
    let calls = match lane.method {
        "chat.postMessage" if lane.channel.is_some() => return Some(POSTS),
        "chat.postMessage" => return Some(POSTS_OF_ALL),
        // Tier 2.
        "chat.startStream" | "chat.stopStream" => 20,
        // Tier 3.
        "chat.update" | "chat.delete" | "conversations.history" | "conversations.replies" | "reactions.add" => 50,
        OPENS_DIRECT | "apps.connections.open" => 50,
        // Tier 4.
        "chat.appendStream" | "chat.postEphemeral" | "files.getUploadURLExternal" => 100,
        "files.completeUploadExternal" | "files.info" | "users.info" => 100,
        _ => return None,
    };
    Some(Rate { calls, window: MINUTE })
}

impl Lane {
    pub(super) const fn of(method: &'static str) -> Lane {
        Lane { method, channel: None }
    }

    /// Returns the lane of all channels together.
    fn of_all(&self) -> Option<Lane> {
        self.channel.as_ref().map(|_| Lane::of(self.method))
    }
}

/// Lets calls pass when there is room for them.
#[derive(Debug)]
pub(super) struct Limiter {
    limits: Limits,
    sharers: Sharers,
    lanes: Mutex<HashMap<Lane, Arc<Traffic>>>,
    /// Cancelled when calls no longer wait, because the program is ending.
    closed: CancellationToken,
}

/// The state of one lane, with its waiting calls.
#[derive(Debug)]
struct Traffic {
    state: Mutex<State>,
    sharers: Sharers,
    /// Notified when a waiting call arrives or leaves.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    documented: Option<Rate>,
    /// This gateway's share of it.
    part: Option<Rate>,
    /// The current limit, after refusals: never more than the share.
    calls: usize,
    /// When the most recent calls were made, oldest first.
    made: VecDeque<Instant>,
    /// Until when Slack accepts no calls.
    paused_until: Option<Instant>,
    /// Since when there were no refusals.
    well_since: Option<Instant>,
    /// For a lane of all channels: the channel in which a call was refused last, and until when.
    refused_in: Option<(String, Instant)>,
    /// The waiting calls, in the order in which they go.
    waiting: BTreeSet<(Priority, u64)>,
    last: u64,
}

/// A waiting call; dropping it removes it.
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

    /// Returns this gateway's share of what all that call with its tokens may do.
    pub(super) fn share(&self, whole: usize) -> usize {
        (whole / self.sharers.count()).max(1)
    }

    /// Calls no longer wait from now on: those without room are refused at once.
    pub(super) fn close(&self) {
        self.closed.cancel();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Returns when the call may be made.
    ///
    /// # Errors
    /// It must not be made now; with the time to wait, as far as it is known.
    pub(super) async fn turn(&self, lane: &Lane, urgency: Priority) -> Result<(), Duration> {
        let lanes = lane.of_all().into_iter().chain([lane.clone()]).map(|lane| self.lane(&lane));
        if let Priority::AtOnce | Priority::Progress = urgency {
            return pass(&lanes.collect::<Vec<_>>(), urgency, Instant::now());
        }
        for traffic in lanes {
            self.wait_in(&traffic, urgency).await?;
        }
        Ok(())
    }

    async fn wait_in(&self, traffic: &Traffic, urgency: Priority) -> Result<(), Duration> {
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
                    // Another call goes first.
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = changed => {}
                () = room => {}
                () = self.closed.cancelled() => {}
            }
        }
    }

    /// Notes that Slack has refused a call for this long. Slack does not say which limit applied; if another channel is
    /// refused, too, it is the limit of all channels.
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

/// Makes a call that does not wait: in all of its lanes, or, if one has no room, in none.
fn pass(lanes: &[Arc<Traffic>], urgency: Priority, now: Instant) -> Result<(), Duration> {
    let mut states: Vec<_> = lanes.iter().map(|traffic| traffic.state()).collect();
    for state in &mut states {
        state.may_pass(urgency, now)?;
    }
    for state in &mut states {
        state.count(now);
    }
    Ok(())
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
        // Each of its methods leaves it consistent.
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
    /// Adjusts the share to the number of gateways.
    fn share(&mut self, sharers: usize) {
        let (Some(whole), Some(part)) = (self.documented, &mut self.part) else { return };
        let calls = (whole.calls / sharers).max(1);
        if calls == part.calls {
            return;
        }
        // A narrowed lane widens by itself.
        self.calls = if self.calls == part.calls { calls } else { self.calls.min(calls) };
        part.calls = calls;
    }

    /// Makes the waiting call at this place, if it is first and there is room; otherwise returns when to look again,
    /// if it is first.
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

    /// Returns how many calls are reserved for answers.
    fn spared(&self) -> usize {
        if self.part.is_some() { self.calls / KEPT_FOR_ANSWERS } else { 0 }
    }

    /// Checks whether a call that does not wait has room.
    fn may_pass(&mut self, urgency: Priority, now: Instant) -> Result<(), Duration> {
        let is_progress = urgency == Priority::Progress;
        let behind_answers =
            is_progress && self.waiting.first().is_some_and(|(urgency, _)| *urgency == Priority::Answer);
        match self.room(now, if is_progress { self.spared() } else { 0 }) {
            Some(at) => Err(at - now),
            None if behind_answers => Err(Duration::ZERO),
            None => Ok(()),
        }
    }

    /// Returns `None` if there is room for a call, with this many to spare; otherwise, when there
    /// will be.
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
        // Of calls in progress together, each is refused.
        let is_new = self.paused_until.is_none_or(|paused| paused < now);
        self.paused_until = self.paused_until.max(Some(until));
        self.well_since = Some(until);
        if is_new && self.part.is_some() {
            self.calls = (self.calls * 3 / 4).max(1);
        }
    }

    /// Notes, in the lane of all channels, that a call into that channel was refused.
    fn refused_in(&mut self, channel: &str, now: Instant, wait: Duration) {
        let is_second = self.refused_in.as_ref().is_some_and(|(other, until)| other != channel && now <= *until);
        if is_second && self.part.is_some() {
            // The calls made were already too many.
            self.calls = self.calls.min(self.made.len().max(1));
        }
        if is_second {
            self.refused(now, wait);
        }
        self.refused_in = Some((channel.to_owned(), now + wait));
    }

    /// Widens a narrowed lane after each window without refusals.
    fn widen(&mut self, now: Instant, most: usize, window: Duration) {
        let Some(since) = self.well_since else { return };
        let spans = now.saturating_duration_since(since).as_millis() / window.as_millis().max(1);
        let more = usize::try_from(spans).unwrap_or(usize::MAX).saturating_mul((most / WIDENS_BY).max(1));
        if more > 0 {
            self.calls = self.calls.saturating_add(more).min(most);
            self.well_since = (self.calls < most).then_some(now);
        }
    }

    /// Returns whether nothing waits, and nothing is stored that would make a call wait.
    fn is_idle(&mut self, now: Instant) -> bool {
        self.waiting.is_empty() && self.room(now, 0).is_none() && self.made.is_empty() && self.well_since.is_none()
    }
}

#[cfg(test)]
mod tests;
