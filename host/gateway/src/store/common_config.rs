//! The part of gateway.json that is common to all hosts of a database, and what the file of each home said when it
//! was last compared with it. [`sharing`](crate::sharing) compares them.

use super::{
    Store, StoreError,
    error::Fault,
    sql::{Connection, OptionalExtension, params},
};

const VERSION: &str = "SELECT version FROM common_config WHERE id = 1";
const CONFIG: &str = "SELECT version, text FROM common_config WHERE id = 1";
/// Of two hosts that have read the same version, the second is refused.
const OFFER: &str = "INSERT INTO common_config (id, version, text) VALUES (1, ?1, ?2)
     ON CONFLICT (id) DO UPDATE SET version = excluded.version, text = excluded.text WHERE common_config.version = ?3
     RETURNING version";
const OF_HOME: &str = "SELECT says, next FROM home_config WHERE home = ?1 AND token = ?2";
const REMEMBER: &str = "INSERT INTO home_config (home, token, says, next) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (home) DO UPDATE SET token = excluded.token, says = excluded.says, next = excluded.next";

/// The common configuration, as the database has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommonConfig {
    /// Greater for each later commit; `None` where nobody has shared anything yet.
    pub version: Option<i64>,
    /// JSON.
    pub text: Option<String>,
    /// What is stored of this home, where it was compared before.
    pub home: Option<HomeConfig>,
}

/// What the file of a home said, as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeConfig {
    pub says: String,
    /// What was about to be written to the file.
    pub next: Option<String>,
}

impl Store {
    /// Returns the version of the common configuration; `None` where nobody has shared anything yet. For threads
    /// that may block.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn common_config_version(&self) -> Result<Option<i64>, StoreError> {
        self.read_waiting(version)
    }

    /// Returns the common configuration, and what is stored of the home with this token. For threads that may
    /// block.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn common_config(&self, token: String) -> Result<CommonConfig, StoreError> {
        let name = self.home_name();
        self.read_waiting(move |conn| {
            let mut statement = conn.prepare_cached(CONFIG)?;
            let there = statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            let (version, text) = there.unzip();
            let mut statement = conn.prepare_cached(OF_HOME)?;
            let home =
                statement.query_row([name, token], |row| Ok(HomeConfig { says: row.get(0)?, next: row.get(1)? }));
            Ok(CommonConfig { version, text, home: home.optional()? })
        })
    }

    /// Stores what the file of the home with this token says, and replaces the common configuration by `offer`,
    /// where there is one and the stored version is still the one it names. Returns whether that was done: if
    /// another host was faster, nothing is stored. For threads that may block.
    ///
    /// # Errors
    /// Nothing was changed.
    pub fn agree_on_config(
        &self,
        token: String,
        home: HomeConfig,
        offer: Option<(String, Option<i64>)>,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        let name = self.home_name();
        self.shared.writer.write_waiting(move |conn| {
            if let Some((text, instead_of)) = &offer
                && !replace(conn, text, *instead_of, now_ms)?
            {
                return Ok(false);
            }
            let HomeConfig { says, next } = &home;
            conn.prepare_cached(REMEMBER)?.run(params![name, token, says, next])?;
            Ok(true)
        })
    }

    /// Returns the name of this home among those of the database.
    pub(crate) fn home_name(&self) -> String {
        self.shared.link.as_ref().map(|link| link.home().clone()).unwrap_or_default()
    }
}

fn version(conn: &Connection) -> Result<Option<i64>, Fault> {
    Ok(conn.prepare_cached(VERSION)?.query_row([], |row| row.get(0)).optional()?)
}

fn replace(conn: &Connection, text: &str, instead_of: Option<i64>, now_ms: i64) -> Result<bool, Fault> {
    let before = instead_of.unwrap_or_default();
    // It is at least the current time, so that a database restored from a backup does not assign a version again.
    let offered = params![before.max(now_ms) + 1, text, before];
    let version: Option<i64> = conn.prepare_cached(OFFER)?.query_row(offered, |row| row.get(0)).optional()?;
    Ok(version.is_some())
}
