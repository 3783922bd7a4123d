//! Components that the hosts of a database send each other: those of policies chosen for all, and those of the arms
//! of the running experiment.

use std::{collections::BTreeSet, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    Store, StoreError,
    error::Fault,
    sql::{Connection, OptionalExtension, params},
};

const COMPONENTS: &str = "SELECT sha256 FROM component";
/// If another host has added it meanwhile, it is the same.
const ADD: &str =
    "INSERT INTO component (sha256, bytes) VALUES (?1, ?2) ON CONFLICT (sha256) DO NOTHING RETURNING sha256";
/// A row that refers to a component contains its digest.
const DROP_UNNAMED: &str = "DELETE FROM component
     WHERE NOT EXISTS (SELECT 1 FROM chosen_policies WHERE strpos(layers, sha256) > 0)
       AND NOT EXISTS (SELECT 1 FROM sent_arms WHERE strpos(arms, sha256) > 0)";
const COMPONENT: &str = "SELECT bytes FROM component WHERE sha256 = ?1";

/// Sending is repeated so often: another host that stores its references meanwhile deletes components that nothing
/// refers to yet.
const TRIES: usize = 5;

/// A layer whose component was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentLayer {
    pub name: String,
    pub sha256: String,
}

/// A layer whose component is sent.
pub type LayerUpload = (SentLayer, Arc<[u8]>);

impl Store {
    /// Sends components, and then stores what refers to them by `name`, which returns `None` where one of them was
    /// deleted again. Returns the result of `name` otherwise.
    pub(super) async fn send_along<T, F>(&self, sending: Vec<LayerUpload>, name: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<Option<T>, Fault> + Clone + Send + 'static,
    {
        for _ in 0..TRIES {
            // Large components over a slow network take long, and other writes must not wait for that.
            let sending = sending.clone();
            self.read(move |conn| add(conn, &sending)).await?;
            if let Some(named) = self.write(name.clone()).await? {
                return Ok(named);
            }
        }
        let path = self.shared.link.as_ref().map(|link| link.name().into()).unwrap_or_default();
        Err(StoreError::Busy { path })
    }

    /// Returns the components of these layers, in order; `None` where one was deleted because others were sent
    /// meanwhile.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn components(&self, layers: Vec<SentLayer>) -> Result<Option<Vec<Vec<u8>>>, StoreError> {
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(COMPONENT)?;
            let bytes = layers.iter().map(|layer| statement.query_row([&layer.sha256], |row| row.get(0)).optional());
            Ok(bytes.collect::<Result<Option<_>, _>>()?)
        })
        .await
    }
}

/// Returns the digests of the stored components.
pub(super) fn digests(conn: &Connection) -> Result<BTreeSet<String>, Fault> {
    let mut statement = conn.prepare_cached(COMPONENTS)?;
    let there = statement.query_map([], |row| row.get(0))?;
    Ok(there.collect::<Result<_, _>>()?)
}

/// Adds the components that are missing. They are kept once something refers to them.
fn add(conn: &Connection, sending: &[LayerUpload]) -> Result<(), Fault> {
    let there = digests(conn)?;
    for (SentLayer { sha256, .. }, bytes) in sending.iter().filter(|(layer, _)| !there.contains(&layer.sha256)) {
        let mut statement = conn.prepare_cached(ADD)?;
        statement.query_row(params![sha256, &**bytes], |row| row.get::<_, String>(0)).optional()?;
    }
    Ok(())
}

/// Deletes components that nothing refers to.
pub(super) fn keep_what_is_named(conn: &Connection) -> Result<(), Fault> {
    Ok(conn.prepare_cached(DROP_UNNAMED)?.run([])?)
}
