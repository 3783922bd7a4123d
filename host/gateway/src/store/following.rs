//! Who needs no mention of the bot in a thread of a channel: whoever has mentioned it there last, alone with it, until somebody
//! else writes there.
//!
//! Events come in any order, and more than once: what counts is when something was written.

use pmk_core::SessionKey;
use rusqlite::{OptionalExtension, params};

use super::{Store, StoreError};

pub(super) const FOLLOW: &str = "UPDATE session SET followed = ?2, followed_from = ?3,
            followed_until = CASE WHEN followed_until > ?3 THEN followed_until END
     WHERE key = ?1 AND (followed_from IS NULL OR followed_from < ?3)";
pub(super) const INTERRUPT: &str = "UPDATE session SET followed_until = ?3
     WHERE key = ?1 AND followed <> ?2 AND followed_from < ?3 AND (followed_until IS NULL OR followed_until > ?3)";
pub(super) const FOLLOWED: &str = "SELECT followed = ?2 AS is_theirs FROM session
     WHERE key = ?1 AND followed_from < ?3 AND (followed_until IS NULL OR followed_until > ?3)";

impl Store {
    /// Somebody has mentioned the bot in a thread, by the message of that `ts`: where they were alone with it so far, they
    /// are followed there from now on; else whoever was followed there is no more. A conversation must be there.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn mentioned(&self, key: &SessionKey, user: &str, ts: &str, alone: bool) -> Result<(), StoreError> {
        let [key, user, ts] = [key.to_string(), user.to_owned(), ts.to_owned()];
        let statement = if alone { FOLLOW } else { INTERRUPT };
        self.write(move |conn| Ok(conn.prepare_cached(statement)?.execute(params![key, user, ts]).map(drop)?)).await
    }

    /// Whether what somebody has written in a thread without a mention, by the message of that `ts`, is for the bot. Nothing is
    /// written, but where it is the word that ends the following of somebody else.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn overheard(&self, key: &SessionKey, user: &str, ts: &str) -> Result<bool, StoreError> {
        let [key, user, ts] = [key.to_string(), user.to_owned(), ts.to_owned()];
        let asked = [key.clone(), user.clone(), ts.clone()];
        let followed: Option<bool> = self
            .read(move |conn| {
                let mut statement = conn.prepare_cached(FOLLOWED)?;
                Ok(statement.query_row(asked, |row| row.get("is_theirs")).optional()?)
            })
            .await?;
        if followed == Some(false) {
            self.write(move |conn| Ok(conn.prepare_cached(INTERRUPT)?.execute([&key, &user, &ts]).map(drop)?)).await?;
        }
        Ok(followed == Some(true))
    }
}
