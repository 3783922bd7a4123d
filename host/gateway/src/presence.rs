//! Presence (specification 003 §13): people are told when no gateway is running to answer and when one is again, and
//! what was asked meanwhile is answered all the same.
//!
//! - [`liveness`]: what a run leaves in the home about itself: a heartbeat, and a marker if it ended in an orderly way.
//! - [`outage`]: what those files tell the next run, and what the clocks tell a run whose machine was asleep or
//!   that could store nothing.
//! - [`broadcast`]: who is told, at most once an hour.
//! - [`state`], [`health`]: what `status` shows.
//! - [`health_check`]: the same for those that ask this process: a load balancer by [`probes`], the service manager by
//!   [`manager`].
//! - [`missed`]: Slack sends events again for about five minutes; older messages are read back.
//!
//! What is owed after an outage (people to tell, conversations to read back) is stored before anything says that the
//! gateway is back. So it is left for the next start if the process is killed meanwhile, or if the start fails.

mod broadcast;
pub mod health;
pub mod health_check;
mod liveness;
pub mod manager;
mod missed;
mod outage;
pub mod probes;
pub mod state;

use std::{
    convert::Infallible,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pmk_system::{clock::Clock, threads::offload};
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    config::PresenceConfig,
    dispatch::Dispatcher,
    front::Front,
    ledger::{Event, Ledger},
    messages::Messages,
    operator::{admins::Admins, permissions::Permissions},
    store::{Announce, LastSign, Outage, Store, StoreError, UnannouncedOutage},
};

pub use liveness::LivenessFiles;
pub use missed::FoundIntake;
pub use outage::AWAY_AFTER;

use broadcast::Circle;
use health_check::HealthCheck;
use manager::Manager;
use outage::{FoundOutages, Reading, Silence};

/// How often the heartbeat is written: well before [the last one is late](health), even if its proof takes a while.
pub const BEAT_EVERY: Duration = Duration::from_secs(20);

/// How long the liveness check before a heartbeat may take.
const PROVED_WITHIN: Duration = Duration::from_secs(15);

/// People who could not be told of an outage earlier are told for this long after its end. After that it is
/// no longer news.
const OWED_FOR: Duration = Duration::from_secs(60 * 60);

/// How long telling people about a shutdown may take. Whoever stops the gateway waits for it.
const FAREWELL_TIME: Duration = Duration::from_secs(10);

/// The ports that presence needs.
pub struct Ports {
    pub clock: Clock,
    pub store: Store,
    pub front: Arc<dyn Front>,
    pub ledger: Ledger,
    pub people: Arc<Permissions>,
    pub admins: Admins,
    pub messages: Arc<Messages>,
    pub settings: PresenceConfig,
    /// Cancelled when nothing new may begin.
    pub stop: CancellationToken,
    /// Tasks that must end before the gateway does.
    pub tasks: TaskTracker,
    pub dispatcher: Arc<Dispatcher>,
    pub found: Arc<dyn FoundIntake>,
    pub vitals: Arc<HealthCheck>,
    pub manager: Arc<Manager>,
}

impl Ports {
    /// Returns whether Slack refuses whatever is said or read, until somebody gives it another token.
    fn is_muted(&self) -> bool {
        self.front.refusal().is_some_and(|refusal| refusal.mutes)
    }
}

/// The presence of one run.
pub struct Presence {
    ports: Ports,
    signs: LivenessFiles,
    found: Mutex<FoundOutages>,
}

impl Presence {
    /// Marks the gateway as running. To be called when the start can no longer fail: until then, the files of the
    /// previous run stay unchanged. `last` is what the store's database has last heard of any host before this one.
    ///
    /// # Errors
    /// What is owed could not be stored.
    pub async fn begin(home: &Path, ports: Ports, last: Option<LastSign>) -> Result<Arc<Presence>, StoreError> {
        let now_ms = ports.clock.now_ms();
        let presence = Arc::new(Presence { ports, signs: LivenessFiles::of(home), found: Mutex::default() });
        let back = outage::at_start(presence.signs.read().or_elsewhere(last), now_ms);
        let mut silent_since_ms = presence.signs.silent_since_ms();
        // What another host has heard, this one need not look for.
        if let Some(since_ms) = silent_since_ms
            && presence.ports.store.others_hear(now_ms.saturating_sub(since_ms).max(0)).await?
        {
            silent_since_ms = None;
        }
        let silence = outage::silence_at_start(silent_since_ms, back, now_ms);
        presence.note_silence(silence, now_ms).await?;
        let online = presence.came_back(back, now_ms).await?;
        // From here on, a kill counts as a crash of this run, and no longer as the end of the
        // previous one.
        presence.signs.set_silent_since(presence.silent_since_ms(now_ms));
        presence.signs.beat(now_ms);
        presence.signs.remove_marker();
        presence.ports.ledger.note(online);
        Ok(presence)
    }

    /// Writes heartbeats, makes up for what is owed, and informs the service manager, for as long as it is polled. All of
    /// that runs concurrently: telling everybody takes minutes, and so does reading back. A heartbeat that waited for them
    /// would seem to have stopped, and a question that waited for the notices would be answered after them.
    pub async fn keep(&self) -> Infallible {
        let (telling, reading) = (self.keep_telling(), self.keep_reading());
        tokio::join!(self.keep_beating(), telling, reading, self.ports.manager.keep_told(self)).0
    }

    async fn keep_beating(&self) -> Infallible {
        let mut ticks = interval_at(Instant::now() + BEAT_EVERY, BEAT_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // When things could last be stored, and whether they could not be since.
        let (mut stored, mut has_failed) = (Reading::now(&self.ports.clock), false);
        self.found().look(stored);
        loop {
            tokio::select! {
                biased;
                _ = ticks.tick() => {}
                // The last heartbeat is from before the database was away.
                () = self.ports.store.back() => {}
            }
            let now = Reading::now(&self.ports.clock);
            let slept = self.found().look(now);
            if let Some(back) = slept {
                tracing::warn!(offline_ms = back.offline_ms, "this process was suspended for a while");
                // A silence like any other, unless it is long; then it is stored on its own.
                has_failed = true;
            }
            if let Err(error) = self.store_found().await {
                // Without a heartbeat: the last one tells the next run of the outage.
                tracing::error!(%error, "cannot find out what was missed in the meantime");
                has_failed = true;
                continue;
            }
            if slept.is_some_and(|back| back.is_long) {
                (stored, has_failed) = (now, false);
            }
            match tokio::time::timeout(PROVED_WITHIN, self.prove_able()).await {
                Ok(Ok(())) => {
                    // First: once there is a heartbeat, nothing else tells of it.
                    if let Err(error) = self.note_silence_since(stored, has_failed).await {
                        tracing::error!(%error, "no heartbeat: cannot note that messages may have been missed");
                        has_failed = true;
                        continue;
                    }
                    (stored, has_failed) = (now, false);
                    self.beat();
                }
                Ok(Err(error)) => {
                    tracing::error!(%error, "no heartbeat: nothing can be stored");
                    has_failed = true;
                }
                // What is slow loses nothing.
                Err(_) => tracing::error!("no heartbeat: the message queues do not respond"),
            }
        }
    }

    /// Stores what is owed after the outages that this run has found.
    ///
    /// # Errors
    /// One could not be stored; it and the later ones are still to be.
    async fn store_found(&self) -> Result<(), StoreError> {
        loop {
            let unstored = self.found().unstored();
            let Some((back, until_ms)) = unstored else { return Ok(()) };
            let online = self.came_back(back, until_ms).await?;
            self.found().stored();
            self.ports.ledger.note(online);
        }
    }

    /// Notes for how long nothing could be stored until now, if that was too long. `has_failed` tells whether that is
    /// known, or nothing was only seen to be stored.
    ///
    /// # Errors
    /// It could not be stored.
    async fn note_silence_since(&self, stored: Reading, has_failed: bool) -> Result<(), StoreError> {
        let now = Reading::now(&self.ports.clock);
        match outage::silence_until(now, stored, has_failed) {
            Some(silence) => self.note_silence(silence, now.wall_ms).await,
            None => Ok(()),
        }
    }

    /// Sees to it that what was said in a silence that lasted until now is read back.
    async fn note_silence(&self, silence: Silence, now_ms: i64) -> Result<(), StoreError> {
        match silence {
            Silence::Long(lasted) if self.may_read() => {
                self.ports.store.came_back(owed_after_silence(lasted, now_ms)).await?;
            }
            Silence::Short(lasted) => self.ports.front.was_deaf(lasted),
            Silence::Long(_) | Silence::AsAway => {}
        }
        Ok(())
    }

    fn found(&self) -> MutexGuard<'_, FoundOutages> {
        // Each of its methods leaves it consistent.
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that a message could be stored and answered: commits to the disk and locks the queues. Waits for as long as
    /// one of them is stuck.
    ///
    /// # Errors
    /// Nothing can be stored.
    async fn prove_able(&self) -> Result<(), StoreError> {
        self.ports.store.commit_something().await?;
        self.ports.dispatcher.prove_alive().await;
        Ok(())
    }

    /// Returns whether the parts of this process that every message passes through work. Waits for as long as one of them
    /// is stuck. A restart would help neither a database that is away nor a disk that is full.
    pub(crate) async fn responds(&self) -> bool {
        let works = self.ports.store.writer_responds().await;
        self.ports.dispatcher.prove_alive().await;
        works
    }

    /// Tells people, as owed. What cannot be done now is retried one heartbeat later.
    async fn keep_telling(&self) -> Infallible {
        loop {
            if self.makes_good()
                && let Err(error) = self.tell_owed().await
            {
                tracing::warn!(%error, "cannot find out whom to tell that the gateway is back");
            }
            tokio::time::sleep(BEAT_EVERY).await;
        }
    }

    /// Reads back, as owed. What cannot be done now is retried one heartbeat later.
    async fn keep_reading(&self) -> Infallible {
        let mut failed = missed::Failed::default();
        loop {
            if self.makes_good() {
                missed::read(&self.ports, &mut failed).await;
            }
            tokio::time::sleep(BEAT_EVERY).await;
        }
    }

    /// Of several hosts, only one makes up for an outage. One that is deaf would delay that. While Slack refuses the
    /// bot token, nobody could be told, and nothing read.
    fn makes_good(&self) -> bool {
        self.ports.store.is_first_to_hear() && !self.ports.is_muted()
    }

    /// Notes that the gateway ends because it was asked to or because its input has ended, and tells
    /// people. To be polled along with the gateway's end, on which it waits if there are several hosts.
    pub async fn leave(&self) {
        self.ports.vitals.set_leaving();
        self.ports.manager.stopping();
        let now_ms = self.ports.clock.now_ms();
        // Until the connections are closed. The last heartbeat may be from before a silence had ended.
        self.signs.set_silent_since(self.silent_since_ms(now_ms));
        // After an outage that is not stored yet, the next run goes by the last heartbeat, which is from before it.
        self.signs.leave_marker(now_ms);
        let broadcast = self.may_broadcast() && self.leaves_nobody().await;
        if broadcast {
            let circle = Circle::before(now_ms, now_ms);
            let away = self.ports.messages.away();
            let telling = broadcast::tell(&self.ports, &away, circle);
            if tokio::time::timeout(FAREWELL_TIME, telling).await.is_err() {
                tracing::warn!("not everybody was told in time that the gateway is stopping");
            }
        }
        self.ports.ledger.note(Event::GatewayOffline { broadcast, reason: "shutdown" });
    }

    /// Whether no other host goes on: while one does, the gateway is not away. By their last looks, hosts that are asked
    /// to end at the same time would each take the others for running. What cannot be known in time counts as a host
    /// that goes on.
    async fn leaves_nobody(&self) -> bool {
        let others_stay = self.ports.store.others_stay();
        tokio::time::timeout(FAREWELL_TIME, others_stay).await.is_ok_and(|others_stay| !others_stay)
    }

    /// Stores what is owed after an outage and returns the event of being back.
    async fn came_back(&self, back: outage::Back, now_ms: i64) -> Result<Event, StoreError> {
        let announce = (back.is_owed() && self.may_broadcast())
            .then(|| Announce { reason: back.reason.name().to_owned(), is_news: back.is_told });
        let read = back.is_long && self.may_read();
        let outage = Outage { since_ms: back.since_ms, until_ms: now_ms, announce, read };
        // An earlier outage that was not announced yet is part of this one.
        let mut owed = self.ports.store.came_back(outage).await?;
        if owed.is_some() && !self.may_broadcast() {
            // Broadcasting was switched off since.
            self.ports.store.settled().await?;
            owed = None;
        }
        let told = owed.filter(UnannouncedOutage::is_told);
        let offline_duration_ms = match &told {
            Some(told) => told.since_ms.and_then(|since| u64::try_from(now_ms - since).ok()),
            None => back.offline_ms,
        };
        let reason = told.as_ref().map_or(back.reason.name().to_owned(), |told| told.reason.clone());
        Ok(Event::GatewayOnline { broadcast: told.is_some(), reason, offline_duration_ms })
    }

    async fn tell_owed(&self) -> Result<(), StoreError> {
        let Some(owed) = self.ports.store.owed().await? else { return Ok(()) };
        let minutes = owed.since_ms.map(|since| whole_minutes(owed.until_ms - since)).filter(|minutes| *minutes > 0);
        // The people who talked with the gateway before it went away. Others may have begun since it is back, or at
        // its very first start.
        let circle = Circle::before(owed.since_ms.unwrap_or(owed.until_ms), owed.until_ms);
        let is_news = self.ports.clock.now_ms() - owed.until_ms < OWED_FOR.as_millis() as i64;
        let is_settled = match (is_news, owed.is_told()) {
            (false, _) => true,
            (true, true) => broadcast::tell(&self.ports, &self.ports.messages.back(minutes), circle).await,
            (true, false) => {
                let went_ms = owed.since_ms.unwrap_or(owed.until_ms);
                broadcast::correct(&self.ports, &self.ports.messages.back(None), went_ms, circle).await
            }
        };
        if is_settled {
            self.ports.store.settled().await?;
        }
        Ok(())
    }

    fn may_broadcast(&self) -> bool {
        self.ports.settings.broadcast && self.ports.front.reaches_absent()
    }

    fn may_read(&self) -> bool {
        self.ports.settings.read_missed && self.ports.front.reaches_absent()
    }

    /// Returns since when nothing can have arrived, if that is still so, or ended so recently that it matters to the
    /// next run.
    fn silent_since_ms(&self, now_ms: i64) -> Option<i64> {
        let lasted = self.ports.front.deaf_for()?;
        Some(now_ms.saturating_sub(i64::try_from(lasted.as_millis()).unwrap_or(i64::MAX)))
    }

    fn beat(&self) {
        let (signs, now_ms) = (self.signs.clone(), self.ports.clock.now_ms());
        let silent_since_ms = self.silent_since_ms(now_ms);
        // The disk may be slow; nothing waits for it.
        self.ports.tasks.spawn(offload(move || {
            signs.set_silent_since(silent_since_ms);
            signs.beat(now_ms);
        }));
    }
}

/// Returns what is owed after a silence: the gateway was running, but unreachable, or could store nothing, for so long
/// that Slack may have given up resending. The authors have seen that nobody answered; a message would tell them nothing
/// new.
pub(crate) fn owed_after_silence(since: Duration, now_ms: i64) -> Outage {
    let ago_ms = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    Outage { since_ms: Some(now_ms.saturating_sub(ago_ms)), until_ms: now_ms, announce: None, read: true }
}

/// Rounds to whole minutes.
fn whole_minutes(ms: i64) -> u64 {
    u64::try_from(ms.saturating_add(30_000) / 60_000).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{Attachments, Inbound, ReplyTo};

    #[test]
    fn minutes_are_whole_and_the_nearest() {
        let minutes = [(0, 0), (29_999, 0), (30_000, 1), (449_999, 7), (450_000, 8), (-5, 0)];
        for (ms, minutes) in minutes {
            assert_eq!(whole_minutes(ms), minutes, "{ms}");
        }
    }

    /// The process runs and its heartbeat is written, but the network was down.
    #[tokio::test]
    async fn after_a_long_silence_what_was_missed_is_read_and_nobody_is_told() {
        const NOW: i64 = 1_760_000_000_000;
        let home = tempfile::tempdir().expect("a folder");
        let store = Store::open(home.path()).expect("a store");
        let before = Inbound {
            event_id: "Ev1".into(),
            aliases: vec![],
            key: "slack:dm:U1".parse().expect("a key"),
            user: "U1".into(),
            reply_to: ReplyTo { channel: "D1".into(), thread_ts: None },
            text: "hello".into(),
            attached: Attachments::default(),
            if_awaited: false,
            by_app: false,
            team: None,
            in_group: false,
            asked_at: None,
            ts: format!("{}.000100", NOW / 1_000 - 3_600),
        };
        store.accept(&before, NOW - 3_600_000).await.expect("a store").expect("a new message");
        let owed = store.came_back(owed_after_silence(Duration::from_secs(600), NOW)).await.expect("a store");
        assert_eq!(owed, None, "nobody is told");
        let unread = store.unread(10).await.expect("a store").conversations;
        assert_eq!(unread.iter().map(|unread| unread.key.to_string()).collect::<Vec<_>>(), ["slack:dm:U1"]);
    }
}
