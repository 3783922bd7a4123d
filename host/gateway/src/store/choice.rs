//! Policies that were chosen for all hosts of a database, until all of them have ended; and what decides on each
//! host.

use pmk_policy::{ChangedSettings, ConfiguredSettings, Identity, Suspension};
use serde::{Deserialize, Serialize};

use super::{
    Store, StoreError, codec,
    components::{self, LayerUpload, SentLayer},
    error::Fault,
    sql::{Connection, OptionalExtension, params},
};

const CHOOSE: &str = "INSERT INTO chosen_policies AS c (id, version, host, layers) VALUES (1, pmk_now(), ?1, ?2)
     ON CONFLICT (id) DO UPDATE SET version = greatest(c.version + 1, excluded.version), host = excluded.host, layers = excluded.layers
     RETURNING version";
const GIVE_SETTINGS: &str = "UPDATE chosen_policies SET settings = ?1, settings_of = version WHERE id = 1";
const CHOSEN: &str = "SELECT version, host, layers, CASE WHEN settings_of = version THEN settings END
     FROM chosen_policies WHERE id = 1";
const SAY: &str = "UPDATE host SET deciding = ?2 WHERE id = ?1";
/// Once all have ended, each starts with its own policies again.
const FORGET: &str = "DELETE FROM chosen_policies WHERE NOT EXISTS (SELECT 1 FROM host WHERE lease_ms <> 0)";
/// The policies that were chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub version: i64,
    /// The host where they were chosen: machine and home.
    pub host: String,
    /// The top layer last; empty where the embedded policy decides alone.
    pub layers: Vec<SentLayer>,
    /// The settings of a promoted arm; `None` where each host uses its own.
    pub settings: Option<ConfiguredSettings>,
}

/// The policies that decide on a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPolicies {
    /// The top layer first.
    pub layers: Vec<Identity>,
    /// Their settings that somebody has changed, if the program reports them.
    #[serde(default)]
    pub settings: Option<ChangedSettings>,
    /// The version of the last choice that it has seen.
    #[serde(default)]
    pub choice: Option<i64>,
    /// Why it does not use that choice.
    #[serde(default)]
    pub refused: Option<String>,
    /// The decisions for which they are skipped at present, because they kept failing.
    #[serde(default)]
    pub suspended: Vec<Suspension>,
}

impl Store {
    /// Makes all hosts use these layers, the top one last, with these settings or, without any, each with its own.
    /// Returns the choice's version; `None` on a store in a file.
    ///
    /// # Errors
    /// Nothing was chosen.
    pub async fn choose(
        &self,
        layers: Vec<LayerUpload>,
        settings: Option<ConfiguredSettings>,
    ) -> Result<Option<i64>, StoreError> {
        let Some(link) = &self.shared.link else { return Ok(None) };
        let (home, chosen) = (link.home().clone(), layers.iter().map(|(layer, _)| layer.clone()).collect::<Vec<_>>());
        self.send_along(layers, move |conn| choose(conn, &home, &chosen, settings.as_ref())).await.map(Some)
    }

    /// Returns the choice for all hosts.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn choice(&self) -> Result<Option<Choice>, StoreError> {
        if self.shared.link.is_none() {
            return Ok(None);
        }
        self.read(chosen).await
    }

    /// Tells the other hosts what decides on this host.
    ///
    /// # Errors
    /// They were not told.
    pub async fn decides(&self, decides: &HostPolicies) -> Result<(), StoreError> {
        let Some(link) = &self.shared.link else { return Ok(()) };
        let (host, decides) = (link.host(), serde_json::to_string(decides).unwrap_or_default());
        self.write(move |conn| Ok(conn.prepare_cached(SAY)?.run(params![host, decides])?)).await
    }
}

fn chosen(conn: &Connection) -> Result<Option<Choice>, Fault> {
    let mut statement = conn.prepare_cached(CHOSEN)?;
    let row = statement.query_row([], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?, row.get::<_, Option<String>>(3)?))
    });
    // What cannot be parsed was written by a newer program.
    Ok(row.optional()?.and_then(|(version, host, layers, settings)| {
        let settings = settings.map(|settings| serde_json::from_str(&settings)).transpose().ok()?;
        Some(Choice { version, host, layers: serde_json::from_str(&layers).ok()?, settings })
    }))
}

/// Stores the choice; `None` where one of the components was deleted again.
fn choose(
    conn: &Connection,
    home: &str,
    layers: &[SentLayer],
    settings: Option<&ConfiguredSettings>,
) -> Result<Option<i64>, Fault> {
    let there = components::digests(conn)?;
    if !layers.iter().all(|layer| there.contains(&layer.sha256)) {
        return Ok(None);
    }
    let layers = serde_json::to_string(layers).unwrap_or_default();
    let version = conn.prepare_cached(CHOOSE)?.query_row(params![home, layers], |row| row.get(0))?;
    if let Some(settings) = settings {
        conn.prepare_cached(GIVE_SETTINGS)?.run([codec::to_json(settings)])?;
    }
    components::keep_what_is_named(conn)?;
    Ok(Some(version))
}

/// Deletes the choice when a host starts after all, itself included, have ended.
pub(super) fn begins(conn: &Connection) -> Result<(), Fault> {
    Ok(conn.prepare_cached(FORGET)?.run([])?)
}
