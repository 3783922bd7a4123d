//! The arms of an experiment as the host had them that began it first: all hosts of a database go by those, until all of them have
//! ended.

use serde::{Deserialize, Serialize};

use super::{
    Store, StoreError,
    components::{self, Sending, SentLayer},
    error::Fault,
    sql::{Connection, OptionalExtension, params},
};

const SEND: &str = "INSERT INTO sent_arms (id, experiment, host, arms) VALUES (1, ?1, ?2, ?3)
     ON CONFLICT (id) DO UPDATE SET experiment = excluded.experiment, host = excluded.host, arms = excluded.arms";
const SENT: &str = "SELECT experiment, host, arms FROM sent_arms WHERE id = 1";
const END: &str = "DELETE FROM sent_arms WHERE experiment = ?1";
/// Where all have ended, the first that begins it again says anew what they are.
const FORGET: &str = "DELETE FROM sent_arms WHERE NOT EXISTS (SELECT 1 FROM host WHERE lease_ms <> 0)";
/// Somebody who chooses policies meanwhile takes away what nothing names yet.
const TRIES: usize = 5;

/// The arms of an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentArms {
    pub experiment: String,
    /// Who sent them: machine and home.
    pub host: String,
    pub arms: Vec<SentArm>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentArm {
    pub name: String,
    /// The top one last; none where the embedded policy decides alone.
    pub layers: Vec<SentLayer>,
}

impl Store {
    /// The arms that were sent of this experiment; nothing on a store of files.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn sent_arms(&self, experiment: &str) -> Result<Option<SentArms>, StoreError> {
        if !self.is_shared() {
            return Ok(None);
        }
        let experiment = experiment.to_owned();
        self.read(move |conn| sent_of(conn, &experiment)).await
    }

    /// Has all hosts go by these arms of an experiment; the ones that somebody else has sent before, where somebody has: all go by
    /// those. Nothing to do on a store of files.
    ///
    /// # Errors
    /// Nothing was sent.
    pub async fn send_arms(
        &self,
        experiment: &str,
        arms: Vec<(String, Vec<Sending>)>,
    ) -> Result<Option<SentArms>, StoreError> {
        let Some(link) = &self.shared.link else { return Ok(None) };
        let named = arms.iter().map(|(name, layers)| {
            let layers = layers.iter().map(|(layer, _)| layer.clone()).collect();
            SentArm { name: name.clone(), layers }
        });
        let (experiment, host) = (experiment.to_owned(), link.home().clone());
        let ours = SentArms { experiment, host: host.to_string(), arms: named.collect() };
        let components: Vec<Sending> = arms.into_iter().flat_map(|(_, layers)| layers).collect();
        for _ in 0..TRIES {
            // As with what is chosen: nobody else's writes wait for that.
            let (sending, ours) = (components.clone(), ours.clone());
            self.read(move |conn| components::add(conn, &sending)).await?;
            match self.write(move |conn| send(conn, &ours)).await? {
                Came::First => return Ok(None),
                Came::After(sent) => return Ok(Some(sent)),
                Came::Again => {}
            }
        }
        Err(StoreError::Busy { path: link.name().into() })
    }

    /// The experiment is over.
    ///
    /// # Errors
    /// Its arms are kept.
    pub async fn end_arms(&self, experiment: &str) -> Result<(), StoreError> {
        if !self.is_shared() {
            return Ok(());
        }
        let experiment = experiment.to_owned();
        self.write(move |conn| {
            conn.prepare_cached(END)?.run([&experiment])?;
            components::keep_what_is_named(conn)
        })
        .await
    }
}

/// When a host has sent its arms.
enum Came {
    First,
    After(SentArms),
    /// A component is gone again.
    Again,
}

fn send(conn: &Connection, ours: &SentArms) -> Result<Came, Fault> {
    if let Some(sent) = sent_of(conn, &ours.experiment)? {
        return Ok(Came::After(sent));
    }
    if !components::are_there(conn, layers(ours))? {
        return Ok(Came::Again);
    }
    let arms = serde_json::to_string(&ours.arms).unwrap_or_default();
    conn.prepare_cached(SEND)?.run(params![ours.experiment, ours.host, arms])?;
    components::keep_what_is_named(conn)?;
    Ok(Came::First)
}

/// The arms of this experiment, as long as all of them are there: an older program may have dropped some.
fn sent_of(conn: &Connection, experiment: &str) -> Result<Option<SentArms>, Fault> {
    let Some(sent) = sent(conn)?.filter(|sent| sent.experiment == experiment) else { return Ok(None) };
    Ok(components::are_there(conn, layers(&sent))?.then_some(sent))
}

fn layers(sent: &SentArms) -> impl Iterator<Item = &SentLayer> {
    sent.arms.iter().flat_map(|arm| &arm.layers)
}

pub(super) fn sent(conn: &Connection) -> Result<Option<SentArms>, Fault> {
    let mut statement = conn.prepare_cached(SENT)?;
    let row = statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?)));
    // What makes no sense was written by a later program.
    Ok(row.optional()?.and_then(|(experiment, host, arms)| {
        Some(SentArms { experiment, host, arms: serde_json::from_str(&arms).ok()? })
    }))
}

/// Of a host that begins: where all have ended, it too, nothing is sent.
pub(super) fn begins(conn: &Connection) -> Result<(), Fault> {
    Ok(conn.prepare_cached(FORGET)?.run([])?)
}
