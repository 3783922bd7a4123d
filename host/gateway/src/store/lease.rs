//! Leases: which process works on a conversation.
//!
//! A `run`'s lease has no end: the home lock tells whether that `run` is alive, and for hosts of a database their
//! [signs of life](super::hosts) do; so a killed one blocks nobody. Any other command's lease expires by itself.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use pmk_core::SessionKey;

use super::{
    Store, StoreError,
    error::Fault,
    moment::{self, Began},
    sql::{Connection, Invalidation, OptionalExtension, params},
};
use crate::ids::SessionId;

/// How long a command other than `run` may work on a conversation.
pub const LEASE_FOR: Duration = Duration::from_secs(30);

/// How often taking a lease that somebody holds is retried.
const RETRY_EVERY: Duration = Duration::from_millis(50);

pub(super) const FIND_HOLDER: &str = "SELECT id, lease_owner, lease_until FROM session WHERE key = ?1";
pub(super) const TAKE: &str = "UPDATE session SET lease_owner = ?2, lease_until = ?3 WHERE id = ?1";
pub(super) const RELEASE: &str =
    "UPDATE session SET lease_owner = NULL, lease_until = NULL WHERE id = ?1 AND lease_owner = ?2";
macro_rules! free {
    ($of_owner:literal, $of_home:literal) => {
        concat!(
            "UPDATE session SET lease_owner = NULL, lease_until = NULL
     WHERE id = ?1 AND lease_until IS NULL ",
            $of_owner,
            " AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.session_id = ?1 AND i.message IS NOT NULL AND i.parked_at IS NULL
             AND (SELECT t.delivered_at IS NULL FROM turn t WHERE t.id = i.id) ",
            $of_home,
            ")"
        )
    };
}
/// A question that is answered along with a turn may finish while that turn is still under way. Scans what is open
/// in the conversation, by its index, regardless of the database's statistics.
pub(super) const FREE: &str = free!("", "");
const FREE_OF_HOST: &str = free!("AND lease_owner = ?2", "AND (session.key LIKE 'slack:%' OR i.home = ?3)");
const VOID_OF: &str = "UPDATE session SET lease_owner = NULL, lease_until = NULL WHERE lease_owner = ?1";
const VOID_ALL: &str = "UPDATE session SET lease_owner = NULL, lease_until = NULL WHERE lease_owner IS NOT NULL";

/// The right to change a conversation while none of its turns is under way.
#[derive(Debug)]
#[must_use = "a lease that is not released blocks the conversation until it runs out"]
pub struct Lease {
    pub(super) session: SessionId,
    pub(super) key: SessionKey,
    pub(super) owner: String,
}

impl Lease {
    /// The conversation.
    pub fn session(&self) -> SessionId {
        self.session
    }
}

impl Store {
    /// Leases a conversation to a command (`sessions reset`) for 30 seconds at most; while a turn or another
    /// command holds it, waits for up to `wait`.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`]; [`StoreError::Leased`] when it was not released in time.
    pub async fn lease(
        &self,
        key: &SessionKey,
        command: &str,
        wait: Duration,
        now_ms: i64,
    ) -> Result<Lease, StoreError> {
        let began = Began::now(now_ms);
        let owner = owner(command);
        let mut dead_run = None;
        loop {
            let (now_ms, wanted, by) = (began.now_ms(), key.clone(), owner.clone());
            let dead = dead_run.take();
            let taken =
                self.write(move |conn| lease(conn, &wanted, &by, dead.as_deref(), moment::of(conn, now_ms)?)).await?;
            let holder = match taken {
                Ok(session) => return Ok(Lease { session, key: key.clone(), owner }),
                Err(holder) => holder,
            };
            // The owner is remembered, because a `run` that starts meanwhile has another name.
            if holder.until.is_none() && !self.run_is_alive().await? {
                dead_run = Some(holder.owner);
            } else if began.elapsed() < wait {
                tokio::time::sleep(RETRY_EVERY).await;
            } else {
                return Err(StoreError::Leased { key: key.clone(), owner: holder.owner });
            }
        }
    }

    /// Releases a conversation.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] when someone else holds it by now.
    pub async fn release(&self, lease: Lease) -> Result<(), StoreError> {
        self.write(move |conn| end(conn, &lease)).await
    }

    /// Releases a conversation after something was done with it. After a failure, the lease would expire by itself.
    ///
    /// # Errors
    /// What was done has failed; else those of [`Store::release`].
    pub(super) async fn release_after<T>(&self, lease: Lease, done: Result<T, StoreError>) -> Result<T, StoreError> {
        let released = self.release(lease).await;
        let done = done?;
        released.map(|()| done)
    }
}

/// Makes every lease void: all holders are gone.
pub(super) fn void_all(conn: &Connection) -> Result<(), Fault> {
    Ok(conn.execute(VOID_ALL, []).map(drop)?)
}

/// Makes the leases of one owner void, who is gone.
pub(super) fn void_of(conn: &Connection, owner: &str) -> Result<(), Fault> {
    Ok(conn.prepare_cached(VOID_OF)?.run([owner])?)
}

/// Returns a name that no other process or call has.
pub(super) fn owner(command: &str) -> String {
    format!("`{command}` (pid {}, {:08x})", std::process::id(), RandomState::new().hash_one(()) as u32)
}

/// The holder of a lease.
struct Holder {
    owner: String,
    /// `None`: as long as that `run` is alive.
    until: Option<i64>,
}

/// Whether a lease with that end makes a `run` wait. One without an end is its own, or a dead `run`'s, because this
/// `run` holds the home lock.
pub(super) fn keeps_out_a_run(conn: &Connection, until: Option<i64>, now_ms: i64) -> Result<bool, Fault> {
    let Some(until) = until else { return Ok(false) };
    Ok(lasts(until, moment::of(conn, now_ms)?))
}

/// Whether a command's lease with that end has not expired. One that ends later than any lease, with as much again for
/// what waits in between, is from before the clock was set back.
fn lasts(until: i64, now_ms: i64) -> bool {
    until > now_ms && until <= now_ms.saturating_add(2 * LEASE_FOR.as_millis() as i64)
}

/// Takes a conversation that is free, or returns its holder. `dead_run` is an owner known to be gone.
fn lease(
    conn: &Connection,
    key: &SessionKey,
    owner: &str,
    dead_run: Option<&str>,
    now_ms: i64,
) -> Result<Result<SessionId, Holder>, Fault> {
    let found = conn
        .prepare_cached(FIND_HOLDER)?
        .query_row([key.to_string()], |row| {
            let owner: Option<String> = row.get(1)?;
            let until = row.get(2)?;
            Ok((SessionId(row.get(0)?), owner.map(|owner| Holder { owner, until })))
        })
        .optional()?;
    let (session, holder) = found.ok_or_else(|| StoreError::UnknownSession(key.clone()))?;
    if let Some(holder) = holder {
        let void = match holder.until {
            Some(until) => !lasts(until, now_ms),
            None => dead_run == Some(&holder.owner),
        };
        if !void {
            return Ok(Err(holder));
        }
    }
    take(conn, session, owner, Some(now_ms.saturating_add(LEASE_FOR.as_millis() as i64)))?;
    Ok(Ok(session))
}

pub(super) fn take(conn: &Connection, session: SessionId, owner: &str, until: Option<i64>) -> Result<(), Fault> {
    conn.moved(|| Invalidation::Conversation(session.0));
    conn.prepare_cached(TAKE)?.run(params![session.0, owner, until])?;
    Ok(())
}

/// Releases the lease of this `run`, if it has one, once nothing in the conversation is under way. A store in a
/// file has only one `run` at a time.
pub(super) fn free(conn: &Connection, session: SessionId, owner: &str) -> Result<(), Fault> {
    conn.moved(|| Invalidation::Conversation(session.0));
    match conn {
        Connection::Sqlite(_) => conn.prepare_cached(FREE)?.run([session.0])?,
        Connection::Postgres(host) => {
            conn.prepare_cached(FREE_OF_HOST)?.run(params![session.0, owner, host.link().home()])?;
        }
    }
    Ok(())
}

/// Ends a command's lease, in the transaction of what was done under it: if the lease was lost, nothing was done.
pub(super) fn end(conn: &Connection, lease: &Lease) -> Result<(), Fault> {
    match conn.prepare_cached(RELEASE)?.execute(params![lease.session.0, lease.owner])? {
        0 => Err(StoreError::LeaseLost { key: lease.key.clone() }.into()),
        _ => Ok(()),
    }
}
