//! Lists conversations and messages, for other commands while a gateway runs.

use pmk_core::{Entry, SessionKey};

use super::{
    Store, StoreError,
    codec::{self, entry_columns},
    error::Fault,
    sql::{Connection, OptionalExtension, Row},
};
use crate::ids::SessionId;

/// Whether a conversation has anything: one that was erased has not.
macro_rules! has_content {
    () => {
        "(EXISTS (SELECT 1 FROM message m WHERE m.session_id = s.id)
          OR EXISTS (SELECT 1 FROM receipt r WHERE r.session_id = s.id)
          OR EXISTS (SELECT 1 FROM inbox i LEFT JOIN turn t ON t.id = i.id WHERE i.session_id = s.id
              AND (i.message IS NOT NULL OR i.edited IS NOT NULL OR i.attached IS NOT NULL OR t.reading IS NOT NULL
                  OR EXISTS (SELECT 1 FROM outbox o WHERE o.turn_id = i.id
                      AND (o.body IS NOT NULL OR o.how IS NOT NULL)))))"
    };
}
pub(super) use has_content;

macro_rules! summary {
    ($($end:tt)*) => {
        concat!(
            "SELECT s.key, s.turns, s.dropped_turns, s.marker, s.active_at,
                    (SELECT count(*) FROM live l WHERE l.session_id = s.id) AS live_messages,
                    (SELECT CAST(coalesce(sum(tokens), 0) AS BIGINT) FROM live l WHERE l.session_id = s.id) AS live_tokens,
                    (SELECT count(*) FROM message m WHERE m.session_id = s.id) AS messages
             FROM session s ",
            $($end)*
        )
    };
}
const SUMMARIES: &str = summary!("WHERE ", has_content!(), " ORDER BY s.active_at DESC, s.id DESC");
pub(super) const SUMMARY: &str = summary!("WHERE s.key = ?1");
pub(super) const FIND_SESSION: &str = "SELECT id FROM session WHERE key = ?1";
pub(super) const LIVE_MESSAGES: &str = concat!(
    "SELECT ",
    entry_columns!(),
    ", m.created_at, true AS live FROM live l JOIN message m ON m.id = l.message_id
     WHERE l.session_id = ?1 ORDER BY l.position"
);
pub(super) const ALL_MESSAGES: &str = concat!(
    "SELECT ",
    entry_columns!(),
    ", m.created_at, l.message_id IS NOT NULL AS live
     FROM message m LEFT JOIN (SELECT * FROM live WHERE session_id = ?1) l ON l.message_id = m.id
     WHERE m.session_id = ?1 ORDER BY m.id"
);

/// What `sessions list` shows of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    pub key: SessionKey,
    /// Questions answered.
    pub turns: u64,
    pub live_messages: u64,
    pub live_tokens: u64,
    /// Messages that are no longer in the live window.
    pub archived_messages: u64,
    /// Turns that the live window's marker stands for.
    pub dropped_turns: u32,
    /// A policy's own text for that marker.
    pub marker_template: Option<String>,
    /// When a message last arrived, milliseconds since the epoch.
    pub active_at_ms: i64,
}

/// A stored message, as `sessions show` shows it.
#[derive(Clone, Debug)]
pub struct StoredMessage {
    /// The message, and what replaces it where it was reduced.
    pub entry: Entry,
    /// Whether the live window holds it.
    pub live: bool,
    /// When it was stored, milliseconds since the epoch.
    pub created_at_ms: i64,
}

impl Store {
    /// Returns every conversation that is not erased, the most recently active first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError> {
        self.read(|conn| {
            let mut statement = conn.prepare_cached(SUMMARIES)?;
            let mut rows = statement.query([])?;
            let mut sessions = Vec::new();
            while let Some(row) = rows.next()? {
                sessions.push(summary(row)?);
            }
            Ok(sessions)
        })
        .await
    }

    /// Returns one conversation.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`].
    pub async fn session(&self, key: &SessionKey) -> Result<SessionSummary, StoreError> {
        let key = key.clone();
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(SUMMARY)?;
            let mut rows = statement.query([key.to_string()])?;
            match rows.next()? {
                Some(row) => summary(row),
                None => Err(StoreError::UnknownSession(key).into()),
            }
        })
        .await
    }

    /// Returns the live window of a conversation or, with `all`, its whole archive; oldest first.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`].
    pub async fn session_messages(&self, key: &SessionKey, all: bool) -> Result<Vec<StoredMessage>, StoreError> {
        let key = key.clone();
        self.read(move |conn| messages(conn, &key, if all { ALL_MESSAGES } else { LIVE_MESSAGES })).await
    }
}

fn summary(row: Row<'_>) -> Result<SessionSummary, Fault> {
    let count = |column: &str| -> Result<u64, Fault> { Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0)) };
    let live_messages = count("live_messages")?;
    Ok(SessionSummary {
        key: codec::key(row.get_ref("key")?)?,
        turns: count("turns")?,
        live_messages,
        live_tokens: count("live_tokens")?,
        archived_messages: count("messages")?.saturating_sub(live_messages),
        dropped_turns: row.get("dropped_turns")?,
        marker_template: row.get("marker")?,
        active_at_ms: row.get("active_at")?,
    })
}

/// Returns the conversation with that key.
pub(super) fn find(conn: &Connection, key: &SessionKey) -> Result<Option<SessionId>, Fault> {
    let mut statement = conn.prepare_cached(FIND_SESSION)?;
    Ok(statement.query_row([key.to_string()], |row| row.get(0)).optional()?.map(SessionId))
}

fn messages(conn: &Connection, key: &SessionKey, sql: &str) -> Result<Vec<StoredMessage>, Fault> {
    let session = find(conn, key)?.ok_or_else(|| StoreError::UnknownSession(key.clone()))?;
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([session.0])?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        messages.push(StoredMessage {
            entry: codec::entry(row)?,
            live: row.get("live")?,
            created_at_ms: row.get("created_at")?,
        });
    }
    Ok(messages)
}
