//! Tracks who may write to the bot in a thread of a channel without mentioning it: whoever has mentioned it there
//! last while alone with it, until somebody else writes there.
//!
//! Events arrive in any order, and more than once: what counts is when a message was written. Somebody else's
//! message may arrive before the mention whose following it ends; so the last messages in a thread are remembered
//! for a while, by author and time.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use pmk_core::SessionKey;

use super::{
    Store, StoreError,
    error::Fault,
    sql::{Connection, OptionalExtension, params},
};

/// How many threads are remembered, and how many messages of each.
const MOST_THREADS: usize = 1_024;
const MOST_WORDS: usize = 8;

pub(super) const FOLLOW: &str = "UPDATE session SET followed = ?2, followed_from = ?3,
            followed_until = CASE WHEN followed_until > ?3 THEN followed_until END
     WHERE key = ?1 AND (followed_from IS NULL OR followed_from < ?3)";
pub(super) const INTERRUPT: &str = "UPDATE session SET followed_until = ?3
     WHERE key = ?1 AND followed <> ?2 AND followed_from < ?3 AND (followed_until IS NULL OR followed_until > ?3)";
pub(super) const FOLLOWED: &str = "SELECT followed = ?2 AS is_theirs FROM session
     WHERE key = ?1 AND followed_from < ?3 AND (followed_until IS NULL OR followed_until > ?3)";

/// The person followed was not alone with the bot when they wrote the mention.
pub(super) const NOT_ALONE: &str = "UPDATE session SET followed_until = followed_from
     WHERE key = ?1 AND followed = ?2 AND followed_from = ?3";

/// The last messages seen in threads. A crash loses those that arrived between a mention and the crash.
#[derive(Debug, Default)]
pub(super) struct LastWords(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    /// Author and time of each message; the one seen last is at the end.
    by_thread: HashMap<SessionKey, VecDeque<(String, String)>>,
    /// The thread that was first seen longest ago is forgotten first.
    threads: VecDeque<SessionKey>,
}

impl LastWords {
    fn note(&self, key: &SessionKey, user: &str, ts: &str) {
        let Remembered { by_thread, threads } = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !by_thread.contains_key(key) {
            threads.push_back(key.clone());
            if threads.len() > MOST_THREADS
                && let Some(oldest) = threads.pop_front()
            {
                by_thread.remove(&oldest);
            }
        }
        let words = by_thread.entry(key.clone()).or_default();
        words.push_back((user.to_owned(), ts.to_owned()));
        if words.len() > MOST_WORDS {
            words.pop_front();
        }
    }

    /// Returns the first message after this moment by anybody else than this person.
    fn of_another(&self, key: &SessionKey, user: &str, ts: &str) -> Option<(String, String)> {
        let remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let words = remembered.by_thread.get(key)?.iter();
        words.filter(|(by, at)| by != user && at.as_str() > ts).min_by(|a, b| a.1.cmp(&b.1)).cloned()
    }
}

/// Whether this person is followed in a thread at the time of their message.
pub(super) fn is_theirs(conn: &Connection, key: &SessionKey, user: &str, ts: &str) -> Result<bool, Fault> {
    let mut statement = conn.prepare_cached(FOLLOWED)?;
    let followed = statement.query_row(params![key.to_string(), user, ts], |row| row.get("is_theirs")).optional()?;
    Ok(followed == Some(true))
}

impl Store {
    /// Notes that a person has mentioned the bot in a thread, by the message with that `ts`: if they were alone with it
    /// so far, they are followed there from now on; otherwise the following of any other person there ends. The
    /// conversation must exist.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn mentioned(&self, key: &SessionKey, user: &str, ts: &str, alone: bool) -> Result<(), StoreError> {
        if !alone {
            self.shared.last_words.note(key, user, ts);
            return self.interrupt_following(key, user, ts).await;
        }
        let name = key.to_string();
        let (by, at) = (user.to_owned(), ts.to_owned());
        let before = self.shared.last_words.of_another(key, user, ts);
        let heard = before.clone();
        self.write(move |conn| {
            conn.prepare_cached(FOLLOW)?.run(params![name, by, at])?;
            if let Some((other, since)) = &heard {
                conn.prepare_cached(INTERRUPT)?.run(params![name, other, since])?;
            }
            Ok(())
        })
        .await?;
        // Messages that arrived meanwhile found nobody followed yet.
        match self.shared.last_words.of_another(key, user, ts) {
            Some((other, since)) if before.as_ref() != Some(&(other.clone(), since.clone())) => {
                self.interrupt_following(key, &other, &since).await
            }
            _ => Ok(()),
        }
    }

    /// Notes that others had written in a thread before the mention with that `ts`, so that its author is not
    /// followed.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn was_not_alone(&self, key: &SessionKey, user: &str, ts: &str) -> Result<(), StoreError> {
        self.change_following(NOT_ALONE, key, user, ts).await
    }

    async fn interrupt_following(&self, key: &SessionKey, user: &str, ts: &str) -> Result<(), StoreError> {
        self.change_following(INTERRUPT, key, user, ts).await
    }

    async fn change_following(
        &self,
        how: &'static str,
        key: &SessionKey,
        user: &str,
        ts: &str,
    ) -> Result<(), StoreError> {
        let values = [key.to_string(), user.to_owned(), ts.to_owned()];
        self.write(move |conn| Ok(conn.prepare_cached(how)?.run(params![values[0], values[1], values[2]])?)).await
    }

    /// Returns whether a person's message in a thread without a mention is for the bot. Stores nothing, unless the
    /// message ends the following of somebody else.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn overheard(&self, key: &SessionKey, user: &str, ts: &str) -> Result<bool, StoreError> {
        self.shared.last_words.note(key, user, ts);
        let asked = [key.to_string(), user.to_owned(), ts.to_owned()];
        let followed: Option<bool> = self
            .read(move |conn| {
                let mut statement = conn.prepare_cached(FOLLOWED)?;
                Ok(statement.query_row(asked, |row| row.get("is_theirs")).optional()?)
            })
            .await?;
        if followed == Some(false) {
            self.interrupt_following(key, user, ts).await?;
        }
        Ok(followed == Some(true))
    }
}
