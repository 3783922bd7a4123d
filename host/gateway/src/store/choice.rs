//! Policies that somebody has chosen for all hosts of a database, as long as one of them works; and what decides on each.

use std::sync::Arc;

use pmk_policy::Identity;
use serde::{Deserialize, Serialize};

use super::{
    Store, StoreError,
    error::Fault,
    sql::{Connection, OptionalExtension, params},
};

const CHOOSE: &str = "INSERT INTO chosen_policies AS c (id, version, host, layers) VALUES (1, pmk_now(), ?1, ?2)
     ON CONFLICT (id) DO UPDATE SET version = greatest(c.version + 1, excluded.version), host = excluded.host, layers = excluded.layers
     RETURNING version";
const CHOSEN: &str = "SELECT version, host, layers FROM chosen_policies WHERE id = 1";
const COMPONENTS: &str = "SELECT sha256 FROM component";
const ADD: &str = "INSERT INTO component (sha256, bytes) VALUES (?1, ?2)";
const DROP: &str = "DELETE FROM component WHERE sha256 = ?1";
const COMPONENT: &str = "SELECT bytes FROM component WHERE sha256 = ?1";
const SAY: &str = "UPDATE host SET deciding = ?2 WHERE id = ?1";
/// Where nobody works any more, each begins with what it was started with.
const FORGET: &str =
    "DELETE FROM chosen_policies WHERE NOT EXISTS (SELECT 1 FROM host WHERE until > pmk_now() AND lease_ms <> 0)";

/// One of the policies that were chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenLayer {
    /// The file it came from, on the host where it was chosen.
    pub file: String,
    pub sha256: String,
}

/// What was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub version: i64,
    /// Where: machine and home.
    pub host: String,
    /// The top one last; none where the embedded policy decides alone.
    pub layers: Vec<ChosenLayer>,
}

/// What decides on a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decides {
    /// The top one first.
    pub layers: Vec<Identity>,
    /// The last choice for all that it knows of.
    #[serde(default)]
    pub choice: Option<i64>,
    /// Why it does not go by that.
    #[serde(default)]
    pub refused: Option<String>,
}

impl Store {
    /// Has all hosts go by these, the top one last. The choice's version; nothing on a store of files.
    ///
    /// # Errors
    /// Nothing was chosen.
    pub async fn choose(&self, layers: Vec<(ChosenLayer, Arc<[u8]>)>) -> Result<Option<i64>, StoreError> {
        let Some(link) = &self.shared.link else { return Ok(None) };
        let home = link.home().clone();
        self.write(move |conn| choose(conn, &home, &layers)).await.map(Some)
    }

    /// What was chosen for all.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn choice(&self) -> Result<Option<Choice>, StoreError> {
        if self.shared.link.is_none() {
            return Ok(None);
        }
        self.read(|conn| {
            let mut statement = conn.prepare_cached(CHOSEN)?;
            let row = statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?)));
            // What makes no sense was written by a later program.
            Ok(row.optional()?.and_then(|(version, host, layers)| {
                Some(Choice { version, host, layers: serde_json::from_str(&layers).ok()? })
            }))
        })
        .await
    }

    /// A component of those that were chosen.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn component(&self, sha256: String) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(move |conn| Ok(conn.prepare_cached(COMPONENT)?.query_row([sha256], |row| row.get(0)).optional()?))
            .await
    }

    /// Tells the others what decides on this host.
    ///
    /// # Errors
    /// They do not know.
    pub async fn decides(&self, decides: &Decides) -> Result<(), StoreError> {
        let Some(link) = &self.shared.link else { return Ok(()) };
        let (host, decides) = (link.host(), serde_json::to_string(decides).unwrap_or_default());
        self.write(move |conn| Ok(conn.prepare_cached(SAY)?.run(params![host, decides])?)).await
    }
}

fn choose(conn: &Connection, home: &str, layers: &[(ChosenLayer, Arc<[u8]>)]) -> Result<i64, Fault> {
    let there: Vec<String> =
        conn.prepare_cached(COMPONENTS)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for (layer, bytes) in layers.iter().filter(|(layer, _)| !there.contains(&layer.sha256)) {
        conn.prepare_cached(ADD)?.run(params![&layer.sha256, &**bytes])?;
    }
    for unused in there.iter().filter(|sha256| layers.iter().all(|(layer, _)| layer.sha256 != **sha256)) {
        conn.prepare_cached(DROP)?.run([unused])?;
    }
    let layers: Vec<&ChosenLayer> = layers.iter().map(|(layer, _)| layer).collect();
    let layers = serde_json::to_string(&layers).unwrap_or_default();
    Ok(conn.prepare_cached(CHOOSE)?.query_row(params![home, layers], |row| row.get(0))?)
}

/// Of a host that begins: where no other works, nothing is chosen for all.
pub(super) fn begins(conn: &Connection) -> Result<(), Fault> {
    Ok(conn.prepare_cached(FORGET)?.run([])?)
}
