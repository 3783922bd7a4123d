//! The way to one database, which all connections of a store go: whether it can be gone at the moment, and as whom. While the
//! database is away it is tried less and less often, and the log tells of that once.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use pmk_system::{clock, error::Failure, threads::Threads};
use tokio::{sync::Notify, time::Instant};
use tokio_postgres::Config;

use super::{Error, Result, tls::Connector};
use crate::database::Checks;

/// How long nobody tries to connect after it has failed: from the one to the other, which is a part of a host's lease.
const PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];

/// The way to one database, which all connections of a store go.
pub(in crate::store) struct Link {
    pub(super) config: Config,
    pub(super) tls: Option<Connector>,
    /// How it is called where people read it: without the password.
    name: String,
    /// Which home goes it: machine and folder.
    home: String,
    /// What says the time.
    threads: Threads,
    since: Instant,
    outage: Mutex<Option<Outage>>,
    /// Tells who waits for the end of one.
    pub(in crate::store) back: Arc<Notify>,
    /// Whether statements may have names at all.
    may_name: AtomicBool,
    /// As which host this process writes; 0: as none.
    host: AtomicI64,
    /// When the last transaction was begun by which that host was certainly heard of.
    heard: Mutex<Option<Duration>>,
}

/// The database is away.
#[derive(Clone, Debug)]
struct Outage {
    since: Instant,
    why: String,
    pause: Duration,
    not_before: Instant,
}

impl Link {
    pub(in crate::store) fn new(
        config: Config,
        checks: Checks,
        (name, home): (String, String),
        threads: Threads,
    ) -> Result<Link, Failure> {
        let tls = Connector::new(checks).map_err(|error| Failure::new(format!("cannot use TLS: {error}")))?;
        Ok(Link {
            config,
            tls,
            name,
            home,
            threads,
            since: Instant::now(),
            outage: Mutex::default(),
            back: Arc::default(),
            may_name: AtomicBool::new(true),
            host: AtomicI64::new(0),
            heard: Mutex::default(),
        })
    }

    pub(in crate::store) fn name(&self) -> &str {
        &self.name
    }

    /// What the address asks the server to set.
    pub(in crate::store) fn options(&self) -> &str {
        self.config.get_options().unwrap_or_default()
    }

    pub(in crate::store) fn home(&self) -> &String {
        &self.home
    }

    /// From now on every transaction is this host's, or comes to nothing once that has lost its right to write.
    pub(in crate::store) fn write_as(&self, host: i64) {
        self.host.store(host, Ordering::Release);
    }

    pub(in crate::store) fn host(&self) -> i64 {
        self.host.load(Ordering::Acquire)
    }

    /// This host has committed what it had begun then.
    pub(super) fn was_heard(&self, begun: Duration) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(begun);
    }

    /// This host is none any more.
    pub(in crate::store) fn is_heard_no_more(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// For how long nobody may have heard of this host.
    pub(in crate::store) fn silent_for(&self) -> Duration {
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.map_or(Duration::MAX, |heard| self.now().saturating_sub(heard))
    }

    /// The time since some moment, which goes by while the machine sleeps, too.
    pub(super) fn now(&self) -> Duration {
        match self.threads {
            Threads::Own => clock::since_boot(),
            // The machine has no part in what time it is where the runtime says so.
            Threads::None(_) => self.since.elapsed(),
        }
    }

    fn outage(&self) -> MutexGuard<'_, Option<Outage>> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why it is away, if it is.
    pub(in crate::store) fn away(&self) -> Option<String> {
        self.outage().as_ref().map(|outage| outage.why.clone())
    }

    /// Whether to try at all.
    ///
    /// # Errors
    /// Somebody has just tried in vain.
    pub(super) fn is_worth_trying(&self) -> Result<()> {
        match &*self.outage() {
            Some(outage) if Instant::now() < outage.not_before => Err(Error::Away(outage.why.clone())),
            _ => Ok(()),
        }
    }

    pub(super) fn is_away(&self, why: &str) -> Error {
        let mut outage = self.outage();
        let now = Instant::now();
        match &mut *outage {
            Some(outage) => {
                outage.pause = (outage.pause * 2).min(PAUSES[1]);
                outage.not_before = now + outage.pause;
            }
            None => {
                tracing::warn!("cannot reach the database `{}`: {why}", self.name);
                let why = why.to_owned();
                *outage = Some(Outage { since: now, why, pause: PAUSES[0], not_before: now });
            }
        }
        Error::Away(why.to_owned())
    }

    pub(super) fn may_name(&self) -> bool {
        self.may_name.load(Ordering::Acquire)
    }

    /// From now on statements have no names: one was not known, or was somebody else's.
    pub(super) fn name_none(&self, why: &str) {
        if self.may_name.swap(false, Ordering::AcqRel) {
            tracing::warn!(
                hint = "whatever stands between hands out sessions of the server as its own; PgBouncer does not",
                "the database `{}` does not keep named statements; statements are unnamed from now on: {why}",
                self.name
            );
        }
    }

    pub(super) fn is_there(&self) {
        if let Some(outage) = self.outage().take() {
            let seconds = outage.since.elapsed().as_secs_f32();
            tracing::info!("the database `{}` can be reached again, after {seconds:.1} s", self.name);
            self.back.notify_waiters();
        }
    }
}
