//! Suggested prompts, shown to people when they open their direct message with the bot. Nobody waits for them, and if
//! they cannot be shown, nothing else happens.

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::de::IgnoredAny;
use serde_json::json;
use tokio::{sync::Notify, time::Instant};

use super::{
    config::Prompt,
    web::{Slot, Web},
};

const METHOD: &str = "assistant.threads.setSuggestedPrompts";

/// Slack keeps showing them: nobody is shown them again within this time, even if it failed.
const ONCE_IN: Duration = Duration::from_secs(6 * 60 * 60);

/// The most people that are remembered. Further people within that time see the prompts that Slack
/// has kept.
const MAX_PEOPLE: usize = 10_000;

/// The prompts, and who is to be shown them.
#[derive(Debug)]
pub(super) struct Prompts {
    list: Vec<Prompt>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    shown: HashMap<String, Instant>,
    /// The direct messages in which they are to be shown.
    due: VecDeque<String>,
}

impl Prompts {
    pub(super) fn new(list: Vec<Prompt>) -> Prompts {
        Prompts { list, state: Mutex::default(), changed: Notify::new() }
    }

    /// Notes that somebody has opened their direct message. Does not block.
    pub(super) fn opened(&self, user: String, channel: String) {
        if !self.list.is_empty() && self.state().is_due(user, channel, Instant::now()) {
            self.changed.notify_one();
        }
    }

    /// Shows them where they are due, for as long as it is polled.
    pub(super) async fn show(&self, web: &Web) -> Infallible {
        loop {
            let changed = self.changed.notified();
            while let Some(channel) = self.next() {
                // Without `thread_ts`: with it, Slack shows them to nobody and still reports success.
                let request = json!({"channel_id": channel, "prompts": self.list});
                if let Err(failure) = web.write::<_, IgnoredAny>(&Slot::courtesy(METHOD), &request).await {
                    tracing::debug!(%failure, "somebody is shown no prompts");
                }
            }
            changed.await;
        }
    }

    fn next(&self) -> Option<String> {
        self.state().due.pop_front()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each of its methods leaves it consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns whether somebody is to be shown them now.
    fn is_due(&mut self, user: String, channel: String, now: Instant) -> bool {
        if self.shown.get(&user).is_some_and(|shown| now.duration_since(*shown) < ONCE_IN) {
            return false;
        }
        if self.shown.len() >= MAX_PEOPLE {
            self.shown.retain(|_, shown| now.duration_since(*shown) < ONCE_IN);
        }
        if self.shown.len() >= MAX_PEOPLE {
            return false;
        }
        self.shown.insert(user, now);
        self.due.push_back(channel);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_shown_them_again_within_some_hours() {
        let (mut state, now) = (State::default(), Instant::now());
        let mut is_due = |user: &str, at| state.is_due(user.to_owned(), format!("D{user}"), at);
        assert!(is_due("U1", now) && is_due("U2", now));
        assert!(!is_due("U1", now + ONCE_IN - Duration::from_secs(1)));
        assert!(is_due("U1", now + ONCE_IN));
        assert_eq!(state.due.len(), 3);
    }

    #[test]
    fn a_crowd_is_not_remembered_for_ever() {
        let (mut state, now) = (State::default(), Instant::now());
        let is_due = |state: &mut State, n: usize, at| state.is_due(format!("U{n}"), "D1".to_owned(), at);
        assert!((0..MAX_PEOPLE).all(|n| is_due(&mut state, n, now)));
        assert!(!is_due(&mut state, MAX_PEOPLE, now));
        assert!(is_due(&mut state, MAX_PEOPLE, now + ONCE_IN));
        assert_eq!(state.shown.len(), 1);
    }
}
