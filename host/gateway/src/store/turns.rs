//! The stages of a turn in the store: [begun](beginning), [answered](recording), [delivered](delivering); and what is
//! stored of it in between.

pub(super) mod beginning;
pub(super) mod delivering;
pub(super) mod recording;

use super::{
    OpenTurn, PreviewKind, Store, StoreError, StoredImage, Verbosity, changes, codec, images,
    sql::{Changed, Connection, Invalidation, OptionalExtension, params},
    writer::Prefetch,
};
use crate::{
    chat::{Attachments, Inbound},
    ids::{SessionId, TurnId},
};

pub(super) const SET_VERBOSITY: &str = "UPDATE session SET \"verbose\" = ?2 WHERE id = ?1";
pub(super) const PLACE: &str = "UPDATE turn SET placeholder = ?2 WHERE id = ?1 AND delivered_at IS NULL";
pub(super) const STREAMED: &str = "UPDATE turn SET streamed_ts = ?2 WHERE id = ?1 AND delivered_at IS NULL";
pub(super) const PLACED: &str =
    "SELECT t.placeholder, t.answered_at IS NOT NULL OR t.delivered_at IS NOT NULL OR i.parked_at IS NOT NULL
     FROM turn t JOIN inbox i ON i.id = t.id WHERE t.id = ?1";
pub(super) const MAY_PLACE: &str = "UPDATE turn SET may_have_placed = 1 WHERE id = ?1 AND delivered_at IS NULL";
pub(super) const MAY_STREAM: &str = "UPDATE turn SET may_have_streamed = 1 WHERE id = ?1 AND delivered_at IS NULL";
pub(super) const MESSAGE: &str = "SELECT message FROM inbox WHERE id = ?1 AND message IS NOT NULL";
pub(super) const KEEP_ATTACHED: &str = "UPDATE inbox SET message = ?2 WHERE id = ?1 AND message IS NOT NULL";
pub(super) const ASKED_ALONG: &str = "SELECT t.asked_by, i.ts FROM turn t JOIN inbox i ON i.id = t.id
     WHERE t.answered_with = ?1 AND t.asked_by IS NOT NULL ORDER BY t.id";

impl Store {
    /// Stores in advance that a preview of the answer may be shown: after a crash it is looked for.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] when the turn is over.
    pub async fn may_show(&self, turn: TurnId, what: PreviewKind) -> Result<(), StoreError> {
        let sql = match what {
            PreviewKind::Placeholder => MAY_PLACE,
            PreviewKind::Stream => MAY_STREAM,
        };
        let work = move |conn: &Connection| {
            conn.moved(|| Invalidation::Shown(turn.0));
            Ok(conn.prepare_cached(sql)?.run_counting([turn.0])?)
        };
        let changed = self.write_prefetched(Prefetch::Narrow, work).await?;
        not_over(turn, &changed)
    }

    /// Stores the message that the answer will replace: before everything that is stored after this call, even if
    /// the returned future is dropped.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] when the turn is over.
    pub fn placed(
        &self,
        turn: TurnId,
        placeholder: &str,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + use<> {
        self.shown(turn, PLACE, placeholder)
    }

    /// Stores the message as which the answer grows, in the same way: who reacts to it means its question.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] when the turn is over.
    pub fn streamed(&self, turn: TurnId, message: &str) -> impl Future<Output = Result<(), StoreError>> + Send + use<> {
        self.shown(turn, STREAMED, message)
    }

    fn shown(
        &self,
        turn: TurnId,
        sql: &'static str,
        message: &str,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + use<> {
        let message = message.to_owned();
        let work = move |conn: &Connection| {
            conn.moved(|| Invalidation::Shown(turn.0));
            Ok(conn.prepare_cached(sql)?.run_counting(params![turn.0, message])?)
        };
        let changed = self.shared.writer.write(Prefetch::Narrow, work);
        async move { not_over(turn, &changed.await?) }
    }

    /// Returns whether the answer replaces another message than this one, or none. `None` while that is not
    /// decided.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn goes_without(&self, turn: TurnId, placeholder: &str) -> Result<Option<bool>, StoreError> {
        let placeholder = placeholder.to_owned();
        self.read(move |conn| {
            let mut placed = conn.prepare_cached(PLACED)?;
            let placed = placed.query_row([turn.0], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            let placed: Option<(Option<String>, bool)> = placed;
            Ok(match placed {
                Some((Some(known), _)) => Some(known != placeholder),
                Some((None, false)) => None,
                Some((None, true)) | None => Some(true),
            })
        })
        .await
    }

    /// Stores with the question what was read of its attachments, so that the turn reads the same if it runs again.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] when the turn is over; [`StoreError::Changed`] when people have changed the
    /// conversation since it had this revision: the question may have other attachments by now, or be deleted.
    pub async fn keep_attached(
        &self,
        open: &OpenTurn,
        revision: i64,
        attached: &Attachments,
        images: Vec<StoredImage>,
    ) -> Result<(), StoreError> {
        let (turn, session) = (open.turn, open.session);
        let attached = attached.clone();
        self.write(move |conn| {
            changes::refuse_stale(conn, session, revision)?;
            let mut statement = conn.prepare_cached(MESSAGE)?;
            let mut rows = statement.query([turn.0])?;
            let Some(row) = rows.next()? else {
                return Err(StoreError::WrongState { turn, why: "is finished" }.into());
            };
            let question: Inbound = codec::from_json(row.get_ref(0)?, &format!("question {turn}"))?;
            let question = codec::to_json(&Inbound { attached: attached.clone(), ..question });
            conn.prepare_cached(KEEP_ATTACHED)?.run(params![turn.0, question])?;
            images::keep(conn, turn, &images)
        })
        .await
    }

    /// Changes what the people of a conversation see of tool calls.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn set_verbosity(&self, session: SessionId, verbosity: Verbosity) -> Result<(), StoreError> {
        self.write(move |conn| {
            conn.prepare_cached(SET_VERBOSITY)?.run(params![session.0, verbosity.name()])?;
            Ok(())
        })
        .await
    }

    /// Returns who asked the questions that a turn has answered along with its own, and the ids of their messages.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn asked_along(&self, turn: TurnId) -> Result<Vec<(String, String)>, StoreError> {
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(ASKED_ALONG)?;
            let asked = statement.query_map([turn.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(asked.collect::<Result<_, _>>()?)
        })
        .await
    }
}

/// Fails where a statement has changed no row because the turn is finished.
fn not_over(turn: TurnId, changed: &Changed) -> Result<(), StoreError> {
    match changed.rows() {
        0 => Err(StoreError::WrongState { turn, why: "is finished" }),
        _ => Ok(()),
    }
}
