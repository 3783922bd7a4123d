//! Begins a turn, or continues it after a crash.

use std::sync::Arc;

use pmk_core::Place;

use super::delivering;
use crate::{
    case::CaseId,
    chat::Inbound,
    ids::{InboxId, SessionId, TurnId},
    store::{
        Answered, BeginOutcome, Begun, CalledOff, Hold, Live, OpenTurn, Store, StoreError, Verbosity, again, archive,
        cases, codec,
        error::Fault,
        escalations::{self, Concern},
        experiments, lease, proposals,
        sql::{Connection, Invalidation, OptionalExtension, PrefetchedRows, ValueRef, params},
        window,
        windows::{self, Entries, Windows},
        writer::Prefetch,
    },
};

macro_rules! find_question {
    ($elsewhere:literal) => {
        concat!(
            "SELECT i.message, i.received_at, i.session_id, s.lease_until, s.dropped_turns, s.marker, s.verbose,
                    t.id IS NOT NULL AS begun, t.placeholder, t.answered_at, t.report,
                    t.policy, t.experiment, t.arm, t.reading, t.case_id, i.called_off, s.revision,
                    COALESCE(t.may_have_placed, 0) AS placed, COALESCE(t.may_have_streamed, 0) AS streamed, i.again_of,
                    i.channel IS NULL OR EXISTS (SELECT 1 FROM escalation e WHERE e.front IN ('slack', 'console')
                        AND e.channel = i.channel AND e.closed_at IS NULL) AS waits_here,
                    i.\"user\" IS NULL OR EXISTS (SELECT 1 FROM asked_apart p WHERE p.contact = i.\"user\") AS asked_apart,
                    s.sizes,
                    (SELECT coalesce(max(a.number) + 1, 0) FROM archive a WHERE a.session_id = i.session_id) AS archived, ",
            $elsewhere,
            " AS elsewhere
             FROM inbox i JOIN session s ON s.id = i.session_id LEFT JOIN turn t ON t.id = i.id
             WHERE i.id = ?1 AND i.parked_at IS NULL"
        )
    };
}
/// The columns of [`find_question`] by index: looking each up by name takes as long as running a statement.
#[derive(Clone, Copy)]
enum Column {
    Message,
    ReceivedAt,
    SessionId,
    LeaseUntil,
    DroppedTurns,
    Marker,
    Verbose,
    Begun,
    Placeholder,
    AnsweredAt,
    Report,
    Policy,
    Experiment,
    Arm,
    Reading,
    CaseId,
    CalledOff,
    Revision,
    Placed,
    Streamed,
    AgainOf,
    WaitsHere,
    AskedApart,
    Sizes,
    Archived,
    Elsewhere,
}

/// No other host can be working on it.
pub(in crate::store) const FIND_QUESTION: &str = find_question!("false");
/// Another host works on the conversation; or nobody does, and an earlier question in it comes first, whichever
/// host has accepted that.
const FIND_QUESTION_OF_HOST: &str = find_question!(
    "CASE WHEN s.lease_owner = ?2 THEN false
          WHEN s.lease_until IS NULL AND EXISTS (SELECT 1 FROM host h WHERE h.owner = s.lease_owner) THEN true
          ELSE EXISTS (SELECT 1 FROM inbox o WHERE o.session_id = i.session_id AND o.message IS NOT NULL
                           AND o.parked_at IS NULL AND (o.ts < i.ts OR (o.ts = i.ts AND o.id < i.id))
                           AND (s.key LIKE 'slack:%' OR o.home = ?3)) END"
);
pub(in crate::store) const START: &str =
    "INSERT INTO turn (id, session_id, started_at, case_id, may_have_placed) VALUES (?1, ?2, ?3, ?4, ?5)";

impl Store {
    /// Begins a question's turn, or continues it after a crash, and leases the conversation to this `run` until
    /// [`finish`](Store::finish).
    ///
    /// Calling it again for a turn under way is harmless. The caller ensures that only one turn of a conversation
    /// is under way at a time.
    ///
    /// # Errors
    /// The store cannot be used, or contains something that cannot be read.
    pub async fn begin(&self, inbox: InboxId, now_ms: i64) -> Result<BeginOutcome, StoreError> {
        self.begin_as(inbox, Hold::Alone, now_ms).await
    }

    /// As [`begin`](Store::begin), where another turn is under way there, or a placeholder may be shown at once.
    ///
    /// # Errors
    /// As [`begin`](Store::begin).
    pub async fn begin_as(&self, inbox: InboxId, hold: Hold, now_ms: i64) -> Result<BeginOutcome, StoreError> {
        let (owner, windows) = (self.owner(), self.windows());
        let work = move |conn: &Connection| {
            conn.has_moved(|| Invalidation::Shown(inbox.0));
            let (begun, glimpse) = begin(conn, inbox, hold, &owner, now_ms)?;
            let known = match &begun {
                BeginOutcome::Ask(open) => find_window(conn, &windows, open)?,
                _ => (None, None),
            };
            Ok((begun, glimpse.found()?, known))
        };
        let asks = self.owner();
        let prefetch = Prefetch::asks(move |conn| {
            window::short(conn, inbox)?;
            question(conn, inbox, &asks).map(drop)
        });
        let (begun, live, (place, known)) = self.write_prefetched(prefetch, work).await?;
        if let BeginOutcome::Deliver(answered) = &begun {
            // Another host may have sent some parts since the answer was recorded here.
            self.shared.undelivered.take(answered.turn);
        }
        let BeginOutcome::Ask(mut open) = begun else { return Ok(begun) };
        if let Some(known) = known {
            open.live.entries = known.to_vec();
            return Ok(BeginOutcome::Ask(open));
        }
        // Read outside of the transaction, so that no commit waits for a long window. The lease keeps the window
        // unchanged.
        let (session, readers) = (open.session, &self.shared.readers);
        let short = match live {
            // Where a question is asked again, its earlier turn has left the window by now.
            Some(live) if !again::is_again(&open.inbound) => readers.look(|| window::found(live))?,
            _ => readers.read_here(|conn| window::read_short(conn, session))?,
        };
        open.live.entries = match short {
            Some(entries) => {
                if let Some(place) = place {
                    self.shared.windows.put(place, Arc::new(entries.clone()));
                }
                entries
            }
            None => self.read(move |conn| window::read(conn, session)).await?,
        };
        Ok(BeginOutcome::Ask(open))
    }
}

/// Returns the live window of a turn that begins, where it is cached.
fn find_window(
    conn: &Connection,
    windows: &Windows,
    OpenTurn { inbound, session, live, .. }: &OpenTurn,
) -> Result<(Option<windows::Place>, Option<Entries>), Fault> {
    if again::is_again(inbound) {
        // The earlier turn has left it.
        windows.forget(*session);
    }
    windows.find(conn, *session, live.revision)
}

/// Looks up a question that may begin.
fn question<'c>(conn: &'c Connection, inbox: InboxId, owner: &str) -> Result<PrefetchedRows<'c>, Fault> {
    Ok(match conn {
        Connection::Postgres(host) if host.link().host() != 0 => {
            conn.prefetch(FIND_QUESTION_OF_HOST, params![inbox.0, owner, host.link().home()])
        }
        _ => conn.prefetch(FIND_QUESTION, params![inbox.0]),
    }?)
}

/// Does all of `begin` except for the entries of the live window, which were requested with it.
fn begin<'c>(
    conn: &'c Connection,
    inbox: InboxId,
    hold: Hold,
    owner: &str,
    now_ms: i64,
) -> Result<(BeginOutcome, PrefetchedRows<'c>), Fault> {
    let live = window::short(conn, inbox)?;
    let mut asked = question(conn, inbox, owner)?;
    let mut rows = asked.query()?;
    let Some(row) = rows.next()? else { return Ok((BeginOutcome::Done, live)) };
    let inbound: Inbound = match row.get_ref(Column::Message as usize)? {
        ValueRef::Null => return Ok((BeginOutcome::Done, live)),
        message => codec::from_json(message, &format!("question {inbox}"))?,
    };
    if lease::keeps_out_a_run(conn, row.get(Column::LeaseUntil as usize)?, now_ms)? {
        return Ok((BeginOutcome::Busy, live));
    }
    if row.get(Column::Elsewhere as usize)? {
        return Ok((BeginOutcome::Elsewhere, live));
    }
    let (turn, session) = (TurnId(inbox.0), SessionId(row.get(Column::SessionId as usize)?));
    if conn.has_moved(|| Invalidation::Conversation(session.0)) {
        // In the same transaction an older question was stored, or the previous turn was answered or has finished:
        // another host may be next, and the window has changed.
        return begin(conn, inbox, hold, owner, now_ms);
    }
    let received_at_ms = row.get(Column::ReceivedAt as usize)?;
    let placeholder = row.get(Column::Placeholder as usize)?;
    let begun_with =
        Begun { placeholder: row.get(Column::Placed as usize)?, stream: row.get(Column::Streamed as usize)? };
    let mut may_place = begun_with.placeholder;
    let answered_at: Option<i64> = row.get(Column::AnsweredAt as usize)?;
    let begun = if let Some(answered_at_ms) = answered_at {
        let report = codec::from_json(row.get_ref(Column::Report as usize)?, &format!("the report of turn {turn}"))?;
        let tags = experiments::tags(
            row.get_ref(Column::Policy as usize)?,
            row.get_ref(Column::Experiment as usize)?,
            row.get_ref(Column::Arm as usize)?,
        )?;
        let parts = delivering::unsent_parts(conn, turn)?;
        let reply_ts =
            conn.prepare_cached(delivering::FIRST_SENT)?.query_row([turn.0], |row| row.get(0)).optional()?.flatten();
        BeginOutcome::Deliver(Answered {
            turn,
            session,
            inbound,
            received_at_ms,
            answered_at_ms,
            tags,
            placeholder,
            reply_ts,
            parts,
            resumed: true,
            is_streamed: begun_with.stream,
            report,
        })
    } else {
        let is_begun: bool = row.get(Column::Begun as usize)?;
        let mut case = row.get::<_, Option<i64>>(Column::CaseId as usize)?.map(CaseId);
        if is_begun {
            archive::forget(conn, turn)?;
        } else {
            if let Place::Channel(channel) = &inbound.key.place {
                case = cases::open_in(conn, inbound.key.front, channel)?;
            }
            may_place = hold == Hold::Showing;
            conn.prepare_cached(START)?.run(params![turn.0, session.0, now_ms, case.map(|case| case.0), may_place])?;
        }
        let chance = escalations::Chance {
            here: row.get(Column::WaitsHere as usize)?,
            apart: row.get(Column::AskedApart as usize)?,
        };
        let (absorbs, awaits) = match escalations::concern(conn, turn, &inbound, chance)? {
            Some(Concern::Contact(marker)) => (Some(Box::new(marker)), None),
            Some(Concern::Asker(marker)) => (None, Some(Box::new(marker))),
            None => (None, None),
        };
        let reading = match row.get_ref(Column::Reading as usize)? {
            ValueRef::Null => None,
            reading => Some(Box::new(codec::from_json(reading, &format!("the reading of turn {turn}"))?)),
        };
        let confirms = proposals::confirmed(conn, &inbound)?.map(Box::new);
        let (dropped_turns, marker_template) =
            (row.get(Column::DroppedTurns as usize)?, row.get(Column::Marker as usize)?);
        let revision = row.get(Column::Revision as usize)?;
        let live = Live { entries: Vec::new(), dropped_turns, marker_template, revision };
        let called_off: Option<String> = row.get(Column::CalledOff as usize)?;
        let called_off = called_off.as_deref().and_then(CalledOff::from_name);
        if called_off.is_none()
            && hold != Hold::Along
            && let Some(again_of) = row.get(Column::AgainOf as usize)?
        {
            again::leave_live_of(conn, session, again_of)?;
        }
        let sizes: Option<String> = row.get(Column::Sizes as usize)?;
        let verbosity: Option<String> = row.get(Column::Verbose as usize)?;
        let verbosity = verbosity.and_then(|name| Verbosity::from_name(&name)).unwrap_or_default();
        BeginOutcome::Ask(OpenTurn {
            turn,
            session,
            inbound,
            received_at_ms,
            placeholder,
            begun_with,
            may_place,
            verbosity,
            resumed: is_begun,
            absorbs,
            awaits,
            reading,
            confirms,
            case,
            called_off,
            live,
            // Sizes that cannot be read are learnt anew.
            sizes: sizes.and_then(|sizes| serde_json::from_str(&sizes).ok()).unwrap_or_default(),
            // Messages of an earlier attempt were just deleted.
            archived: if is_begun { archive::length(conn, session)? } else { row.get(Column::Archived as usize)? },
        })
    };
    lease::take(conn, session, owner, None)?;
    Ok((begun, live))
}
