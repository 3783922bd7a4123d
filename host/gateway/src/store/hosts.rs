//! The hosts of a shared database, all of which work: which ones are present, and what happens to the work of a
//! host that is no longer heard of.
//!
//! Each host has a number that is never reused. Each of its transactions begins by proving that the number still
//! exists, and locks out other writers meanwhile. Whoever finds that a host was not heard of for longer than its
//! lease deletes that number in such a transaction, and releases the host's conversations. So a host that was
//! suspended for longer than its lease and then resumes can write nothing.
//!
//! Only a host that was itself heard of continuously for as long as a lease declares another one gone: after the
//! database was unreachable for a while, all hosts seem to have been silent. The same holds after the database's clock
//! was set back: a lease that ends later than any can is from before that, and a host renews its own.

use std::{
    path::Path,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use pmk_core::SessionKey;
use pmk_system::{clock::Clock, home::HomeLock};
use rustix::system::uname;
use serde::Serialize;
use tokio::sync::SetOnce;

use super::{
    HostPolicies, Pending, Shared, Store, StoreError, choice, codec,
    connection::MIGRATIONS,
    error::Fault,
    lease, schema, sent_arms,
    sql::{AWAY_AFTER, Connection, OptionalExtension, params},
};
use crate::ids::InboxId;

/// How long a host is assumed to be alive after its last sign of life.
pub const HOST_LEASE: Duration = Duration::from_secs(4);

/// How long after its last sign a host may still post messages; shorter than the lease, so that they arrive before
/// another host may declare it gone.
const SPEAKS_FOR: Duration = Duration::from_millis(2_500);

/// How long a database's silence, or its return, may be why no heartbeat is written. A request that is not answered for
/// a minute ends its connection; so if nothing is confirmed for longer, although there is a connection, this process does
/// not ask.
const EXCUSED_FOR: Duration = Duration::from_secs(75);

/// How many signs a host gives in a row at most, when each takes longer than that to be confirmed.
const PROOFS: u32 = 2;

/// How often a host that has nothing to write gives a sign of life.
pub(super) const SIGN_EVERY: Duration = Duration::from_secs(1);

/// Whether a host's lease lasts. With as much again for a clock that was set back by less.
macro_rules! lasts {
    () => {
        "(until > pmk_now() AND until <= pmk_now() + 2 * lease_ms)"
    };
}

const FORGET_HOME: &str = "DELETE FROM host WHERE name = ?1 RETURNING owner";
const LIVING: &str = concat!("SELECT owner FROM host WHERE ", lasts!(), " ORDER BY id LIMIT 1");
const LAST: &str = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM host_id_seq";
const ENTER: &str = "INSERT INTO host (name, owner, version, schema, started_at, until, lease_ms, heard_since)
     VALUES (?1, ?2, ?3, ?4, pmk_now(), pmk_now() + ?5, ?5, pmk_now()) RETURNING id";
/// How long ago any host was last heard of, and whether that one was asked to end. One that has left without a word, as
/// by a start that failed, was perhaps never there for people.
const LAST_HEARD: &str = "SELECT pmk_now() - (until - lease_ms), leaving FROM host
     WHERE (leaving OR lease_ms <> 0) AND until - lease_ms <= pmk_now() ORDER BY until - lease_ms DESC LIMIT 1";
const LEAVE: &str = "UPDATE host SET until = pmk_now(), lease_ms = 0 WHERE id = ?1";
/// All hosts, with whether each is silent (it has left, or was not heard of for its lease), whether it has left,
/// whether it is leaving, and whether it is deaf.
const LOOK: &str = concat!("SELECT id, NOT ", lasts!(), ", lease_ms = 0, leaving, deaf FROM host ORDER BY id");
/// Renews a lease from before the database's clock was set back; until then it is not renewed by what is written.
const SET_BACK: &str = "UPDATE host SET until = pmk_now() + lease_ms, heard_since = pmk_now()
     WHERE id = ?1 AND until > pmk_now() + 2 * lease_ms";
/// Deletes the number of a host that is gone, on behalf of a host that was itself heard of for a whole lease.
const FORGET: &str = concat!(
    "DELETE FROM host h WHERE h.id = ?1 AND NOT ",
    lasts!(),
    " AND (h.lease_ms = 0 OR EXISTS
            (SELECT 1 FROM host WHERE id = ?2 AND ",
    lasts!(),
    " AND heard_since <= pmk_now() - lease_ms))
     RETURNING owner, name"
);
/// Reassigns what a home has accepted to another home.
const TAKE_ON: &str = "UPDATE inbox SET home = ?2 WHERE home = ?1 AND message IS NOT NULL AND parked_at IS NULL";
/// Hands questions without a turn to the next host. Turns that have begun are finished here.
const LEAVES: &str = "UPDATE host SET leaving = true WHERE id = ?1";
const HAND_ON: &str = concat!(
    "WITH other AS (SELECT name FROM host WHERE id <> ?1 AND ",
    lasts!(),
    " AND NOT leaving ORDER BY id LIMIT 1)
     UPDATE inbox SET home = other.name FROM other
     WHERE home = ?2 AND message IS NOT NULL AND parked_at IS NULL
       AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.id = inbox.id)
       AND session_id IN (SELECT id FROM session WHERE key LIKE 'slack:%')"
);
const ANYBODY_STAYS: &str = concat!("SELECT 1 FROM host WHERE id <> ?1 AND ", lasts!(), " AND NOT leaving LIMIT 1");
const IS_DEAF: &str = "UPDATE host SET deaf = (?2 <> 0) WHERE id = ?1";
const ANYBODY_HEARS: &str = concat!(
    "SELECT 1 FROM host WHERE id <> ?1 AND ",
    lasts!(),
    " AND NOT deaf AND NOT leaving AND started_at <= pmk_now() - ?2 LIMIT 1"
);
/// What is open in the conversations that this host works on, with their revisions. What was said on another host's
/// terminal is answered there.
const UNDER_WAY: &str = "SELECT s.key, s.revision, i.id, i.ts FROM session s JOIN inbox i ON i.session_id = s.id
     WHERE s.lease_owner = ?1 AND i.message IS NOT NULL AND i.parked_at IS NULL AND (s.key LIKE 'slack:%' OR i.home = ?2)
     ORDER BY i.ts, i.id";
/// Those of some conversations that no other host works on, and whether another host has accepted the next question
/// in each: between two questions nobody holds the lease.
const FREE_AMONG: &str = "SELECT k.value, EXISTS (SELECT 1 FROM host h WHERE h.id <> ?3 AND h.name =
            (SELECT i.home FROM inbox i WHERE i.session_id = s.id AND i.message IS NOT NULL AND i.parked_at IS NULL
             ORDER BY i.ts, i.id LIMIT 1))
     FROM jsonb_array_elements_text(CAST(?1 AS jsonb)) k LEFT JOIN session s ON s.key = k.value
     WHERE s.lease_until IS NOT NULL OR s.lease_owner IS NULL OR s.lease_owner = ?2
        OR NOT EXISTS (SELECT 1 FROM host h WHERE h.owner = s.lease_owner)
     ORDER BY k.value";
/// Hosts that have ended in an orderly way are left out.
const HOSTS: &str = concat!(
    "SELECT ",
    lasts!(),
    ", name, version, started_at, greatest(0, pmk_now() - (until - lease_ms)),
            (SELECT count(DISTINCT s.id) FROM inbox i JOIN session s ON s.id = i.session_id
             WHERE i.message IS NOT NULL AND s.lease_owner = h.owner), deciding, deaf
     FROM host h WHERE lease_ms <> 0 AND id <> ?1 ORDER BY id"
);

/// A host of a database; its times are by the database's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub state: HostState,
    pub machine: String,
    pub home: String,
    pub version: String,
    /// When it started.
    pub since_ms: i64,
    /// How long ago it was last heard of.
    pub silent_ms: i64,
    /// How many conversations it is working on.
    pub turns: u64,
    /// The policies that decide there, once it has reported them.
    pub decides: Option<HostPolicies>,
}

/// The state of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HostState {
    Works,
    /// It works, but receives nothing from the front, or may say nothing there.
    Deaf,
    /// It was not heard of for longer than its lease. No other host has taken its work over yet.
    Silent,
}

impl HostState {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            HostState::Works => "works",
            HostState::Deaf => "deaf",
            HostState::Silent => "silent",
        }
    }
}

/// The last sign of life of the hosts that were there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastSign {
    /// When it was given, in milliseconds since the epoch by this machine's clock.
    pub at_ms: i64,
    /// Whether the host that gave it had been asked to end.
    pub was_asked: bool,
}

/// A host at one look.
struct Seen {
    host: i64,
    is_silent: bool,
    has_left: bool,
    leaves: bool,
    is_deaf: bool,
}

/// What a host knows of the others.
#[derive(Debug)]
pub(super) struct Peers {
    /// Whether this host does the work that one host does for all: not while it is deaf and another host is not. True
    /// where there is no other.
    is_first_to_hear: AtomicBool,
    count: Arc<AtomicUsize>,
    /// Whether any other host may have open work, including those that are leaving and those that are gone.
    any: AtomicBool,
    /// Those that were leaving at the last look.
    leaving: Mutex<Vec<i64>>,
    /// Whether another host stayed when this one said that it leaves.
    stay: SetOnce<bool>,
}

impl Peers {
    pub(super) fn of(conn: &Connection) -> Peers {
        let is_alone = matches!(conn, Connection::Sqlite(_));
        Peers {
            is_first_to_hear: AtomicBool::new(is_alone),
            count: Arc::default(),
            any: AtomicBool::new(false),
            leaving: Mutex::default(),
            stay: SetOnce::new(),
        }
    }
}

/// Tells whether this host is still one of the hosts. Does not keep the store alive.
#[derive(Debug)]
pub struct HostFence(Weak<Shared>);

impl HostFence {
    /// Returns at once where nobody can have declared this host gone: on a store in a file, and for
    /// [most of a lease](SPEAKS_FOR) after its last sign. Otherwise it gives a sign first.
    ///
    /// # Errors
    /// Other hosts have taken this host's work over; or the database, which could tell, cannot be used.
    pub async fn holds(&self) -> Result<(), StoreError> {
        let store = Store { shared: self.0.upgrade().ok_or(StoreError::Closed)? };
        let Some(link) = &store.shared.link else { return Ok(()) };
        // A host that is suspended while it gives a sign learns that from a second one; a host that is always slow
        // gives the second in vain.
        for _ in 0..PROOFS {
            if link.silent_for() <= SPEAKS_FOR {
                return Ok(());
            }
            store.commit_nothing().await?;
        }
        Ok(())
    }
}

/// A question that is open in a conversation that this host works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnderWay {
    pub pending: Pending,
    /// The conversation's revision: how often people have changed it.
    pub revision: i64,
}

/// A conversation that no other host works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnleasedConversation {
    pub key: SessionKey,
    /// Another host has accepted the next question there, and so answers it.
    pub is_anothers_next: bool,
}

impl Store {
    /// Gives a `run`, which has locked its home, the right to work on the store: the leases of any earlier `run` of
    /// this home become void. Returns when a host of the database was last heard of, if one was; `None` on a store in a
    /// file.
    ///
    /// # Errors
    /// The store cannot be written; [`StoreError::Newer`].
    pub async fn take_over(&self, _lock: &HomeLock) -> Result<Option<LastSign>, StoreError> {
        let Some(link) = &self.shared.link else {
            self.write(lease::void_all).await?;
            return Ok(None);
        };
        // The lock proves that the previous `run` of this home is gone.
        let (name, owner, clock) = (link.home().clone(), self.owner(), self.shared.noting.clock.clone());
        let (host, last) = self.write(move |conn| enter(conn, &name, &owner, &clock)).await?;
        link.write_as(host);
        self.look_after_hosts().await?;
        Ok(last)
    }

    /// Whether the store is in a database, which several hosts may share.
    pub fn is_shared(&self) -> bool {
        self.shared.link.is_some()
    }

    /// Returns why nothing can be stored, if nothing can: the store's database cannot be reached, or its disk is full. A
    /// lost network does not say so: then nothing is confirmed.
    pub fn away(&self) -> Option<String> {
        if let Some(link) = &self.shared.link {
            let silent = Some(link.silent_for()).filter(|silent| (AWAY_AFTER..Duration::MAX).contains(silent));
            let unconfirmed = || Some(format!("it has confirmed nothing for {} s", silent?.as_secs()));
            if let Some(why) = link.away().or_else(unconfirmed) {
                return Some(why);
            }
        }
        self.shared.writer.trouble().why()
    }

    /// Whether the database may be why no heartbeat is written: it is away, or was until shortly before.
    pub fn excuses_heartbeat(&self) -> bool {
        let Some(link) = &self.shared.link else { return false };
        let is_silent = (AWAY_AFTER..EXCUSED_FOR).contains(&link.silent_for());
        link.away().is_some() || is_silent || link.back_for() < EXCUSED_FOR
    }

    /// Whether this host does the work that one host does for all, as of its last look: it is the first of those that are
    /// not deaf, or of all if all are.
    pub fn is_first_to_hear(&self) -> bool {
        self.shared.others.is_first_to_hear.load(Ordering::Acquire)
    }

    /// Whether other hosts share the store, as of the last look.
    pub fn has_other_hosts(&self) -> bool {
        self.shared.others.count.load(Ordering::Acquire) > 0
    }

    /// Whether other hosts may have work that belongs to a conversation of this host, including one that is
    /// leaving, and one that is gone and whose work nobody has taken over yet. As of the last look.
    pub fn peers_may_have_work(&self) -> bool {
        self.shared.others.any.load(Ordering::Acquire)
    }

    /// Returns a function that tells how many hosts share the store, this one included, as of the last look. It
    /// does not keep the store alive.
    pub fn hosts_at_work(&self) -> impl Fn() -> usize + Send + Sync + use<> {
        let others = Arc::clone(&self.shared.others.count);
        move || 1 + others.load(Ordering::Acquire)
    }

    /// Returns a fence that tells whether this host may still post messages.
    pub fn fence(&self) -> HostFence {
        HostFence(Arc::downgrade(&self.shared))
    }

    /// Announces that this host is leaving: it begins nothing any more, questions that it has accepted but not
    /// begun go to another host, and so does the work that one host does for all.
    ///
    /// # Errors
    /// Nothing was changed: others notice only once it has left.
    pub async fn leaves(&self) -> Result<(), StoreError> {
        let Some(link) = &self.shared.link else { return Ok(()) };
        let (host, home) = (link.host(), link.home().clone());
        let work = move |conn: &Connection| {
            conn.prepare_cached(LEAVES)?.run([host])?;
            conn.prepare_cached(HAND_ON)?.run(params![host, home])?;
            Ok(conn.prepare_cached(ANYBODY_STAYS)?.exists([host])?)
        };
        let others_stay = self.write(work).await;
        // What is not known counts as a host that goes on, and nobody waits for it.
        let _ = self.shared.others.stay.set(*others_stay.as_ref().unwrap_or(&true));
        others_stay.map(drop)
    }

    /// Returns whether another host went on when this one [announced](Store::leaves) that it is leaving, which it waits
    /// for if its last look found any. Of hosts that leave at the same time, the last one to say so learns that none did.
    /// True if it could not be announced.
    pub async fn others_stay(&self) -> bool {
        match self.shared.others.stay.get() {
            Some(others_stay) => *others_stay,
            None => self.peers_may_have_work() && *self.shared.others.stay.wait().await,
        }
    }

    /// Tells the other hosts whether this host receives nothing from the front, or may say nothing there.
    ///
    /// # Errors
    /// They were not told.
    pub async fn says_deaf(&self, deaf: bool) -> Result<(), StoreError> {
        let Some(link) = &self.shared.link else { return Ok(()) };
        let host = link.host();
        self.write(move |conn| Ok(conn.prepare_cached(IS_DEAF)?.run([host, i64::from(deaf)])?)).await
    }

    /// Whether another host that has run for at least this long receives what people say, and may answer.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn others_hear(&self, for_ms: i64) -> Result<bool, StoreError> {
        let Some(link) = &self.shared.link else { return Ok(false) };
        let host = link.host();
        self.read(move |conn| Ok(conn.prepare_cached(ANYBODY_HEARS)?.exists([host, for_ms])?)).await
    }

    /// Looks which hosts are there. Removes each host that was not heard of for longer than its lease: its
    /// conversations are released, and this host takes over what it had accepted. Returns whether there is new work
    /// since the last look.
    ///
    /// # Errors
    /// The database cannot be used, or has declared this host gone.
    pub async fn look_after_hosts(&self) -> Result<bool, StoreError> {
        let Some(link) = &self.shared.link else { return Ok(false) };
        let (own, home) = (link.host(), link.home().clone());
        let seen: Vec<Seen> = self
            .read(|conn| {
                let mut statement = conn.prepare_cached(LOOK)?;
                let seen = statement.query_map([], |row| {
                    let (host, is_silent, has_left) = (row.get(0)?, row.get(1)?, row.get(2)?);
                    Ok(Seen { host, is_silent, has_left, leaves: row.get(3)?, is_deaf: row.get(4)? })
                })?;
                Ok(seen.collect::<Result<_, _>>()?)
            })
            .await?;
        let others = || seen.iter().filter(|seen| seen.host != own);
        // A silent host may still be alive until somebody has declared it gone: after the database was unreachable,
        // all are silent.
        let there = || others().filter(|seen| !seen.has_left && !seen.leaves);
        let is_first = there().next().is_none_or(|seen| own < seen.host);
        let is_deaf = seen.iter().any(|seen| seen.host == own && seen.is_deaf);
        let hears = there().find(|seen| !seen.is_deaf);
        let is_first_to_hear = hears.map_or(is_first || !is_deaf, |seen| !is_deaf && own < seen.host);
        self.shared.others.count.store(there().count(), Ordering::Release);
        self.shared.others.any.store(others().next().is_some(), Ordering::Release);
        self.shared.others.is_first_to_hear.store(is_first_to_hear, Ordering::Release);
        // A host that is itself silent cannot judge the others.
        let is_heard = seen.iter().any(|seen| seen.host == own && !seen.is_silent);
        if !is_heard {
            self.write(move |conn| Ok(conn.prepare_cached(SET_BACK)?.run([own])?)).await?;
        }
        let gone: Vec<i64> =
            others().filter(|seen| seen.has_left || (seen.is_silent && is_heard)).map(|seen| seen.host).collect();
        let leaving: Vec<i64> = others().filter(|seen| seen.leaves).map(|seen| seen.host).collect();
        let has_handed_on = {
            let mut before = self.shared.others.leaving.lock().unwrap_or_else(PoisonError::into_inner);
            let is_new = leaving.iter().any(|host| !before.contains(host));
            *before = leaving;
            is_new
        };
        if gone.is_empty() {
            return Ok(has_handed_on);
        }
        let work = move |conn: &Connection| {
            let mut forgotten = false;
            for host in &gone {
                let mut forget = conn.prepare_cached(FORGET)?;
                let gone = forget.query_row([host, &own], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
                let gone: Option<(String, String)> = gone;
                if let Some((owner, name)) = gone {
                    lease::void_of(conn, &owner)?;
                    conn.prepare_cached(TAKE_ON)?.run([&name, &home])?;
                    forgotten = true;
                }
            }
            Ok(forgotten)
        };
        Ok(self.write(work).await? || has_handed_on)
    }

    /// Returns what is open in the conversations that this host works on, whichever host has accepted it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn under_way(&self) -> Result<Vec<UnderWay>, StoreError> {
        let Some(link) = &self.shared.link else { return Ok(vec![]) };
        let (owner, home) = (self.owner(), link.home().clone());
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(UNDER_WAY)?;
            let mut rows = statement.query([owner, home])?;
            let mut under_way = Vec::new();
            while let Some(row) = rows.next()? {
                // One that cannot be read is parked by the sweep.
                if let (Ok(key), Ok(ts)) = (codec::key(row.get_ref(0)?), row.get_ref(3)?.as_str()) {
                    let pending = Pending { inbox: InboxId(row.get(2)?), key, ts: ts.to_owned() };
                    under_way.push(UnderWay { pending, revision: row.get(1)? });
                }
            }
            Ok(under_way)
        })
        .await
    }

    /// Returns those of these conversations that no other host works on.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn free_among(&self, keys: Vec<SessionKey>) -> Result<Vec<UnleasedConversation>, StoreError> {
        let Some(link) = self.shared.link.as_ref().filter(|_| !keys.is_empty()) else { return Ok(vec![]) };
        let keys = codec::to_json(&keys.iter().map(SessionKey::to_string).collect::<Vec<_>>());
        let (owner, host) = (self.owner(), link.host());
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(FREE_AMONG)?;
            let mut rows = statement.query(params![keys, owner, host])?;
            let mut free = Vec::new();
            while let Some(row) = rows.next()? {
                free.push(UnleasedConversation { key: codec::key(row.get_ref(0)?)?, is_anothers_next: row.get(1)? });
            }
            Ok(free)
        })
        .await
    }

    /// Returns the hosts of the database, in the order of their numbers; none on a store in a file.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn hosts(&self) -> Result<Vec<Host>, StoreError> {
        match self.shared.link {
            Some(_) => self.read(|conn| hosts(conn, 0)).await,
            None => Ok(vec![]),
        }
    }

    /// Returns the hosts except this one.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn other_hosts(&self) -> Result<Vec<Host>, StoreError> {
        match &self.shared.link {
            Some(link) => {
                let own = link.host();
                self.read(move |conn| hosts(conn, own)).await
            }
            None => Ok(vec![]),
        }
    }

    /// Returns the owner name of a living host of the database; `None` on a store in a file.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn host_at_work(&self) -> Result<Option<String>, StoreError> {
        match self.shared.link {
            Some(_) => self.read(living).await,
            None => Ok(None),
        }
    }
}

/// Registers a host, in place of any earlier host of this home.
fn enter(conn: &Connection, name: &str, owner: &str, clock: &Clock) -> Result<(i64, Option<LastSign>), Fault> {
    if let Connection::Postgres(postgres) = conn {
        schema::check(conn, Path::new(postgres.link().name()))?;
    }
    let last = conn.prepare_cached(LAST_HEARD)?.query_row([], |row| {
        // How long ago that was counts by the database's clock, because this machine's may be wrong.
        let silent_ms: i64 = row.get(0)?;
        Ok(LastSign { at_ms: clock.now_ms().saturating_sub(silent_ms), was_asked: row.get(1)? })
    });
    let last = last.optional()?;
    // Also what it wrote itself, because after a crash nothing was cleared.
    choice::begins(conn)?;
    sent_arms::begins(conn)?;
    let before: Vec<String> =
        conn.prepare_cached(FORGET_HOME)?.query_map([name], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for owner in before {
        lease::void_of(conn, &owner)?;
    }
    let lease_ms = HOST_LEASE.as_millis() as i64;
    let entered = params![name, owner, env!("CARGO_PKG_VERSION"), MIGRATIONS.len() as i64, lease_ms];
    let host = conn.prepare_cached(ENTER)?.query_row(entered, |row| row.get(0))?;
    Ok((host, last))
}

/// Returns all hosts except one; no host has the number 0.
fn hosts(conn: &Connection, but: i64) -> Result<Vec<Host>, Fault> {
    let mut statement = conn.prepare_cached(HOSTS)?;
    let hosts = statement.query_map([but], |row| {
        let name = row.get::<_, String>(1)?;
        let (machine, home) = name.split_once(':').unwrap_or((&name, ""));
        Ok(Host {
            state: match (row.get(0)?, row.get(7)?) {
                (true, false) => HostState::Works,
                (true, true) => HostState::Deaf,
                (false, _) => HostState::Silent,
            },
            machine: machine.to_owned(),
            home: home.to_owned(),
            version: row.get(2)?,
            since_ms: row.get(3)?,
            silent_ms: row.get(4)?,
            turns: u64::try_from(row.get::<_, i64>(5)?).unwrap_or(0),
            decides: row.get::<_, Option<String>>(6)?.and_then(|said| serde_json::from_str(&said).ok()),
        })
    })?;
    Ok(hosts.collect::<Result<_, _>>()?)
}

/// Whether this process works as one of several hosts.
pub(super) fn is_one(conn: &Connection) -> bool {
    matches!(conn, Connection::Postgres(conn) if conn.link().host() != 0)
}

/// Returns the number that the last host has got, whether or not it is still there.
pub(super) fn last(conn: &Connection) -> Result<i64, Fault> {
    Ok(conn.prepare_cached(LAST)?.query_row([], |row| row.get(0))?)
}

pub(super) fn living(conn: &Connection) -> Result<Option<String>, Fault> {
    Ok(conn.prepare_cached(LIVING)?.query_row([], |row| row.get(0)).optional()?)
}

/// Marks this host as having left, so that the others need not wait for its lease to end.
pub(super) fn leave(conn: &Connection) -> Result<(), Fault> {
    let Connection::Postgres(postgres) = conn else { return Ok(()) };
    let host = postgres.link().host();
    if host == 0 {
        return Ok(());
    }
    conn.begin()?;
    conn.prepare_cached(LEAVE)?.run([host])?;
    Ok(conn.commit()?)
}

/// Returns a home's name among hosts: the machine, and the folder there.
pub(super) fn name(home: &Path) -> String {
    let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    format!("{}:{}", machine(), home.display())
}

/// Returns the name of a `run` on a database that distinguishes it from those on other machines.
pub(super) fn owner() -> String {
    format!("pmk-host run on {}", machine())
}

fn machine() -> String {
    uname().nodename().to_string_lossy().into_owned()
}
