//! The current time for rules that hosts share: machines whose clocks differ use the clock of their database.

use super::{error::Fault, sql::Connection};

const OF_DATABASE: &str = "SELECT pmk_now()";

/// Returns the current time, which is `now_ms` by this machine's clock.
pub(super) fn of(conn: &Connection, now_ms: i64) -> Result<i64, Fault> {
    match conn {
        Connection::Sqlite(_) => Ok(now_ms),
        Connection::Postgres(_) => Ok(conn.prepare_cached(OF_DATABASE)?.query_row([], |row| row.get(0))?),
    }
}
