//! Which host works on a database that several can reach: one at a time. Others wait until it has gone, or was not heard of
//! for as long as its lease.
//!
//! A host is known by a number that nobody has again. Each of its transactions begins by showing that the number is still
//! there, while nobody else writes, and so does whoever takes over. So a host that was stopped for longer than its lease, and
//! goes on, can write nothing.

use std::{path::Path, time::Duration};

use pmk_system::home::HomeLock;
use rustix::system::uname;

use super::{
    Store, StoreError,
    error::Fault,
    lease,
    sql::{Connection, OptionalExtension, params},
};

/// For so long after its last sign a host is believed to live.
pub const HOST_LEASE: Duration = Duration::from_secs(4);

/// How often one that has nothing to write gives a sign.
pub(super) const SIGN_EVERY: Duration = Duration::from_secs(1);

/// How often one that waits looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

const FORGET: &str = "DELETE FROM host WHERE until <= pmk_now() OR name = ?1";
const LIVING: &str = "SELECT owner FROM host WHERE until > pmk_now() ORDER BY id LIMIT 1";
const ENTER: &str = "INSERT INTO host (name, owner, version, started_at, until, lease_ms)
     VALUES (?1, ?2, ?3, pmk_now(), pmk_now() + ?4, ?4) RETURNING id";
/// When any of them was last heard of.
const LAST_SIGN: &str = "SELECT max(until - lease_ms) FROM host";
const LEAVE: &str = "UPDATE host SET until = pmk_now(), lease_ms = 0 WHERE id = ?1";

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
        let mut waits = Some(waits);
        loop {
            // The lock proves that whoever had this home before is gone.
            let (name, owner) = (link.home().clone(), self.owner());
            match self.write(move |conn| enter(conn, &name, &owner)).await? {
                Ok((host, last_sign_ms)) => {
                    link.write_as(host);
                    return Ok(last_sign_ms);
                }
                Err(other) => {
                    if let Some(waits) = waits.take() {
                        waits(&other);
                    }
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            }
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

/// Takes the database, with when somebody was last heard of, or says who has it.
fn enter(conn: &Connection, name: &str, owner: &str) -> Result<Result<(i64, Option<i64>), String>, Fault> {
    let last_sign_ms = conn.prepare_cached(LAST_SIGN)?.query_row([], |row| row.get(0))?;
    conn.prepare_cached(FORGET)?.run([name])?;
    if let Some(other) = living(conn)? {
        return Ok(Err(other));
    }
    lease::void_all(conn)?;
    let lease_ms = HOST_LEASE.as_millis() as i64;
    let entered = params![name, owner, env!("CARGO_PKG_VERSION"), lease_ms];
    let host = conn.prepare_cached(ENTER)?.query_row(entered, |row| row.get(0))?;
    Ok(Ok((host, last_sign_ms)))
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
