//! The part of gateway.json that all hosts of a database go by. Who compares it with the files of the homes is in
//! [`sharing`](crate::sharing).

use super::{
    Store, StoreError,
    error::Fault,
    sql::{Connection, OptionalExtension, params},
};

pub(super) const VERSION: &str = "SELECT version FROM common_config WHERE id = 1";
pub(super) const CONFIG: &str = "SELECT version, text FROM common_config WHERE id = 1";
/// Of two who have read the same, the second is refused.
pub(super) const OFFER: &str = "INSERT INTO common_config (id, version, text) VALUES (1, ?1, ?2)
     ON CONFLICT (id) DO UPDATE SET version = excluded.version, text = excluded.text WHERE common_config.version = ?3
     RETURNING version";

/// What the store has of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommonConfig {
    pub version: i64,
    /// JSON.
    pub text: String,
}

impl Store {
    /// Which version it is; none where nobody has shared anything yet. For threads that may wait.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn common_config_version(&self) -> Result<Option<i64>, StoreError> {
        self.read_waiting(|conn| Ok(conn.prepare_cached(VERSION)?.query_row([], |row| row.get(0)).optional()?))
    }

    /// What all go by. For threads that may wait.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn common_config(&self) -> Result<Option<CommonConfig>, StoreError> {
        self.read_waiting(|conn| {
            let mut statement = conn.prepare_cached(CONFIG)?;
            let config = statement.query_row([], |row| Ok(CommonConfig { version: row.get(0)?, text: row.get(1)? }));
            Ok(config.optional()?)
        })
    }

    /// Has all go by this, where they still go by that version, or by nothing. The new version; nothing where somebody was faster.
    /// For threads that may wait.
    ///
    /// # Errors
    /// Nothing was changed.
    pub fn offer_common_config(
        &self,
        text: String,
        instead_of: Option<i64>,
        now_ms: i64,
    ) -> Result<Option<i64>, StoreError> {
        self.shared.writer.write_waiting(move |conn| offer(conn, &text, instead_of, now_ms))
    }
}

fn offer(conn: &Connection, text: &str, instead_of: Option<i64>, now_ms: i64) -> Result<Option<i64>, Fault> {
    let before = instead_of.unwrap_or_default();
    // It goes with the time, so that a database that was put back gives none that it had given before.
    let offered = params![before.max(now_ms) + 1, text, before];
    Ok(conn.prepare_cached(OFFER)?.query_row(offered, |row| row.get(0)).optional()?)
}
