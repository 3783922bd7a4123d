//! The arms of an experiment, each with the components of the host that loaded it first: all hosts of a database
//! use those, until all of them have ended.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{
    Store, StoreError,
    components::{self, LayerUpload, SentLayer},
    error::Fault,
    sql::{Connection, OptionalExtension, params},
};

const SEND: &str = "INSERT INTO sent_arms (id, experiment, start, arms) VALUES (1, ?1, ?2, ?3)
     ON CONFLICT (id) DO UPDATE SET experiment = excluded.experiment, start = excluded.start, arms = excluded.arms";
const SENT: &str = "SELECT arms FROM sent_arms WHERE experiment = ?1 AND start = ?2";
/// Once all have ended, the first host that starts the experiment again sends its arms anew.
const FORGET: &str = "DELETE FROM sent_arms WHERE NOT EXISTS (SELECT 1 FROM host WHERE lease_ms <> 0)";
/// An experiment from its start to its end: started again, it is another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentId {
    pub name: String,
    pub start: String,
}

/// An arm that has its own policies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentArm {
    pub name: String,
    /// The files named in gateway.json: if they change, it is another arm.
    pub files: Vec<String>,
    /// The host that has sent it: machine and home.
    pub host: String,
    /// The top layer last; empty where the embedded policy decides alone.
    pub layers: Vec<SentLayer>,
}

impl SentArm {
    fn is_for(&self, other: &SentArm) -> bool {
        self.name == other.name && self.files == other.files
    }
}

impl Store {
    /// Returns the arms that were sent for this experiment; none on a store in a file.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn sent_arms(&self, of: &ExperimentId) -> Result<Vec<SentArm>, StoreError> {
        if !self.is_shared() {
            return Ok(vec![]);
        }
        let of = of.clone();
        self.read(move |conn| sent(conn, &of)).await
    }

    /// Makes all hosts use these arms of an experiment, each with its files and components, except for arms that
    /// others have sent before. Returns the arms that all use then; none on a store in a file.
    ///
    /// # Errors
    /// Nothing was sent.
    pub async fn send_arms(
        &self,
        of: &ExperimentId,
        arms: Vec<(String, Vec<String>, Vec<LayerUpload>)>,
    ) -> Result<Vec<SentArm>, StoreError> {
        let Some(link) = &self.shared.link else { return Ok(vec![]) };
        let named = arms.iter().map(|(name, files, layers)| {
            let layers = layers.iter().map(|(layer, _)| layer.clone()).collect();
            SentArm { name: name.clone(), files: files.clone(), host: link.home().to_string(), layers }
        });
        let ours: Vec<SentArm> = named.collect();
        let components: Vec<LayerUpload> = arms.into_iter().flat_map(|(.., layers)| layers).collect();
        let of = of.clone();
        self.send_along(components, move |conn| send(conn, &of, &ours)).await
    }
}

/// Returns the arms that all use; `None` where one of the components was deleted again.
fn send(conn: &Connection, of: &ExperimentId, ours: &[SentArm]) -> Result<Option<Vec<SentArm>>, Fault> {
    let before = sent(conn, of)?;
    let of_all = ours.iter().map(|arm| before.iter().find(|other| other.is_for(arm)).unwrap_or(arm).clone());
    let of_all: Vec<SentArm> = of_all.collect();
    if !of_all.iter().all(|arm| before.contains(arm)) {
        let there = components::digests(conn)?;
        if !of_all.iter().all(|arm| is_there(arm, &there)) {
            return Ok(None);
        }
        let arms = serde_json::to_string(&of_all).unwrap_or_default();
        conn.prepare_cached(SEND)?.run(params![of.name, of.start, arms])?;
        components::keep_what_is_named(conn)?;
    }
    Ok(Some(of_all))
}

/// Returns the arms whose components exist: an older program may have deleted some.
fn sent(conn: &Connection, of: &ExperimentId) -> Result<Vec<SentArm>, Fault> {
    let mut statement = conn.prepare_cached(SENT)?;
    let arms = statement.query_row(params![of.name, of.start], |row| row.get::<_, String>(0)).optional()?;
    // Arms that cannot be parsed were written by a newer program.
    let mut arms: Vec<SentArm> = arms.and_then(|arms| serde_json::from_str(&arms).ok()).unwrap_or_default();
    if !arms.is_empty() {
        let there = components::digests(conn)?;
        arms.retain(|arm| is_there(arm, &there));
    }
    Ok(arms)
}

fn is_there(arm: &SentArm, there: &BTreeSet<String>) -> bool {
    arm.layers.iter().all(|layer| there.contains(&layer.sha256))
}

/// Deletes the sent arms when a host starts after all, itself included, have ended.
pub(super) fn begins(conn: &Connection) -> Result<(), Fault> {
    Ok(conn.prepare_cached(FORGET)?.run([])?)
}
