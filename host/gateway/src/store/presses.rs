//! Buttons that were pressed. A front is told of each once, so that none may get lost once it is acknowledged.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{
    Store, StoreError, codec,
    error::Fault,
    sql::{Connection, ValueRef, params},
};
use crate::{
    chat::{Choice, Press, Reaction},
    ledger::Event,
};

pub(super) const TAKE: &str =
    "INSERT INTO press (id, \"user\", channel, thread_ts, ts, choice) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
     ON CONFLICT (id) DO NOTHING";
pub(super) const AFTER: &str = "SELECT number, id, \"user\", channel, thread_ts, ts, choice, shows, atom FROM press WHERE number > ?1 ORDER BY number";
pub(super) const SHOW: &str = "UPDATE press SET shows = ?2, atom = ?3 WHERE number = ?1";
/// Of what was said by a reaction. A later one on the same message is a press of its own, once this is forgotten.
pub(super) const FORGET_SHOWING: &str = "DELETE FROM press WHERE id = ?1";
pub(super) const TAKE_SHOWING: &str =
    "INSERT INTO press (id, \"user\", channel, ts, choice, shows, atom) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
     RETURNING number";
pub(super) const CARRIED_OUT: &str = "UPDATE press SET atom = NULL WHERE number = ?1 AND atom IS NOT NULL";
pub(super) const DONE: &str = "DELETE FROM press WHERE number = ?1";

/// A press that is not done with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pressed {
    /// Later ones have higher numbers.
    pub number: i64,
    pub press: Press,
    /// What its message is to say, once what it asks for is done.
    pub shows: Option<String>,
    /// The atom that it is a verdict on, while that is not carried out: its message says so before.
    pub atom: Option<JudgedAtom>,
}

/// An atom that somebody has judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgedAtom {
    pub id: String,
    /// Its file.
    pub path: PathBuf,
}

/// How a word that counts was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictSource {
    Reaction,
    /// The press of that number.
    Press(i64),
}

impl Store {
    /// Takes a press in; one that waits already is not taken twice.
    ///
    /// # Errors
    /// Nothing was stored.
    pub async fn press(&self, press: &Press) -> Result<(), StoreError> {
        let Press { id, user, channel, thread_ts, ts, choice } = press.clone();
        self.write(move |conn| {
            conn.prepare_cached(TAKE)?.run(params![id, user, channel, thread_ts, ts, choice.name()])?;
            Ok(())
        })
        .await
    }

    /// Those after that number, in the order in which they came.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn presses(&self, after: i64) -> Result<Vec<Pressed>, StoreError> {
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(AFTER)?;
            let mut rows = statement.query([after])?;
            let mut waiting = Vec::new();
            while let Some(row) = rows.next()? {
                let choice: String = row.get(6)?;
                let choice =
                    Choice::from_name(&choice).ok_or_else(|| Fault::Damaged(format!("unknown button `{choice}`")))?;
                let press = Press {
                    id: row.get(1)?,
                    user: row.get(2)?,
                    channel: row.get(3)?,
                    thread_ts: row.get(4)?,
                    ts: row.get(5)?,
                    choice,
                };
                let atom = match row.get_ref(8)? {
                    ValueRef::Null => None,
                    atom => Some(codec::from_json(atom, "a verdict")?),
                };
                waiting.push(Pressed { number: row.get(0)?, press, shows: row.get(7)?, atom });
            }
            Ok(waiting)
        })
        .await
    }

    /// What a press asks for is done, and its message is to say this.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn press_shows(&self, number: i64, text: &str) -> Result<(), StoreError> {
        let text = text.to_owned();
        let atom: Option<&str> = None;
        self.write(move |conn| Ok(conn.prepare_cached(SHOW)?.run(params![number, text, atom])?)).await
    }

    /// Somebody's word on an atom is going to be carried out, and its message is to say this; the press that stands for that.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn judges_atom(
        &self,
        (word, yes): (&Reaction, bool),
        said_by: VerdictSource,
        text: &str,
        atom: &JudgedAtom,
    ) -> Result<i64, StoreError> {
        let (word, text, atom) = (word.clone(), text.to_owned(), atom.clone());
        self.write(move |conn| keep(conn, (&word, yes), said_by, &text, Some(&atom))).await
    }

    /// A verdict is carried out. The ledger tells of it, once.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn atom_judged(&self, number: i64, event: Event, now_ms: i64) -> Result<(), StoreError> {
        let pen = self.pen(now_ms);
        self.write_with_events(move |conn| match conn.prepare_cached(CARRIED_OUT)?.execute([number])? {
            0 => Ok(()),
            _ => pen.write(conn, None, event.clone()),
        })
        .await
    }

    /// Nothing is left to be done about it.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn press_done(&self, number: i64) -> Result<(), StoreError> {
        self.write(move |conn| Ok(conn.prepare_cached(DONE)?.run([number])?)).await
    }
}

/// A word counts, and its message is to say this: kept with what the word does, so that a crash leaves both or neither. The
/// press that stands for it, which a word said by a reaction has as well.
pub(super) fn keep(
    conn: &Connection,
    (word, yes): (&Reaction, bool),
    said_by: VerdictSource,
    text: &str,
    atom: Option<&JudgedAtom>,
) -> Result<i64, Fault> {
    let atom = atom.map(codec::to_json);
    if let VerdictSource::Press(number) = said_by {
        conn.prepare_cached(SHOW)?.run(params![number, text, atom])?;
        return Ok(number);
    }
    let Reaction { user, channel, ts, .. } = word;
    let choice = if yes { Choice::Yes } else { Choice::No }.name();
    // No id from outside has a colon at this place.
    let id = format!(":reaction:{channel}:{ts}");
    conn.prepare_cached(FORGET_SHOWING)?.run([&id])?;
    let values = params![id, user, channel, ts, choice, text, atom];
    Ok(conn.prepare_cached(TAKE_SHOWING)?.query_row(values, |row| row.get(0))?)
}
