//! Informs the service manager: that the gateway is ready, its health, that it is alive, that it is stopping. Without a
//! service manager, this does nothing.

use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pmk_system::{service::ServiceManager, threads::offload};

use super::{
    Presence,
    health_check::{Condition, HealthCheck},
};
use crate::messages::Messages;

/// How often the health is checked.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A watchdog is notified this many times within its timeout, so that one late notification does no
/// harm.
const WORDS_A_WATCH: u32 = 4;

/// The service manager of this process.
pub struct Manager {
    service: Option<ServiceManager>,
    vitals: Arc<HealthCheck>,
    messages: Messages,
    /// The health it was last told.
    said: Mutex<String>,
    /// Whether the operator was told that it cannot be notified.
    told: AtomicBool,
}

impl Manager {
    /// Returns the manager that the environment names.
    pub fn of_environment(vitals: Arc<HealthCheck>, messages: Messages) -> Manager {
        let service = ServiceManager::of_environment().unwrap_or_else(|error| {
            tracing::warn!("the service manager cannot be told anything: NOTIFY_SOCKET: {error}");
            None
        });
        Manager { service, vitals, messages, said: Mutex::default(), told: AtomicBool::new(false) }
    }

    /// Reports that the gateway is ready.
    pub fn ready(&self) {
        self.tell(Some("READY=1"));
    }

    /// Asks for more time, for as long as something delays the start.
    pub async fn keep_waiting(&self) -> Infallible {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            self.tell(Some("EXTEND_TIMEOUT_USEC=60000000"));
        }
    }

    /// Reports that the gateway was asked to end, or that its input has ended.
    pub fn stopping(&self) {
        self.tell(Some("STOPPING=1"));
    }

    /// Reports the health whenever it changes, and to a watchdog that the gateway is alive, each time after checking
    /// that.
    pub(super) async fn keep_told(self: &Arc<Self>, presence: &Presence) -> Infallible {
        let Some(service) = &self.service else { return std::future::pending().await };
        let watch = service.watchdog();
        let every =
            watch.map_or(LOOK_EVERY, |watch| (watch / WORDS_A_WATCH).clamp(Duration::from_millis(1), LOOK_EVERY));
        loop {
            tokio::time::sleep(every).await;
            let alive = match watch {
                Some(watch) => tokio::time::timeout(watch, presence.responds()).await.unwrap_or(false),
                None => false,
            };
            let this = Arc::clone(self);
            offload(move || this.tell(alive.then_some("WATCHDOG=1"))).await;
        }
    }

    /// Sends this notification, together with the health if that has changed.
    fn tell(&self, word: Option<&str>) {
        let Some(service) = &self.service else { return };
        let Condition { level, reasons, .. } = self.vitals.now();
        let reasons = reasons.iter().map(|reason| (reason.name(), reason.count()));
        let line = self.messages.status_in_a_line(level.name(), reasons);
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let status = (*said != line).then(|| format!("STATUS={line}"));
        let words: Vec<&str> = word.into_iter().chain(status.as_deref()).collect();
        if words.is_empty() {
            return;
        }
        match service.tell(&words) {
            Ok(()) => {
                *said = line;
                self.told.store(false, Ordering::Relaxed);
            }
            Err(error) if !self.told.swap(true, Ordering::Relaxed) => {
                tracing::warn!("cannot notify the service manager: {error}");
            }
            Err(_) => {}
        }
    }
}
