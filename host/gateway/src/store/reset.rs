//! Removes a part of the live window for good; the archive keeps it.

use std::time::Duration;

use pmk_core::{SessionKey, structure::Structure};

use super::{Store, StoreError, lease, sql::params, window};

/// How long a command waits for a turn that is under way.
pub const TURN_WAIT: Duration = Duration::from_secs(5);

pub(super) const EMPTY_LIVE: &str = "DELETE FROM live WHERE session_id = ?1";
pub(super) const FORGET_DROPPED: &str =
    "UPDATE session SET dropped_turns = 0, marker = NULL WHERE id = ?1 AND (dropped_turns <> 0 OR marker IS NOT NULL)";

/// What a cut has left of a live window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Turns that were kept.
    pub turns_kept: usize,
    /// Turns that were removed.
    pub turns_removed: usize,
    /// Messages that were removed.
    pub messages_removed: usize,
}

impl Store {
    /// Empties a conversation's live window; the archive keeps everything. Waits a few seconds for a turn that is
    /// under way. Returns how many messages were removed; `None` where it was empty already.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`]; [`StoreError::Leased`] when the turn does not finish.
    pub async fn reset(&self, key: &SessionKey, now_ms: i64) -> Result<Option<usize>, StoreError> {
        let lease = self.lease(key, "pmk-host sessions reset", TURN_WAIT, now_ms).await?;
        let windows = self.windows();
        self.write(move |conn| {
            windows.forget(lease.session);
            let messages = conn.prepare_cached(EMPTY_LIVE)?.execute([lease.session.0])?;
            let dropped = conn.prepare_cached(FORGET_DROPPED)?.execute([lease.session.0])?;
            lease::end(conn, &lease)?;
            Ok(Some(messages).filter(|messages| messages + dropped > 0))
        })
        .await
    }

    /// Cuts a conversation's live window back to its first turns and what precedes them; the archive keeps
    /// everything. Turns that a tool call ties together stay together: then more turns stay than requested. Waits
    /// as [`reset`](Store::reset) does.
    ///
    /// # Errors
    /// As [`reset`](Store::reset).
    pub async fn reset_to_turn(&self, key: &SessionKey, turns: usize, now_ms: i64) -> Result<Cut, StoreError> {
        let lease = self.lease(key, "pmk-host sessions reset", TURN_WAIT, now_ms).await?;
        let windows = self.windows();
        self.write(move |conn| {
            windows.forget(lease.session);
            let live = window::read(conn, lease.session)?;
            let entries: Vec<_> = live.iter().map(|live| &*live.entry.message).collect();
            let Structure { turn_starts, cuts, .. } = Structure::of(&entries);
            let cut = turn_starts.get(turns).and_then(|start| cuts.iter().find(|cut| *cut >= start));
            let end = cut.map_or(live.len(), |&cut| cut as usize);
            if let [first, ..] = &live[end..] {
                let removed = params![lease.session.0, first.position, i64::MAX];
                conn.prepare_cached(window::REMOVE_LIVE)?.run(removed)?;
            }
            lease::end(conn, &lease)?;
            let turns_kept = turn_starts.partition_point(|&start| (start as usize) < end);
            Ok(Cut { turns_kept, turns_removed: turn_starts.len() - turns_kept, messages_removed: live.len() - end })
        })
        .await
    }
}
