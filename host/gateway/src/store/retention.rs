//! Erases whole conversations: those that an operator names, and those that nobody has written in for longer than
//! they are kept.
//!
//! Everything that was said goes: the live window, the archive with its index, receipts with their texts, images,
//! edits, parked messages, and what was asked on behalf of the conversation and waits. What only counts stays, without
//! a word of it: that there were turns, what they used, how they were rated; so the figures of experiments stay right.
//! Atoms and notes of cases were made from conversations, and stay too.
//!
//! A long conversation is erased in pieces, from its end, so that a running gateway never waits for long. If that is
//! interrupted, the rest is erased by the next attempt.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use pmk_core::SessionKey;

use super::{
    Lease, Store, StoreError, archive, codec,
    error::Fault,
    intake::front_name,
    receipt::{self, Digest, Receipt},
    reset, sessions,
    sql::{Connection, Invalidation, params},
    windows::Windows,
};
use crate::ids::SessionId;

/// How many messages, receipts or texts are erased at once.
const PIECE: usize = 500;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The conversations of which anything is stored, and in which nobody has written since that moment.
const IDLE: &str = concat!(
    "SELECT s.key FROM session s WHERE s.active_at < ?1 AND ",
    sessions::has_content!(),
    " ORDER BY s.active_at, s.id"
);
const OTHERS: &str = "SELECT id FROM session ORDER BY id";
const BODIES: &str = "SELECT body FROM receipt WHERE session_id = ?1";
pub(super) const HOLDS: &str = "SELECT 1 FROM session WHERE id = ?1 AND lease_owner = ?2";
pub(super) const UNANSWERED: &str = "SELECT 1 FROM inbox
     WHERE session_id = ?1 AND message IS NOT NULL AND (parked_at IS NULL OR parked_told = 0)";
pub(super) const FORGET_PARKED: &str = "UPDATE inbox SET message = NULL, parked_at = NULL, parked_why = NULL
     WHERE session_id = ?1 AND message IS NOT NULL";
pub(super) const FORGET_EDITED: &str = "UPDATE inbox SET edited = NULL, attached = NULL
     WHERE session_id = ?1 AND (edited IS NOT NULL OR attached IS NOT NULL)";
pub(super) const FORGET_READINGS: &str = "UPDATE turn SET reading = NULL
     WHERE id IN (SELECT id FROM inbox WHERE session_id = ?1) AND reading IS NOT NULL";
pub(super) const FORGET_PARTS: &str = "UPDATE outbox SET body = NULL, how = NULL
     WHERE turn_id IN (SELECT id FROM inbox WHERE session_id = ?1) AND (body IS NOT NULL OR how IS NOT NULL)";
pub(super) const FORGET_PROPOSALS: &str =
    "DELETE FROM proposal WHERE turn_id IN (SELECT id FROM inbox WHERE session_id = ?1)";
pub(super) const FORGET_IMAGES: &str =
    "DELETE FROM image WHERE inbox_id IN (SELECT id FROM inbox WHERE session_id = ?1)";
/// Questions to contacts that were put on behalf of the conversation; an answer that is just being processed belongs to
/// the turn that processes it.
macro_rules! asked_here {
    () => {
        "(channel, thread_ts) IN (SELECT channel, coalesce(?2, ts) FROM inbox WHERE session_id = ?1)
             AND front = ?3"
    };
}
pub(super) const FORGET_ASKED: &str =
    concat!("DELETE FROM escalation WHERE claimed_by IS NULL AND ", asked_here!(), " RETURNING closed_at");
pub(super) const FORGET_APART: &str = concat!(
    "DELETE FROM asked_apart WHERE ",
    asked_here!(),
    " AND NOT EXISTS (SELECT 1 FROM escalation e WHERE e.front = asked_apart.front
         AND e.channel = asked_apart.channel AND e.thread_ts = asked_apart.thread_ts)"
);
pub(super) const FORGET_SIZES: &str = "UPDATE session SET sizes = NULL, revision = revision + 1 WHERE id = ?1";
pub(super) const LAST_MESSAGES: &str = "SELECT id FROM message WHERE session_id = ?1 ORDER BY id DESC LIMIT ?2";
pub(super) const LEAVE_CASE: &str = "DELETE FROM case_message WHERE message_id = ?1";
pub(super) const KEEP_NOTE: &str = "UPDATE case_note SET message_id = NULL WHERE message_id = ?1";
pub(super) const FORGET_MESSAGE: &str = "DELETE FROM message WHERE id = ?1";
pub(super) const FORGET_RECEIPTS: &str = "DELETE FROM receipt WHERE session_id = ?1 AND turn_id IN
     (SELECT turn_id FROM receipt WHERE session_id = ?1 ORDER BY turn_id DESC LIMIT ?2)";

/// The texts that belong to some conversations alone: the receipts of no other one refer to them.
#[derive(Clone, Debug, Default)]
pub struct OwnTexts(HashMap<SessionKey, Vec<Digest>>);

/// A conversation that was erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasedConversation {
    /// Messages of the archive.
    pub messages: usize,
    /// Messages that were parked.
    pub parked: usize,
    /// Questions that still waited for a contact's answer.
    pub asked: usize,
}

impl Store {
    /// Returns the conversations with content in which nobody has written for so many days, the oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn idle_conversations(&self, days: u32, now_ms: i64) -> Result<Vec<SessionKey>, StoreError> {
        let since_ms = now_ms.saturating_sub(i64::from(days) * DAY_MS);
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(IDLE)?;
            let mut rows = statement.query([since_ms])?;
            let mut keys = Vec::new();
            while let Some(row) = rows.next()? {
                keys.push(codec::key(row.get_ref(0)?)?);
            }
            Ok(keys)
        })
        .await
    }

    /// Determines which texts go with these conversations. Reads all receipts of the store.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`].
    pub async fn own_texts(&self, keys: Vec<SessionKey>) -> Result<OwnTexts, StoreError> {
        self.read(move |conn| own_texts(conn, keys)).await
    }

    /// Erases a conversation, with the texts that belong to it. Waits for up to `wait` for a turn that is under way.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`]; [`StoreError::Unanswered`] and [`StoreError::Leased`], then nothing was changed.
    pub async fn erase_conversation(
        &self,
        key: &SessionKey,
        texts: &OwnTexts,
        wait: Duration,
        now_ms: i64,
    ) -> Result<ErasedConversation, StoreError> {
        let lease = self.lease(key, "pmk-host sessions erase", wait, now_ms).await?;
        let texts = texts.0.get(key).cloned().unwrap_or_default();
        let erased = self.erase_leased(&lease, texts).await;
        // What the turns of a gateway know to be stored may be gone.
        self.shared.texts.forget();
        // After a failure, the lease would expire by itself.
        let released = self.release(lease).await;
        let erased = erased?;
        released?;
        Ok(erased)
    }

    async fn erase_leased(&self, lease: &Lease, texts: Vec<Digest>) -> Result<ErasedConversation, StoreError> {
        let windows = || self.windows();
        let mut erased = self.write(leased(lease, windows(), erase_window)).await?;
        for piece in texts.chunks(PIECE) {
            let piece = piece.to_vec();
            self.write(leased(lease, windows(), move |conn, _, _| receipt::erase_texts(conn, &piece))).await?;
        }
        while self.write(leased(lease, windows(), erase_receipts)).await? > 0 {}
        loop {
            match self.write(leased(lease, windows(), erase_messages)).await? {
                0 => return Ok(erased),
                messages => erased.messages += messages,
            }
        }
    }
}

/// Work that erases a piece, if the conversation is still leased.
fn leased<T>(
    lease: &Lease,
    windows: Arc<Windows>,
    erase: impl Fn(&Connection, SessionId, &SessionKey) -> Result<T, Fault> + Send + 'static,
) -> impl Fn(&Connection) -> Result<T, Fault> + Send + 'static {
    let (session, key, owner) = (lease.session, lease.key.clone(), lease.owner.clone());
    move |conn| {
        if !conn.prepare_cached(HOLDS)?.exists(params![session.0, owner])? {
            return Err(StoreError::LeaseLost { key: key.clone() }.into());
        }
        windows.forget(session);
        conn.moved(|| Invalidation::Conversation(session.0));
        erase(conn, session, &key)
    }
}

fn own_texts(conn: &Connection, keys: Vec<SessionKey>) -> Result<OwnTexts, Fault> {
    let mut own = HashMap::new();
    let mut sessions = HashSet::new();
    for key in keys {
        let session = sessions::find(conn, &key)?.ok_or_else(|| StoreError::UnknownSession(key.clone()))?;
        sessions.insert(session.0);
        own.insert(key, said_in(conn, session.0)?);
    }
    if own.values().all(HashSet::is_empty) {
        return Ok(OwnTexts::default());
    }
    let others: Vec<i64> = conn.prepare_cached(OTHERS)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for other in others.into_iter().filter(|other| !sessions.contains(other)) {
        for text in said_in(conn, other)? {
            for texts in own.values_mut() {
                texts.remove(&text);
            }
        }
    }
    Ok(OwnTexts(own.into_iter().map(|(key, texts)| (key, texts.into_iter().collect())).collect()))
}

/// The texts with which receipts of a conversation refer to what was said in it.
fn said_in(conn: &Connection, session: i64) -> Result<HashSet<Digest>, Fault> {
    let mut statement = conn.prepare_cached(BODIES)?;
    let mut rows = statement.query([session])?;
    let mut texts = HashSet::new();
    while let Some(row) = rows.next()? {
        match codec::from_json::<Receipt>(row.get_ref(0)?, "a receipt") {
            Ok(receipt) => texts.extend(receipt.said().cloned()),
            // A damaged receipt must not keep a conversation from being erased.
            Err(Fault::Damaged(what)) => tracing::warn!("texts of a receipt cannot be erased: {what}"),
            Err(fault) => return Err(fault),
        }
    }
    Ok(texts)
}

/// Erases what is not archived: from here on the model sees nothing of the conversation.
fn erase_window(
    conn: &Connection,
    SessionId(session): SessionId,
    key: &SessionKey,
) -> Result<ErasedConversation, Fault> {
    if conn.prepare_cached(UNANSWERED)?.exists([session])? {
        return Err(StoreError::Unanswered(key.clone()).into());
    }
    for forget in [
        reset::EMPTY_LIVE,
        reset::FORGET_DROPPED,
        FORGET_SIZES,
        FORGET_EDITED,
        FORGET_READINGS,
        FORGET_PARTS,
        FORGET_PROPOSALS,
        FORGET_IMAGES,
    ] {
        conn.prepare_cached(forget)?.run([session])?;
    }
    let parked = conn.prepare_cached(FORGET_PARKED)?.execute([session])?;
    let asked_here = params![session, key.thread.as_deref(), front_name(key.front)];
    let mut statement = conn.prepare_cached(FORGET_ASKED)?;
    let closed = statement.query_map(asked_here, |row| row.get(0))?.collect::<Result<Vec<Option<i64>>, _>>()?;
    conn.prepare_cached(FORGET_APART)?.run(asked_here)?;
    let asked = closed.iter().filter(|closed| closed.is_none()).count();
    Ok(ErasedConversation { messages: 0, parked, asked })
}

/// Erases the receipts of the newest turns. Returns how many these were.
fn erase_receipts(conn: &Connection, session: SessionId, _: &SessionKey) -> Result<usize, Fault> {
    Ok(conn.prepare_cached(FORGET_RECEIPTS)?.execute(params![session.0, PIECE as i64])?)
}

/// Erases the newest messages of the archive. Returns how many these were.
fn erase_messages(conn: &Connection, session: SessionId, _: &SessionKey) -> Result<usize, Fault> {
    let mut last = conn.prepare_cached(LAST_MESSAGES)?;
    let ids: Vec<i64> =
        last.query_map(params![session.0, PIECE as i64], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for &id in &ids {
        archive::forget_message(conn, id)?;
        for forget in [LEAVE_CASE, KEEP_NOTE, FORGET_MESSAGE] {
            conn.prepare_cached(forget)?.run([id])?;
        }
    }
    Ok(ids.len())
}
