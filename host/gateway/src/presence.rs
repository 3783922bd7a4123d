//! Honest about being away (seed 003, "Honest offline UX"): people are told when nobody is there to answer and when
//! somebody is again, and what was asked meanwhile is answered all the same.
//!
//! - [`signs`]: what a run leaves in the home about itself: a heartbeat, and a marker where it ended in an orderly way.
//! - [`outage`]: what those tell the next run, and what a clock tells one whose machine slept.
//! - [`broadcast`]: who is told, at most once an hour.
//! - [`missed`]: Slack sends again for about five minutes; what is older is read back.
//!
//! What is owed after an outage (people to tell, conversations to read) is in the store before anything says that the
//! gateway is back. So a kill in the middle of it, or a start that fails, leaves it for the next start.

mod broadcast;
mod missed;
mod outage;
mod signs;

use std::{convert::Infallible, path::Path, sync::Arc, time::Duration};

use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::{
    clock,
    dispatch::Dispatcher,
    gateway::Gateway,
    ledger::Event,
    store::{Outage, StoreError},
};

pub use outage::AWAY_AFTER;
pub use signs::Signs;

use outage::Reading;

/// How often the heartbeat is written.
pub const BEAT_EVERY: Duration = Duration::from_secs(30);

/// For so long after its end it is tried to make good an outage. Later nobody is waiting for it any more.
const OWED_FOR: Duration = Duration::from_secs(60 * 60);

/// How long saying goodbye may take. Whoever stops a gateway waits for it.
const FAREWELL_TIME: Duration = Duration::from_secs(10);

/// The presence of one run.
pub struct Presence {
    gateway: Arc<Gateway>,
    dispatcher: Arc<Dispatcher>,
    signs: Signs,
    /// Held while people are told, and while conversations are read back: each is done once.
    making_good: tokio::sync::Mutex<()>,
}

impl Presence {
    /// The gateway is there from now on. To be called when nothing of the start can fail any more: until then the signs
    /// of the run before stay as they are.
    ///
    /// # Errors
    /// What is owed could not be stored.
    pub async fn begin(
        home: &Path,
        gateway: &Arc<Gateway>,
        dispatcher: &Arc<Dispatcher>,
    ) -> Result<Arc<Presence>, StoreError> {
        let presence = Arc::new(Presence {
            gateway: Arc::clone(gateway),
            dispatcher: Arc::clone(dispatcher),
            signs: Signs::of(home),
            making_good: tokio::sync::Mutex::default(),
        });
        let now_ms = clock::now_ms();
        let back = outage::at_start(presence.signs.read(), now_ms);
        presence.came_back(back, now_ms).await?;
        presence.beat();
        presence.signs.remove_marker();
        Ok(presence)
    }

    /// Beats, and makes good what is owed, for as long as it is polled.
    pub async fn keep(&self) -> Infallible {
        let mut ticks = interval_at(Instant::now() + BEAT_EVERY, BEAT_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = Reading::now();
        self.make_good().await;
        loop {
            ticks.tick().await;
            let now = Reading::now();
            if let Some(back) = outage::between(last, now) {
                tracing::warn!(offline_ms = back.offline_ms, "this process did not run for a while");
                if let Err(error) = self.came_back(back, now.wall_ms).await {
                    tracing::error!(%error, "what was missed meanwhile is not known");
                }
            }
            last = now;
            self.beat();
            self.make_good().await;
        }
    }

    /// Somebody has asked the gateway to end, or its input has: that is remembered, and people are told.
    pub async fn leave(&self) {
        let now_ms = clock::now_ms();
        self.signs.leave_marker(now_ms);
        let broadcast = self.may_broadcast();
        if broadcast {
            let since = now_ms.saturating_sub(broadcast::ACTIVE_FOR_MS);
            let away = self.gateway.say.away();
            let telling = broadcast::tell(&self.gateway, &away, since);
            if tokio::time::timeout(FAREWELL_TIME, telling).await.is_err() {
                tracing::warn!("not everybody was told in time that the gateway goes");
            }
        }
        self.gateway.ledger.note(Event::GatewayOffline { broadcast, reason: "shutdown" });
    }

    /// Stores what is owed after an outage, and notes that the gateway is back.
    async fn came_back(&self, back: outage::Back, now_ms: i64) -> Result<(), StoreError> {
        let announce = (back.is_told && self.may_broadcast()).then(|| back.reason.name().to_owned());
        let read = back.is_long && self.gateway.front.reaches_absent() && self.gateway.config.presence.read_missed;
        let outage = Outage { since_ms: back.since_ms, until_ms: now_ms, announce, read };
        // An earlier one of which nobody was told yet is part of this one.
        let mut owed = self.gateway.store.came_back(outage).await?;
        if owed.is_some() && !self.may_broadcast() {
            // Switched off since.
            self.gateway.store.settled().await?;
            owed = None;
        }
        let offline_duration_ms = match &owed {
            Some(owed) => owed.since_ms.and_then(|since| u64::try_from(now_ms - since).ok()),
            None => back.offline_ms,
        };
        let reason = owed.as_ref().map_or(back.reason.name().to_owned(), |owed| owed.reason.clone());
        self.gateway.ledger.note(Event::GatewayOnline { broadcast: owed.is_some(), reason, offline_duration_ms });
        Ok(())
    }

    /// Tells whoever is to be told, and reads what is to be read. What cannot be done now is tried at the next beat.
    async fn make_good(&self) {
        let _making_good = self.making_good.lock().await;
        let now_ms = clock::now_ms();
        if let Err(error) = self.gateway.store.forget_owed(now_ms.saturating_sub(OWED_FOR.as_millis() as i64)).await {
            tracing::warn!(%error, "what is owed after an outage is not forgotten");
        }
        if let Err(error) = self.tell_owed().await {
            tracing::warn!(%error, "who is to be told that the gateway is back is not known");
        }
        missed::read(&self.gateway, &self.dispatcher).await;
    }

    async fn tell_owed(&self) -> Result<(), StoreError> {
        let Some(owed) = self.gateway.store.owed().await? else { return Ok(()) };
        let minutes = owed.since_ms.map(|since| whole_minutes(owed.until_ms - since)).filter(|minutes| *minutes > 0);
        // Who talked with it before it went; nobody could since.
        let since = owed.since_ms.unwrap_or(owed.until_ms).saturating_sub(broadcast::ACTIVE_FOR_MS);
        if broadcast::tell(&self.gateway, &self.gateway.say.back(minutes), since).await {
            self.gateway.store.settled().await?;
        }
        Ok(())
    }

    fn may_broadcast(&self) -> bool {
        self.gateway.config.presence.broadcast && self.gateway.front.reaches_absent()
    }

    fn beat(&self) {
        let signs = self.signs.clone();
        // The disk may be slow; nobody waits for it.
        self.gateway.aside(move || signs.beat(clock::now_ms()));
    }
}

/// What is owed where nobody could reach the gateway for so long although it was there: Slack has given up what it sent.
pub(crate) fn owed_after_silence(gateway: &Gateway, deaf: Duration, now_ms: i64) -> Option<Outage> {
    let is_owed = deaf >= missed::READ_AFTER && gateway.config.presence.read_missed && gateway.front.reaches_absent();
    let deaf_ms = i64::try_from(deaf.as_millis()).unwrap_or(i64::MAX);
    let since_ms = Some(now_ms.saturating_sub(deaf_ms));
    is_owed.then_some(Outage { since_ms, until_ms: now_ms, announce: None, read: true })
}

/// The nearest number of whole minutes.
fn whole_minutes(ms: i64) -> u64 {
    u64::try_from(ms.saturating_add(30_000) / 60_000).unwrap_or(0)
}
