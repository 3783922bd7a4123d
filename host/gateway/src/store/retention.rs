//! Erases whole conversations: those that an operator names, and those that nobody has written in for longer than
//! they are kept.
//!
//! Everything that was said goes: the live window, the archive with its index, receipts with their texts, images,
//! edits and parked messages. What only counts stays, without a word of it: that there were turns, what they used, how
//! they were rated; so the figures of experiments stay right. Atoms and notes of cases were made from conversations,
//! and stay too.
//!
//! A long conversation is erased in pieces, from its end, so that a running gateway never waits for long. Receipts go
//! last, because they tell which texts go. If it is interrupted, the conversation still has content, and the next
//! attempt erases the rest.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    ops::RangeInclusive,
    sync::Arc,
    time::Duration,
};

use pmk_core::{Place, SessionKey};

use super::{
    Lease, Store, StoreError, archive, codec,
    early::{FORGET_EDITS_IN, KEEP_STOPS_IN},
    error::Fault,
    escalation_updates::{self, FORGET_APART_OF},
    escalations,
    intake::front_name,
    lease::LEASE_FOR,
    moment::{self, Began},
    receipt::{self, Digest},
    reset, sessions,
    sql::{Connection, Invalidation, Rows, params},
    windows::Windows,
};
use crate::ids::SessionId;

/// How many messages, receipts or texts are erased at once.
const PIECE: usize = 500;

const BETWEEN_PIECES: Duration = Duration::from_millis(150);

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The conversations with content in which nobody has written since that moment, as far as it is known, and in which
/// everything is answered.
const IDLE: &str = concat!(
    "SELECT s.key FROM session s WHERE s.active_at < ?1 AND s.read_from IS NULL AND ",
    sessions::has_content!(),
    " AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.session_id = s.id AND i.message IS NOT NULL
          AND (i.parked_at IS NULL OR i.parked_told = 0))
     ORDER BY s.active_at, s.id"
);
const SESSIONS: &str = "SELECT id FROM session ORDER BY id";
/// Whether a receipt refers to a text of what was said: see `Receipt::said`. The reduced forms of messages end their
/// lists.
macro_rules! refers_to_said {
    () => {
        "(body LIKE '%\"]%' OR body LIKE '%\"text\":\"%' OR body LIKE '%\"marker\":\"%' OR body LIKE '%\"marker\":[%'
          OR body LIKE '%\"recall\":\"%' OR body LIKE '%\"background\":\"%')"
    };
}
pub(super) const BODIES: &str =
    concat!("SELECT body FROM receipt WHERE session_id = ?1 AND turn_id BETWEEN ?2 AND ?3 AND ", refers_to_said!());
const NEWEST: &str = "SELECT coalesce(max(id), 0) FROM inbox";
const OPEN: &str = "SELECT id FROM inbox WHERE message IS NOT NULL";
macro_rules! bodies_since {
    ($open:literal) => {
        concat!(
            "SELECT r.body FROM turn t JOIN receipt r ON r.session_id = t.session_id AND r.turn_id = t.id
             WHERE (t.id > ?1 OR t.id ",
            $open,
            refers_to_said!()
        )
    };
}
/// Those of the turns after one, and of some before it, as JSON.
pub(super) const BODIES_SINCE: &str = bodies_since!("IN (SELECT value FROM json_each(?2))) AND ");
const BODIES_SINCE_IN_POSTGRES: &str = bodies_since!(
    "= ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(CAST(?2 AS TEXT) AS JSON)) AS BIGINT)))) AND "
);
/// Whether a question to contacts is of a conversation. Those of pmk and of older versions have no turn of ours: their
/// thread tells, also where nobody has written since the conversation was imported.
macro_rules! asked_in {
    () => {
        "front = ?3 AND CASE WHEN json_valid(marker) AND json_extract(marker, '$.askedBy') IS NOT NULL
         THEN CAST(json_extract(marker, '$.askedBy') AS BIGINT) IN (SELECT id FROM inbox WHERE session_id = ?1)
         ELSE (channel = ?4 AND thread_ts = ?2)
              OR (channel, thread_ts) IN (SELECT channel, coalesce(?2, CASE ts WHEN '' THEN event_id ELSE ts END)
                                          FROM inbox WHERE session_id = ?1) END"
    };
}
const AWAITS_CONTACT: &str = concat!("SELECT 1 FROM escalation WHERE closed_at IS NULL AND ", asked_in!());
/// Those that are answered or cancelled are remembered for a day, unless they [are forgotten](escalation_updates::forget)
/// before.
const FORGET_ASKED: &str = concat!(
    "UPDATE escalation SET closed_at = 0 WHERE closed_at > 0 AND claimed_by IS NULL AND ",
    asked_in!(),
    " RETURNING front, channel, thread_ts"
);
const IS_OF: &str = "SELECT 1 FROM inbox WHERE id = ?1 AND session_id = ?2";
const LAST_RECEIPT: &str = "SELECT max(turn_id) FROM receipt WHERE session_id = ?1";
pub(super) const ACTIVE_SINCE: &str = "SELECT 1 FROM session WHERE id = ?1 AND active_at >= ?2";
pub(super) const PROLONG: &str = "UPDATE session SET lease_until = ?3 WHERE id = ?1 AND lease_owner = ?2";
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
pub(super) const FORGET_COUNTS: &str =
    "UPDATE session SET sizes = NULL, turns = 0, revision = revision + 1 WHERE id = ?1";
pub(super) const LAST_MESSAGES: &str = "SELECT id FROM message WHERE session_id = ?1 ORDER BY id DESC LIMIT ?2";
pub(super) const LEAVE_CASE: &str = "DELETE FROM case_message WHERE message_id = ?1";
pub(super) const KEEP_NOTE: &str = "UPDATE case_note SET message_id = NULL WHERE message_id = ?1";
pub(super) const FORGET_MESSAGE: &str = "DELETE FROM message WHERE id = ?1";
pub(super) const FORGET_RECEIPTS: &str = "DELETE FROM receipt WHERE session_id = ?1 AND turn_id IN
     (SELECT turn_id FROM receipt WHERE session_id = ?1 AND turn_id <= ?2 ORDER BY turn_id DESC LIMIT ?3)";

/// Which conversation is erased, and when.
#[derive(Clone, Copy, Debug)]
pub enum Erasing {
    /// Whenever somebody has written in it.
    Anyway,
    /// Only if nobody has written in it for so many days.
    Idle { days: u32 },
}

/// A conversation that was erased, up to its receipts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErasedConversation {
    /// Messages of the archive.
    pub messages: usize,
    /// Messages that were parked.
    pub parked: usize,
    session: SessionId,
    /// The turn of its last receipt.
    last: Option<i64>,
}

impl ErasedConversation {
    /// Whether anything was left in it but receipts. Another host may have erased the rest since it was found to be idle.
    pub fn had_content(&self) -> bool {
        self.messages + self.parked > 0
    }
}

impl Store {
    /// Returns the conversations with content in which nobody has written for so many days, the oldest first; not those
    /// in which a message is not answered yet.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn idle_conversations(&self, days: u32, now_ms: i64) -> Result<Vec<SessionKey>, StoreError> {
        self.read(move |conn| {
            let since_ms = since(days, moment::of(conn, now_ms)?);
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

    /// Returns whether a conversation may be erased now.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`]; [`StoreError::Unanswered`] and [`StoreError::AwaitsContact`].
    pub async fn may_be_erased(&self, key: &SessionKey) -> Result<(), StoreError> {
        let key = key.clone();
        self.read(move |conn| {
            let session = sessions::find(conn, &key)?.ok_or_else(|| StoreError::UnknownSession(key.clone()))?;
            refuse(conn, session, &key, Erasing::Anyway, 0)
        })
        .await
    }

    /// Erases a conversation, up to its receipts, with which [`erase_receipts`](Store::erase_receipts) continues. Waits
    /// for up to `wait` for a turn that is under way.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`]; [`StoreError::Unanswered`], [`StoreError::AwaitsContact`],
    /// [`StoreError::NotIdle`] and [`StoreError::Leased`], then nothing was changed.
    pub async fn erase_conversation(
        &self,
        key: &SessionKey,
        erasing: Erasing,
        wait: Duration,
        now_ms: i64,
    ) -> Result<ErasedConversation, StoreError> {
        let began = Began::now(now_ms);
        let lease = self.lease(key, "pmk-host sessions erase", wait, now_ms).await?;
        let erased = self.erase_leased(&lease, erasing, began).await;
        self.release_after(lease, erased).await
    }

    /// Erases the receipts of conversations that were just erased, and those of their texts to which no other receipt
    /// refers. Reads all receipts of the store.
    ///
    /// # Errors
    /// The rest is erased with the next attempt at these conversations.
    pub async fn erase_receipts(&self, erased: &[ErasedConversation]) -> Result<(), StoreError> {
        if erased.iter().all(|erased| erased.last.is_none()) {
            return Ok(());
        }
        let own = self.own_texts(erased).await?;
        self.erase_own(own).await
    }

    /// The texts with which receipts of these conversations refer to what was said in them, and with which no other receipt
    /// refers to anything. Reads one conversation at a time, so that other reads come in between.
    pub(super) async fn own_texts(&self, of: &[ErasedConversation]) -> Result<OwnTexts, StoreError> {
        let erased: BTreeMap<i64, i64> =
            of.iter().filter_map(|erased| Some((erased.session.0, erased.last?))).collect();
        // Before any receipt is read: what is missed after that is of one of these turns, or of a later one.
        let (newest, open) = self.read(open_turns).await?;
        let mut own = OwnTexts { texts: BTreeSet::new(), erased, newest, open };
        for (&session, &last) in &own.erased {
            own.texts.extend(self.read(move |conn| said_in(conn, session, 0..=last)).await?);
        }
        for session in self.read(all_sessions).await? {
            let first = own.first_kept(session);
            for text in self.read(move |conn| said_in(conn, session, first..=i64::MAX)).await? {
                own.texts.remove(&text);
            }
        }
        Ok(own)
    }

    /// Erases these texts, but those to which a receipt refers that was stored meanwhile, and then the receipts.
    pub(super) async fn erase_own(&self, own: OwnTexts) -> Result<(), StoreError> {
        let own = Arc::new(own);
        let texts: Vec<Digest> = own.texts.iter().cloned().collect();
        for piece in texts.chunks(PIECE) {
            let (piece, own) = (piece.to_vec(), Arc::clone(&own));
            let erase = move |conn: &Connection| {
                let since = own.said_since(conn)?;
                let own: Vec<Digest> = piece.iter().filter(|text| !since.contains(*text)).cloned().collect();
                receipt::erase_texts(conn, &own)
            };
            self.write(erase).await?;
            let_others_write().await;
        }
        for (&session, &last) in &own.erased {
            let erase = move |conn: &Connection| {
                let values = params![session, last, PIECE as i64];
                Ok(conn.prepare_cached(FORGET_RECEIPTS)?.execute(values)?)
            };
            while self.write(erase).await? == PIECE {
                let_others_write().await;
            }
        }
        Ok(())
    }

    /// Erases a conversation that is leased, up to its receipts.
    pub(super) async fn erase_leased(
        &self,
        lease: &Lease,
        erasing: Erasing,
        began: Began,
    ) -> Result<ErasedConversation, StoreError> {
        let window = move |conn: &Connection, session, key: &SessionKey| {
            refuse(conn, session, key, erasing, began.at_ms())?;
            erase_window(conn, session, key)
        };
        let mut erased = self.write(leased(lease, self.windows(), began, window)).await?;
        loop {
            let piece = |conn: &Connection, session, _: &SessionKey| erase_messages(conn, session);
            match self.write(leased(lease, self.windows(), began, piece)).await? {
                0 => return Ok(erased),
                messages => {
                    erased.messages += messages;
                    if messages == PIECE {
                        let_others_write().await;
                    }
                }
            }
        }
    }
}

/// The texts that only receipts refer to which are erased: as of one moment, because others go on.
pub(super) struct OwnTexts {
    /// Erased in one order: the order of what is written must not differ between runs.
    pub(super) texts: BTreeSet<Digest>,
    /// The conversations, each with the turn of the last receipt that is erased.
    erased: BTreeMap<i64, i64>,
    /// The newest question by then. The ids of later ones are higher, whichever host takes them in.
    newest: i64,
    /// Those that were not done with by then, as JSON.
    open: String,
}

impl OwnTexts {
    /// From which turn on the receipts of a conversation stay: also where it is erased, what was said there since stays.
    fn first_kept(&self, session: i64) -> i64 {
        self.erased.get(&session).map_or(0, |last| last + 1)
    }

    /// The texts to which receipts refer that could be stored after all others were read.
    fn said_since(&self, conn: &Connection) -> Result<HashSet<Digest>, Fault> {
        let bodies = conn.either(BODIES_SINCE, BODIES_SINCE_IN_POSTGRES);
        said(conn.prepare_cached(bodies)?.query(params![self.newest, &*self.open])?)
    }
}

/// Lets others write between two pieces: one that waits for SQLite's lock looks for it every 100 ms at most.
pub(super) async fn let_others_write() {
    tokio::time::sleep(BETWEEN_PIECES).await;
}

/// Work that erases a piece, if the conversation is still leased; the lease is prolonged.
pub(super) fn leased<T>(
    lease: &Lease,
    windows: Arc<Windows>,
    began: Began,
    erase: impl Fn(&Connection, SessionId, &SessionKey) -> Result<T, Fault> + Send + 'static,
) -> impl Fn(&Connection) -> Result<T, Fault> + Send + 'static {
    let (session, key, owner) = (lease.session, lease.key.clone(), lease.owner.clone());
    move |conn| {
        let now_ms = moment::of(conn, began.now_ms())?;
        let until = now_ms.saturating_add(LEASE_FOR.as_millis() as i64);
        if conn.prepare_cached(PROLONG)?.execute(params![session.0, owner, until])? == 0 {
            return Err(StoreError::LeaseLost { key: key.clone() }.into());
        }
        windows.forget(session);
        conn.moved(|| Invalidation::Conversation(session.0));
        erase(conn, session, &key)
    }
}

/// The ids of all conversations.
pub(super) fn all_sessions(conn: &Connection) -> Result<Vec<i64>, Fault> {
    Ok(conn.prepare_cached(SESSIONS)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

/// The newest question, and those that are not done with, as JSON.
fn open_turns(conn: &Connection) -> Result<(i64, String), Fault> {
    let newest = conn.prepare_cached(NEWEST)?.query_row([], |row| row.get(0))?;
    let open: Vec<i64> = conn.prepare_cached(OPEN)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok((newest, codec::to_json(&open)))
}

/// The texts with which receipts of these turns of a conversation refer to what was said in it.
fn said_in(conn: &Connection, session: i64, turns: RangeInclusive<i64>) -> Result<HashSet<Digest>, Fault> {
    said(conn.prepare_cached(BODIES)?.query(params![session, turns.start(), turns.end()])?)
}

/// The texts with which these receipts refer to what was said.
fn said(mut rows: Rows<'_>) -> Result<HashSet<Digest>, Fault> {
    let mut texts = HashSet::new();
    while let Some(row) = rows.next()? {
        if let Some(receipt) = receipt::read(row.get_ref(0)?)? {
            texts.extend(receipt.said().cloned());
        }
    }
    Ok(texts)
}

fn since(days: u32, now_ms: i64) -> i64 {
    now_ms.saturating_sub(i64::from(days) * DAY_MS)
}

/// The channel of a conversation, where its key has it.
fn channel(key: &SessionKey) -> Option<&str> {
    match &key.place {
        Place::Channel(channel) => Some(channel.as_str()),
        Place::Dm(_) => None,
    }
}

/// Refuses to erase a conversation in which somebody waits for something, or writes again.
fn refuse(conn: &Connection, session: SessionId, key: &SessionKey, erasing: Erasing, now_ms: i64) -> Result<(), Fault> {
    if let Erasing::Idle { days } = erasing
        && conn.prepare_cached(ACTIVE_SINCE)?.exists(params![session.0, since(days, moment::of(conn, now_ms)?)])?
    {
        return Err(StoreError::NotIdle(key.clone()).into());
    }
    if conn.prepare_cached(UNANSWERED)?.exists([session.0])? {
        return Err(StoreError::Unanswered(key.clone()).into());
    }
    let asked_here = params![session.0, key.thread.as_deref(), front_name(key.front), channel(key)];
    if conn.prepare_cached(AWAITS_CONTACT)?.exists(asked_here)? {
        return Err(StoreError::AwaitsContact(key.clone()).into());
    }
    Ok(())
}

/// Erases what is not archived: from here on the model sees nothing of the conversation.
fn erase_window(conn: &Connection, session: SessionId, key: &SessionKey) -> Result<ErasedConversation, Fault> {
    for forget in [
        reset::EMPTY_LIVE,
        reset::FORGET_DROPPED,
        FORGET_COUNTS,
        FORGET_EDITED,
        FORGET_READINGS,
        FORGET_PARTS,
        FORGET_PROPOSALS,
        FORGET_IMAGES,
        KEEP_STOPS_IN,
        FORGET_EDITS_IN,
        FORGET_APART_OF,
    ] {
        conn.prepare_cached(forget)?.run([session.0])?;
    }
    let asked_here = params![session.0, key.thread.as_deref(), front_name(key.front), channel(key)];
    escalation_updates::forget(conn, FORGET_ASKED, asked_here)?;
    // What was said here about a question of another conversation.
    escalations::forget_remarks(conn, |said| match said.turn {
        Some(turn) => Ok(conn.prepare_cached(IS_OF)?.exists(params![turn.0, session.0])?),
        None => Ok(false),
    })?;
    let parked = conn.prepare_cached(FORGET_PARKED)?.execute([session.0])?;
    let last = conn.prepare_cached(LAST_RECEIPT)?.query_row([session.0], |row| row.get(0))?;
    Ok(ErasedConversation { messages: 0, parked, session, last })
}

/// Erases the newest messages of the archive. Returns how many these were.
fn erase_messages(conn: &Connection, session: SessionId) -> Result<usize, Fault> {
    let mut newest = conn.prepare_cached(LAST_MESSAGES)?;
    let ids: Vec<i64> =
        newest.query_map(params![session.0, PIECE as i64], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for &id in &ids {
        archive::forget_message(conn, id)?;
        for forget in [LEAVE_CASE, KEEP_NOTE, FORGET_MESSAGE] {
            conn.prepare_cached(forget)?.run([id])?;
        }
    }
    Ok(ids.len())
}
