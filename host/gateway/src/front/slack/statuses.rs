//! Statuses: that an answer is being made is shown as the status of its thread. A status leaves no message behind that
//! would have to be edited, and notifies nobody.
//!
//! Whether a status or a placeholder is used is decided before anything is posted. A status disappears once the bot
//! posts in the thread, so the answer is a new message, and after a crash only the history can tell whether it was
//! posted. If the history cannot be read, or Slack does not accept a status, a placeholder is posted, and the answer
//! replaces it.
//!
//! Nobody waits for a status: its call runs to its end concurrently with everything else. Removing the status waits for
//! that call, and is retried until Slack would have removed it by itself.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};

use super::{
    failure::{CallFailure, is_about_the_token},
    web::{Status, Web},
};
use crate::chat::Inbound;

/// Slack removes a status after two minutes.
const LIVES: Duration = Duration::from_secs(120);

/// How many times per renewal interval the statuses are checked.
const LOOKS: u32 = 9;

/// How long a caller waits for the removal of a status; after that, it is done later.
const MOMENT: Duration = Duration::from_secs(1);

/// How long the removal of the remaining statuses may take when the program ends.
const LAST_MOMENT: Duration = Duration::from_secs(2);

/// A turn that takes longer than this no longer shows a status.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// The most channels that are remembered as accepting no status, being unreadable, or having several people.
const MAX_CHANNELS: usize = 10_000;

/// Which histories can be read, by the scopes of the token.
#[derive(Clone, Copy, Debug, Default)]
struct Readable {
    direct: bool,
    channels: bool,
    /// Direct messages of several people.
    groups: bool,
}

/// The statuses of all turns.
#[derive(Debug)]
pub(super) struct Statuses {
    readable: Readable,
    /// How long a status is shown before it is renewed.
    renew_after: Duration,
    state: Mutex<State>,
    /// Notified when there is something to remove, and when a call has ended.
    changed: Notify,
    settled: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// By the event that is being answered.
    shown: BTreeMap<String, Shown>,
    /// Statuses that no message removes, and when Slack will have removed them.
    left: BTreeMap<Thread, Instant>,
    /// The number of calls in progress for each thread.
    under_way: HashMap<Thread, usize>,
    /// Whether Slack accepts none at all, and the channels without statuses.
    refused: bool,
    without: HashSet<String>,
    groups: HashSet<String>,
}

/// Where a status is shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Thread {
    pub(super) channel: String,
    pub(super) ts: String,
}

impl Thread {
    /// Returns the thread in which the answer to this question is shown to be in progress.
    pub(super) fn of(question: &Inbound) -> Thread {
        Thread { channel: question.reply_to.channel.clone(), ts: question.thread().to_owned() }
    }
}

#[derive(Debug)]
struct Shown {
    thread: Thread,
    line: String,
    /// A message has removed it.
    is_gone: bool,
    /// When Slack was last told.
    at: Instant,
    since: Instant,
}

/// A call in progress for a thread; it ends when this is dropped.
struct UnderWay {
    statuses: Arc<Statuses>,
    thread: Thread,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut state = self.statuses.state();
        if let Some(count) = state.under_way.get_mut(&self.thread) {
            *count -= 1;
            if *count == 0 {
                state.under_way.remove(&self.thread);
            }
        }
        if state.left.contains_key(&self.thread) {
            self.statuses.changed.notify_one();
        }
        self.statuses.settled.notify_waiters();
    }
}

impl Statuses {
    /// `scopes` are the token's, separated by commas; if they are unknown, nothing is known to be readable.
    pub(super) fn new(scopes: Option<&str>, renew_after: Duration) -> Statuses {
        let granted: Vec<&str> = scopes.unwrap_or_default().split(',').map(str::trim).collect();
        let has = |scope: &str| granted.contains(&scope);
        let readable = Readable {
            direct: has("im:history"),
            // A channel's id does not tell whether it is private.
            channels: has("channels:history") && has("groups:history"),
            groups: has("mpim:history"),
        };
        Statuses { readable, renew_after, state: Mutex::default(), changed: Notify::new(), settled: Notify::new() }
    }

    /// Shows a status for this event; returns false if a placeholder is needed. Dropping the future is
    /// harmless.
    pub(super) async fn begin(
        self: &Arc<Self>,
        web: &Arc<Web>,
        event_id: &str,
        thread: Thread,
        status: Status<'_>,
    ) -> bool {
        if !self.serves(&thread.channel) {
            return false;
        }
        let now = Instant::now();
        let line = status.line.unwrap_or_default().to_owned();
        let shown = Shown { thread: thread.clone(), line: line.clone(), is_gone: false, at: now, since: now };
        {
            let mut state = self.state();
            state.shown.insert(event_id.to_owned(), shown);
            // It belongs to the new turn now.
            state.left.remove(&thread);
        }
        let (statuses, web, event_id) = (Arc::clone(self), Arc::clone(web), event_id.to_owned());
        let (under_way, status) = (self.under_way(&thread), status.status.to_owned());
        let taken = tokio::spawn(async move {
            let status = Status { status: &status, line: (!line.is_empty()).then_some(&*line) };
            let shown = web.set_status(&thread.channel, &thread.ts, status).await;
            drop(under_way);
            match shown {
                Err(failure) if failure.is_final() => {
                    statuses.refused(&thread.channel, &failure);
                    statuses.state().shown.remove(&event_id);
                    return false;
                }
                // The next line of progress may still show it.
                Err(failure) => tracing::debug!(%failure, "no status is shown"),
                Ok(()) => {}
            }
            true
        });
        taken.await.unwrap_or(true)
    }

    /// Returns whether a status is shown for this event.
    pub(super) fn are_shown(&self, event_id: &str) -> bool {
        self.state().shown.contains_key(event_id)
    }

    /// Shows another line; `None` if this event has no status.
    pub(super) async fn show(
        self: &Arc<Self>,
        web: &Web,
        event_id: &str,
        status: Status<'_>,
    ) -> Option<Result<(), CallFailure>> {
        let thread = {
            let mut state = self.state();
            let shown = state.shown.get_mut(event_id)?;
            shown.line = status.line.unwrap_or_default().to_owned();
            shown.is_gone = false;
            shown.at = Instant::now();
            shown.thread.clone()
        };
        let _under_way = self.under_way(&thread);
        Some(web.set_status(&thread.channel, &thread.ts, status).await)
    }

    /// Notes that the bot has posted a new message for this event at that place. A status call in progress may take
    /// effect after it.
    pub(super) fn posted(&self, event_id: &str, thread_ts: Option<&str>) {
        let mut state = self.state();
        let State { shown, under_way, .. } = &mut *state;
        if let Some(shown) = shown.get_mut(event_id) {
            shown.is_gone |= thread_ts == Some(&shown.thread.ts) && !under_way.contains_key(&shown.thread);
        }
    }

    /// Notes that nothing is being made for this event any more.
    pub(super) async fn end(&self, web: &Web, event_id: &str) {
        if let Some(thread) = self.ended(event_id) {
            self.take_away(web, thread).await;
        }
    }

    /// Returns the thread whose status no message removes.
    fn ended(&self, event_id: &str) -> Option<Thread> {
        let mut state = self.state();
        let Shown { thread, is_gone: false, .. } = state.shown.remove(event_id)? else { return None };
        state.left.insert(thread.clone(), Instant::now() + LIVES);
        Some(thread)
    }

    /// Removes a status that an earlier run may have left there.
    pub(super) async fn left_behind(&self, web: &Web, thread: Thread) {
        if !self.serves(&thread.channel) {
            return;
        }
        {
            let mut state = self.state();
            if state.shown.values().any(|shown| shown.thread == thread) {
                return;
            }
            state.left.insert(thread.clone(), Instant::now() + LIVES);
        }
        self.take_away(web, thread).await;
    }

    /// Removes what is left there once no call is in progress; done before the end of a turn, so that a kill leaves
    /// nothing.
    async fn take_away(&self, web: &Web, thread: Thread) {
        let cleared = async {
            loop {
                let settled = self.settled.notified();
                if !self.state().under_way.contains_key(&thread) {
                    break;
                }
                settled.await;
            }
            self.clear_at(web, &thread).await;
        };
        if timeout(MOMENT, cleared).await.is_err() {
            tracing::debug!("a status could not be removed yet");
        }
    }

    /// Notes that the history of this channel cannot be read.
    pub(super) fn unreadable(&self, channel: &str) {
        let mut state = self.state();
        if state.without.len() < MAX_CHANNELS {
            state.without.insert(channel.to_owned());
        }
    }

    /// Notes that this channel is a direct message of several people, which its id does not show.
    pub(super) fn is_group(&self, channel: &str) {
        let mut state = self.state();
        if state.groups.len() < MAX_CHANNELS && !state.groups.contains(channel) {
            state.groups.insert(channel.to_owned());
        }
    }

    /// Renews statuses that are shown for long, and removes those that no message removes. Never
    /// ends.
    pub(super) async fn keep(self: &Arc<Self>, web: &Web, status: &str) {
        let look_every = self.renew_after / LOOKS;
        loop {
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                () = sleep(look_every) => {}
            }
            let _ = self.clear(web).await;
            for (event_id, thread, line) in self.due(Instant::now()) {
                if !self.are_shown(&event_id) {
                    continue;
                }
                let shown = Status { status, line: (!line.is_empty()).then_some(line.as_str()) };
                let under_way = self.under_way(&thread);
                if let Err(failure) = web.set_status(&thread.channel, &thread.ts, shown).await {
                    tracing::debug!(%failure, "a status is not renewed");
                }
                drop(under_way);
            }
        }
    }

    /// Removes the remaining statuses, since the program is ending.
    pub(super) async fn leave(self: &Arc<Self>, web: &Web) {
        let all = async {
            while !self.clear(web).await {
                // After a refusal or during a call, another attempt is made a moment later.
                sleep(Duration::from_millis(100)).await;
            }
        };
        if timeout(LAST_MOMENT, all).await.is_err() {
            tracing::debug!("a status will expire by itself");
        }
    }

    /// Removes statuses that no message removes, once no call is in progress there; returns whether
    /// none is left.
    async fn clear(self: &Arc<Self>, web: &Web) -> bool {
        for thread in self.to_be_cleared(Instant::now()) {
            self.clear_at(web, &thread).await;
        }
        self.state().left.is_empty()
    }

    async fn clear_at(&self, web: &Web, thread: &Thread) {
        match web.set_status(&thread.channel, &thread.ts, Status { status: "", line: None }).await {
            Err(failure) if !failure.is_final() => tracing::debug!(%failure, "a status could not be removed yet"),
            _ => drop(self.state().left.remove(thread)),
        }
    }

    /// Returns the threads whose status can be removed now.
    fn to_be_cleared(&self, now: Instant) -> Vec<Thread> {
        let mut state = self.state();
        let State { left, under_way, .. } = &mut *state;
        left.retain(|_, forgotten| now < *forgotten);
        left.keys().filter(|thread| !under_way.contains_key(thread)).cloned().collect()
    }

    /// Returns the statuses that Slack would soon remove. They count as shown again, whatever has
    /// removed them.
    fn due(&self, now: Instant) -> Vec<(String, Thread, String)> {
        let mut state = self.state();
        state.shown.retain(|_, shown| now.duration_since(shown.since) < LONGEST);
        let due = state.shown.iter_mut().filter(|(_, shown)| now.duration_since(shown.at) >= self.renew_after);
        due.map(|(event_id, shown)| {
            (shown.at, shown.is_gone) = (now, false);
            (event_id.clone(), shown.thread.clone(), shown.line.clone())
        })
        .collect()
    }

    fn under_way(self: &Arc<Self>, thread: &Thread) -> UnderWay {
        *self.state().under_way.entry(thread.clone()).or_default() += 1;
        UnderWay { statuses: Arc::clone(self), thread: thread.clone() }
    }

    /// Returns whether statuses are shown nowhere.
    pub(super) fn serve_nowhere(&self) -> bool {
        let Readable { direct, channels, groups } = self.readable;
        !(direct || channels || groups) || self.state().refused
    }

    fn serves(&self, channel: &str) -> bool {
        let state = self.state();
        let Readable { direct, channels, groups } = self.readable;
        let readable = match channel {
            _ if channel.starts_with('D') => direct,
            _ if state.groups.contains(channel) => groups,
            _ => channels,
        };
        readable && !state.refused && !state.without.contains(channel)
    }

    /// Notes that Slack refuses statuses; logged once if they are refused everywhere.
    fn refused(&self, channel: &str, failure: &CallFailure) {
        let is_about_the_token = failure.code().is_some_and(is_about_the_token);
        if failure.is_about_the_app() && !is_about_the_token {
            if !std::mem::replace(&mut self.state().refused, true) {
                tracing::info!(%failure, "Slack does not accept statuses; posting placeholders instead");
            }
            return;
        }
        tracing::debug!(%failure, channel, "Slack does not accept a status there; posting placeholders instead");
        if !is_about_the_token && !failure.is_about_the_thread() {
            self.unreadable(channel);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every entry is complete.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RENEWAL: Duration = Duration::from_secs(90);

    fn statuses(scopes: Option<&str>) -> Arc<Statuses> {
        Arc::new(Statuses::new(scopes, RENEWAL))
    }

    fn thread() -> Thread {
        Thread { channel: "C1".into(), ts: "1.1".into() }
    }

    fn showing(event_id: &str) -> Arc<Statuses> {
        let (statuses, now) = (statuses(None), Instant::now());
        let shown = Shown { thread: thread(), line: "looks".into(), is_gone: false, at: now, since: now };
        statuses.state().shown.insert(event_id.into(), shown);
        statuses
    }

    #[test]
    fn a_status_is_for_where_the_past_can_be_read() {
        for (scopes, direct, channel, group) in [
            (None, false, false, false),
            (Some("im:history, chat:write"), true, false, false),
            (Some("im:history,channels:history"), true, false, false),
            (Some("channels:history,groups:history"), false, true, false),
            (Some("mpim:history"), false, false, true),
        ] {
            let statuses = statuses(scopes);
            statuses.is_group("C9");
            let serves = ["D1", "C1", "C9"].map(|channel| statuses.serves(channel));
            assert_eq!(serves, [direct, channel, group], "{scopes:?}");
        }
        let statuses = statuses(Some("im:history,channels:history,groups:history"));
        statuses.unreadable("C1");
        assert_eq!((statuses.serves("C1"), statuses.serves("C2")), (false, true));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_shown_for_long_is_renewed_and_at_last_forgotten() {
        let (statuses, now) = (showing("Ev1"), Instant::now());
        assert!(statuses.due(now + RENEWAL / 2).is_empty());
        assert_eq!(statuses.due(now + RENEWAL), [("Ev1".to_owned(), thread(), "looks".to_owned())]);
        assert!(statuses.due(now + RENEWAL).is_empty(), "it was just renewed");
        assert!(statuses.due(now + LONGEST).is_empty());
        assert!(statuses.state().shown.is_empty());
    }

    /// Regression: a status that was renewed while its answer was streamed, or was being set when the answer was
    /// posted, remained below the answer.
    #[tokio::test(start_paused = true)]
    async fn one_that_comes_after_the_bots_message_is_taken_away() {
        let (statuses, now) = (showing("Ev1"), Instant::now());
        statuses.posted("Ev1", Some("1.1"));
        statuses.due(now + RENEWAL);
        statuses.ended("Ev1");
        assert_eq!(statuses.to_be_cleared(now), [thread()]);

        let statuses = showing("Ev1");
        let under_way = statuses.under_way(&thread());
        statuses.posted("Ev1", Some("1.1"));
        statuses.ended("Ev1");
        assert_eq!(statuses.to_be_cleared(now), [], "it would be overtaken by what is under way");
        drop(under_way);
        assert_eq!(statuses.to_be_cleared(now), [thread()]);
        assert_eq!(statuses.to_be_cleared(now + LIVES), [], "Slack has forgotten it");

        let statuses = showing("Ev1");
        statuses.posted("Ev1", Some("1.1"));
        statuses.ended("Ev1");
        assert_eq!(statuses.to_be_cleared(now), [], "the message has taken it away");
    }
}
