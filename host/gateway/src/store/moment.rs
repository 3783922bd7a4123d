//! The current time for rules that hosts share: machines whose clocks differ use the clock of their database.

use std::time::Duration;

use tokio::time::Instant;

use super::{error::Fault, sql::Connection};

const OF_DATABASE: &str = "SELECT pmk_now()";

/// Returns the current time, which is `now_ms` by this machine's clock.
pub(super) fn of(conn: &Connection, now_ms: i64) -> Result<i64, Fault> {
    match conn {
        Connection::Sqlite(_) => Ok(now_ms),
        Connection::Postgres(_) => Ok(conn.prepare_cached(OF_DATABASE)?.query_row([], |row| row.get(0))?),
    }
}

/// When something that takes a while has begun. Its time goes on with the runtime's clock, which a test may set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Began {
    at: Instant,
    at_ms: i64,
}

impl Began {
    /// Begins now, which is `now_ms` by the caller's clock.
    pub(super) fn now(now_ms: i64) -> Began {
        Began { at: Instant::now(), at_ms: now_ms }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.at.elapsed()
    }

    /// Returns the current time by the caller's clock.
    pub(super) fn now_ms(&self) -> i64 {
        self.at_ms.saturating_add(self.elapsed().as_millis() as i64)
    }

    /// Returns the time by the caller's clock at which it has begun.
    pub(super) fn at_ms(&self) -> i64 {
        self.at_ms
    }
}
