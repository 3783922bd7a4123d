//! What an answer changes of an escalation.

use pmk_core::FrontName;

use super::{
    Outgoing, Proposal, Purpose, StoreError, codec,
    error::Fault,
    escalations::{LAST_ASKED, SET_MARKER, close, first, put, waiting},
    events::EventWriter,
    intake::front_name,
    proposals,
    sql::{Connection, Params, params},
    uses,
};
use crate::{
    escalation::{EscalationRemark, Marker},
    ids::{SessionId, TurnId},
};

/// How long a closed escalation is remembered, so that a late answer is recognised.
const CLOSED_FOR_MS: i64 = 24 * 60 * 60 * 1_000;

pub(super) const IS_CLAIMING: &str = "SELECT 1 FROM escalation WHERE claimed_by = ?1";
pub(super) const ABSORBED: &str = "UPDATE escalation SET closed_at = ?2, claimed_by = NULL WHERE claimed_by = ?1";
pub(super) const FORGET_APART: &str = "DELETE FROM asked_apart WHERE front = ?1 AND channel = ?2 AND thread_ts = ?3";
pub(super) const FORGET_APART_OF: &str =
    "DELETE FROM asked_apart WHERE turn_id IN (SELECT id FROM inbox WHERE session_id = ?1)";
/// The time 0 says that it [is forgotten](forget).
pub(super) const FORGET: &str = "UPDATE escalation SET closed_at = 0 WHERE closed_at > 0 AND closed_at <= ?1
     RETURNING front, channel, thread_ts";
/// A question that waits there stays: two conversations, as the one outside of a thread and the one in it, may each ask
/// one at the same time.
pub(super) const AWAIT: &str = "INSERT INTO escalation (front, channel, thread_ts, marker) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (front, channel, thread_ts) DO UPDATE SET marker = excluded.marker, claimed_by = NULL, closed_at = NULL
     WHERE escalation.closed_at IS NOT NULL";
pub(super) const ASK_APART: &str = "INSERT INTO asked_apart (turn_id, part, contact, front, channel, thread_ts)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// What happens to an escalation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EscalationUpdate {
    /// It is sent: from now on a thread waits for the answer.
    Asked(FrontName, Marker),
    /// It is first shown to its asker for confirmation.
    Proposed(Proposal),
    /// It was confirmed, by the message with this event id, but cannot be sent now: it waits for confirmation
    /// again.
    Reopened(String),
    /// Somebody has commented on it, and it still waits.
    Said(FrontName, Marker, EscalationRemark),
    /// A contact is asked whether they have answered it.
    Unsure(Proposal),
    /// Its answer is handed on to the conversation of the asker, where it is accepted as a message.
    HandedOn,
    /// It is no longer waited for.
    Withdrawn(FrontName, Marker),
}

/// Carries out what an answer changes. Its parts may ask contacts. [`StoreError::Changed`] if the escalation is no longer
/// what the answer was made from: another one waits in the thread by now, or it waits no more.
pub(super) fn apply(
    conn: &Connection,
    pen: EventWriter,
    (turn, session): (TurnId, SessionId),
    update: Option<&EscalationUpdate>,
    parts: &[Outgoing],
    now_ms: i64,
) -> Result<(), Fault> {
    if update != Some(&EscalationUpdate::HandedOn) {
        absorbed(conn, turn, now_ms)?;
    }
    match update {
        Some(EscalationUpdate::Asked(front, marker)) => {
            uses::doubted(conn, session, &marker.name(), now_ms)?;
            await_answer(conn, turn, (*front, marker), parts, now_ms)
        }
        Some(EscalationUpdate::Proposed(proposal) | EscalationUpdate::Unsure(proposal)) => {
            proposals::propose(conn, pen, (turn, proposal), now_ms)
        }
        Some(EscalationUpdate::Reopened(confirmed_by)) => proposals::reopen(conn, confirmed_by, now_ms),
        Some(EscalationUpdate::Said(front, marker, said)) => remember(conn, (*front, marker), said),
        Some(EscalationUpdate::Withdrawn(front, marker)) => close(conn, (*front, marker), now_ms),
        Some(EscalationUpdate::HandedOn) | None => Ok(()),
    }
}

/// Closes the escalation whose answer this turn has claimed.
fn absorbed(conn: &Connection, turn: TurnId, now_ms: i64) -> Result<(), Fault> {
    // Almost no turn has claimed one, and on SQLite checking is cheaper: see [`writer`](crate::store::writer).
    if matches!(conn, Connection::Postgres(_)) || conn.prepare_cached(IS_CLAIMING)?.exists([turn.0])? {
        conn.prepare_cached(ABSORBED)?.run(params![turn.0, now_ms])?;
    }
    Ok(())
}

/// Stores that a thread waits for an answer. Contacts who are asked in direct messages are identified by the parts
/// that ask them.
fn await_answer(
    conn: &Connection,
    turn: TurnId,
    (front, marker): (FrontName, &Marker),
    parts: &[Outgoing],
    now_ms: i64,
) -> Result<(), Fault> {
    let expired = now_ms.saturating_sub(CLOSED_FOR_MS);
    forget(conn, FORGET, [expired])?;
    let place = params![front_name(front), marker.channel_id, marker.thread_ts];
    let before = first(conn.prepare_cached(LAST_ASKED)?.query(place)?)?;
    if put(conn, AWAIT, front, &marker.clone().asked(turn, before))? == 0 {
        return Err(StoreError::Changed.into());
    }
    let mut ask = conn.prepare_cached(ASK_APART)?;
    for (part, outgoing) in (0u32..).zip(parts) {
        if let (Purpose::Escalation, Some(contact)) = (&outgoing.purpose, &outgoing.to) {
            ask.run(params![turn.0, part, contact, front_name(front), marker.channel_id, marker.thread_ts])?;
        }
    }
    Ok(())
}

/// Forgets the closed escalations that this statement marks. Their threads are kept, so that importing what pmk has asked
/// there does not make it wait again.
pub(super) fn forget(conn: &Connection, mark: &str, of: impl Params) -> Result<(), Fault> {
    let mut statement = conn.prepare_cached(mark)?;
    let marked = statement.query_map(of, |row| Ok([row.get::<_, String>(0)?, row.get(1)?, row.get(2)?]))?;
    for [front, channel, thread_ts] in marked.collect::<Result<Vec<_>, _>>()? {
        conn.prepare_cached(FORGET_APART)?.run(params![front, channel, thread_ts])?;
        let forgotten = codec::to_json(&Marker::forgotten(channel.clone(), thread_ts.clone()));
        conn.prepare_cached(SET_MARKER)?.run(params![front, channel, thread_ts, forgotten])?;
    }
    Ok(())
}

/// Stores a remark about an escalation, which still waits; [`StoreError::Changed`] if it does not.
fn remember(conn: &Connection, (front, about): (FrontName, &Marker), said: &EscalationRemark) -> Result<(), Fault> {
    // The stored state, because somebody else may have made a remark in the meantime.
    let Some(mut marker) = waiting(conn, front, about, None)? else { return Err(StoreError::Changed.into()) };
    marker.exchange.push(said.clone());
    put(conn, SET_MARKER, front, &marker).map(drop)
}
