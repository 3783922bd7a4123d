//! The use of atoms: how often the model was shown each, and how often answers made with it were doubted.

use std::{collections::HashMap, time::Duration};

use super::{
    Store, StoreError,
    error::Fault,
    sql::{Connection, params},
};
use crate::ids::{SessionId, TurnId};

/// Asking people in the same conversation within this time after an atom was shown counts as a doubt about it.
const DOUBTED_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) const SHOW: &str = "INSERT INTO atom_shown (atom, turn_id, session_id, at) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (atom, turn_id) DO NOTHING";
pub(super) const DOUBT: &str = "INSERT INTO atom_doubt (atom, source, at)
     SELECT atom, ?3, ?4 FROM atom_shown WHERE session_id = ?1 AND at > ?2
     ON CONFLICT (atom, source) DO NOTHING";
const SHOWN: &str = "SELECT atom, count(*), max(at) FROM atom_shown GROUP BY atom";
/// A person's last vote on an answer is one source, a thread in which people were asked another.
const DOUBTED: &str = "SELECT atom, count(*) FROM (
         SELECT s.atom FROM atom_shown s JOIN vote v ON v.turn_id = s.turn_id WHERE v.likes = 0
         UNION ALL SELECT atom FROM atom_doubt
     ) AS doubts GROUP BY atom";

/// The figures of one atom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtomUse {
    /// Turns in which the model was shown it.
    pub shown: u32,
    /// The time of the last one, milliseconds since the epoch.
    pub last_shown_at_ms: Option<i64>,
    /// How many dislikes answers made with it have, plus the number of threads in which people were asked after it
    /// was shown.
    pub doubted: u32,
}

impl Store {
    /// Returns the figures of every atom that was ever shown, by id.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn atom_uses(&self) -> Result<HashMap<String, AtomUse>, StoreError> {
        self.read(|conn| {
            let mut uses: HashMap<String, AtomUse> = HashMap::new();
            let mut statement = conn.prepare_cached(SHOWN)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let shown = AtomUse { shown: row.get(1)?, last_shown_at_ms: row.get(2)?, doubted: 0 };
                uses.insert(row.get(0)?, shown);
            }
            let mut statement = conn.prepare_cached(DOUBTED)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                uses.entry(row.get(0)?).or_default().doubted = row.get(1)?;
            }
            Ok(uses)
        })
        .await
    }
}

/// Stores that the model was shown these atoms for an answer.
pub(super) fn shown(
    conn: &Connection,
    (turn, session): (TurnId, SessionId),
    atoms: &[String],
    now_ms: i64,
) -> Result<(), Fault> {
    let mut show = conn.prepare_cached(SHOW)?;
    for atom in atoms {
        show.run(params![atom, turn.0, session.0, now_ms])?;
    }
    Ok(())
}

/// Stores that people are asked in this conversation, so that the atoms recently shown there were not enough.
pub(super) fn doubted(conn: &Connection, session: SessionId, source: &str, now_ms: i64) -> Result<(), Fault> {
    let since = now_ms.saturating_sub(DOUBTED_WITHIN.as_millis() as i64);
    Ok(conn.prepare_cached(DOUBT)?.run(params![session.0, since, source, now_ms])?)
}
