//! The stages of a turn in the store: [begun](beginning), answered, delivered.

pub(super) mod beginning;
pub(super) mod open;
pub(super) mod recording;

use std::{collections::HashSet, sync::Arc};

use pmk_core::Entry;
use pmk_models::Usage;

use super::{
    EscalationUpdate, LiveEntry, OpenTurn, Part, PreviewKind, Purpose, Recorded, Sent, Store, StoreError, StoredImage,
    TurnOutcome, Verbosity, again, archive,
    calibrations::{self, ModelCalibration},
    cases, changes,
    codec::{self, NewMessage, Shown},
    error::Fault,
    escalations, events, hosts, images, intake, lease,
    outgoing::{self, How},
    proposals, receipt,
    sql::{Changed, Connection, Invalidation, OptionalExtension, PrefetchedRows, ValueRef, params},
    undelivered::Outstanding,
    uses, window,
    writer::Prefetch,
};
use crate::ids::{SessionId, TurnId};
use crate::{
    chat::{Attachments, Inbound},
    ledger::TaggedEvent,
};

pub(super) const SET_VERBOSITY: &str = "UPDATE session SET \"verbose\" = ?2 WHERE id = ?1";
pub(super) const PLACE: &str = "UPDATE turn SET placeholder = ?2 WHERE id = ?1 AND delivered_at IS NULL";
pub(super) const PLACED: &str =
    "SELECT t.placeholder, t.answered_at IS NOT NULL OR t.delivered_at IS NOT NULL OR i.parked_at IS NOT NULL
     FROM turn t JOIN inbox i ON i.id = t.id WHERE t.id = ?1";
pub(super) const MAY_PLACE: &str = "UPDATE turn SET may_have_placed = 1 WHERE id = ?1 AND delivered_at IS NULL";
pub(super) const MAY_STREAM: &str = "UPDATE turn SET may_have_streamed = 1 WHERE id = ?1 AND delivered_at IS NULL";
pub(super) const MESSAGE: &str = "SELECT message FROM inbox WHERE id = ?1 AND message IS NOT NULL";
pub(super) const KEEP_ATTACHED: &str = "UPDATE inbox SET message = ?2 WHERE id = ?1 AND message IS NOT NULL";
pub(super) const ANSWER: &str = "UPDATE turn SET answered_at = ?2, report = ?3, input_tokens = ?4, output_tokens = ?5,
            cache_read_tokens = ?6, cache_creation_tokens = ?7,
            policy = ?8, experiment = ?9, arm = ?10, failed = ?11, overflowed = ?12, reasked = ?13, asked_by = ?14,
            placeholder = coalesce(?15, placeholder)
     WHERE id = ?1 AND answered_at IS NULL AND delivered_at IS NULL";
/// What was spent on a turn that gets no answer, and what came of it.
pub(super) const SPENT: &str = "UPDATE turn SET input_tokens = ?2, output_tokens = ?3, cache_read_tokens = ?4,
            cache_creation_tokens = ?5, policy = ?6, experiment = ?7, arm = ?8, failed = ?9, overflowed = ?10
     WHERE id = ?1 AND answered_at IS NULL AND delivered_at IS NULL";
/// The state of a turn when its answer is recorded: whether it waits for one, the conversation and its revision,
/// the next position in the live window, and the holder of the lease.
pub(super) const STANDING: &str = "SELECT t.answered_at IS NULL AND t.delivered_at IS NULL, t.session_id, s.revision,
            (SELECT coalesce(max(l.position) + 1, 0) FROM live l WHERE l.session_id = t.session_id), s.lease_owner
     FROM turn t JOIN session s ON s.id = t.session_id WHERE t.id = ?1";
pub(super) const ANSWERED_WITH: &str =
    "UPDATE turn SET answered_at = ?2, delivered_at = ?2, asked_by = ?3, answered_with = ?4
     WHERE id = ?1 AND answered_at IS NULL";
pub(super) const ASKED_ALONG: &str = "SELECT t.asked_by, i.ts FROM turn t JOIN inbox i ON i.id = t.id
     WHERE t.answered_with = ?1 AND t.asked_by IS NOT NULL ORDER BY t.id";
pub(super) const PIECE: &str = "UPDATE turn SET answered_with = ?2, piece_start = ?3, piece_bytes = ?4 WHERE id = ?1";
pub(super) const COUNT_TURNS: &str = "UPDATE session SET turns = turns + ?2, sizes = coalesce(?3, sizes) WHERE id = ?1";
pub(super) const ADD_PART: &str = "INSERT INTO outbox (turn_id, part, body, how) VALUES (?1, ?2, ?3, ?4)";
pub(super) const UNSENT_PARTS: &str =
    "SELECT part, body, how FROM outbox WHERE turn_id = ?1 AND sent_at IS NULL ORDER BY part";
pub(super) const FIRST_SENT: &str = "SELECT sent_id FROM outbox WHERE turn_id = ?1 AND part = 0";
pub(super) const PART_SENT: &str =
    "UPDATE outbox SET sent_id = ?3, sent_at = ?4, body = NULL WHERE turn_id = ?1 AND part = ?2 AND sent_at IS NULL";
pub(super) const HOW: &str = "SELECT how FROM outbox WHERE turn_id = ?1 AND part = ?2 AND sent_at IS NULL";
pub(super) const SET_HOW: &str = "UPDATE outbox SET how = ?3 WHERE turn_id = ?1 AND part = ?2 AND sent_at IS NULL";
/// What is still to be sent of a turn: a row for each part that was not sent, and at least one row.
pub(super) const OUTSTANDING: &str = "SELECT t.session_id, t.delivered_at IS NOT NULL, o.part
     FROM turn t LEFT JOIN outbox o ON o.turn_id = t.id AND o.sent_at IS NULL WHERE t.id = ?1";
/// Whether a part of an unfinished answer is still to be sent to a channel, or goes there in person. Scans the waiting messages, by their
/// index.
pub(super) const DELIVERING_TO: &str = "SELECT 1 FROM inbox i JOIN outbox o ON o.turn_id = i.id
     WHERE i.message IS NOT NULL AND i.parked_at IS NULL AND o.sent_at IS NULL AND (i.channel = ?1
        OR EXISTS (SELECT 1 FROM in_person p WHERE p.turn_id = o.turn_id AND p.part = o.part AND p.channel = ?1))";
pub(super) const EMPTY_PARTS: &str =
    "UPDATE outbox SET body = NULL WHERE turn_id = ?1 AND sent_at IS NOT NULL AND body IS NOT NULL";
pub(super) const DELIVERED: &str =
    "UPDATE turn SET delivered_at = ?2, report = NULL WHERE id = ?1 AND delivered_at IS NULL";
/// Keeps what was attached, but not what others had said before in its thread: that was for this turn alone. Most
/// messages have no attachments, and for those no JSON is parsed.
pub(super) const EMPTY_QUESTION: &str = "UPDATE inbox SET message = NULL,
            attached = CASE WHEN message LIKE '%\"attached\":%' AND json_valid(message)
                THEN json_remove(json_extract(message, '$.attached'), '$.thread') END
     WHERE id = ?1";

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
        let placeholder = placeholder.to_owned();
        let work = move |conn: &Connection| {
            conn.moved(|| Invalidation::Shown(turn.0));
            Ok(conn.prepare_cached(PLACE)?.run_counting(params![turn.0, placeholder])?)
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

    /// Stores an answer: messages, usage, session and outbox in one transaction. From now on the model is not asked
    /// again for this turn.
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
            sizes,
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
                let (message, shown) = (NewMessage::from(&entry), Shown::from(&entry));
                (entry, message, shown)
            })
            .collect();
        let encoded: Vec<(String, Option<String>)> = parts.iter().map(outgoing::encode).collect();
        let unsent = (0u32..).zip(&parts).map(|(number, _)| number).collect();
        let (host, windows) = (self.owner(), self.windows());
        let (report, sizes) = (codec::to_json(&report), sizes.as_ref().map(codec::to_json));
        let new_bounds = Arc::clone(&self.shared.new_bounds);
        let count = messages.iter().filter(|(entry, ..)| entry.id == 0).count();
        let asks = Standpoint { turn, calibration, messages: count };
        let prefetch = asks.clone();
        let work = move |conn: &Connection| {
            let (mut standing, bounds) = asks.ask(conn)?;
            let standing = standing
                .query_row(|row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))
                .optional()?;
            let Some((true, session, stands_at, mut position, leased)): Option<Standing> = standing else {
                return Err(StoreError::WrongState { turn, why: "has an answer or is finished" }.into());
            };
            let session = SessionId(session);
            // Another host has taken the conversation over and begun the turn anew.
            let is_elsewhere = hosts::is_one(conn) && leased.as_ref() != Some(&host);
            if is_elsewhere || revision != stands_at {
                return Err(StoreError::Changed.into());
            }
            conn.moved(|| Invalidation::Conversation(session.0));
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
            if keep_live || sizes.is_some() {
                let turns = if keep_live { 1 + also.len() as i64 } else { 0 };
                conn.prepare_cached(COUNT_TURNS)?.run(params![session.0, turns, sizes])?;
            }
            for (other, user) in &also {
                again::leave_live(conn, session, *other)?;
                conn.prepare_cached(ANSWERED_WITH)?.run(params![other.0, now_ms, user, turn.0])?;
                conn.prepare_cached(EMPTY_QUESTION)?.run([other.0])?;
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
            if let Some((learnt, bounds)) = asks.calibration.as_ref().zip(bounds) {
                calibrations::learn(conn, learnt, bounds, &new_bounds)?;
            }
            uses::shown(conn, (turn, session), &atoms, now_ms)?;
            let ids: Vec<i64> = stored.iter().map(|(id, _)| *id).collect();
            receipt::keep(conn, (session, turn), &receipts, &ids)?;
            events::add(conn, Some(turn), &lines)?;
            if escalation != Some(EscalationUpdate::HandedOn) {
                escalations::absorbed(conn, turn, now_ms)?;
            }
            match &escalation {
                Some(EscalationUpdate::Asked(front, marker)) => {
                    uses::doubted(conn, session, &marker.name(), now_ms)?;
                    escalations::await_answer(conn, turn, (*front, marker), &parts, now_ms)
                }
                Some(EscalationUpdate::Proposed(proposal) | EscalationUpdate::Unsure(proposal)) => {
                    proposals::propose(conn, turn, proposal, now_ms)
                }
                Some(EscalationUpdate::Reopened(confirmed_by)) => proposals::reopen(conn, confirmed_by, now_ms),
                Some(EscalationUpdate::Said(front, marker, said)) => {
                    escalations::remember(conn, (*front, marker), said)
                }
                Some(EscalationUpdate::Withdrawn(front, marker)) => escalations::close(conn, (*front, marker), now_ms),
                Some(EscalationUpdate::HandedOn) | None => Ok(()),
            }?;
            // Messages that were answered along may have been removed from the window.
            Ok((session, known.filter(|_| also.is_empty()), added))
        };
        let prefetch = Prefetch::asks(move |conn| prefetch.ask(conn).map(drop));
        let (session, known, added) = self.write_prefetched_with_events(prefetch, work).await?;
        if let Some((place, known)) = known {
            let mut entries = Arc::unwrap_or_clone(known);
            entries.extend(added);
            self.shared.windows.put(place, Arc::new(entries));
        }
        self.shared.texts.are_stored(texts);
        self.shared.undelivered.keep(turn, Outstanding { session, is_over: false, unsent });
        Ok(())
    }

    /// Stores what was spent on a turn that gets no answer, and what came of it.
    ///
    /// # Errors
    /// Nothing was stored.
    pub async fn spent(&self, turn: TurnId, usage: Usage, outturn: &TurnOutcome) -> Result<(), StoreError> {
        let TurnOutcome { tags, failed, overflowed, .. } = outturn.clone();
        self.write(move |conn| {
            let (experiment, arm) = tags.place.as_ref().map(|place| (&*place.experiment, &*place.arm)).unzip();
            let [input, output, read, created] = stored_usage(usage);
            let policy = tags.policy_sha256.as_deref();
            let values = params![turn.0, input, output, read, created, policy, experiment, arm, failed, overflowed];
            Ok(conn.prepare_cached(SPENT)?.run(values)?)
        })
        .await
    }

    /// Stores that a part was sent, with its ledger events. Worth its own commit for every part but the last, which
    /// [`finish`](Store::finish) takes.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] when no such part was to be sent.
    pub async fn part_sent(
        &self,
        turn: TurnId,
        part: Sent,
        events: Vec<TaggedEvent>,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let lines = self.pen(now_ms).lines(&events);
        let (known, number) = (self.shared.undelivered.take(turn), part.0);
        let work = move |conn: &Connection| {
            part_sent(conn, turn, &part, now_ms)?;
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
    /// [`StoreError::WrongState`] when the turn is finished, or parts of its answer were not sent.
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
            let wrong = |why| Fault::from(StoreError::WrongState { turn, why });
            let outstanding = match &known {
                Some(known) => known.clone(),
                None => {
                    // An earlier version may have sent some of the parts and kept their text.
                    conn.prepare_cached(EMPTY_PARTS)?.run([turn.0])?;
                    outstanding(conn, turn)?.ok_or_else(|| wrong("is finished"))?
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

/// What recording an answer looks up first.
#[derive(Clone)]
struct Standpoint {
    turn: TurnId,
    /// What was learnt about the model.
    calibration: Option<ModelCalibration>,
    /// How many messages the turn adds.
    messages: usize,
}

impl Standpoint {
    fn ask<'c>(&self, conn: &'c Connection) -> Result<(PrefetchedRows<'c>, Option<PrefetchedRows<'c>>), Fault> {
        let standing = conn.prefetch(STANDING, [self.turn.0])?;
        let bounds = self.calibration.as_ref().map(|learnt| calibrations::bounds(conn, learnt)).transpose()?;
        conn.prefetch_ids("message", self.messages)?;
        Ok((standing, bounds))
    }
}

/// Whether a turn waits for its answer, its conversation, that one's revision, the next position in its window, and
/// who has leased it.
type Standing = (bool, i64, i64, i64, Option<String>);

/// Fails where a statement has changed no row because the turn is finished.
fn not_over(turn: TurnId, changed: &Changed) -> Result<(), StoreError> {
    match changed.rows() {
        0 => Err(StoreError::WrongState { turn, why: "is finished" }),
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
        parts.push(Part { number: row.get(0)?, outgoing: how.with_text(row.get(1)?) });
    }
    Ok(parts)
}

fn answer(
    conn: &Connection,
    turn: TurnId,
    usage: Usage,
    (report, placeholder): (&str, Option<&str>),
    outturn: &TurnOutcome,
    now_ms: i64,
) -> Result<(), Fault> {
    let [input, output, read, created] = stored_usage(usage);
    let TurnOutcome { tags, failed, overflowed, reasked, asked_by } = outturn;
    let (experiment, arm) = tags.place.as_ref().map(|place| (&*place.experiment, &*place.arm)).unzip();
    let values = params![
        turn.0,
        now_ms,
        report,
        input,
        output,
        read,
        created,
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

/// The four numbers as the database takes them: its integers are signed, and no provider counts that far.
fn stored_usage(usage: Usage) -> [i64; 4] {
    let Usage { input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens } = usage;
    [input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens]
        .map(|tokens| i64::try_from(tokens).unwrap_or(i64::MAX))
}

fn part_sent(conn: &Connection, turn: TurnId, (part, sent_id): &Sent, now_ms: i64) -> Result<(), Fault> {
    match conn.prepare_cached(PART_SENT)?.execute(params![turn.0, part, sent_id, now_ms])? {
        0 => Err(StoreError::WrongState { turn, why: "has no such part to send" }.into()),
        _ => Ok(()),
    }
}
