//! Changes to messages that arrive before the messages themselves: sockets do not preserve order.

use super::{
    error::Fault,
    sql::{Connection, OptionalExtension, PrefetchedRows},
};
use crate::chat::Inbound;

pub(super) const KEEP_EARLY: &str =
    "INSERT INTO early_change (channel, ts, edited_at, text, at) VALUES (?1, ?2, ?3, ?4, ?5)
     ON CONFLICT (channel, ts) DO UPDATE SET edited_at = excluded.edited_at, text = excluded.text, at = excluded.at
     WHERE early_change.edited_at <= excluded.edited_at
            OR (early_change.edited_at IS NOT NULL AND excluded.edited_at IS NULL)";
pub(super) const FIND_EARLY: &str = "SELECT edited_at, text, at FROM early_change WHERE channel = ?1 AND ts = ?2";
pub(super) const TAKE_EARLY: &str = "DELETE FROM early_change WHERE channel = ?1 AND ts = ?2";
pub(super) const CLEAR_EARLY: &str = "DELETE FROM early_change WHERE at <= ?1";

/// A change to a message that arrived before the message.
pub(super) enum Early {
    Deleted,
    /// The message's current text.
    Edited {
        text: String,
        at: String,
    },
}

/// Looks up a change that arrived before this message.
pub(super) fn look_up<'c>(conn: &'c Connection, inbound: &Inbound) -> Result<PrefetchedRows<'c>, Fault> {
    Ok(conn.prefetch(FIND_EARLY, [&inbound.reply_to.channel, &inbound.ts])?)
}

/// Takes the change out of the store. An expired one counts as none.
pub(super) fn take(
    conn: &Connection,
    inbound: &Inbound,
    mut early: PrefetchedRows<'_>,
    expired: i64,
) -> Result<Option<Early>, Fault> {
    let found = early.query_row(|row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()?;
    let Some((at, text, came_at)) = found else { return Ok(None) };
    let came_at: i64 = came_at;
    if came_at <= expired {
        return Ok(None);
    }
    conn.prepare_cached(TAKE_EARLY)?.run([&inbound.reply_to.channel, &inbound.ts])?;
    Ok(Some(match (at, text) {
        (Some(at), Some(text)) => Early::Edited { text, at },
        _ => Early::Deleted,
    }))
}
