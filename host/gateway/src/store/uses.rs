//! What becomes of atoms: how often the model was shown each, and how often what it made of them was doubted.

use std::{collections::HashMap, time::Duration};

use super::{
    Store, StoreError,
    error::Fault,
    sql::{Connection, params},
};
use crate::ids::{SessionId, TurnId};

/// Who has to be asked within this time of an atom, in the same conversation, doubts it.
const DOUBTED_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) const SHOW: &str = "INSERT INTO atom_shown (atom, turn_id, session_id, at) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (atom, turn_id) DO NOTHING";
pub(super) const DOUBT: &str = "INSERT INTO atom_doubt (atom, source, at)
     SELECT atom, ?3, ?4 FROM atom_shown WHERE session_id = ?1 AND at > ?2
     ON CONFLICT (atom, source) DO NOTHING";
const SHOWN: &str = "SELECT atom, count(*), max(at) FROM atom_shown GROUP BY atom";
/// A person's last word on an answer is one source, a thread in which people were asked another.
const DOUBTED: &str = "SELECT atom, count(*) FROM (
         SELECT s.atom FROM atom_shown s JOIN vote v ON v.turn_id = s.turn_id WHERE v.likes = 0
         UNION ALL SELECT atom FROM atom_doubt
     ) AS doubts GROUP BY atom";

/// What is known of one atom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtomUse {
    /// Turns in which the model was shown it.
    pub shown: u32,
    /// The last of them, milliseconds since the epoch.
    pub last_shown_at_ms: Option<i64>,
    /// People who disliked an answer made with it, each answer by itself, and threads in which people were asked after it.
    pub doubted: u32,
}

impl Store {
    /// What is known of every atom that was ever shown, by id.
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

/// The model was shown these atoms for an answer.
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

/// People are asked in this conversation: what was shown there lately did not do.
pub(super) fn doubted(conn: &Connection, session: SessionId, source: &str, now_ms: i64) -> Result<(), Fault> {
    let since = now_ms.saturating_sub(DOUBTED_WITHIN.as_millis() as i64);
    Ok(conn.prepare_cached(DOUBT)?.run(params![session.0, since, source, now_ms])?)
}
