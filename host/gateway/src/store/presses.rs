//! Buttons that were pressed. A front is told of each once, so that none may get lost once it is acknowledged.

use rusqlite::params;

use super::{Store, StoreError, error::Fault};
use crate::talk::{Choice, Press};

pub(super) const TAKE: &str =
    "INSERT INTO press (id, user, channel, thread_ts, ts, choice) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
     ON CONFLICT (id) DO NOTHING";
pub(super) const AFTER: &str =
    "SELECT number, id, user, channel, thread_ts, ts, choice, shows FROM press WHERE number > ?1 ORDER BY number";
pub(super) const SHOW: &str = "UPDATE press SET shows = ?2 WHERE number = ?1";
pub(super) const DONE: &str = "DELETE FROM press WHERE number = ?1";

/// A press that is not done with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pressed {
    /// Later ones have higher numbers.
    pub number: i64,
    pub press: Press,
    /// What its message is to say, once what it asks for is done.
    pub shows: Option<String>,
}

impl Store {
    /// Takes a press in; one that waits already is not taken twice.
    ///
    /// # Errors
    /// Nothing was stored.
    pub async fn press(&self, press: &Press) -> Result<(), StoreError> {
        let Press { id, user, channel, thread_ts, ts, choice } = press.clone();
        self.write(move |conn| {
            conn.prepare_cached(TAKE)?.execute(params![id, user, channel, thread_ts, ts, choice.name()])?;
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
                    Choice::from_name(&choice).ok_or_else(|| Fault::Damaged(format!("no button says `{choice}`")))?;
                let press = Press {
                    id: row.get(1)?,
                    user: row.get(2)?,
                    channel: row.get(3)?,
                    thread_ts: row.get(4)?,
                    ts: row.get(5)?,
                    choice,
                };
                waiting.push(Pressed { number: row.get(0)?, press, shows: row.get(7)? });
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
        self.write(move |conn| Ok(conn.prepare_cached(SHOW)?.execute(params![number, text]).map(drop)?)).await
    }

    /// Nothing is left to be done about it.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn press_done(&self, number: i64) -> Result<(), StoreError> {
        self.write(move |conn| Ok(conn.prepare_cached(DONE)?.execute([number]).map(drop)?)).await
    }
}
