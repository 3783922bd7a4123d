//! Changes to messages that arrive before the messages themselves: sockets do not preserve order.

use super::{
    Store, StoreError,
    error::Fault,
    handed_on, intake, moment,
    sql::{Connection, OptionalExtension, PrefetchedRows, params},
};
use crate::chat::{Inbound, MessageRef};

/// Of a message, at most one row: what it says by its last edit, or that it was deleted; and who stopped it. That it
/// was deleted is kept of a message that has arrived, too: nothing changes if that is said again.
pub(super) const KEEP_EARLY: &str =
    "INSERT INTO early_change (channel, ts, edited_at, text, at) VALUES (?1, ?2, ?3, ?4, ?5)
     ON CONFLICT (channel, ts) DO UPDATE SET edited_at = excluded.edited_at, text = excluded.text, at = excluded.at,
         stopped_by = CASE WHEN excluded.edited_at IS NULL THEN NULL ELSE early_change.stopped_by END
     WHERE early_change.edited_at <= excluded.edited_at
            OR (early_change.edited_at IS NOT NULL AND excluded.edited_at IS NULL)
            OR (early_change.edited_at IS NULL AND early_change.stopped_by IS NOT NULL)";
/// What was deleted needs no stop.
pub(super) const KEEP_STOP: &str = "INSERT INTO early_change (channel, ts, stopped_by, at) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (channel, ts) DO UPDATE SET stopped_by = excluded.stopped_by, at = excluded.at
     WHERE early_change.edited_at IS NOT NULL OR early_change.stopped_by IS NOT NULL";
/// What only an edit has made a question is asked, if the stop came before the edit was made.
pub(super) const CLEAR_STOP: &str = "DELETE FROM early_change
     WHERE channel = ?1 AND ts = ?2 AND edited_at IS NULL AND stopped_by IS NOT NULL AND at <= ?3";
pub(super) const FIND_EARLY: &str =
    "SELECT edited_at, text, stopped_by, at FROM early_change WHERE channel = ?1 AND ts = ?2";
pub(super) const TAKE_EARLY: &str = "DELETE FROM early_change WHERE channel = ?1 AND ts = ?2";
pub(super) const CLEAR_EARLY: &str = "DELETE FROM early_change WHERE at <= ?1";
const CLEAR_EARLY_OF_HOSTS: &str = "DELETE FROM early_change WHERE at <= (SELECT pmk_now()) - 86400000";
/// Which thread of its channel a message is in, and who has written it, is not known before it arrives.
pub(super) const FORGET_EDITS_IN: &str =
    "DELETE FROM early_change WHERE text IS NOT NULL AND channel = (SELECT channel FROM session WHERE id = ?1)";
pub(super) const FORGET_EDITS: &str = "DELETE FROM early_change WHERE text IS NOT NULL";
/// Who has stopped a message is kept, without what it says by its edit.
pub(super) const KEEP_STOPS_IN: &str = "UPDATE early_change SET edited_at = NULL, text = NULL
     WHERE text IS NOT NULL AND stopped_by IS NOT NULL AND channel = (SELECT channel FROM session WHERE id = ?1)";
pub(super) const KEEP_STOPS: &str = "UPDATE early_change SET edited_at = NULL, text = NULL
     WHERE text IS NOT NULL AND stopped_by IS NOT NULL";

/// A change to a message that arrived before the message.
pub(super) enum Early {
    Deleted,
    Changed {
        /// The message's current text.
        edited: Option<EarlyEdit>,
        /// Who has stopped it.
        stopped_by: Option<String>,
    },
}

/// What a message says by an edit that arrived before the message.
pub(super) struct EarlyEdit {
    pub(super) text: String,
    pub(super) at: String,
}

impl Store {
    /// Erases changes to messages that can no longer arrive.
    ///
    /// # Errors
    /// Nothing was erased.
    pub async fn forget_early_changes(&self, now_ms: i64) -> Result<(), StoreError> {
        self.write(move |conn| clear(conn, now_ms)).await
    }
}

/// Erases changes to messages that can no longer arrive. Hosts go by the clock that they share.
pub(super) fn clear(conn: &Connection, now_ms: i64) -> Result<(), Fault> {
    let mut clear = conn.prepare_cached(conn.either(CLEAR_EARLY, CLEAR_EARLY_OF_HOSTS))?;
    Ok(clear.run(intake::timed(conn, params![intake::expired(now_ms)]))?)
}

/// Drops a stop that was for what a message said before this edit made it a question. One that came only after the edit
/// was made may be for the question.
pub(super) fn clear_stop(conn: &Connection, message: &MessageRef, edited_at: &str) -> Result<(), Fault> {
    let seconds: Option<f64> = edited_at.parse().ok();
    let edited_ms = seconds.map_or(i64::MAX, |seconds| (seconds * 1_000.0) as i64);
    Ok(conn.prepare_cached(CLEAR_STOP)?.run(params![message.channel, message.ts, edited_ms])?)
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
    now_ms: i64,
) -> Result<Option<Early>, Fault> {
    // It has the position of its question.
    if handed_on::is_handed_on(inbound) {
        return Ok(None);
    }
    let found = early.query_row(|row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get::<_, i64>(3)?))).optional()?;
    let Some((at, text, stopped_by, came_at)) = found else { return Ok(None) };
    if came_at <= intake::expired(moment::of(conn, now_ms)?) {
        return Ok(None);
    }
    conn.prepare_cached(TAKE_EARLY)?.run([&inbound.reply_to.channel, &inbound.ts])?;
    Ok(Some(match (at, text, stopped_by) {
        (Some(at), Some(text), stopped_by) => Early::Changed { edited: Some(EarlyEdit { text, at }), stopped_by },
        (_, _, Some(stopped_by)) => Early::Changed { edited: None, stopped_by: Some(stopped_by) },
        (_, _, None) => Early::Deleted,
    }))
}
