//! A turn's way through the store: begun, answered, delivered.

use std::{collections::HashSet, sync::Arc};

use pmk_core::{Entry, Place};
use pmk_models::Usage;
use serde::{Deserialize, Serialize};

use super::{
    Answered, Begin, Beginning, Begun, CalledOff, Concern, Escalating, Live, LiveEntry, Offers, OpenTurn, Outgoing,
    Outturn, Part, Purpose, Recorded, Sent, Store, StoreError, StoredImage, Verbosity, archive,
    calibrations::{self, Learnt},
    cases, changes,
    codec::{self, NewMessage, Shown},
    error::Fault,
    escalations, events, experiments, hosts, images, lease, proposals, receipt,
    sql::{Ahead, Changed, Connection, Moved, OptionalExtension, ValueRef, params},
    undelivered::Outstanding,
    uses, window,
    windows::{self, Entries, Windows},
    writer::Foresight,
};
use crate::ids::{InboxId, SessionId, TurnId};
use crate::{
    case::CaseId,
    ledger::Noted,
    talk::{Attached, Inbound, Speech},
};

macro_rules! find_question {
    ($elsewhere:literal) => {
        concat!(
            "SELECT i.message, i.received_at, i.session_id, s.lease_until, s.dropped_turns, s.marker, s.verbose,
                    t.id IS NOT NULL AS begun, t.placeholder, t.answered_at IS NOT NULL AS answered, t.report,
                    t.policy, t.experiment, t.arm, t.reading, t.case_id, i.called_off, s.revision,
                    COALESCE(t.may_have_placed, 0) AS placed, COALESCE(t.may_have_streamed, 0) AS streamed, i.again_of,
                    i.channel IS NULL OR EXISTS (SELECT 1 FROM escalation e WHERE e.front IN ('slack', 'console')
                        AND e.channel = i.channel AND e.closed_at IS NULL) AS waits_here,
                    i.\"user\" IS NULL OR EXISTS (SELECT 1 FROM asked_apart p WHERE p.contact = i.\"user\") AS asked_apart,
                    (SELECT coalesce(max(a.number) + 1, 0) FROM archive a WHERE a.session_id = i.session_id) AS archived, ",
            $elsewhere,
            " AS elsewhere
             FROM inbox i JOIN session s ON s.id = i.session_id LEFT JOIN turn t ON t.id = i.id
             WHERE i.id = ?1 AND i.parked_at IS NULL"
        )
    };
}
/// Nobody else works on it.
pub(super) const FIND_QUESTION: &str = find_question!("false");
/// Another host works on the conversation; or it is free, and another question in it comes first, whoever has taken that in.
const FIND_QUESTION_OF_HOST: &str = find_question!(
    "CASE WHEN s.lease_owner = ?2 THEN false
          WHEN s.lease_until IS NULL AND EXISTS (SELECT 1 FROM host h WHERE h.owner = s.lease_owner) THEN true
          ELSE EXISTS (SELECT 1 FROM inbox o WHERE o.session_id = i.session_id AND o.message IS NOT NULL
                           AND o.parked_at IS NULL AND (o.ts < i.ts OR (o.ts = i.ts AND o.id < i.id))
                           AND (s.key LIKE 'slack:%' OR o.home = ?3)) END"
);
pub(super) const SET_VERBOSITY: &str = "UPDATE session SET \"verbose\" = ?2 WHERE id = ?1";
pub(super) const START: &str = "INSERT INTO turn (id, session_id, started_at, case_id) VALUES (?1, ?2, ?3, ?4)";
pub(super) const PLACE: &str = "UPDATE turn SET placeholder = ?2 WHERE id = ?1 AND delivered_at IS NULL";
pub(super) const MAY_PLACE: &str = "UPDATE turn SET may_have_placed = 1 WHERE id = ?1 AND delivered_at IS NULL";
pub(super) const MAY_STREAM: &str = "UPDATE turn SET may_have_streamed = 1 WHERE id = ?1 AND delivered_at IS NULL";
pub(super) const MESSAGE: &str = "SELECT message FROM inbox WHERE id = ?1 AND message IS NOT NULL";
pub(super) const KEEP_ATTACHED: &str = "UPDATE inbox SET message = ?2 WHERE id = ?1 AND message IS NOT NULL";
pub(super) const ANSWER: &str = "UPDATE turn SET answered_at = ?2, report = ?3, input_tokens = ?4, output_tokens = ?5,
            cache_read_tokens = ?6, cache_creation_tokens = ?7,
            policy = ?8, experiment = ?9, arm = ?10, failed = ?11, overflowed = ?12, reasked = ?13, asked_by = ?14,
            placeholder = coalesce(?15, placeholder)
     WHERE id = ?1 AND answered_at IS NULL AND delivered_at IS NULL";
/// Where the answer of a turn goes: whether it waits for one, the conversation, how often it was changed, and its next place in
/// the live window.
pub(super) const STANDING: &str = "SELECT t.answered_at IS NULL AND t.delivered_at IS NULL, t.session_id, s.revision,
            (SELECT coalesce(max(l.position) + 1, 0) FROM live l WHERE l.session_id = t.session_id), s.lease_owner
     FROM turn t JOIN session s ON s.id = t.session_id WHERE t.id = ?1";
pub(super) const ANSWERED_WITH: &str =
    "UPDATE turn SET answered_at = ?2, delivered_at = ?2, asked_by = ?3, answered_with = ?4
     WHERE id = ?1 AND answered_at IS NULL";
pub(super) const PIECE: &str = "UPDATE turn SET answered_with = ?2, piece_start = ?3, piece_bytes = ?4 WHERE id = ?1";
pub(super) const COUNT_TURN: &str = "UPDATE session SET turns = turns + 1 WHERE id = ?1";
pub(super) const FORGET_ATTEMPT: &str = "DELETE FROM message WHERE turn_id = ?1";
pub(super) const ADD_PART: &str = "INSERT INTO outbox (turn_id, part, body, how) VALUES (?1, ?2, ?3, ?4)";
pub(super) const UNSENT_PARTS: &str =
    "SELECT part, body, how FROM outbox WHERE turn_id = ?1 AND sent_at IS NULL ORDER BY part";
pub(super) const FIRST_SENT: &str = "SELECT sent_id FROM outbox WHERE turn_id = ?1 AND part = 0";
pub(super) const PART_SENT: &str =
    "UPDATE outbox SET sent_id = ?3, sent_at = ?4, body = NULL WHERE turn_id = ?1 AND part = ?2 AND sent_at IS NULL";
/// What is left to do of a turn: a row for each part that has not gone out, and at least one.
pub(super) const OUTSTANDING: &str = "SELECT t.session_id, t.delivered_at IS NOT NULL, o.part
     FROM turn t LEFT JOIN outbox o ON o.turn_id = t.id AND o.sent_at IS NULL WHERE t.id = ?1";
/// Whether something of an answer that waits is still to go to a channel. Goes through what waits, by its index.
pub(super) const DELIVERING_TO: &str = "SELECT 1 FROM inbox i JOIN outbox o ON o.turn_id = i.id
     WHERE i.message IS NOT NULL AND i.parked_at IS NULL AND i.channel = ?1 AND o.sent_at IS NULL";
pub(super) const EMPTY_PARTS: &str =
    "UPDATE outbox SET body = NULL WHERE turn_id = ?1 AND sent_at IS NOT NULL AND body IS NOT NULL";
pub(super) const DELIVERED: &str =
    "UPDATE turn SET delivered_at = ?2, report = NULL WHERE id = ?1 AND delivered_at IS NULL";
/// What came with it stays, but not what others had said before in its thread: that was for this turn alone.
pub(super) const EMPTY_QUESTION: &str = "UPDATE inbox SET message = NULL,
            attached = CASE WHEN json_valid(message) THEN json_remove(json_extract(message, '$.attached'), '$.thread') END
     WHERE id = ?1";

impl Store {
    /// Begins a question's turn, or goes on with it after a crash, and leases the conversation to this
    /// `run` until [`finish`](Store::finish).
    ///
    /// Calling it again for a turn under way is harmless. That only one turn of a conversation is under
    /// way at a time is up to the caller.
    ///
    /// # Errors
    /// The store cannot be used, or holds something that it cannot read.
    pub async fn begin(&self, inbox: InboxId, now_ms: i64) -> Result<Begin, StoreError> {
        self.begin_as(inbox, Hold::Alone, now_ms).await
    }

    /// The same for a question that is taken along by the turn under way: the live window stays as that knows it.
    ///
    /// # Errors
    /// As [`begin`](Store::begin).
    pub async fn begin_along(&self, inbox: InboxId, now_ms: i64) -> Result<Begin, StoreError> {
        self.begin_as(inbox, Hold::Along, now_ms).await
    }

    async fn begin_as(&self, inbox: InboxId, hold: Hold, now_ms: i64) -> Result<Begin, StoreError> {
        let (owner, windows) = (self.owner(), self.windows());
        let work = move |conn: &Connection| {
            conn.has_moved(|| Moved::Shown(inbox.0));
            let (begun, glimpse) = begin(conn, inbox, hold, &owner, now_ms)?;
            let known = match &begun {
                Begin::Ask(open) => find_window(conn, &windows, open)?,
                _ => (None, None),
            };
            Ok((begun, glimpse.found()?, known))
        };
        let asks = self.owner();
        let foresight = Foresight::asks(move |conn| {
            window::short(conn, inbox)?;
            question(conn, inbox, &asks).map(drop)
        });
        let (begun, live, (place, known)) = self.write_foreseen(foresight, work).await?;
        if let Begin::Deliver(answered) = &begun {
            // Another host may have sent some of it since it was recorded here.
            self.shared.undelivered.take(answered.turn);
        }
        let Begin::Ask(mut open) = begun else { return Ok(begun) };
        if let Some(known) = known {
            open.live.entries = known.to_vec();
            return Ok(Begin::Ask(open));
        }
        // Read apart, so that nobody's commit waits for a long window. The lease keeps it as it is.
        let (session, readers) = (open.session, &self.shared.readers);
        let short = match live {
            // What was asked before has left it by now where it is asked again.
            Some(live) if !changes::is_again(&open.inbound) => readers.look(|| window::found(live))?,
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
        Ok(Begin::Ask(open))
    }

    /// Remembers, before it is so, that this may be shown of an answer: after a crash it is looked for.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] when the turn is over.
    pub async fn may_show(&self, turn: TurnId, what: Beginning) -> Result<(), StoreError> {
        let sql = match what {
            Beginning::Placeholder => MAY_PLACE,
            Beginning::Stream => MAY_STREAM,
        };
        let work = move |conn: &Connection| {
            conn.moved(|| Moved::Shown(turn.0));
            Ok(conn.prepare_cached(sql)?.run_counting([turn.0])?)
        };
        let changed = self.write_foreseen(Foresight::Narrow, work).await?;
        not_over(turn, &changed)
    }

    /// Remembers the message that the answer will take the place of: before whatever is stored after this call, whether
    /// or not anybody waits for what it returns.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] when the turn is over.
    pub fn placed(
        &self,
        turn: TurnId,
        placeholder: &str,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + use<> {
        let placeholder = placeholder.to_owned();
        let work = move |conn: &Connection| {
            conn.moved(|| Moved::Shown(turn.0));
            Ok(conn.prepare_cached(PLACE)?.run_counting(params![turn.0, placeholder])?)
        };
        let changed = self.shared.writer.write(Foresight::Narrow, work);
        async move { not_over(turn, &changed.await?) }
    }

    /// Remembers with the question what was read of what came with it: run again, the turn reads the same.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] when the turn is over.
    pub async fn keep_attached(
        &self,
        turn: TurnId,
        attached: &Attached,
        images: Vec<StoredImage>,
    ) -> Result<(), StoreError> {
        let attached = attached.clone();
        self.write(move |conn| {
            let mut statement = conn.prepare_cached(MESSAGE)?;
            let mut rows = statement.query([turn.0])?;
            let Some(row) = rows.next()? else {
                return Err(StoreError::WrongState { turn, why: "is over" }.into());
            };
            let question: Inbound = codec::from_json(row.get_ref(0)?, &format!("question {turn}"))?;
            let question = codec::to_json(&Inbound { attached: attached.clone(), ..question });
            conn.prepare_cached(KEEP_ATTACHED)?.run(params![turn.0, question])?;
            images::keep(conn, turn, &images)
        })
        .await
    }

    /// Changes what the people of a conversation are shown of tool calls.
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

    /// Stores an answer: messages, usage, session and outbox in one transaction. From now on the model
    /// is not asked again for this turn.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] when the turn has an answer; [`StoreError::Changed`] when people have changed the
    /// conversation since it was begun.
    pub async fn record(&self, turn: TurnId, recorded: Recorded, now_ms: i64) -> Result<(), StoreError> {
        let Recorded {
            messages,
            usage,
            also,
            pieces,
            atoms,
            parts,
            calibration,
            escalation,
            case,
            report,
            outturn,
            keep_live,
            events,
            mut receipts,
            revision,
            placeholder,
        } = recorded;
        let texts = self.shared.texts.fresh(&mut receipts);
        let lines = self.pen(now_ms).lines(&events);
        let messages: Vec<(Entry, NewMessage, Shown)> = messages
            .into_iter()
            .map(|entry| {
                let (message, shown) = (entry.source().into(), Shown::from(&entry));
                (entry, message, shown)
            })
            .collect();
        let encoded: Vec<(String, Option<String>)> = parts.iter().map(encode).collect();
        let unsent = (0u32..).zip(&parts).map(|(number, _)| number).collect();
        let (host, windows) = (self.owner(), self.windows());
        let report = codec::to_json(&report);
        let bounds = Arc::clone(&self.shared.bounds);
        let learnt = calibration.clone().map(|learnt| (bounds.of(&learnt), learnt));
        let is_new = learnt.as_ref().is_some_and(|(stored, learnt)| *stored != Some(learnt.bounds));
        let new_bounds = calibration.clone().filter(|_| is_new);
        let count = messages.iter().filter(|(entry, ..)| entry.id == 0).count();
        let asks = Standpoint { turn, new_bounds, messages: count };
        let foresight = asks.clone();
        let work = move |conn: &Connection| {
            let (mut standing, known_bounds) = asks.ask(conn)?;
            let standing = standing
                .query_row(|row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))
                .optional()?;
            let Some((true, session, stands_at, mut position, leased)): Option<Standing> = standing else {
                return Err(StoreError::WrongState { turn, why: "has an answer or is over" }.into());
            };
            let session = SessionId(session);
            // Another host's by now, which has begun it anew.
            let is_elsewhere = hosts::is_one(conn) && leased.as_ref() != Some(&host);
            if is_elsewhere || revision.is_some_and(|revision| revision != stands_at) {
                return Err(StoreError::Changed.into());
            }
            conn.moved(|| Moved::Conversation(session.0));
            answer(conn, turn, usage, (&report, placeholder.as_deref()), &outturn, now_ms)?;
            let known = windows.take(conn, session, stands_at)?;
            let mut stored = Vec::with_capacity(messages.len());
            let mut added = Vec::new();
            for (entry, message, shown) in &messages {
                let id = match entry.id {
                    0 => archive::record(conn, session, Some(turn), message, now_ms)?,
                    archived => archived,
                };
                stored.push((id, message));
                if keep_live {
                    window::show(conn, session, position, id, shown)?;
                    added.push(LiveEntry { position, entry: Entry { id, ..entry.clone() } });
                    position += 1;
                }
            }
            conn.prepare_cached(COUNT_TURN)?.run([session.0])?;
            for (other, user) in &also {
                changes::leave_live(conn, session, *other)?;
                conn.prepare_cached(ANSWERED_WITH)?.run(params![other.0, now_ms, user, turn.0])?;
                conn.prepare_cached(EMPTY_QUESTION)?.run([other.0])?;
                conn.prepare_cached(COUNT_TURN)?.run([session.0])?;
            }
            for (of, bytes) in &pieces {
                let values = params![of.0, turn.0, bytes.start as i64, bytes.len() as i64];
                conn.prepare_cached(PIECE)?.run(values)?;
            }
            let mut add_part = conn.prepare_cached(ADD_PART)?;
            for (number, (body, how)) in (0u32..).zip(&encoded) {
                add_part.run(params![turn.0, number, body, how])?;
            }
            if let Some(in_case) = &case {
                let answer = stored.last().map(|(id, _)| *id).filter(|_| keep_live);
                cases::keep(conn, in_case, &stored, answer, now_ms)?;
            }
            if let Some(learnt) = &calibration {
                calibrations::learn(conn, learnt, known_bounds, &bounds)?;
            }
            uses::shown(conn, (turn, session), &atoms, now_ms)?;
            let ids: Vec<i64> = stored.iter().map(|(id, _)| *id).collect();
            receipt::keep(conn, (session, turn), &receipts, &ids)?;
            events::add(conn, Some(turn), &lines)?;
            if escalation != Some(Escalating::HandedOn) {
                escalations::absorbed(conn, turn, now_ms)?;
            }
            match &escalation {
                Some(Escalating::Asked(front, marker)) => {
                    uses::doubted(conn, session, &marker.name(), now_ms)?;
                    escalations::await_answer(conn, turn, (*front, marker), &parts, now_ms)
                }
                Some(Escalating::Proposed(proposal) | Escalating::Unsure(proposal)) => {
                    proposals::propose(conn, turn, proposal, now_ms)
                }
                Some(Escalating::Reopened(confirmed_by)) => proposals::reopen(conn, confirmed_by, now_ms),
                Some(Escalating::Said(front, marker, said)) => escalations::remember(conn, (*front, marker), said),
                Some(Escalating::Withdrawn(front, marker)) => escalations::close(conn, (*front, marker), now_ms),
                Some(Escalating::HandedOn) | None => Ok(()),
            }?;
            // What was answered along may have left it.
            Ok((session, known.filter(|_| also.is_empty()), added))
        };
        let foresight = Foresight::asks(move |conn| foresight.ask(conn).map(drop));
        let (session, known, added) = self.write_foreseen_telling(foresight, work).await?;
        if let Some((place, known)) = known {
            let mut entries = Arc::unwrap_or_clone(known);
            entries.extend(added);
            self.shared.windows.put(place, Arc::new(entries));
        }
        self.shared.texts.are_stored(texts);
        if let Some((before, learnt)) = learnt {
            self.shared.bounds.were_stored(before, learnt);
        }
        self.shared.undelivered.keep(turn, Outstanding { session, is_over: false, unsent });
        Ok(())
    }

    /// Remembers that a part went out, with what there is to tell of it. Worth its commit for every part but the last
    /// one sent, which [`finish`](Store::finish) takes.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] when no such part was to be sent.
    pub async fn part_sent(&self, turn: TurnId, part: Sent, events: Vec<Noted>, now_ms: i64) -> Result<(), StoreError> {
        let lines = self.pen(now_ms).lines(&events);
        let (known, number) = (self.shared.undelivered.take(turn), part.0);
        let work = move |conn: &Connection| {
            part_sent(conn, turn, &part, now_ms)?;
            events::add(conn, Some(turn), &lines)
        };
        self.write_foreseen_telling(Foresight::Narrow, work).await?;
        if let Some(mut known) = known {
            known.unsent.remove(&number);
            self.shared.undelivered.keep(turn, known);
        }
        Ok(())
    }

    /// Whether something of an answer is still to go out in a channel, or has gone and that is not known yet.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn is_delivering_to(&self, channel: &str) -> Result<bool, StoreError> {
        let channel = channel.to_owned();
        self.read(move |conn| Ok(conn.prepare_cached(DELIVERING_TO)?.exists([channel])?)).await
    }

    /// Ends a turn: these last parts went out, the question is done with, the conversation is free. A
    /// turn that never got an answer (its author is blocked) may end like this as well. What there is to tell of its
    /// end is stored with it.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] when the turn is over, or parts of its answer have not gone out.
    pub async fn finish(
        &self,
        turn: TurnId,
        sent: Vec<Sent>,
        events: Vec<Noted>,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let lines = self.pen(now_ms).lines(&events);
        let owner = self.owner();
        let known = self.shared.undelivered.take(turn);
        let work = move |conn: &Connection| {
            let wrong = |why| Fault::from(StoreError::WrongState { turn, why });
            let outstanding = match &known {
                Some(known) => known.clone(),
                None => {
                    // An earlier version may have sent some of it, and kept what that said.
                    conn.prepare_cached(EMPTY_PARTS)?.run([turn.0])?;
                    outstanding(conn, turn)?.ok_or_else(|| wrong("is over"))?
                }
            };
            let Outstanding { session, is_over, mut unsent } = outstanding;
            for (part, sent_id) in &sent {
                if !unsent.remove(part) {
                    return Err(wrong("has no such part to send"));
                }
                conn.prepare_cached(PART_SENT)?.run(params![turn.0, part, sent_id, now_ms])?;
            }
            if !unsent.is_empty() {
                return Err(wrong("has parts that were not sent"));
            }
            if is_over {
                return Err(wrong("is over"));
            }
            conn.prepare_cached(DELIVERED)?.run(params![turn.0, now_ms])?;
            if sent.is_empty() {
                conn.prepare_cached(escalations::RELEASE_CLAIM)?.run([turn.0])?;
            }
            proposals::carried_out(conn, turn)?;
            conn.prepare_cached(EMPTY_QUESTION)?.run([turn.0])?;
            events::add(conn, Some(turn), &lines)?;
            lease::free(conn, session, &owner)
        };
        self.write_foreseen_telling(Foresight::Narrow, work).await
    }
}

/// Who else is at work in the conversation when a turn begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    Alone,
    /// The turn that takes it along.
    Along,
}

/// What an answer needs to be recorded.
#[derive(Clone)]
struct Standpoint {
    turn: TurnId,
    /// What it teaches of its model's bounds.
    new_bounds: Option<Learnt>,
    /// How many messages it adds.
    messages: usize,
}

impl Standpoint {
    fn ask<'c>(&self, conn: &'c Connection) -> Result<(Ahead<'c>, Option<Ahead<'c>>), Fault> {
        let standing = conn.ahead(STANDING, [self.turn.0])?;
        let bounds = self.new_bounds.as_ref().map(|learnt| calibrations::bounds(conn, learnt)).transpose()?;
        conn.ids_ahead("message", self.messages)?;
        Ok((standing, bounds))
    }
}

/// Whether a turn waits for its answer, its conversation, how often that was changed, its next place there, and who has leased it.
type Standing = (bool, i64, i64, i64, Option<String>);

/// The live window of a turn that begins, where it is known.
fn find_window(
    conn: &Connection,
    windows: &Windows,
    OpenTurn { inbound, session, live, .. }: &OpenTurn,
) -> Result<(Option<windows::Place>, Option<Entries>), Fault> {
    if changes::is_again(inbound) {
        // What was asked before has left it.
        windows.forget(*session);
    }
    live.revision.map_or(Ok((None, None)), |revision| windows.find(conn, *session, revision))
}

/// What there is to know of a question that may begin.
fn question<'c>(conn: &'c Connection, inbox: InboxId, owner: &str) -> Result<Ahead<'c>, Fault> {
    Ok(match conn {
        Connection::Postgres(host) if host.link().host() != 0 => {
            conn.ahead(FIND_QUESTION_OF_HOST, params![inbox.0, owner, host.link().home()])
        }
        _ => conn.ahead(FIND_QUESTION, params![inbox.0]),
    }?)
}

/// All of `begin` but the live window's entries, which were asked for with it.
fn begin<'c>(
    conn: &'c Connection,
    inbox: InboxId,
    hold: Hold,
    owner: &str,
    now_ms: i64,
) -> Result<(Begin, Ahead<'c>), Fault> {
    let live = window::short(conn, inbox)?;
    let mut asked = question(conn, inbox, owner)?;
    let mut rows = asked.query()?;
    let Some(row) = rows.next()? else { return Ok((Begin::Done, live)) };
    let inbound: Inbound = match row.get_ref("message")? {
        ValueRef::Null => return Ok((Begin::Done, live)),
        message => codec::from_json(message, &format!("question {inbox}"))?,
    };
    if lease::keeps_out_a_run(conn, row.get("lease_until")?, now_ms)? {
        return Ok((Begin::Busy, live));
    }
    if row.get("elsewhere")? {
        return Ok((Begin::Elsewhere, live));
    }
    let (turn, session) = (TurnId(inbox.0), SessionId(row.get("session_id")?));
    if conn.has_moved(|| Moved::Conversation(session.0)) {
        // The turn before has ended in the same transaction: another host may be next, and the window is another.
        return begin(conn, inbox, hold, owner, now_ms);
    }
    let received_at_ms = row.get("received_at")?;
    let placeholder = row.get("placeholder")?;
    let begun_with = Begun { placeholder: row.get("placed")?, stream: row.get("streamed")? };
    let begun = if row.get("answered")? {
        let report = codec::from_json(row.get_ref("report")?, &format!("the report of turn {turn}"))?;
        let tags = experiments::tags(row.get_ref("policy")?, row.get_ref("experiment")?, row.get_ref("arm")?)?;
        let parts = unsent_parts(conn, turn)?;
        let reply_ts = conn.prepare_cached(FIRST_SENT)?.query_row([turn.0], |row| row.get(0)).optional()?.flatten();
        Begin::Deliver(Answered {
            turn,
            session,
            inbound,
            received_at_ms,
            tags,
            placeholder,
            reply_ts,
            parts,
            resumed: true,
            is_streamed: begun_with.stream,
            report,
        })
    } else {
        let is_begun: bool = row.get("begun")?;
        let mut case = row.get::<_, Option<i64>>("case_id")?.map(CaseId);
        if is_begun {
            archive::forget(conn, turn)?;
            conn.prepare_cached(FORGET_ATTEMPT)?.run([turn.0])?;
        } else {
            if let Place::Channel(channel) = &inbound.key.place {
                case = cases::open_in(conn, inbound.key.front, channel)?;
            }
            conn.prepare_cached(START)?.run(params![turn.0, session.0, now_ms, case.map(|case| case.0)])?;
        }
        let chance = escalations::Chance { here: row.get("waits_here")?, apart: row.get("asked_apart")? };
        let (absorbs, awaits) = match escalations::concern(conn, turn, &inbound, chance)? {
            Some(Concern::Contact(marker)) => (Some(Box::new(marker)), None),
            Some(Concern::Asker(marker)) => (None, Some(Box::new(marker))),
            None => (None, None),
        };
        let reading = match row.get_ref("reading")? {
            ValueRef::Null => None,
            reading => Some(Box::new(codec::from_json(reading, &format!("the reading of turn {turn}"))?)),
        };
        let confirms = proposals::confirmed(conn, &inbound)?.map(Box::new);
        let (dropped_turns, marker_template) = (row.get("dropped_turns")?, row.get("marker")?);
        let revision = Some(row.get("revision")?);
        let live = Live { entries: Vec::new(), dropped_turns, marker_template, revision };
        let called_off: Option<String> = row.get("called_off")?;
        let called_off = called_off.as_deref().and_then(CalledOff::from_name);
        if called_off.is_none()
            && hold == Hold::Alone
            && let Some(again_of) = row.get("again_of")?
        {
            changes::leave_live_of(conn, session, again_of)?;
        }
        let verbosity: Option<String> = row.get("verbose")?;
        let verbosity = verbosity.and_then(|name| Verbosity::from_name(&name)).unwrap_or_default();
        Begin::Ask(OpenTurn {
            turn,
            session,
            inbound,
            received_at_ms,
            placeholder,
            begun_with,
            verbosity,
            resumed: is_begun,
            absorbs,
            awaits,
            reading,
            confirms,
            case,
            called_off,
            live,
            // What an attempt had put there is forgotten by now.
            archived: if is_begun { archive::length(conn, session)? } else { row.get("archived")? },
        })
    };
    lease::take(conn, session, owner, None)?;
    Ok((begun, live))
}

/// What a turn that is over does not take has changed nothing.
fn not_over(turn: TurnId, changed: &Changed) -> Result<(), StoreError> {
    match changed.rows() {
        0 => Err(StoreError::WrongState { turn, why: "is over" }),
        _ => Ok(()),
    }
}

fn outstanding(conn: &Connection, turn: TurnId) -> Result<Option<Outstanding>, Fault> {
    let mut statement = conn.prepare_cached(OUTSTANDING)?;
    let mut rows = statement.query([turn.0])?;
    let mut found: Option<Outstanding> = None;
    while let Some(row) = rows.next()? {
        let (session, is_over) = (SessionId(row.get(0)?), row.get(1)?);
        let found = found.get_or_insert_with(|| Outstanding { session, is_over, unsent: HashSet::new() });
        found.unsent.extend(row.get::<_, Option<u32>>(2)?);
    }
    Ok(found)
}

fn unsent_parts(conn: &Connection, turn: TurnId) -> Result<Vec<Part>, Fault> {
    let mut statement = conn.prepare_cached(UNSENT_PARTS)?;
    let mut rows = statement.query([turn.0])?;
    let mut parts = Vec::new();
    while let Some(row) = rows.next()? {
        let how = match row.get_ref(2)? {
            ValueRef::Null => How::default(),
            how => codec::from_json(how, &format!("a part of turn {turn}"))?,
        };
        let How { pings, thread_ts, to, purpose, offers } = how;
        let speech = Speech { text: row.get(1)?, pings };
        parts.push(Part { number: row.get(0)?, outgoing: Outgoing { speech, thread_ts, to, purpose, offers } });
    }
    Ok(parts)
}

/// What an outgoing message is beside its text.
#[derive(Default, PartialEq, Eq, Serialize, Deserialize)]
struct How {
    pings: Vec<String>,
    thread_ts: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    purpose: Purpose,
    #[serde(default, skip_serializing_if = "Offers::is_nothing")]
    offers: Offers,
}

fn encode(outgoing: &Outgoing) -> (String, Option<String>) {
    let Outgoing { speech: Speech { text, pings }, thread_ts, to, purpose, offers } = outgoing.clone();
    let how = How { pings, thread_ts, to, purpose, offers };
    (text, (how != How::default()).then(|| codec::to_json(&how)))
}

fn answer(
    conn: &Connection,
    turn: TurnId,
    usage: Usage,
    (report, placeholder): (&str, Option<&str>),
    outturn: &Outturn,
    now_ms: i64,
) -> Result<(), Fault> {
    // SQLite's integers are signed; no provider counts that far.
    let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
    let Outturn { tags, failed, overflowed, reasked, asked_by } = outturn;
    let (experiment, arm) = tags.place.as_ref().map(|place| (&*place.experiment, &*place.arm)).unzip();
    let values = params![
        turn.0,
        now_ms,
        report,
        count(usage.input_tokens),
        count(usage.output_tokens),
        count(usage.cache_read_tokens),
        count(usage.cache_creation_tokens),
        tags.policy_sha256.as_deref(),
        experiment,
        arm,
        failed,
        overflowed,
        reasked,
        asked_by,
        placeholder
    ];
    Ok(conn.prepare_cached(ANSWER)?.run(values)?)
}

fn part_sent(conn: &Connection, turn: TurnId, (part, sent_id): &Sent, now_ms: i64) -> Result<(), Fault> {
    match conn.prepare_cached(PART_SENT)?.execute(params![turn.0, part, sent_id, now_ms])? {
        0 => Err(StoreError::WrongState { turn, why: "has no such part to send" }.into()),
        _ => Ok(()),
    }
}
