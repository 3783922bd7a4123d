//! Erases what one person has written, wherever it was.
//!
//! Their direct messages, and conversations in which nobody else has written, are erased [as a whole](super::retention).
//! In any other, each of the person's messages is erased like one that was deleted in Slack. Elsewhere go what they have
//! said about questions that wait, the earlier messages of threads in which they are named, and edits of messages that
//! have not arrived: which of these are theirs cannot be determined.

use std::{collections::BTreeSet, time::Duration};

use pmk_core::{Place, SessionKey};

use super::{
    ErasedConversation, Erasing, Lease, Store, StoreError, archive,
    changes::{self, select_known},
    codec,
    early::{FORGET_EDITS, KEEP_STOPS},
    erase,
    error::Fault,
    escalations,
    moment::Began,
    receipt::{self, Digest},
    receipts::FIND_TEXT,
    retention, sessions,
    sql::{Connection, OptionalExtension, params},
};
use crate::{
    chat::{Thread, ThreadPost},
    ids::SessionId,
};

/// How many messages are erased at once: each changes the search index.
const PIECE: i64 = 50;

/// Whether somebody has written in a conversation, and nobody else has, or may have: of imported messages the authors are
/// not known.
macro_rules! is_alone {
    () => {
        "(EXISTS (SELECT 1 FROM inbox o WHERE o.session_id = s.id AND o.user = ?1)
          AND NOT EXISTS (SELECT 1 FROM inbox o WHERE o.session_id = s.id AND coalesce(o.user, '') <> ?1)
          AND NOT EXISTS (SELECT 1 FROM message m WHERE m.session_id = s.id AND m.turn_id IS NULL AND m.origin = 'user'))"
    };
}
/// The conversations with content in which somebody may have written, whether nobody else has, and whether anything of
/// theirs is not erased there.
const WRITTEN_IN: &str = concat!(
    "SELECT s.key, ",
    is_alone!(),
    ", EXISTS (SELECT 1 FROM inbox o WHERE o.session_id = s.id AND o.user = ?1 AND coalesce(o.called_off, '') <> 'deleted')
     FROM session s WHERE (s.key LIKE '%:dm:%' OR EXISTS (SELECT 1 FROM inbox i WHERE i.session_id = s.id AND i.user = ?1)) AND ",
    sessions::has_content!(),
    " ORDER BY s.id"
);
const IS_ALONE: &str = concat!("SELECT ", is_alone!(), " FROM session s WHERE s.id = ?2");
const IMPORTED: &str = "SELECT count(*) FROM message WHERE session_id = ?1 AND turn_id IS NULL AND origin = 'user'";
const UNANSWERED_OF: &str = "SELECT 1 FROM inbox i WHERE i.session_id = ?1 AND i.user = ?2
     AND i.message IS NOT NULL AND (i.parked_at IS NULL OR i.parked_told = 0)";
/// Those that are done with.
const OF_PERSON: &str = concat!(
    select_known!(),
    "i.session_id = ?1 AND i.user = ?2 AND i.id > ?3 AND coalesce(i.called_off, '') <> 'deleted'
     AND (i.message IS NULL OR (i.parked_at IS NOT NULL AND i.parked_told <> 0)) ORDER BY i.id LIMIT ?4"
);
const FORGET_PARKED: &str = "UPDATE inbox SET message = NULL, parked_at = NULL, parked_why = NULL
     WHERE id = ?1 AND message IS NOT NULL";
const FORGET_UNSENT: &str = "UPDATE outbox SET body = NULL, how = NULL WHERE turn_id = ?1 AND sent_at IS NULL";
const UNFINISHED: &str = "SELECT DISTINCT session_id FROM inbox WHERE message IS NOT NULL ORDER BY session_id";

/// A conversation in which somebody has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenIn {
    pub key: SessionKey,
    /// All of it would be erased, and not only their messages.
    pub whole: bool,
}

/// What was erased of what a person has written in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErasedOfPerson {
    Conversation(ErasedConversation),
    Messages(ErasedMessages),
}

/// The messages of a person that were erased in a conversation with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasedMessages {
    pub messages: usize,
    /// Of these, messages that were parked.
    pub parked: usize,
    /// Summaries that may have been made from them and may still contain them.
    pub summaries: u32,
    /// Imported messages, of which nobody knows who has written them: they stay.
    pub imported: u32,
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
            let mut rows = statement.query([&user])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let (key, is_alone, left): (_, bool, bool) = (codec::key(row.get_ref(0)?)?, row.get(1)?, row.get(2)?);
                let whole = is_own(&key, &user) || is_alone;
                if whole || left {
                    found.push(WrittenIn { key, whole });
                }
            }
            Ok(found)
        })
        .await
    }

    /// Returns whether what a person has written in a conversation with others may be erased now.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`]; [`StoreError::Unanswered`].
    pub async fn messages_may_be_erased(&self, key: &SessionKey, user: &str) -> Result<(), StoreError> {
        let (key, user) = (key.clone(), user.to_owned());
        self.read(move |conn| {
            let session = sessions::find(conn, &key)?.ok_or_else(|| StoreError::UnknownSession(key.clone()))?;
            refuse(conn, session, &key, &user)
        })
        .await
    }

    /// Erases what a person has written in a conversation, or all of it, up to its receipts, if nobody else has written
    /// there; `words` replace each message of which others see that it was there. Waits for up to `wait` for a turn that
    /// is under way.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`]; [`StoreError::Unanswered`], [`StoreError::AwaitsContact`] and
    /// [`StoreError::Leased`], then nothing was changed.
    pub async fn erase_from(
        &self,
        key: &SessionKey,
        user: &str,
        words: &str,
        wait: Duration,
        now_ms: i64,
    ) -> Result<ErasedOfPerson, StoreError> {
        let began = Began::now(now_ms);
        let lease = self.lease(key, "pmk-host sessions erase", wait, now_ms).await?;
        let erased = self.erase_from_leased(&lease, user, words, began).await;
        self.release_after(lease, erased).await
    }

    /// Returns what was said in threads before the gateway was mentioned there, and what policies have left of it, where
    /// a person is named in it. Reads all receipts of the store that refer to any.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn threads_that_name(&self, user: &str) -> Result<Vec<Digest>, StoreError> {
        let user = user.to_owned();
        self.read(move |conn| {
            let mut find = conn.prepare_cached(FIND_TEXT)?;
            let mut named = BTreeSet::new();
            for session in retention::all_sessions(conn)? {
                for texts in receipt::backgrounds(conn, SessionId(session))? {
                    let (mut stored, mut has_name) = (Vec::new(), false);
                    for text in texts {
                        let body = find.query_row([&*text.0], |row| row.get::<_, String>(0)).optional()?;
                        has_name |= body.as_ref().is_some_and(|body| names(body, &user));
                        stored.extend(body.map(|_| text));
                    }
                    if has_name {
                        named.extend(stored);
                    }
                }
            }
            Ok(named.into_iter().collect())
        })
        .await
    }

    /// Erases these texts of threads, what a person has written in threads that unfinished messages have and what mentions
    /// them there, edits of messages that have not arrived, and what they have said about questions that wait.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn erase_elsewhere(&self, user: &str, threads: Vec<Digest>) -> Result<(), StoreError> {
        let user = user.to_owned();
        self.write(move |conn| {
            receipt::erase_texts(conn, &threads)?;
            let sessions: Vec<i64> =
                conn.prepare_cached(UNFINISHED)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            for session in sessions {
                // The rest of it stays, and so it is not read anew: Slack still has what the person has written.
                erase::threads(conn, SessionId(session), |_, thread| {
                    thread.as_mut().is_some_and(|thread| erase_from_thread(thread, &user))
                })?;
            }
            for forget in [KEEP_STOPS, FORGET_EDITS] {
                conn.prepare_cached(forget)?.run([])?;
            }
            escalations::forget_remarks(conn, |said| Ok(said.user_id == user))
        })
        .await
    }

    async fn erase_from_leased(
        &self,
        lease: &Lease,
        user: &str,
        words: &str,
        began: Began,
    ) -> Result<ErasedOfPerson, StoreError> {
        // While it is leased, nobody is answered there.
        let (session, of) = (lease.session, user.to_owned());
        let ask = move |conn: &Connection| {
            Ok(conn.prepare_cached(IS_ALONE)?.query_row(params![of, session.0], |row| row.get(0))?)
        };
        let is_alone: bool = self.read(ask).await?;
        if is_own(&lease.key, user) || is_alone {
            let erased = self.erase_leased(lease, Erasing::Anyway, began).await?;
            return Ok(ErasedOfPerson::Conversation(erased));
        }
        let mut erased = ErasedMessages::default();
        let mut after = None;
        loop {
            let (user, words) = (user.to_owned(), words.to_owned());
            let piece = move |conn: &Connection, session, key: &SessionKey| {
                if after.is_none() {
                    refuse(conn, session, key, &user)?;
                }
                erase_piece(conn, (session, &user), after.unwrap_or_default(), &words, began.at_ms())
            };
            let Piece { erased: now, is_full, last } =
                self.write(retention::leased(lease, self.windows(), began, piece)).await?;
            erased.messages += now.messages;
            erased.parked += now.parked;
            // The same summaries may be made from several messages.
            erased.summaries = erased.summaries.max(now.summaries);
            erased.imported = now.imported;
            if last.is_none() {
                return Ok(ErasedOfPerson::Messages(erased));
            }
            after = last;
            if is_full {
                retention::let_others_write().await;
            }
        }
    }
}

/// A number of messages that were erased at once, and the last that was looked at; `None` where there was none.
struct Piece {
    erased: ErasedMessages,
    is_full: bool,
    last: Option<i64>,
}

/// Whether a conversation is of a person's direct messages: whatever others say there, they say to this person.
fn is_own(key: &SessionKey, user: &str) -> bool {
    matches!(&key.place, Place::Dm(of) if of == user)
}

/// Removes from a thread what a person has written in it, and what mentions them. Returns whether there was anything.
fn erase_from_thread(thread: &mut Thread, user: &str) -> bool {
    let had = (thread.said.len(), thread.people.len());
    thread.said.retain(|ThreadPost { by, text }| !names(by, user) && !names(text, user));
    thread.people.retain(|of| of != user);
    let is_less = had != (thread.said.len(), thread.people.len());
    thread.is_cut |= is_less;
    is_less
}

/// Whether a text contains an id, and not only as part of a longer one.
fn names(text: &str, id: &str) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    text.match_indices(id).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + id.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    })
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
    let imported = conn.prepare_cached(IMPORTED)?.query_row([session.0], |row| row.get(0))?;
    let mut erased = ErasedMessages { imported, ..ErasedMessages::default() };
    let mut gone = Vec::new();
    for known in &found {
        changes::erase_beside(conn, known)?;
        let was_parked = conn.prepare_cached(FORGET_PARKED)?.execute([known.inbox.0])? > 0;
        if was_parked {
            if !known.is_answered {
                archive::forget(conn, known.turn())?;
            }
            // Nobody sends it any more.
            conn.prepare_cached(FORGET_UNSENT)?.run([known.inbox.0])?;
            erased.parked += 1;
        }
        // A command, for one, has no text that is stored.
        let said = changes::erase_said(conn, known, (words, now_ms), &mut gone)?;
        erased.messages += usize::from(was_parked || said.is_some());
        erased.summaries = erased.summaries.max(said.map_or(0, |said| said.summaries));
    }
    // Once for all: it reads the receipts of the whole conversation.
    receipt::erase_texts_of(conn, session, &gone)?;
    Ok(Piece { erased, is_full: found.len() as i64 == PIECE, last: found.last().map(|known| known.inbox.0) })
}
