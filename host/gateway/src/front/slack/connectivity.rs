//! Tracks when nobody could reach the bot, for how long, and how many messages arrived late because of it.
//!
//! The bot is unreachable while no connection works, and also while a connection that seems to work is dead:
//! Slack continues to send there. Slack sends again what was not acknowledged: at once, after a minute, and
//! after five. So a silence is logged soon after its end, and again if stragglers change its count; and one after
//! which Slack may have [given up](super::gaps) is reported while it goes on, because the program may end before it does.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pmk_system::clock;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::{config::Timings, gaps::Gaps};
use crate::{
    chat::{Connection, Notice},
    front::Intake,
};

/// The longest time until a silence is noticed: late messages are remembered for this long.
const REMEMBERED: Duration = Duration::from_secs(600);

/// How long a lost connection is remembered.
const LATELY: Duration = Duration::from_secs(600);

/// The state of all connections of the bot together.
pub(super) struct Connectivity {
    settle: Duration,
    stragglers: Duration,
    drain: Duration,
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    /// Connections that work, as far as is known.
    open: usize,
    /// Since when the bot is unreachable.
    deaf_since: Option<Instant>,
    /// The last silence that has ended, until its count is final.
    silence: Option<Silence>,
    /// When connections were lost.
    lost: VecDeque<Instant>,
    /// When messages arrived late.
    late: VecDeque<Instant>,
    /// What messages may be lost in.
    gaps: Gaps,
    /// What was not reported yet: silences with a final count, and those in which messages may be lost.
    settled: Vec<Notice>,
}

struct Silence {
    from: Instant,
    until: Instant,
    /// The end by the clock, in seconds, as Slack dates events.
    until_s: i64,
    /// How long nothing was received during it.
    deaf: Duration,
    /// When to report it; a silence that begins before that is part of it.
    tell_at: Instant,
    /// The count that was reported last.
    told: Option<u64>,
}

/// A working connection; dropping it marks the end of the connection.
pub(super) struct Presence<'a> {
    hearing: &'a Connectivity,
    silent_since: Option<Instant>,
}

impl Presence<'_> {
    /// Notes that nothing has arrived since then, although nobody closed the connection.
    pub(super) fn fell_silent(&mut self, since: Instant) {
        self.silent_since = Some(since);
    }
}

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        let mut state = self.hearing.state();
        state.open -= 1;
        if let Some(since) = self.silent_since
            && state.open > 0
        {
            // From now on, the other connections receive everything.
            state.gaps.begins(since);
            let lost = state.gaps.ends(Instant::now());
            state.may_have_missed(lost);
            state.hears_again(since, self.hearing.settle);
            drop(state);
            self.hearing.changed.notify_one();
            return;
        }
        let since = self.silent_since.or_else(|| (state.open == 0).then(Instant::now));
        state.deaf_since = [state.deaf_since, since].into_iter().flatten().min();
        if let Some(since) = state.deaf_since {
            state.gaps.begins(since);
            drop(state);
            self.hearing.changed.notify_one();
        }
    }
}

impl Connectivity {
    pub(super) fn new(timings: &Timings) -> Self {
        let Timings { settle, stragglers, drain, given_up, .. } = *timings;
        let state = State::new(Gaps::new(given_up, Instant::now()));
        Connectivity { settle, stragglers, drain, state: Mutex::new(state), changed: Notify::new() }
    }

    /// Notes that a connection works from now on.
    pub(super) fn opened(&self) -> Presence<'_> {
        let mut state = self.state();
        state.open += 1;
        if state.open == 1 {
            let lost = state.gaps.ends(Instant::now());
            state.may_have_missed(lost);
        }
        if let Some(since) = state.deaf_since.take() {
            state.hears_again(since, self.settle);
        }
        drop(state);
        self.changed.notify_one();
        Presence { hearing: self, silent_since: None }
    }

    /// Notes that a connection broke that was not about to be closed.
    pub(super) fn lost_one(&self) {
        self.state().lost.push_back(Instant::now());
    }

    /// Returns the state of the connections, of which there should be `of`.
    pub(super) fn connection(&self, of: usize) -> Connection {
        let mut state = self.state();
        while state.lost.front().is_some_and(|lost| lost.elapsed() > LATELY) {
            state.lost.pop_front();
        }
        Connection { open: state.open, of, reconnects: u32::try_from(state.lost.len()).unwrap_or(u32::MAX) }
    }

    /// Notes that a new message arrived; it is late if Slack had to send it again, or sent it during a silence.
    pub(super) fn came(&self, sent_again: bool, sent_s: Option<i64>) {
        let mut state = self.state();
        let in_silence = |silence: &Silence| sent_s.is_some_and(|sent_s| sent_s < silence.until_s);
        if sent_again || state.silence.as_ref().is_some_and(in_silence) {
            let now = Instant::now();
            while state.late.front().is_some_and(|first| now.duration_since(*first) > REMEMBERED) {
                state.late.pop_front();
            }
            state.late.push_back(now);
        }
    }

    /// Reports each silence, for as long as it is polled.
    pub(super) async fn tell(&self, intake: &dyn Intake) {
        loop {
            let changed = self.changed.notified();
            match self.look(intake) {
                Some(again) => tokio::select! {
                    biased;
                    () = changed => {}
                    () = sleep_until(again) => {}
                },
                None => changed.await,
            }
        }
    }

    /// Notes that the bot was as good as deaf for so long until now, of which nothing was reported.
    pub(super) fn was_deaf(&self, ago: Duration) {
        let mut state = self.state();
        let now = Instant::now();
        state.gaps.begins(now.checked_sub(ago).unwrap_or(now));
        if state.open > 0 {
            let lost = state.gaps.ends(now);
            state.may_have_missed(lost);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Returns for how long the bot has been deaf, if it is or was lately; with silences before that count together with
    /// this one.
    pub(super) fn deaf_for(&self) -> Option<Duration> {
        self.state().gaps.goes_on_for(Instant::now())
    }

    /// Returns whether messages may be lost now, because the bot has been deaf for long.
    pub(super) fn may_be_missing(&self) -> bool {
        self.state().gaps.is_long(Instant::now())
    }

    /// Sends the remaining notices to the intake, but does not log that the bot is connected again:
    /// there are no connections any more. If there were none before it was asked to end, nobody knows how long that will
    /// have lasted when the next run is connected.
    pub(super) fn finish(&self, intake: &dyn Intake) {
        let mut state = self.state();
        let now = Instant::now();
        // Otherwise, the connections have only just been closed.
        if state.open == 0 && state.deaf_since.is_none_or(|since| now.duration_since(since) > self.drain) {
            let lost = state.gaps.lasted(now).filter(|lasted| *lasted > self.drain);
            state.may_have_missed(lost);
        }
        state.close();
        state.settled.drain(..).for_each(|notice| intake.notice(notice));
    }

    /// Reports what is due; returns when to look again.
    fn look(&self, intake: &dyn Intake) -> Option<Instant> {
        let mut state = self.state();
        let lost = state.gaps.look(Instant::now());
        state.may_have_missed(lost);
        let again = [state.look(self.stragglers), state.gaps.due()].into_iter().flatten().min();
        state.settled.drain(..).for_each(|notice| intake.notice(notice));
        again
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each of its methods leaves it consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn new(gaps: Gaps) -> State {
        State {
            open: 0,
            deaf_since: None,
            silence: None,
            lost: VecDeque::new(),
            late: VecDeque::new(),
            gaps,
            settled: vec![],
        }
    }

    /// Notes that messages may be lost that were written since so long ago.
    fn may_have_missed(&mut self, since: Option<Duration>) {
        self.settled.extend(since.map(|since| Notice::MayHaveMissed { since }));
    }

    /// Notes that a silence has ended.
    fn hears_again(&mut self, from: Instant, settle: Duration) {
        let (until, until_s) = (Instant::now(), clock::now_ms() / 1_000);
        match &mut self.silence {
            Some(last) if from < last.tell_at => {
                // The overlap of the two counts once.
                let before = last.from.saturating_duration_since(from);
                last.deaf += before + until.saturating_duration_since(from.max(last.until));
                (last.from, last.until, last.until_s) = (last.from.min(from), until, until_s);
                last.told = None;
            }
            _ => {
                self.settle();
                let tell_at = until + settle;
                self.silence = Some(Silence { from, until, until_s, deaf: until - from, tell_at, told: None });
            }
        }
    }

    fn look(&mut self, stragglers: Duration) -> Option<Instant> {
        let silence = self.silence.as_ref()?;
        let (tell_at, last) = (silence.tell_at, silence.until + stragglers);
        let now = Instant::now();
        if now >= last {
            self.settle();
            return None;
        }
        if now < tell_at {
            return Some(tell_at);
        }
        if silence.told.is_none() {
            self.say();
        }
        Some(last)
    }

    /// The count is final.
    fn settle(&mut self) {
        self.say();
        self.close();
    }

    fn close(&mut self) {
        let late = self.late();
        if let Some(Silence { deaf, .. }) = self.silence.take() {
            self.settled.push(Notice::ConnectedAgain { deaf, late });
        }
    }

    /// Returns how many messages arrived late because of the silence.
    fn late(&self) -> u64 {
        let Some(silence) = &self.silence else { return 0 };
        self.late.iter().filter(|at| **at >= silence.from).count() as u64
    }

    /// Logs one line, unless it was logged already.
    fn say(&mut self) {
        let late = self.late();
        let Some(silence) = &mut self.silence else { return };
        if silence.told.replace(late) != Some(late) {
            let deaf_ms = silence.deaf.as_millis();
            tracing::info!("Connected again, {deaf_ms} ms deaf, {late} messages came late");
        }
    }
}

#[cfg(test)]
mod tests;
