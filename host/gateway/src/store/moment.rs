//! What time it is for a rule that hosts share: machines whose clocks differ go by that of their database.

use super::{error::Fault, sql::Connection};

const OF_DATABASE: &str = "SELECT pmk_now()";

/// This moment, where the machine takes it for `now_ms`.
pub(super) fn of(conn: &Connection, now_ms: i64) -> Result<i64, Fault> {
    match conn {
        Connection::Sqlite(_) => Ok(now_ms),
        Connection::Postgres(_) => Ok(conn.prepare_cached(OF_DATABASE)?.query_row([], |row| row.get(0))?),
    }
}
