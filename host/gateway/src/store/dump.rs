//! Exports a whole conversation from a store.

use std::{collections::BTreeSet, sync::Arc};

use pmk_core::{Block, ImageId, Message, SessionKey};

use super::{
    DumpedCase, Store, StoreError, StoredImage, Verbosity,
    cases::travel,
    codec,
    error::Fault,
    images, sessions,
    sql::{Connection, ValueRef},
};
use crate::ids::SessionId;

pub(super) const SESSION: &str =
    "SELECT created_at, active_at, turns, dropped_turns, marker, \"verbose\" FROM session WHERE id = ?1";
/// The columns that [`codec::entry`] reads: only the original messages.
pub(super) const MESSAGES: &str = "SELECT id, role, origin, blocks, NULL, tokens, chars, created_at FROM message
     WHERE session_id = ?1 ORDER BY id";
pub(super) const LIVE: &str =
    "SELECT message_id, replacement, tokens FROM live WHERE session_id = ?1 ORDER BY position";

/// Everything that is stored of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionDump {
    pub key: SessionKey,
    pub created_at_ms: i64,
    /// When a message last arrived.
    pub active_at_ms: i64,
    /// Questions answered.
    pub turns: u64,
    /// Turns that the live window's marker stands for.
    pub dropped_turns: u32,
    /// A policy's own text for that marker.
    pub marker_template: Option<String>,
    /// What its people see of tool calls; `None` if where it comes from does not say.
    pub verbosity: Option<Verbosity>,
    /// Every message of the archive, oldest first.
    pub messages: Vec<DumpedMessage>,
    /// Whether their times are made up: next time, the same messages may have others.
    pub has_made_up_times: bool,
    /// The live window, in its order.
    pub live: Vec<DumpedLive>,
    /// The cases of the channel it is in, with the messages of this conversation that belong to them.
    pub cases: Vec<DumpedCase>,
    /// The images that its messages refer to, each once, as far as they are stored.
    pub images: Vec<StoredImage>,
}

/// A message of the archive.
#[derive(Clone, Debug, PartialEq)]
pub struct DumpedMessage {
    /// Its id in the store it comes from; `None` where it comes from elsewhere.
    pub id: Option<i64>,
    pub message: Message,
    /// The estimate that was made when it was stored.
    pub tokens: u32,
    pub created_at_ms: i64,
}

/// A message of the live window.
#[derive(Clone, Debug, PartialEq)]
pub struct DumpedLive {
    /// The index of the message in the dump.
    pub index: usize,
    /// What replaces it.
    pub replacement: Option<Message>,
    /// The estimate of the message as shown.
    pub tokens: u32,
}

impl SessionDump {
    /// Returns one of the live window's messages as it is shown there.
    pub fn shown<'a>(&'a self, live: &'a DumpedLive) -> &'a Message {
        live.replacement.as_ref().unwrap_or(&self.messages[live.index].message)
    }

    fn image_ids(&self) -> BTreeSet<ImageId> {
        let shown = self.live.iter().map(|live| self.shown(live));
        let messages = self.messages.iter().map(|stored| &stored.message).chain(shown);
        let ids = messages.flat_map(|message| &message.blocks).filter_map(|block| match block {
            Block::Image(image) => Some(image.sha256.clone()),
            _ => None,
        });
        ids.collect()
    }
}

impl Store {
    /// Returns everything that is stored of a conversation, as of one moment.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`].
    pub async fn dump(&self, key: &SessionKey) -> Result<SessionDump, StoreError> {
        let key = key.clone();
        self.read(move |conn| {
            // All of it is read from one state of the store, whatever a gateway commits meanwhile.
            let _moment = conn.snapshot()?;
            let dump = dump(conn, key)?;
            Ok(SessionDump { images: images::read(conn, dump.image_ids())?, ..dump })
        })
        .await
    }
}

/// Returns what is stored of a conversation, without the bytes of its images.
pub(super) fn dump(conn: &Connection, key: SessionKey) -> Result<SessionDump, Fault> {
    let session = sessions::find(conn, &key)?.ok_or_else(|| StoreError::UnknownSession(key.clone()))?;
    let messages = messages(conn, session)?;
    let live = live(conn, session, &messages)?;
    let cases = travel::dump(conn, &key, session, |id| index(&messages, id))?;
    let mut statement = conn.prepare_cached(SESSION)?;
    let row = statement.query_row([session.0], |row| {
        Ok(SessionDump {
            key,
            created_at_ms: row.get("created_at")?,
            active_at_ms: row.get("active_at")?,
            turns: u64::try_from(row.get::<_, i64>("turns")?).unwrap_or(0),
            dropped_turns: row.get("dropped_turns")?,
            marker_template: row.get("marker")?,
            verbosity: row
                .get::<_, Option<String>>("verbose")?
                .and_then(|name| Verbosity::from_name(&name))
                .or(Some(Verbosity::default())),
            messages,
            has_made_up_times: false,
            live,
            cases,
            images: vec![],
        })
    })?;
    Ok(row)
}

fn messages(conn: &Connection, session: SessionId) -> Result<Vec<DumpedMessage>, Fault> {
    let mut statement = conn.prepare_cached(MESSAGES)?;
    let mut rows = statement.query([session.0])?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        let entry = codec::entry(row)?;
        messages.push(DumpedMessage {
            id: Some(entry.id),
            message: Arc::unwrap_or_clone(entry.message),
            tokens: entry.tokens,
            created_at_ms: row.get("created_at")?,
        });
    }
    Ok(messages)
}

fn live(conn: &Connection, session: SessionId, messages: &[DumpedMessage]) -> Result<Vec<DumpedLive>, Fault> {
    let mut statement = conn.prepare_cached(LIVE)?;
    let mut rows = statement.query([session.0])?;
    let mut live = Vec::new();
    while let Some(row) = rows.next()? {
        let id: i64 = row.get("message_id")?;
        let index = index(messages, id)
            .ok_or_else(|| Fault::Damaged(format!("message {id} of a live window belongs to another conversation")))?;
        let replacement = match row.get_ref("replacement")? {
            ValueRef::Null => None,
            json => Some(codec::from_json(json, &format!("what replaces message {id}"))?),
        };
        live.push(DumpedLive { index, replacement, tokens: row.get("tokens")? });
    }
    Ok(live)
}

/// Returns the index of the message with this id.
fn index(messages: &[DumpedMessage], id: i64) -> Option<usize> {
    messages.binary_search_by_key(&Some(id), |message| message.id).ok()
}
