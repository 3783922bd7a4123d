//! The link to one database, shared by all connections of a store: whether the database can be reached at the
//! moment, and the host that writes over it. While the database is unreachable, connecting is tried less and less
//! often, and the log reports that once.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use pmk_system::{clock, error::Failure, threads::Threads};
use tokio::{sync::Notify, time::Instant};
use tokio_postgres::Config;

use super::{Error, Result, tls::Connector};
use crate::database::Checks;

/// How long connecting may take.
const CONNECTED_WITHIN: Duration = Duration::from_secs(5);

/// How long connecting is not tried after a second failure in a row; after the first it is tried at once. Doubled for
/// each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest of these pauses: a fraction of a host's lease.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How long a database may confirm nothing before it counts as away.
pub(in crate::store) const AWAY_AFTER: Duration = Duration::from_secs(10);

/// For a database that does not keep named statements.
const HINT: &str = "a connection pooler in between shares sessions of the server among clients unseen; use PgBouncer";

/// The link to one database, shared by all connections of a store.
pub(in crate::store) struct Link {
    pub(super) config: Config,
    pub(super) tls: Option<Connector>,
    /// The name shown to people: the address without the password.
    name: String,
    /// The home that uses it: machine and folder.
    home: String,
    /// Determines the clock.
    threads: Threads,
    since: Instant,
    outage: Mutex<Option<Outage>>,
    /// Notifies tasks that wait for the end of an outage.
    pub(in crate::store) back: Arc<Notify>,
    /// Whether statements may be named.
    may_name: AtomicBool,
    /// The number of the host that this process writes as; 0 for none.
    host: AtomicI64,
    /// When the last transaction began that proved to others that this host is alive.
    heard: Mutex<Option<Duration>>,
    /// When an outage, or a silence that may have been one, ended last.
    returned: Mutex<Option<Duration>>,
    /// How often one has ended.
    returns: AtomicU64,
}

/// A time during which the database is unreachable.
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
            returned: Mutex::default(),
            returns: AtomicU64::new(0),
        })
    }

    pub(in crate::store) fn name(&self) -> &str {
        &self.name
    }

    /// Returns how long connecting may take: each host but the last may take its whole time in vain.
    pub(super) fn connected_within(&self) -> Duration {
        let of_one = self.config.get_connect_timeout().copied().unwrap_or(CONNECTED_WITHIN);
        let others = u32::try_from(self.config.get_hosts().len().saturating_sub(1)).unwrap_or(u32::MAX);
        of_one.saturating_mul(others).saturating_add(of_one.max(CONNECTED_WITHIN))
    }

    /// Returns the `options` of the address.
    pub(in crate::store) fn options(&self) -> &str {
        self.config.get_options().unwrap_or_default()
    }

    pub(in crate::store) fn home(&self) -> &String {
        &self.home
    }

    /// From now on every transaction is this host's, and fails once the host has lost its right to write.
    pub(in crate::store) fn write_as(&self, host: i64) {
        self.host.store(host, Ordering::Release);
    }

    pub(in crate::store) fn host(&self) -> i64 {
        self.host.load(Ordering::Acquire)
    }

    /// Notes that this host has committed a transaction that it began then.
    pub(super) fn was_heard(&self, begun: Duration) {
        let before = self.heard.lock().unwrap_or_else(PoisonError::into_inner).replace(begun);
        if before.is_some_and(|before| begun.saturating_sub(before) >= AWAY_AFTER) {
            self.has_returned();
        }
    }

    /// Notes that this host is no longer one of the hosts.
    pub(in crate::store) fn is_heard_no_more(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns how long this host may have been silent for the others.
    pub(in crate::store) fn silent_for(&self) -> Duration {
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.map_or(Duration::MAX, |heard| self.now().saturating_sub(heard))
    }

    /// Returns how long ago the database was last away, or seemed to be.
    pub(in crate::store) fn back_for(&self) -> Duration {
        let returned = *self.returned.lock().unwrap_or_else(PoisonError::into_inner);
        returned.map_or(Duration::MAX, |returned| self.now().saturating_sub(returned))
    }

    /// Returns how often the database has been away, or seemed to be, or was connected to once more, and come back.
    pub(in crate::store) fn returns(&self) -> u64 {
        self.returns.load(Ordering::Acquire)
    }

    /// Notes that a connection was made in place of one that was lost.
    pub(super) fn is_another(&self) {
        self.returns.fetch_add(1, Ordering::AcqRel);
    }

    fn has_returned(&self) {
        self.returns.fetch_add(1, Ordering::AcqRel);
        *self.returned.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.now());
        self.back.notify_waiters();
    }

    /// Returns the time since some fixed moment; it includes time during which the machine sleeps.
    pub(super) fn now(&self) -> Duration {
        match self.threads {
            Threads::Own => clock::since_boot(),
            // Where the runtime controls the clock, the machine's is not used.
            Threads::None(_) => self.since.elapsed(),
        }
    }

    fn outage(&self) -> MutexGuard<'_, Option<Outage>> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns why the database is unreachable, if it is.
    pub(in crate::store) fn away(&self) -> Option<String> {
        self.outage().as_ref().map(|outage| outage.why.clone())
    }

    /// Checks whether connecting is worth trying.
    ///
    /// # Errors
    /// A recent attempt has failed.
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
                outage.not_before = now + outage.pause;
                outage.pause = (outage.pause * 2).min(LONGEST_PAUSE);
            }
            None => {
                tracing::warn!("cannot reach the database `{}`: {why}", self.name);
                let why = why.to_owned();
                *outage = Some(Outage { since: now, why, pause: FIRST_PAUSE, not_before: now });
            }
        }
        Error::Away(why.to_owned())
    }

    pub(super) fn may_name(&self) -> bool {
        self.may_name.load(Ordering::Acquire)
    }

    /// From now on statements are not named: a name was unknown, or belonged to somebody else's statement.
    pub(super) fn name_none(&self, why: &str) {
        if self.may_name.swap(false, Ordering::AcqRel) {
            tracing::warn!(
                hint = HINT,
                "the database `{}` does not keep named statements; statements are unnamed from now on: {why}",
                self.name
            );
        }
    }

    pub(super) fn is_there(&self) {
        if let Some(outage) = self.outage().take() {
            let seconds = outage.since.elapsed().as_secs_f32();
            tracing::info!("the database `{}` can be reached again, after {seconds:.1} s", self.name);
            self.has_returned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_timeout_in_the_address_had_no_effect() {
        let within = |address: &str| {
            let config = crate::database::Database::parse(address).unwrap().config().unwrap();
            let names = ("a database".to_owned(), "a home".to_owned());
            Link::new(config, Checks::NoTls, names, Threads::Own).unwrap().connected_within().as_secs()
        };
        assert_eq!(within("postgres://u:p@a/d"), 5);
        assert_eq!(within("postgres://u:p@a/d?connect_timeout=10"), 10);
        assert_eq!(within("postgres://u:p@a,b/d"), 7, "the second host has as long as an only one");
        assert_eq!(within("postgres://u:p@a,b/d?connect_timeout=10"), 20);
    }

    #[tokio::test(start_paused = true)]
    async fn a_database_returns_from_an_outage_and_from_a_long_silence() {
        let names = ("a database".to_owned(), "a home".to_owned());
        let threads = Threads::None(Arc::new(|| Duration::ZERO));
        let link = Link::new(Config::new(), Checks::NoTls, names, threads).unwrap();
        for pause in [Duration::from_secs(1), AWAY_AFTER / 2] {
            link.was_heard(link.now());
            tokio::time::advance(pause).await;
        }
        assert_eq!(link.back_for(), Duration::MAX);
        let _ = link.is_away("no route");
        link.is_there();
        assert_eq!(link.back_for(), Duration::ZERO);
        link.was_heard(link.now());
        tokio::time::advance(AWAY_AFTER).await;
        assert_eq!(link.back_for(), AWAY_AFTER);
        link.was_heard(link.now());
        assert_eq!(link.back_for(), Duration::ZERO);
    }
}
