//! The hosts of a database that several can reach, all of which work: who is there, and what becomes of the work of one that is not
//! heard of any more.
//!
//! A host is known by a number that nobody has again. Each of its transactions begins by showing that the number is still
//! there, while nobody else writes; and whoever finds that a host was not heard of for longer than its lease takes that number
//! away in such a transaction, and frees its conversations. So a host that was stopped for longer, and goes on, can write
//! nothing.
//!
//! Only one that was heard of all the time for as long as a lease itself takes another for gone: where the database was away
//! for a while, everybody seems to have been silent.

use std::{
    path::Path,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use pmk_core::SessionKey;
use pmk_system::home::HomeLock;
use rustix::system::uname;
use serde::Serialize;

use super::{
    HostPolicies, Pending, Shared, Store, StoreError, choice, codec,
    connection::MIGRATIONS,
    error::Fault,
    lease, schema, sent_arms,
    sql::{Connection, OptionalExtension, params},
};
use crate::ids::InboxId;

/// For so long after its last sign a host is believed to live.
pub const HOST_LEASE: Duration = Duration::from_secs(4);

/// For so long after it what a host says reaches people before anybody may take it for gone.
const SPEAKS_FOR: Duration = Duration::from_millis(2_500);

/// How many signs it gives in a row where it takes longer than that to hear of each.
const PROOFS: u32 = 2;

/// How often one that has nothing to write gives a sign.
pub(super) const SIGN_EVERY: Duration = Duration::from_secs(1);

const FORGET_HOME: &str = "DELETE FROM host WHERE name = ?1 RETURNING owner";
const LIVING: &str = "SELECT owner FROM host WHERE until > pmk_now() ORDER BY id LIMIT 1";
const ENTER: &str = "INSERT INTO host (name, owner, version, schema, started_at, until, lease_ms, heard_since)
     VALUES (?1, ?2, ?3, ?4, pmk_now(), pmk_now() + ?5, ?5, pmk_now()) RETURNING id";
/// How long ago any of them was last heard of.
const SILENT: &str = "SELECT pmk_now() - max(until - lease_ms) FROM host";
const LEAVE: &str = "UPDATE host SET until = pmk_now(), lease_ms = 0 WHERE id = ?1";
/// Those that are there, whether each is gone: it has said so, or was not heard of for its lease; and whether it is about to.
const LOOK: &str = "SELECT id, until <= pmk_now(), lease_ms = 0, leaving FROM host ORDER BY id";
/// Takes away the number of one that is gone, for one that was heard of all the time.
const FORGET: &str = "DELETE FROM host h WHERE h.id = ?1 AND h.until <= pmk_now() AND (h.lease_ms = 0 OR EXISTS
            (SELECT 1 FROM host own WHERE own.id = ?2 AND own.until > pmk_now() AND own.heard_since <= pmk_now() - own.lease_ms))
     RETURNING owner, name";
/// What a home has taken in is another's to see to.
const TAKE_ON: &str = "UPDATE inbox SET home = ?2 WHERE home = ?1 AND message IS NOT NULL AND parked_at IS NULL";
/// What has not begun there is the next host's to see to. What has begun is finished.
const LEAVES: &str = "UPDATE host SET leaving = true WHERE id = ?1";
const HAND_ON: &str = "UPDATE inbox SET home = (SELECT h.name FROM host h
            WHERE h.id <> ?1 AND h.until > pmk_now() AND NOT h.leaving ORDER BY h.id LIMIT 1)
     WHERE home = ?2 AND message IS NOT NULL AND parked_at IS NULL
       AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.id = inbox.id)
       AND EXISTS (SELECT 1 FROM host h WHERE h.id <> ?1 AND h.until > pmk_now() AND NOT h.leaving)
       AND session_id IN (SELECT id FROM session WHERE key LIKE 'slack:%')";
const IS_DEAF: &str = "UPDATE host SET deaf = (?2 <> 0) WHERE id = ?1";
const ANYBODY_HEARS: &str =
    "SELECT 1 FROM host WHERE id <> ?1 AND until > pmk_now() AND NOT deaf AND NOT leaving LIMIT 1";
/// What is open in the conversations that this host works on, and how often those were changed. What was said on another
/// host's terminal is answered there.
const UNDER_WAY: &str = "SELECT s.key, s.revision, i.id, i.ts FROM session s JOIN inbox i ON i.session_id = s.id
     WHERE s.lease_owner = ?1 AND i.message IS NOT NULL AND i.parked_at IS NULL AND (s.key LIKE 'slack:%' OR i.home = ?2)
     ORDER BY i.ts, i.id";
/// Those of some conversations that no other host works on, and whether one is about to: between two questions nobody does, either.
const FREE_AMONG: &str = "SELECT k.value, EXISTS (SELECT 1 FROM host h WHERE h.id <> ?3 AND h.name =
            (SELECT i.home FROM inbox i WHERE i.session_id = s.id AND i.message IS NOT NULL AND i.parked_at IS NULL
             ORDER BY i.ts, i.id LIMIT 1))
     FROM jsonb_array_elements_text(CAST(?1 AS jsonb)) k LEFT JOIN session s ON s.key = k.value
     WHERE s.lease_until IS NOT NULL OR s.lease_owner IS NULL OR s.lease_owner = ?2
        OR NOT EXISTS (SELECT 1 FROM host h WHERE h.owner = s.lease_owner)";
/// One that has ended in an orderly way is not worth a word.
const HOSTS: &str = "SELECT until > pmk_now(), name, version, started_at, pmk_now() - (until - lease_ms),
            (SELECT count(DISTINCT s.id) FROM inbox i JOIN session s ON s.id = i.session_id
             WHERE i.message IS NOT NULL AND s.lease_owner = h.owner), deciding, deaf
     FROM host h WHERE lease_ms <> 0 AND id <> ?1 ORDER BY id";

/// A host of a database, by the clock of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub state: HostState,
    pub machine: String,
    pub home: String,
    pub version: String,
    /// Since when it works.
    pub since_ms: i64,
    /// How long ago it was last heard of.
    pub silent_ms: i64,
    /// How many conversations it is just working on.
    pub turns: u64,
    /// What decides there, once it has said so.
    pub decides: Option<HostPolicies>,
}

/// What a host does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HostState {
    Works,
    /// It works, and hears nothing from where people talk.
    Deaf,
    /// It was not heard of for longer than its lease. Nobody has taken its work over yet.
    Silent,
}

impl HostState {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            HostState::Works => "works",
            HostState::Deaf => "deaf",
            HostState::Silent => "silent",
        }
    }
}

/// What a host sees of the others.
#[derive(Debug)]
pub(super) struct Peers {
    /// Whether this one does what one does for all. Where there is no other it is.
    is_first: AtomicBool,
    count: Arc<AtomicUsize>,
    /// Whether any of them may have something that is open, those that are about to leave and those that are gone, too.
    any: AtomicBool,
    /// Those that were about to leave at the last look.
    leaving: Mutex<Vec<i64>>,
}

impl Peers {
    pub(super) fn of(conn: &Connection) -> Peers {
        let is_alone = matches!(conn, Connection::Sqlite(_));
        Peers {
            is_first: AtomicBool::new(is_alone),
            count: Arc::default(),
            any: AtomicBool::new(false),
            leaving: Mutex::default(),
        }
    }
}

/// Knows whether this host is one still. Does not keep the store.
#[derive(Debug)]
pub struct HostFence(Weak<Shared>);

impl HostFence {
    /// Comes back at once where nobody can have taken this host for gone: on a store of files, and for [most of a lease](SPEAKS_FOR)
    /// after its last sign. Else it gives a sign first.
    ///
    /// # Errors
    /// Others are at what this one was at; or the database, which could tell, cannot be used.
    pub async fn holds(&self) -> Result<(), StoreError> {
        let store = Store { shared: self.0.upgrade().ok_or(StoreError::Closed)? };
        let Some(link) = &store.shared.link else { return Ok(()) };
        // Who is stopped while it gives one hears of that later; who is always slow gives another in vain.
        for _ in 0..PROOFS {
            if link.silent_for() <= SPEAKS_FOR {
                return Ok(());
            }
            store.commit_nothing().await?;
        }
        Ok(())
    }
}

/// What is open in a conversation that this host works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnderWay {
    pub pending: Pending,
    /// How often people have changed the conversation.
    pub revision: i64,
}

/// A conversation that no other host works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnleasedConversation {
    pub key: SessionKey,
    /// Another host has taken in what comes next there, and so sees to it.
    pub is_anothers_next: bool,
}

impl Store {
    /// Gets a `run` the right to work on the store, whose home it has locked: leases of whatever `run` was there before it are
    /// void. Says how long ago a host of the database was last heard of, in milliseconds and by its clock, for this machine's may be
    /// wrong; nothing on a store of files.
    ///
    /// # Errors
    /// The store cannot be written; [`StoreError::Newer`].
    pub async fn take_over(&self, _lock: &HomeLock) -> Result<Option<i64>, StoreError> {
        let Some(link) = &self.shared.link else {
            self.write(lease::void_all).await?;
            return Ok(None);
        };
        // The lock proves that whoever had this home before is gone.
        let (name, owner) = (link.home().clone(), self.owner());
        let (host, silent_ms) = self.write(move |conn| enter(conn, &name, &owner)).await?;
        link.write_as(host);
        self.look_after_hosts().await?;
        Ok(silent_ms)
    }

    /// Whether it is in a database, which several hosts may work on.
    pub fn is_shared(&self) -> bool {
        self.shared.link.is_some()
    }

    /// Why the database that it is in cannot be reached, if it cannot.
    pub fn away(&self) -> Option<String> {
        self.shared.link.as_ref()?.away()
    }

    /// Whether this host is the one that does what one does for all, as of its last look.
    pub fn is_first(&self) -> bool {
        self.shared.others.is_first.load(Ordering::Acquire)
    }

    /// Whether others work on it, too, as of the last look.
    pub fn has_other_hosts(&self) -> bool {
        self.shared.others.count.load(Ordering::Acquire) > 0
    }

    /// Whether others may have what belongs to a conversation of this host: also one that begins nothing any more, and one that is
    /// gone until somebody sees to what it has left. As of the last look.
    pub fn peers_may_have_work(&self) -> bool {
        self.shared.others.any.load(Ordering::Acquire)
    }

    /// Says how many work on it with this one, as of the last look, and does not keep the store.
    pub fn hosts_at_work(&self) -> impl Fn() -> usize + Send + Sync + use<> {
        let others = Arc::clone(&self.shared.others.count);
        move || 1 + others.load(Ordering::Acquire)
    }

    /// Tells whether what this host says is still for it to say.
    pub fn footing(&self) -> HostFence {
        HostFence(Arc::downgrade(&self.shared))
    }

    /// This host begins nothing any more: what it has taken in and not begun is another's, and so is what one does for all.
    ///
    /// # Errors
    /// Nothing was changed: others find out once it has left.
    pub async fn leaves(&self) -> Result<(), StoreError> {
        let Some(link) = &self.shared.link else { return Ok(()) };
        let (host, home) = (link.host(), link.home().clone());
        self.write(move |conn| {
            conn.prepare_cached(LEAVES)?.run([host])?;
            Ok(conn.prepare_cached(HAND_ON)?.run(params![host, home])?)
        })
        .await
    }

    /// Tells the others whether this host hears nothing from where people talk.
    ///
    /// # Errors
    /// They do not know.
    pub async fn says_deaf(&self, deaf: bool) -> Result<(), StoreError> {
        let Some(link) = &self.shared.link else { return Ok(()) };
        let host = link.host();
        self.write(move |conn| Ok(conn.prepare_cached(IS_DEAF)?.run([host, i64::from(deaf)])?)).await
    }

    /// Whether another host hears what people say.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn others_hear(&self) -> Result<bool, StoreError> {
        let Some(link) = &self.shared.link else { return Ok(false) };
        let host = link.host();
        self.read(move |conn| Ok(conn.prepare_cached(ANYBODY_HEARS)?.exists([host])?)).await
    }

    /// Looks who is there. Who was not heard of for longer than its lease is gone from now on, its conversations are
    /// free, and what it has taken in is this host's to see to. Whether there is anything to see to since the last look.
    ///
    /// # Errors
    /// The database cannot be used, or has taken this host for gone.
    pub async fn look_after_hosts(&self) -> Result<bool, StoreError> {
        let Some(link) = &self.shared.link else { return Ok(false) };
        let (own, home) = (link.host(), link.home().clone());
        let seen: Vec<(i64, bool, bool, bool)> = self
            .read(|conn| {
                let mut statement = conn.prepare_cached(LOOK)?;
                let seen = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
                Ok(seen.collect::<Result<_, _>>()?)
            })
            .await?;
        let others = || seen.iter().filter(|(host, ..)| *host != own);
        // One that is silent may be there all the same, until somebody has taken it for gone: where the database was away, all are.
        let there = || others().filter(|(.., has_left, leaves)| !has_left && !leaves).map(|(host, ..)| *host);
        let before = there().next();
        self.shared.others.count.store(there().count(), Ordering::Release);
        self.shared.others.any.store(others().next().is_some(), Ordering::Release);
        self.shared.others.is_first.store(before.is_none_or(|host| own < host), Ordering::Release);
        // Who seems silent to itself knows nothing of others.
        let is_heard = seen.iter().any(|(host, is_silent, ..)| *host == own && !is_silent);
        let gone: Vec<i64> = others()
            .filter(|(_, is_silent, has_left, _)| *has_left || (*is_silent && is_heard))
            .map(|(host, ..)| *host)
            .collect();
        let leaving: Vec<i64> = others().filter(|(.., leaves)| *leaves).map(|(host, ..)| *host).collect();
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

    /// What is open in the conversations that this host works on, whoever has taken it in.
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

    /// Those of these conversations that no other host works on.
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

    /// The hosts of the database, the first first. None on a store of files.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn hosts(&self) -> Result<Vec<Host>, StoreError> {
        match self.shared.link {
            Some(_) => self.read(|conn| hosts(conn, 0)).await,
            None => Ok(vec![]),
        }
    }

    /// Those beside this one.
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

    /// Who works on the database; nobody on a store of files.
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

/// Among the hosts from now on, in the place of whoever had this home before.
fn enter(conn: &Connection, name: &str, owner: &str) -> Result<(i64, Option<i64>), Fault> {
    if let Connection::Postgres(postgres) = conn {
        schema::check(conn, Path::new(postgres.link().name()))?;
    }
    let silent_ms = conn.prepare_cached(SILENT)?.query_row([], |row| row.get(0))?;
    // Of itself, too, for a crash is no end.
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
    Ok((host, silent_ms))
}

/// All but one; none has the number 0.
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

pub(super) fn living(conn: &Connection) -> Result<Option<String>, Fault> {
    Ok(conn.prepare_cached(LIVING)?.query_row([], |row| row.get(0)).optional()?)
}

/// Ends its work: whoever waits need not wait for its lease to end.
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

/// What a home is called among hosts: the machine, and the folder there.
pub(super) fn name(home: &Path) -> String {
    let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    format!("{}:{}", machine(), home.display())
}

/// How a `run` on a database is called among those of other machines.
pub(super) fn owner() -> String {
    format!("pmk-host run on {}", machine())
}

fn machine() -> String {
    uname().nodename().to_string_lossy().into_owned()
}
