//! Erases what one person has written, wherever it was.
//!
//! A conversation in which nobody else has written is erased [as a whole](super::retention). In any other, each of the
//! person's messages is erased like one that was deleted in Slack, and so are the earlier messages of threads in which
//! the person is named: which of them are theirs cannot be determined.

use std::{collections::BTreeSet, time::Duration};

use pmk_core::SessionKey;

use super::{
    Lease, Store, StoreError, archive,
    changes::{self, select_known},
    codec,
    error::Fault,
    moment::Began,
    receipt::{self, Digest},
    retention, sessions,
    sql::{Connection, params},
};
use crate::ids::SessionId;

/// How many messages are erased at once: each changes the search index.
const PIECE: i64 = 50;

/// The conversations with content in which somebody has written, whether nobody else has, and whether anything that they
/// have written there is not erased.
const WRITTEN_IN: &str = concat!(
    "SELECT s.key, NOT EXISTS (SELECT 1 FROM inbox o WHERE o.session_id = s.id AND coalesce(o.user, '') <> ?1),
         EXISTS (SELECT 1 FROM inbox o WHERE o.session_id = s.id AND o.user = ?1 AND coalesce(o.called_off, '') <> 'deleted')
     FROM session s WHERE EXISTS (SELECT 1 FROM inbox i WHERE i.session_id = s.id AND i.user = ?1) AND ",
    sessions::has_content!(),
    " ORDER BY s.id"
);
const UNANSWERED_OF: &str = "SELECT 1 FROM inbox i WHERE i.session_id = ?1 AND i.user = ?2
     AND i.message IS NOT NULL AND (i.parked_at IS NULL OR i.parked_told = 0)";
const OF_PERSON: &str = concat!(
    select_known!(),
    "i.session_id = ?1 AND i.user = ?2 AND i.id > ?3 AND coalesce(i.called_off, '') <> 'deleted' ORDER BY i.id LIMIT ?4"
);
const FORGET_PARKED: &str = "UPDATE inbox SET message = NULL, parked_at = NULL, parked_why = NULL
     WHERE id = ?1 AND message IS NOT NULL";
/// What was said in threads before the gateway was mentioned there.
const EARLIER: &str = "SELECT t.sha256, t.body FROM text t WHERE t.sha256 IN
     (SELECT CASE WHEN json_valid(body) THEN json_extract(body, '$.background') END FROM receipt
      WHERE session_id = ?1 AND body LIKE '%\"background\":\"%')";

/// A conversation in which somebody has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenIn {
    pub key: SessionKey,
    /// Nobody else has, as far as it is known.
    pub alone: bool,
}

/// What was erased of a person's words in a conversation with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasedWords {
    pub messages: usize,
    /// Of these, messages that were parked.
    pub parked: usize,
    /// Summaries that may have been made from them and may still contain them.
    pub summaries: u32,
}

impl Store {
    /// Returns the conversations in which something is stored of what a person has written.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn written_in_by(&self, user: &str) -> Result<Vec<WrittenIn>, StoreError> {
        let user = user.to_owned();
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(WRITTEN_IN)?;
            let mut rows = statement.query([user])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let (alone, left): (bool, bool) = (row.get(1)?, row.get(2)?);
                if alone || left {
                    found.push(WrittenIn { key: codec::key(row.get_ref(0)?)?, alone });
                }
            }
            Ok(found)
        })
        .await
    }

    /// Returns whether what a person has written in a conversation may be erased now.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`]; [`StoreError::Unanswered`].
    pub async fn words_may_be_erased(&self, key: &SessionKey, user: &str) -> Result<(), StoreError> {
        let (key, user) = (key.clone(), user.to_owned());
        self.read(move |conn| {
            let session = sessions::find(conn, &key)?.ok_or_else(|| StoreError::UnknownSession(key.clone()))?;
            refuse(conn, session, &key, &user)
        })
        .await
    }

    /// Erases what a person has written in a conversation; `words` replace each of the messages. Waits for up to `wait`
    /// for a turn that is under way.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`]; [`StoreError::Unanswered`] and [`StoreError::Leased`], then nothing was changed.
    pub async fn erase_words(
        &self,
        key: &SessionKey,
        user: &str,
        words: &str,
        wait: Duration,
        now_ms: i64,
    ) -> Result<ErasedWords, StoreError> {
        let began = Began::now(now_ms);
        let lease = self.lease(key, "pmk-host sessions erase", wait, now_ms).await?;
        let erased = self.erase_words_leased(&lease, user, words, began).await;
        // After a failure, the lease would expire by itself.
        let released = self.release(lease).await;
        let erased = erased?;
        released?;
        Ok(erased)
    }

    /// Erases what was said in threads before the gateway was mentioned there, where a person is named in it. Reads all
    /// receipts of the store.
    ///
    /// # Errors
    /// The rest is erased with the next attempt.
    pub async fn erase_earlier_of(&self, user: &str) -> Result<(), StoreError> {
        let user = user.to_owned();
        let texts = self
            .read(move |conn| {
                let mut texts = BTreeSet::new();
                for session in retention::all_sessions(conn)? {
                    let mut statement = conn.prepare_cached(EARLIER)?;
                    let mut rows = statement.query([session])?;
                    while let Some(row) = rows.next()? {
                        if row.get::<_, String>(1)?.contains(&user) {
                            texts.insert(Digest(row.get::<_, String>(0)?.into()));
                        }
                    }
                }
                Ok(texts.into_iter().collect::<Vec<_>>())
            })
            .await?;
        self.write(move |conn| receipt::erase_texts(conn, &texts)).await
    }

    async fn erase_words_leased(
        &self,
        lease: &Lease,
        user: &str,
        words: &str,
        began: Began,
    ) -> Result<ErasedWords, StoreError> {
        let (mut erased, mut after) = (ErasedWords::default(), 0);
        loop {
            let (user, words) = (user.to_owned(), words.to_owned());
            let piece = move |conn: &Connection, session, key: &SessionKey| {
                refuse(conn, session, key, &user)?;
                erase_piece(conn, (session, &user), after, &words, began.at_ms())
            };
            let Piece { erased: now, last } =
                self.write(retention::leased(lease, self.windows(), began, piece)).await?;
            erased.messages += now.messages;
            erased.parked += now.parked;
            // The same summaries may be made from several messages.
            erased.summaries = erased.summaries.max(now.summaries);
            match last {
                Some(last) => after = last,
                None => return Ok(erased),
            }
        }
    }
}

/// A number of messages that were erased at once, and the last of them; `None` where there were none.
struct Piece {
    erased: ErasedWords,
    last: Option<i64>,
}

/// Refuses to erase what a person has written where something of it is not answered yet.
fn refuse(conn: &Connection, session: SessionId, key: &SessionKey, user: &str) -> Result<(), Fault> {
    if conn.prepare_cached(UNANSWERED_OF)?.exists(params![session.0, user])? {
        return Err(StoreError::Unanswered(key.clone()).into());
    }
    Ok(())
}

fn erase_piece(
    conn: &Connection,
    (session, user): (SessionId, &str),
    after: i64,
    words: &str,
    now_ms: i64,
) -> Result<Piece, Fault> {
    let found = changes::known(conn.prepare_cached(OF_PERSON)?.query(params![session.0, user, after, PIECE])?)?;
    let mut erased = ErasedWords { messages: found.len(), ..ErasedWords::default() };
    for known in &found {
        changes::erase_beside(conn, known)?;
        if conn.prepare_cached(FORGET_PARKED)?.execute([known.inbox.0])? > 0 {
            archive::forget(conn, known.turn())?;
            erased.parked += 1;
        }
        if let Some(of_it) = changes::erase_said(conn, known, words, now_ms)? {
            erased.summaries = erased.summaries.max(of_it.summaries);
        }
    }
    Ok(Piece { erased, last: found.last().map(|known| known.inbox.0) })
}
