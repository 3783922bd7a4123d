//! Imports a conversation from elsewhere: all of it in one transaction, or nothing.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use pmk_core::{Message, SessionKey, message, replace};

use super::{
    DumpedCase, DumpedLive, DumpedMessage, Lease, SessionDump, Store, StoreError, StoredImage, Verbosity, archive,
    cases::travel,
    codec::{self, NewMessage, Shown},
    error::Fault,
    images, lease, receipt, reset, sessions,
    sql::{Connection, params},
    window,
};
use crate::ids::{GREATEST_KEPT, SessionId, TurnId};

pub(super) const HAS_MESSAGES: &str = "SELECT 1 FROM message WHERE session_id = ?1";
pub(super) const OPEN_SESSION: &str = "INSERT INTO session (key, created_at, active_at) VALUES (?1, ?2, ?3)";
pub(super) const MARK_SESSION: &str = "UPDATE session
     SET turns = CASE WHEN ?8 = 0 THEN turns + ?2 WHEN turns > ?2 THEN turns ELSE ?2 END, dropped_turns = ?3, marker = ?4,
            \"verbose\" = coalesce(?7, \"verbose\"),
            created_at = CASE WHEN created_at < ?5 THEN created_at ELSE ?5 END,
            active_at = CASE WHEN active_at > ?6 THEN active_at ELSE ?6 END
     WHERE id = ?1";
pub(super) const OF_SESSION: &str =
    "SELECT id, created_at, role, origin, blocks FROM message WHERE session_id = ?1 ORDER BY id";
pub(super) const ADD_MESSAGE: &str =
    "INSERT INTO message (id, session_id, role, origin, blocks, tokens, chars, created_at)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
pub(super) const HAS_IMAGE: &str = "SELECT 1 FROM image m JOIN inbox i ON i.id = m.inbox_id
     WHERE i.session_id = ?1 AND m.sha256 = ?2";
/// Imported images belong to an entry of their own, which no message has: with its conversation they are erased.
pub(super) const ENTER_IMAGES: &str =
    "INSERT INTO inbox (session_id, event_id, received_at, ts) VALUES (?1, ':import:', ?2, '')";

/// The result of importing a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The number of its messages, including those that were already there.
    pub messages: usize,
    /// Whether they have other ids than in the source, because those were taken or too great.
    pub renumbered: bool,
    /// Cases that were open in the source and are now closed, because their channel has another one open.
    pub cases_closed: usize,
}

/// A dump ready to be stored: encoded and counted before the writer gets it.
struct Ready {
    key: SessionKey,
    created_at_ms: i64,
    active_at_ms: i64,
    turns: i64,
    dropped_turns: u32,
    marker_template: Option<String>,
    verbosity: Option<Verbosity>,
    messages: Vec<(Option<i64>, NewMessage, i64)>,
    has_made_up_times: bool,
    live: Vec<DumpedLive>,
    cases: Vec<DumpedCase>,
    images: Vec<StoredImage>,
    now_ms: i64,
}

impl Store {
    /// Imports a whole conversation. It is never mixed with one that has messages: with `replace` the live window
    /// of that one is emptied first and its archive stays; without `replace` nothing happens. Messages that the
    /// archive already has, for example when a conversation exported here comes back, are shown from there and not
    /// stored again; where times are made up, messages are the same without them.
    ///
    /// Messages keep their ids where those are free and not too great; otherwise all get new ones, and notices that
    /// name an id are changed to the new one. Waits a few seconds for a turn that is under way.
    ///
    /// # Errors
    /// [`StoreError::Exists`]; [`StoreError::Leased`] when the turn does not finish. Nothing was stored.
    pub async fn restore(&self, dump: SessionDump, replace: bool, now_ms: i64) -> Result<Restored, StoreError> {
        let ready = Arc::new(Ready::new(dump, now_ms));
        let new = Arc::clone(&ready);
        if let Some(restored) = self.write(move |conn| restore_new(conn, &new)).await? {
            return Ok(restored);
        }
        if !replace {
            let key = ready.key.clone();
            self.read(move |conn| refuse_messages(conn, &key)).await?;
        }
        let lease = self.lease(&ready.key, "pmk-host sessions import", reset::TURN_WAIT, now_ms).await?;
        let windows = self.windows();
        self.write(move |conn| {
            windows.forget(lease.session);
            restore_over(conn, &ready, replace, &lease)
        })
        .await
    }
}

impl Ready {
    fn new(dump: SessionDump, now_ms: i64) -> Self {
        let encode = |DumpedMessage { id, message, tokens, created_at_ms }| {
            (id, NewMessage { tokens, ..NewMessage::from(&message) }, created_at_ms)
        };
        Ready {
            key: dump.key,
            created_at_ms: dump.created_at_ms,
            active_at_ms: dump.active_at_ms,
            turns: i64::try_from(dump.turns).unwrap_or(i64::MAX),
            dropped_turns: dump.dropped_turns,
            marker_template: dump.marker_template,
            verbosity: dump.verbosity,
            messages: dump.messages.into_iter().map(encode).collect(),
            has_made_up_times: dump.has_made_up_times,
            live: dump.live,
            cases: dump.cases,
            images: dump.images,
            now_ms,
        }
    }

    /// Returns the time by which one of its messages is known, unless its times are made up.
    fn known_by(&self, created_at_ms: i64) -> Option<i64> {
        (!self.has_made_up_times).then_some(created_at_ms)
    }
}

/// Stores a conversation that does not exist yet; `None` when it does. Nobody can hold its lease.
fn restore_new(conn: &Connection, ready: &Ready) -> Result<Option<Restored>, Fault> {
    if sessions::find(conn, &ready.key)?.is_some() {
        return Ok(None);
    }
    let opened = params![ready.key.to_string(), ready.created_at_ms, ready.active_at_ms];
    let session = SessionId(conn.prepare_cached(OPEN_SESSION)?.insert(opened)?);
    fill(conn, session, ready, can_keep(conn, ready)?, Known::default()).map(Some)
}

/// Stores a conversation over one that is leased to us. Its new messages come after the existing ones, so they get
/// new ids.
fn restore_over(conn: &Connection, ready: &Ready, replace: bool, lease: &Lease) -> Result<Restored, Fault> {
    if !replace {
        refuse_messages(conn, &ready.key)?;
    }
    conn.prepare_cached(reset::EMPTY_LIVE)?.run([lease.session.0])?;
    let known = known(conn, lease.session, ready)?;
    let restored = fill(conn, lease.session, ready, false, known)?;
    lease::end(conn, lease)?;
    Ok(restored)
}

fn refuse_messages(conn: &Connection, key: &SessionKey) -> Result<(), Fault> {
    match sessions::find(conn, key)? {
        Some(session) if conn.prepare_cached(HAS_MESSAGES)?.exists([session.0])? => {
            Err(StoreError::Exists(key.clone()).into())
        }
        _ => Ok(()),
    }
}

/// Whether all messages can keep their ids.
fn can_keep(conn: &Connection, ready: &Ready) -> Result<bool, Fault> {
    let mut is_taken = conn.prepare_cached(receipt::IS_STORED)?;
    for (id, ..) in &ready.messages {
        if id.is_some_and(|id| id > GREATEST_KEPT) || is_taken.exists([id])? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Existing messages by time, role, origin and blocks; the ids of equal ones are in order, oldest first.
type Known = HashMap<(Option<i64>, String, String, String), VecDeque<i64>>;

fn known(conn: &Connection, session: SessionId, ready: &Ready) -> Result<Known, Fault> {
    let mut known = Known::new();
    let mut statement = conn.prepare_cached(OF_SESSION)?;
    let mut rows = statement.query([session.0])?;
    while let Some(row) = rows.next()? {
        let at = ready.known_by(row.get("created_at")?);
        let what = (at, row.get("role")?, row.get("origin")?, row.get("blocks")?);
        known.entry(what).or_default().push_back(row.get("id")?);
    }
    Ok(known)
}

fn fill(
    conn: &Connection,
    session: SessionId,
    ready: &Ready,
    keep_ids: bool,
    mut known: Known,
) -> Result<Restored, Fault> {
    let mut add = conn.prepare_cached(ADD_MESSAGE)?;
    let mut ids = Vec::with_capacity(ready.messages.len());
    let mut is_of_here = false;
    for (id, message, created_at_ms) in &ready.messages {
        let NewMessage { role, origin, blocks, tokens, chars, .. } = message;
        let what = (ready.known_by(*created_at_ms), (*role).to_owned(), (*origin).to_owned(), blocks.clone());
        if let Some(id) = known.get_mut(&what).and_then(VecDeque::pop_front) {
            is_of_here = true;
            ids.push(id);
            continue;
        }
        let id = match id.filter(|_| keep_ids) {
            Some(id) => {
                add.run(params![id, session.0, role, origin, blocks, tokens, chars, created_at_ms])?;
                archive::add(conn, session, id, message)?;
                id
            }
            None => archive::record(conn, session, None, message, *created_at_ms)?,
        };
        ids.push(id);
    }
    conn.follow_ids("message")?;
    for (position, DumpedLive { index, replacement, tokens }) in (0..).zip(&ready.live) {
        let (Some(&id), Some((old, message, _))) = (ids.get(*index), ready.messages.get(*index)) else {
            return Err(StoreError::NoSuchPosition(position).into());
        };
        let replacement = replacement.as_ref().map(|shown| readdressed(shown, *old, id));
        let chars = replacement.as_ref().map_or(message.chars, |shown| length(&shown.blocks));
        let replacement = replacement.as_ref().map(codec::to_json);
        window::show(conn, session, position, id, &Shown { replacement, tokens: *tokens, chars })?;
    }
    let Ready { turns, dropped_turns, marker_template, verbosity, created_at_ms, active_at_ms, .. } = ready;
    let (verbosity, is_of_here) = (verbosity.map(Verbosity::name), i64::from(is_of_here));
    let marked =
        params![session.0, turns, dropped_turns, marker_template, created_at_ms, active_at_ms, verbosity, is_of_here];
    conn.prepare_cached(MARK_SESSION)?.run(marked)?;
    let renumbered = ready.messages.iter().zip(&ids).any(|((old, ..), id)| old.is_some_and(|old| old != *id));
    let messages = ids.iter().zip(&ready.messages).map(|(id, (_, message, _))| (*id, &*message.blocks)).enumerate();
    let stored = travel::Stored { session, messages: messages.collect(), now_ms: ready.now_ms };
    let cases_closed = travel::restore(conn, &ready.key, &ready.cases, &stored)?;
    keep_images(conn, session, ready)?;
    Ok(Restored { messages: ids.len(), renumbered, cases_closed })
}

/// Stores the images that the conversation does not have yet.
fn keep_images(conn: &Connection, session: SessionId, ready: &Ready) -> Result<(), Fault> {
    let mut new = Vec::new();
    for image in &ready.images {
        if !conn.prepare_cached(HAS_IMAGE)?.exists(params![session.0, image.sha256.as_str()])? {
            new.push(image.clone());
        }
    }
    if new.is_empty() {
        return Ok(());
    }
    let inbox = conn.prepare_cached(ENTER_IMAGES)?.insert(params![session.0, ready.now_ms])?;
    images::keep(conn, TurnId(inbox), &new)
}

fn readdressed(shown: &Message, old: Option<i64>, id: i64) -> Message {
    let blocks = match old.filter(|old| *old != id) {
        Some(old) => replace::readdressed(&shown.blocks, &format!("m{old}"), &format!("m{id}")),
        None => shown.blocks.clone(),
    };
    Message { role: shown.role, origin: shown.origin, blocks }
}

fn length(blocks: &[pmk_core::Block]) -> u32 {
    u32::try_from(message::chars(blocks)).unwrap_or(u32::MAX)
}
