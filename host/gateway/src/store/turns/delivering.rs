//! Delivers the answer of a turn: what is still to be sent, what was, and the end.

use std::collections::HashSet;

use crate::{
    ids::{SessionId, TurnId},
    ledger::TaggedEvent,
    store::{
        Part, Purpose, Sent, Store, StoreError, codec,
        error::Fault,
        escalations, events, intake, lease,
        outgoing::{How, UNSENT_PARTS},
        proposals,
        sql::{Connection, ValueRef, params},
        undelivered::Outstanding,
        writer::Prefetch,
    },
};

pub(in crate::store) const FIRST_SENT: &str = "SELECT sent_id FROM outbox WHERE turn_id = ?1 AND part = 0";
pub(in crate::store) const PART_SENT: &str =
    "UPDATE outbox SET sent_id = ?3, sent_at = ?4, body = NULL WHERE turn_id = ?1 AND part = ?2 AND sent_at IS NULL";
pub(in crate::store) const HOW: &str = "SELECT how FROM outbox WHERE turn_id = ?1 AND part = ?2 AND sent_at IS NULL";
pub(in crate::store) const SET_HOW: &str =
    "UPDATE outbox SET how = ?3 WHERE turn_id = ?1 AND part = ?2 AND sent_at IS NULL";
/// What is still to be sent of a turn: a row for each part that was not sent, and at least one row.
pub(in crate::store) const OUTSTANDING: &str = "SELECT t.session_id, t.delivered_at IS NOT NULL, o.part
     FROM turn t LEFT JOIN outbox o ON o.turn_id = t.id AND o.sent_at IS NULL WHERE t.id = ?1";
/// Whether a part of an unfinished answer is still to be sent to a channel, or goes there in person. Scans the waiting messages, by their
/// index.
pub(in crate::store) const DELIVERING_TO: &str = "SELECT 1 FROM inbox i JOIN outbox o ON o.turn_id = i.id
     WHERE i.message IS NOT NULL AND i.parked_at IS NULL AND o.sent_at IS NULL AND (i.channel = ?1
        OR EXISTS (SELECT 1 FROM in_person p WHERE p.turn_id = o.turn_id AND p.part = o.part AND p.channel = ?1))";
pub(in crate::store) const EMPTY_PARTS: &str =
    "UPDATE outbox SET body = NULL WHERE turn_id = ?1 AND sent_at IS NOT NULL AND body IS NOT NULL";
pub(in crate::store) const DELIVERED: &str =
    "UPDATE turn SET delivered_at = ?2, report = NULL WHERE id = ?1 AND delivered_at IS NULL";
/// Keeps what was attached, but not what others had said before in its thread: that was for this turn alone. Most
/// messages have no attachments, and for those no JSON is parsed.
pub(in crate::store) const EMPTY_QUESTION: &str = "UPDATE inbox SET message = NULL,
            attached = CASE WHEN message LIKE '%\"attached\":%' AND json_valid(message)
                THEN json_remove(json_extract(message, '$.attached'), '$.thread') END
     WHERE id = ?1";

impl Store {
    /// Stores that a part was sent, with its ledger events. Worth its own commit for every part but the last, which
    /// [`finish`](Store::finish) takes.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] when no such part was to be sent.
    pub async fn part_sent(
        &self,
        turn: TurnId,
        sent: Sent,
        events: Vec<TaggedEvent>,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let lines = self.pen(now_ms).lines(&events);
        let (known, number) = (self.shared.undelivered.take(turn), sent.part);
        let work = move |conn: &Connection| {
            part_sent(conn, turn, &sent, now_ms)?;
            events::add(conn, Some(turn), &lines)
        };
        self.write_prefetched_with_events(Prefetch::Narrow, work).await?;
        if let Some(mut known) = known {
            known.unsent.remove(&number);
            self.shared.undelivered.keep(turn, known);
        }
        Ok(())
    }

    /// Notes that this home has saved the atom on which a part asks for a verdict. If that part is tried again, the file is
    /// not written again: somebody may have deleted it.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn atom_saved(&self, turn: TurnId, part: u32) -> Result<(), StoreError> {
        let home = self.atoms_home();
        self.write(move |conn| {
            let mut statement = conn.prepare_cached(HOW)?;
            let mut rows = statement.query(params![turn.0, part])?;
            let Some(row) = rows.next()? else { return Ok(()) };
            let mut how: How = codec::from_json(row.get_ref(0)?, &format!("a part of turn {turn}"))?;
            if let Purpose::Notice { saved_in, .. } = &mut how.purpose {
                *saved_in = Some(home.clone());
                conn.prepare_cached(SET_HOW)?.run(params![turn.0, part, codec::to_json(&how)])?;
            }
            Ok(())
        })
        .await
    }

    /// The name of this home among those whose hosts share the store.
    pub fn atoms_home(&self) -> String {
        self.shared.link.as_ref().map(|link| link.home().clone()).unwrap_or_default()
    }

    /// Whether a part of an answer is still to be sent to a channel, or was sent without that being stored yet.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn is_delivering_to(&self, channel: &str) -> Result<bool, StoreError> {
        let channel = channel.to_owned();
        self.read(move |conn| Ok(conn.prepare_cached(DELIVERING_TO)?.exists([channel])?)).await
    }

    /// Finishes a turn: these last parts were sent, the question is closed, the lease is released. A turn that
    /// never got an answer (its author is blocked) may be finished like this, too. Ledger events of its end are
    /// stored with it.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] when the turn is finished, or parts of its answer were not sent;
    /// [`StoreError::Changed`] when the database has lost that there was an answer.
    pub async fn finish(
        &self,
        turn: TurnId,
        sent: Vec<Sent>,
        events: Vec<TaggedEvent>,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let lines = self.pen(now_ms).lines(&events);
        let owner = self.owner();
        let known = self.shared.undelivered.take(turn);
        let work = move |conn: &Connection| {
            // What a database has lost meanwhile, as in a failover, is begun anew, as far as it is known at all.
            let is_lost = known.as_ref().is_some_and(|known| known.returns != conn.returns());
            let wrong = |why| match is_lost {
                true => Fault::from(StoreError::Changed),
                false => StoreError::WrongState { turn, why }.into(),
            };
            let outstanding = match &known {
                Some(known) if !is_lost => known.clone(),
                _ => {
                    // An earlier version may have sent some of the parts and kept their text.
                    conn.prepare_cached(EMPTY_PARTS)?.run([turn.0])?;
                    outstanding(conn, turn)?.ok_or_else(|| wrong("is finished"))?
                }
            };
            let Outstanding { session, is_over, mut unsent, .. } = outstanding;
            for Sent { part, id } in &sent {
                if !unsent.remove(part) {
                    return Err(wrong("has no such part to send"));
                }
                conn.prepare_cached(PART_SENT)?.run(params![turn.0, part, id, now_ms])?;
            }
            if !unsent.is_empty() {
                return Err(wrong("has unsent parts"));
            }
            if is_over {
                return Err(wrong("is finished"));
            }
            conn.prepare_cached(DELIVERED)?.run(params![turn.0, now_ms])?;
            if sent.is_empty() {
                conn.prepare_cached(escalations::RELEASE_CLAIM)?.run([turn.0])?;
                conn.prepare_cached(escalations::GIVE_UP)?.run(params![turn.0, now_ms])?;
            }
            proposals::carried_out(conn, turn)?;
            let aside = if sent.is_empty() { intake::aside(conn, turn)? } else { None };
            conn.prepare_cached(EMPTY_QUESTION)?.run([turn.0])?;
            if let Some(aside) = aside {
                intake::forget_aside(conn, turn, &aside)?;
            }
            events::add(conn, Some(turn), &lines)?;
            lease::free(conn, session, &owner)
        };
        self.write_prefetched_with_events(Prefetch::Narrow, work).await
    }
}

fn outstanding(conn: &Connection, turn: TurnId) -> Result<Option<Outstanding>, Fault> {
    let mut statement = conn.prepare_cached(OUTSTANDING)?;
    let mut rows = statement.query([turn.0])?;
    let mut found: Option<Outstanding> = None;
    while let Some(row) = rows.next()? {
        let (session, is_over) = (SessionId(row.get(0)?), row.get(1)?);
        let found = found.get_or_insert_with(|| {
            let (unsent, returns) = (HashSet::new(), conn.returns());
            Outstanding { session, is_over, unsent, returns }
        });
        found.unsent.extend(row.get::<_, Option<u32>>(2)?);
    }
    Ok(found)
}

pub(super) fn unsent_parts(conn: &Connection, turn: TurnId) -> Result<Vec<Part>, Fault> {
    let mut statement = conn.prepare_cached(UNSENT_PARTS)?;
    let mut rows = statement.query([turn.0])?;
    let mut parts = Vec::new();
    while let Some(row) = rows.next()? {
        let how = match row.get_ref(2)? {
            ValueRef::Null => How::default(),
            how => codec::from_json(how, &format!("a part of turn {turn}"))?,
        };
        parts.push(Part { number: row.get(0)?, outgoing: how.with_text(row.get(1)?) });
    }
    Ok(parts)
}

fn part_sent(conn: &Connection, turn: TurnId, Sent { part, id }: &Sent, now_ms: i64) -> Result<(), Fault> {
    match conn.prepare_cached(PART_SENT)?.execute(params![turn.0, part, id, now_ms])? {
        0 => Err(StoreError::WrongState { turn, why: "has no such part to send" }.into()),
        _ => Ok(()),
    }
}
