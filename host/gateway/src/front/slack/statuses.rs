//! That an answer is being made, shown as the status of its thread: it leaves no message behind that would have to be edited,
//! and notifies nobody.
//!
//! Which way it is shown is decided before anything is said. A status is gone once the bot posts, so the answer is a new
//! message, and after a crash only the history can tell whether it is there. Where that cannot be read, or Slack takes no status,
//! a placeholder is posted, and the answer takes its place.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::{
    failure::{CallFailure, is_about_the_token},
    web::{Status, Web},
};

/// Slack forgets a status after two minutes.
const RENEW_AFTER: Duration = Duration::from_secs(90);

/// How often it is looked which are to be renewed.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// A turn that takes longer than this shows nothing any more.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// Channels of which it is remembered that they take no status, or cannot be read.
const MAX_CHANNELS: usize = 10_000;

/// What can be read back, by the scopes of the token.
#[derive(Clone, Copy, Debug, Default)]
struct Readable {
    direct: bool,
    channels: bool,
}

/// The statuses of all turns.
#[derive(Debug)]
pub(super) struct Statuses {
    readable: Readable,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// By the event that is being answered.
    shown: HashMap<String, Shown>,
    /// Those that no message takes away.
    left: Vec<Thread>,
    /// Slack takes none at all, or none there.
    refused: bool,
    without: HashSet<String>,
}

/// Where a status is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Thread {
    pub(super) channel: String,
    pub(super) ts: String,
}

#[derive(Debug)]
struct Shown {
    thread: Thread,
    line: String,
    /// A message has taken it away.
    is_gone: bool,
    /// When Slack was last told.
    at: Instant,
    since: Instant,
}

impl Statuses {
    /// `scopes` are the token's, with commas between; where nobody says them, nothing is known to be readable.
    pub(super) fn new(scopes: Option<&str>) -> Statuses {
        let granted: Vec<&str> = scopes.unwrap_or_default().split(',').map(str::trim).collect();
        let has = |scope: &str| granted.contains(&scope);
        let readable = Readable {
            direct: has("im:history"),
            // A channel's id does not tell whether it is private.
            channels: has("channels:history") && has("groups:history"),
        };
        Statuses { readable, state: Mutex::default(), changed: Notify::new() }
    }

    /// Shows one for this event; false where a placeholder has to do.
    pub(super) async fn begin(&self, web: &Web, event_id: &str, thread: Thread, status: Status<'_>) -> bool {
        if !self.serves(&thread.channel) {
            return false;
        }
        if let Err(failure) = web.set_status(&thread.channel, &thread.ts, status).await {
            if failure.is_final() {
                self.refused(&thread.channel, &failure);
                return false;
            }
            // It may be shown by the next line of progress.
            tracing::debug!(%failure, "no status is shown");
        }
        let now = Instant::now();
        let line = status.line.unwrap_or_default().to_owned();
        self.state().shown.insert(event_id.to_owned(), Shown { thread, line, is_gone: false, at: now, since: now });
        true
    }

    /// Whether it is shown that this event is being answered.
    pub(super) fn are_shown(&self, event_id: &str) -> bool {
        self.state().shown.contains_key(event_id)
    }

    /// Shows another line; `None` where this event has no status.
    pub(super) async fn show(&self, web: &Web, event_id: &str, status: Status<'_>) -> Option<Result<(), CallFailure>> {
        let thread = {
            let mut state = self.state();
            let shown = state.shown.get_mut(event_id)?;
            shown.line = status.line.unwrap_or_default().to_owned();
            shown.is_gone = false;
            shown.at = Instant::now();
            shown.thread.clone()
        };
        Some(web.set_status(&thread.channel, &thread.ts, status).await)
    }

    /// The bot has posted something for this event at that place.
    pub(super) fn posted(&self, event_id: &str, thread_ts: Option<&str>) {
        if let Some(shown) = self.state().shown.get_mut(event_id) {
            shown.is_gone |= thread_ts == Some(&shown.thread.ts);
        }
    }

    /// Nothing is made for this event any more.
    pub(super) fn end(&self, event_id: &str) {
        let ended = self.state().shown.remove(event_id);
        if let Some(Shown { thread, is_gone: false, .. }) = ended {
            self.leave(thread);
        }
    }

    /// One that no message takes away.
    fn leave(&self, thread: Thread) {
        self.state().left.push(thread);
        self.changed.notify_one();
    }

    /// The past of this channel cannot be read.
    pub(super) fn unreadable(&self, channel: &str) {
        let mut state = self.state();
        if state.without.len() < MAX_CHANNELS {
            state.without.insert(channel.to_owned());
        }
    }

    /// Renews what is shown for long, and takes away what no message does. Never ends.
    pub(super) async fn keep(&self, web: &Web, status: &str) {
        loop {
            tokio::select! {
                () = self.changed.notified() => {}
                () = sleep(LOOK_EVERY) => {}
            }
            let left = std::mem::take(&mut self.state().left);
            for Thread { channel, ts } in left {
                if let Err(failure) = web.set_status(&channel, &ts, Status { status: "", line: None }).await {
                    tracing::debug!(%failure, "a status goes by itself");
                }
            }
            for (event_id, thread, line) in self.due(Instant::now()) {
                if !self.are_shown(&event_id) {
                    continue;
                }
                let shown = Status { status, line: (!line.is_empty()).then_some(line.as_str()) };
                if let Err(failure) = web.set_status(&thread.channel, &thread.ts, shown).await {
                    tracing::debug!(%failure, "a status is not renewed");
                }
                // Over meanwhile: no message takes it away any more.
                if !self.are_shown(&event_id) {
                    self.leave(thread);
                }
            }
        }
    }

    /// Those that Slack would soon forget.
    fn due(&self, now: Instant) -> Vec<(String, Thread, String)> {
        let mut state = self.state();
        state.shown.retain(|_, shown| now.duration_since(shown.since) < LONGEST);
        let due = state.shown.iter_mut().filter(|(_, shown)| now.duration_since(shown.at) >= RENEW_AFTER);
        due.map(|(event_id, shown)| {
            shown.at = now;
            (event_id.clone(), shown.thread.clone(), shown.line.clone())
        })
        .collect()
    }

    fn serves(&self, channel: &str) -> bool {
        let state = self.state();
        let readable = if channel.starts_with('D') { self.readable.direct } else { self.readable.channels };
        readable && !state.refused && !state.without.contains(channel)
    }

    /// Slack takes none; it is said once where that is so everywhere.
    fn refused(&self, channel: &str, failure: &CallFailure) {
        if failure.is_about_the_app() && !failure.code().is_some_and(is_about_the_token) {
            if !std::mem::replace(&mut self.state().refused, true) {
                tracing::info!(%failure, "Slack takes no status; placeholders are posted instead");
            }
            return;
        }
        tracing::debug!(%failure, channel, "Slack takes no status there; placeholders are posted instead");
        self.unreadable(channel);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every entry is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_for_where_the_past_can_be_read() {
        for (scopes, direct, channel) in [
            (None, false, false),
            (Some("im:history, chat:write"), true, false),
            (Some("im:history,channels:history"), true, false),
            (Some("channels:history,groups:history"), false, true),
        ] {
            let statuses = Statuses::new(scopes);
            assert_eq!((statuses.serves("D1"), statuses.serves("C1")), (direct, channel), "{scopes:?}");
        }
        let statuses = Statuses::new(Some("im:history,channels:history,groups:history"));
        statuses.unreadable("C1");
        assert_eq!((statuses.serves("C1"), statuses.serves("C2")), (false, true));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_shown_for_long_is_renewed_and_at_last_forgotten() {
        let statuses = Statuses::new(None);
        let thread = Thread { channel: "C1".into(), ts: "1.1".into() };
        let now = Instant::now();
        let shown = Shown { thread: thread.clone(), line: "looks".into(), is_gone: false, at: now, since: now };
        statuses.state().shown.insert("Ev1".into(), shown);
        assert!(statuses.due(now + RENEW_AFTER / 2).is_empty());
        assert_eq!(statuses.due(now + RENEW_AFTER), [("Ev1".to_owned(), thread, "looks".to_owned())]);
        assert!(statuses.due(now + RENEW_AFTER).is_empty(), "it was just renewed");
        assert!(statuses.due(now + LONGEST).is_empty());
        assert!(statuses.state().shown.is_empty());
    }
}
