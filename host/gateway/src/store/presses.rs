//! Button presses. The front delivers each only once, so each is stored before it is acknowledged.

use std::path::PathBuf;

use pmk_knowledge::reaction::ReactionVerdict;
use serde::{Deserialize, Serialize};

use super::{
    Store, StoreError, codec,
    error::Fault,
    sql::{Connection, ValueRef, params},
};
use crate::{
    chat::{Choice, MessageRef, Press, Reaction},
    ledger::Event,
};

pub(super) const TAKE: &str =
    "INSERT INTO press (id, \"user\", channel, thread_ts, ts, choice) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
     ON CONFLICT (id) DO NOTHING";
pub(super) const AFTER: &str = "SELECT number, id, \"user\", channel, thread_ts, ts, choice, shows, atom FROM press WHERE number > ?1 ORDER BY number";
pub(super) const SHOW: &str = "UPDATE press SET shows = ?2, atom = ?3 WHERE number = ?1";
/// A verdict given by a reaction. A later one on the same message is a press of its own, once the earlier one is
/// deleted.
pub(super) const FORGET_SHOWING: &str = "DELETE FROM press WHERE id = ?1";
pub(super) const TAKE_SHOWING: &str =
    "INSERT INTO press (id, \"user\", channel, ts, choice, shows, atom) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
     RETURNING number";
pub(super) const CARRIED_OUT: &str = "UPDATE press SET atom = NULL WHERE number = ?1 AND atom IS NOT NULL";
pub(super) const DONE: &str = "DELETE FROM press WHERE number = ?1 AND id = ?2";

/// A press that is not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pressed {
    /// Later ones have higher numbers.
    pub number: i64,
    pub press: Press,
    /// The text its message is to show, once what it requests is done.
    pub shows: Option<String>,
    /// The atom that it is a verdict on, until the verdict is carried out: its message shows the text before that.
    pub atom: Option<JudgedAtom>,
}

/// An atom that received a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgedAtom {
    pub id: String,
    /// The path of its file.
    pub path: PathBuf,
}

/// A yes or no to one of the gateway's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub user: String,
    pub message: MessageRef,
    pub says: ReactionVerdict,
    pub by: VerdictSource,
}

impl Verdict {
    /// Returns the verdict that a reaction is, if it is one.
    pub fn of_reaction(reaction: &Reaction) -> Option<Verdict> {
        let says = ReactionVerdict::of_reaction(&reaction.reaction)?;
        let Reaction { user, message, .. } = reaction.clone();
        Some(Verdict { user, message, says, by: VerdictSource::Reaction })
    }

    /// Returns the verdict that the press of that number is, if it is one.
    pub fn of_press(number: i64, press: &Press) -> Option<Verdict> {
        let says = press.choice.verdict()?;
        let Press { user, message, .. } = press.clone();
        Some(Verdict { user, message, says, by: VerdictSource::Press(number) })
    }
}

/// How a verdict was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictSource {
    Reaction,
    /// The press of that number.
    Press(i64),
}

impl Store {
    /// Stores a press; one that is already stored is not stored twice.
    ///
    /// # Errors
    /// Nothing was stored.
    pub async fn press(&self, press: &Press) -> Result<(), StoreError> {
        let Press { id, user, message: MessageRef { channel, ts }, thread_ts, choice } = press.clone();
        self.write(move |conn| {
            conn.prepare_cached(TAKE)?.run(params![id, user, channel, thread_ts, ts, choice.name()])?;
            Ok(())
        })
        .await
    }

    /// Returns the presses after that number, in the order in which they arrived.
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
                    message: MessageRef { channel: row.get(3)?, ts: row.get(5)? },
                    thread_ts: row.get(4)?,
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

    /// Notes that what a press requests is done, and the text its message is to show.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn press_shows(&self, number: i64, text: &str) -> Result<(), StoreError> {
        let text = text.to_owned();
        let atom: Option<&str> = None;
        self.write(move |conn| Ok(conn.prepare_cached(SHOW)?.run(params![number, text, atom])?)).await
    }

    /// Stores that a verdict on an atom is going to be carried out, and the text its message is to show; returns
    /// the number of its press.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn judges_atom(&self, verdict: &Verdict, text: &str, atom: &JudgedAtom) -> Result<i64, StoreError> {
        let (verdict, text, atom) = (verdict.clone(), text.to_owned(), atom.clone());
        self.write(move |conn| keep(conn, &verdict, &text, Some(&atom))).await
    }

    /// Notes that a verdict was carried out. Writes a ledger event, once.
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

    /// Deletes a press that is finished. Its number may be another press's by now, if the database has lost this one.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn press_done(&self, number: i64, id: &str) -> Result<(), StoreError> {
        let id = id.to_owned();
        self.write(move |conn| Ok(conn.prepare_cached(DONE)?.run(params![number, id])?)).await
    }
}

/// Stores a verdict and the text its message is to show, in the transaction of what the verdict does, so that a
/// crash leaves both or neither. Returns the number of its press; a verdict given by a reaction gets a press, too.
pub(super) fn keep(
    conn: &Connection,
    Verdict { user, message: MessageRef { channel, ts }, says, by }: &Verdict,
    text: &str,
    atom: Option<&JudgedAtom>,
) -> Result<i64, Fault> {
    let atom = atom.map(codec::to_json);
    if let VerdictSource::Press(number) = *by {
        conn.prepare_cached(SHOW)?.run(params![number, text, atom])?;
        return Ok(number);
    }
    let choice = Choice::from(*says).name();
    // No id from outside begins with a colon.
    let id = format!(":reaction:{channel}:{ts}");
    conn.prepare_cached(FORGET_SHOWING)?.run([&id])?;
    let values = params![id, user, channel, ts, choice, text, atom];
    Ok(conn.prepare_cached(TAKE_SHOWING)?.query_row(values, |row| row.get(0))?)
}
