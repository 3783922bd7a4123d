//! Which host works on a database that several can reach: one at a time. Others wait until it has gone, or was not heard of
//! for as long as its lease.
//!
//! A host is known by a number that nobody has again. Each of its transactions begins by showing that the number is still
//! there, while nobody else writes, and so does whoever takes over. So a host that was stopped for longer than its lease, and
//! goes on, can write nothing.
//!
//! Those that wait are in a table of their own, and give their signs there. What is in it lets nobody write; it says who is
//! next, for as long as that is heard of, and who is there at all.

use std::{path::Path, time::Duration};

use pmk_system::home::HomeLock;
use rustix::system::uname;
use serde::Serialize;

use super::{
    Store, StoreError,
    connection::MIGRATIONS,
    error::Fault,
    lease,
    sql::{Connection, OptionalExtension, params},
};

/// For so long after its last sign a host is believed to live.
pub const HOST_LEASE: Duration = Duration::from_secs(4);

/// How often one that has nothing to write gives a sign, and one that waits.
pub(super) const SIGN_EVERY: Duration = Duration::from_secs(1);

/// How often one that waits looks whether its turn has come; a sign is a look, too.
const LOOK_EVERY: Duration = Duration::from_millis(500);

const FORGET: &str = "DELETE FROM host WHERE until <= pmk_now() OR name = ?1";
const LIVING: &str = "SELECT owner FROM host WHERE until > pmk_now() ORDER BY id LIMIT 1";
const ENTER: &str = "INSERT INTO host (name, owner, version, started_at, until, lease_ms)
     VALUES (?1, ?2, ?3, pmk_now(), pmk_now() + ?4, ?4) RETURNING id";
/// When any of them was last heard of.
const LAST_SIGN: &str = "SELECT max(until - lease_ms) FROM host";
const LEAVE: &str = "UPDATE host SET until = pmk_now(), lease_ms = 0 WHERE id = ?1";

const FORGET_WAITING: &str = "DELETE FROM host_waiting WHERE until <= pmk_now() OR name = ?1";
const WAIT: &str = "INSERT INTO host_waiting (name, owner, version, since, until, lease_ms)
     VALUES (?1, ?2, ?3, pmk_now(), pmk_now() + ?4, ?4) RETURNING id";
const STILL_WAITS: &str = "UPDATE host_waiting SET until = pmk_now() + lease_ms WHERE id = ?1";
const BEFORE: &str = "SELECT 1 FROM host_waiting WHERE until > pmk_now() AND id < ?1 LIMIT 1";
const WAITS_NO_MORE: &str = "DELETE FROM host_waiting WHERE id = ?1";
const SCHEMA: &str = "SELECT version FROM pmk_schema";
/// One that has ended in an orderly way is not worth a word.
const HOSTS: &str =
    "SELECT CASE WHEN until > pmk_now() THEN 'works' ELSE 'silent' END, name, owner, version, started_at,
            pmk_now() - (until - lease_ms), 0 AS line, id
     FROM host WHERE lease_ms > 0
     UNION ALL
     SELECT 'waits', name, owner, version, since, pmk_now() - (until - lease_ms), 1, id
     FROM host_waiting WHERE until > pmk_now()
     ORDER BY line, id";

/// A host of a database, by the clock of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub state: HostState,
    pub machine: String,
    pub home: String,
    /// As it signs leases.
    pub owner: String,
    pub version: String,
    /// Since when it works or waits.
    pub since_ms: i64,
    /// How long ago it was last heard of.
    pub silent_ms: i64,
}

/// What a host does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HostState {
    Works,
    Waits,
    /// It has worked, and was not heard of for longer than its lease. Nobody has taken over yet.
    Silent,
}

impl HostState {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            HostState::Works => "works",
            HostState::Waits => "waits",
            HostState::Silent => "silent",
        }
    }
}

/// What has come of wanting to work.
enum Turn {
    /// As this host; and when somebody was last heard of before.
    Works(i64, Option<i64>),
    /// In this place of the line, behind whoever works.
    Waits(i64, Option<String>),
}

impl Store {
    /// Gets a `run` the right to work on the store, whose home it has locked: leases of whatever `run` was before it are void.
    /// Where another host works on the same database it waits until that has gone, however long, and calls `waits` with who
    /// that is, once. Says when a host of the database was last heard of, by its clock; nothing on a store of files.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn take_over(&self, _lock: &HomeLock, waits: impl FnOnce(&str)) -> Result<Option<i64>, StoreError> {
        let Some(link) = &self.shared.link else {
            self.write(lease::void_all).await?;
            return Ok(None);
        };
        let (mut waits, mut place) = (Some(waits), None);
        loop {
            // The lock proves that whoever had this home before is gone.
            let (name, owner) = (link.home().clone(), self.owner());
            match self.write(move |conn| enter(conn, &name, &owner, place)).await {
                Ok(Turn::Works(host, last_sign_ms)) => {
                    link.write_as(host);
                    return Ok(last_sign_ms);
                }
                Ok(Turn::Waits(own, other)) => {
                    place = Some(own);
                    if let Some(other) = other
                        && let Some(waits) = waits.take()
                    {
                        waits(&other);
                    }
                }
                // Whoever waits can wait for a database that is away, too.
                Err(StoreError::Away { .. } | StoreError::Busy { .. }) if place.is_some() => {}
                Err(error) => return Err(error),
            }
            tokio::time::sleep(LOOK_EVERY).await;
            if !matches!(self.host_at_work().await, Ok(None)) {
                tokio::time::sleep(SIGN_EVERY - LOOK_EVERY).await;
            }
        }
    }

    /// The hosts of the database: who works, and who waits, the next first. None on a store of files.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn hosts(&self) -> Result<Vec<Host>, StoreError> {
        match self.shared.link {
            Some(_) => self.read(hosts).await,
            None => Ok(vec![]),
        }
    }

    /// Who works on the database, where another than this one does; nobody on a store of files.
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

/// Takes the database, or a place in the line of those that wait for it; in that it gives a sign.
fn enter(conn: &Connection, name: &str, owner: &str, place: Option<i64>) -> Result<Turn, Fault> {
    let last_sign_ms = conn.prepare_cached(LAST_SIGN)?.query_row([], |row| row.get(0))?;
    conn.prepare_cached(FORGET)?.run([name])?;
    let other = living(conn)?;
    let place = wait(conn, name, owner, place)?;
    if other.is_some() || conn.prepare_cached(BEFORE)?.exists([place])? {
        return Ok(Turn::Waits(place, other));
    }
    check_schema(conn)?;
    conn.prepare_cached(WAITS_NO_MORE)?.run([place])?;
    lease::void_all(conn)?;
    let lease_ms = HOST_LEASE.as_millis() as i64;
    let entered = params![name, owner, env!("CARGO_PKG_VERSION"), lease_ms];
    let host = conn.prepare_cached(ENTER)?.query_row(entered, |row| row.get(0))?;
    Ok(Turn::Works(host, last_sign_ms))
}

/// The place of a home among those that wait: the one that it has, or the last.
fn wait(conn: &Connection, name: &str, owner: &str, place: Option<i64>) -> Result<i64, Fault> {
    if let Some(place) = place
        && conn.prepare_cached(STILL_WAITS)?.execute([place])? == 1
    {
        return Ok(place);
    }
    conn.prepare_cached(FORGET_WAITING)?.run([name])?;
    let lease_ms = HOST_LEASE.as_millis() as i64;
    let waits = params![name, owner, env!("CARGO_PKG_VERSION"), lease_ms];
    Ok(conn.prepare_cached(WAIT)?.query_row(waits, |row| row.get(0))?)
}

/// A newer program may have changed the schema while this one waited.
fn check_schema(conn: &Connection) -> Result<(), Fault> {
    let (found, known) = (conn.query_row(SCHEMA, [], |row| row.get::<_, u32>(0))?, MIGRATIONS.len() as u32);
    match conn {
        Connection::Postgres(postgres) if found > known => {
            Err(StoreError::Newer { path: postgres.link().name().into(), found, known }.into())
        }
        _ => Ok(()),
    }
}

fn hosts(conn: &Connection) -> Result<Vec<Host>, Fault> {
    let mut statement = conn.prepare_cached(HOSTS)?;
    let hosts = statement.query_map([], |row| {
        let (state, name) = (row.get::<_, String>(0)?, row.get::<_, String>(1)?);
        let (machine, home) = name.split_once(':').unwrap_or((&name, ""));
        let states = [HostState::Works, HostState::Waits];
        Ok(Host {
            state: states.into_iter().find(|known| known.name() == state).unwrap_or(HostState::Silent),
            machine: machine.to_owned(),
            home: home.to_owned(),
            owner: row.get(2)?,
            version: row.get(3)?,
            since_ms: row.get(4)?,
            silent_ms: row.get(5)?,
        })
    })?;
    Ok(hosts.collect::<Result<_, _>>()?)
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
