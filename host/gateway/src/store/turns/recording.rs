//! Records the answer of a turn.

use std::{borrow::Cow, ops::Range, sync::Arc};

use pmk_core::Entry;
use pmk_models::Usage;

use super::delivering::EMPTY_QUESTION;
use crate::{
    calibration::Sizes,
    ids::{SessionId, TurnId},
    ledger::{TaggedEvent, report::TurnReport},
    store::{
        CaseEntry, EscalationUpdate, LiveEntry, Outgoing, Receipts, Store, StoreError, TurnOutcome, again, archive,
        calibrations::{self, ModelCalibration},
        cases,
        codec::{self, NewMessage, Shown},
        error::Fault,
        escalation_updates, events, hosts, outgoing, receipt,
        sql::{self, Connection, Invalidation, OptionalExtension, PrefetchedRows, Row, params},
        undelivered::Outstanding,
        uses, window,
        writer::Prefetch,
    },
};

pub(in crate::store) const ANSWER: &str =
    "UPDATE turn SET answered_at = ?2, report = ?3, input_tokens = ?4, output_tokens = ?5,
            cache_read_tokens = ?6, cache_creation_tokens = ?7,
            policy = ?8, experiment = ?9, arm = ?10, failed = ?11, overflowed = ?12, reasked = ?13, asked_by = ?14,
            placeholder = coalesce(?15, placeholder), skipped = ?16
     WHERE id = ?1 AND answered_at IS NULL AND delivered_at IS NULL";
/// What was spent on a turn that gets no answer, and what came of it.
pub(in crate::store) const SPENT: &str =
    "UPDATE turn SET input_tokens = ?2, output_tokens = ?3, cache_read_tokens = ?4,
            cache_creation_tokens = ?5, policy = ?6, experiment = ?7, arm = ?8, failed = ?9, overflowed = ?10,
            skipped = ?11
     WHERE id = ?1 AND answered_at IS NULL AND delivered_at IS NULL";
/// The items are those of [`Standing`].
pub(in crate::store) const STANDING: &str =
    "SELECT t.answered_at IS NULL AND t.delivered_at IS NULL, t.session_id, s.revision,
            (SELECT coalesce(max(l.position) + 1, 0) FROM live l WHERE l.session_id = t.session_id), s.lease_owner
     FROM turn t JOIN session s ON s.id = t.session_id WHERE t.id = ?1";
pub(in crate::store) const ANSWERED_WITH: &str =
    "UPDATE turn SET answered_at = ?2, delivered_at = ?2, asked_by = ?3, answered_with = ?4
     WHERE id = ?1 AND answered_at IS NULL";
pub(in crate::store) const PIECE: &str =
    "UPDATE turn SET answered_with = ?2, piece_start = ?3, piece_bytes = ?4 WHERE id = ?1";
pub(in crate::store) const COUNT_TURNS: &str =
    "UPDATE session SET turns = turns + ?2, sizes = coalesce(?3, sizes) WHERE id = ?1";
pub(in crate::store) const ADD_PART: &str = "INSERT INTO outbox (turn_id, part, body, how) VALUES (?1, ?2, ?3, ?4)";

/// An answer, and everything that is to be stored of the turn.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// What the turn adds, in order: the question, what it produced, the answer. Entries with the id 0 are new to
    /// the archive; [`Store::archive`](crate::store::Store::archive) has already stored the others.
    pub messages: Vec<Entry>,
    pub usage: Usage,
    /// Other turns that this answer also closes, and who wrote each.
    pub also: Vec<(TurnId, String)>,
    /// Where the first message combines the messages of several turns: the byte range of each turn's text in it.
    pub pieces: Vec<(TurnId, Range<usize>)>,
    /// The ids of the atoms that the model was shown for the answer.
    pub atoms: Vec<String>,
    /// What is to be delivered, in order.
    pub parts: Vec<Outgoing>,
    /// What was learnt about the model.
    pub calibration: Option<ModelCalibration>,
    /// The updated sizes of the conversation's requests; `None` where they have not changed.
    pub sizes: Option<Sizes>,
    /// What happens to an escalation.
    pub escalation: Option<EscalationUpdate>,
    /// What is stored with a case.
    pub case: Option<CaseEntry>,
    /// What the front is told after delivery.
    pub report: TurnReport,
    /// What is counted of the turn for experiments.
    pub outcome: TurnOutcome,
    /// Whether the messages enter the live window. Not when the turn was given up: what could not be answered once
    /// must not make the next turn fail.
    pub keep_live: bool,
    /// The events that the ledger gets.
    pub events: Vec<TaggedEvent>,
    /// What the turn's requests to the model were made from.
    pub receipts: Receipts,
    /// The revision of the conversation when the turn began.
    pub revision: i64,
    /// The message that the answer replaces; `None` where that can only be the one that was
    /// [placed](crate::store::Store::placed).
    pub placeholder: Option<String>,
}

impl Recorded {
    /// Returns what a turn stores that ends with these parts, and nothing else.
    pub fn of(report: TurnReport, parts: Vec<Outgoing>, revision: i64) -> Recorded {
        Recorded {
            messages: vec![],
            usage: Usage::default(),
            also: vec![],
            pieces: vec![],
            atoms: vec![],
            parts,
            calibration: None,
            sizes: None,
            escalation: None,
            case: None,
            report,
            outcome: TurnOutcome::default(),
            keep_live: false,
            events: vec![],
            receipts: Receipts::default(),
            revision,
            placeholder: None,
        }
    }
}

impl Store {
    /// Stores an answer: messages, usage, session and outbox in one transaction. From now on the model is not asked
    /// again for this turn.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] when the turn has an answer; [`StoreError::Changed`] when people have changed the
    /// conversation since it was begun, or the question to contacts that it is about; or when the database has lost the
    /// turn.
    pub async fn record(&self, turn: TurnId, mut recorded: Recorded, now_ms: i64) -> Result<(), StoreError> {
        let returns = self.returns();
        let texts = self.shared.texts.fresh(&mut recorded.receipts, returns);
        let pen = self.pen(now_ms);
        let lines = pen.lines(&recorded.events);
        let encoded = Encoded::of(&recorded);
        let unsent = (0u32..).zip(&recorded.parts).map(|(number, _)| number).collect();
        let (host, windows) = (self.owner(), self.windows());
        let new_bounds = Arc::clone(&self.shared.new_bounds);
        let count = recorded.messages.iter().filter(|entry| entry.id == 0).count();
        let asks = Standpoint { turn, calibration: recorded.calibration.take(), messages: count };
        let prefetch = asks.clone();
        let work = move |conn: &Connection| {
            let Recorded { messages, also, pieces, atoms, parts, escalation, case, keep_live, .. } = &recorded;
            let (mut standing, bounds) = asks.ask(conn)?;
            // A database that has lost the turn, as in a failover, does not know whose the number is now.
            let standing = standing.query_row(Standing::of).optional()?.ok_or(StoreError::Changed)?;
            let Standing { waits: true, session, revision, mut position, leased_by } = standing else {
                return Err(StoreError::WrongState { turn, why: "has an answer or is finished" }.into());
            };
            // Another host has taken the conversation over and begun the turn anew.
            let is_elsewhere = hosts::is_one(conn) && leased_by.as_ref() != Some(&host);
            if is_elsewhere || recorded.revision != revision {
                return Err(StoreError::Changed.into());
            }
            conn.moved(|| Invalidation::Conversation(session.0));
            let receipts = match recorded.receipts.quote_anything() {
                false => Cow::Borrowed(&recorded.receipts),
                // What earlier attempts at messages have archived was forgotten when they were taken along, also if they
                // were left to turns of their own since.
                true => Cow::Owned(recorded.receipts.without_gone(conn)?),
            };
            answer(conn, turn, &recorded, &encoded.report, now_ms)?;
            let known = windows.take(conn, session, revision)?;
            let mut stored = Vec::with_capacity(messages.len());
            let mut added = Vec::new();
            for (entry, (message, shown)) in messages.iter().zip(&encoded.messages) {
                let id = match entry.id {
                    0 => archive::record(conn, session, Some(turn), message, now_ms)?,
                    archived => archived,
                };
                stored.push((id, message));
                if *keep_live {
                    window::show(conn, session, position, id, shown)?;
                    added.push(LiveEntry { position, entry: Entry { id, ..entry.clone() } });
                    position += 1;
                }
            }
            if *keep_live || encoded.sizes.is_some() {
                let turns = if *keep_live { 1 + also.len() as i64 } else { 0 };
                conn.prepare_cached(COUNT_TURNS)?.run(params![session.0, turns, encoded.sizes])?;
            }
            for (other, user) in also {
                again::leave_live(conn, session, *other)?;
                conn.prepare_cached(ANSWERED_WITH)?.run(params![other.0, now_ms, user, turn.0])?;
                conn.prepare_cached(EMPTY_QUESTION)?.run([other.0])?;
            }
            for (of, bytes) in pieces {
                let values = params![of.0, turn.0, bytes.start as i64, bytes.len() as i64];
                conn.prepare_cached(PIECE)?.run(values)?;
            }
            let mut add_part = conn.prepare_cached(ADD_PART)?;
            for (number, (body, how)) in (0u32..).zip(&encoded.parts) {
                add_part.run(params![turn.0, number, body, how])?;
            }
            if let Some(in_case) = case {
                let answer = stored.last().map(|(id, _)| *id).filter(|_| *keep_live);
                cases::keep(conn, in_case, &stored, answer, now_ms)?;
            }
            if let Some((learnt, bounds)) = asks.calibration.as_ref().zip(bounds) {
                calibrations::learn(conn, learnt, bounds, &new_bounds)?;
            }
            uses::shown(conn, (turn, session), atoms, now_ms)?;
            let ids: Vec<i64> = stored.iter().map(|(id, _)| *id).collect();
            receipt::keep(conn, (session, turn), &receipts, &ids)?;
            events::add(conn, Some(turn), &lines)?;
            escalation_updates::apply(conn, pen, (turn, session), escalation.as_ref(), parts, now_ms)?;
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
        self.shared.texts.are_stored(texts, returns);
        self.shared.undelivered.keep(turn, Outstanding { session, is_over: false, unsent, returns });
        Ok(())
    }

    /// Stores what was spent on a turn that gets no answer, and what came of it.
    ///
    /// # Errors
    /// Nothing was stored.
    pub async fn spent(&self, turn: TurnId, usage: Usage, outcome: &TurnOutcome) -> Result<(), StoreError> {
        let TurnOutcome { tags, failed, skipped, overflowed, .. } = outcome.clone();
        self.write(move |conn| {
            let (experiment, arm) = tags.place.as_ref().map(|place| (&*place.experiment, &*place.arm)).unzip();
            let [input, output, read, created] = stored_usage(usage);
            let policy = tags.policy_sha256.as_deref();
            let values =
                params![turn.0, input, output, read, created, policy, experiment, arm, failed, overflowed, skipped];
            Ok(conn.prepare_cached(SPENT)?.run(values)?)
        })
        .await
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

/// What of an answer is encoded before the writer gets it.
struct Encoded {
    /// In the order of the messages.
    messages: Vec<(NewMessage, Shown)>,
    /// The text of each part, and the rest of it.
    parts: Vec<(String, Option<String>)>,
    report: String,
    sizes: Option<String>,
}

impl Encoded {
    fn of(recorded: &Recorded) -> Encoded {
        let Recorded { messages, parts, report, sizes, .. } = recorded;
        Encoded {
            messages: messages.iter().map(|entry| (NewMessage::from(entry), Shown::from(entry))).collect(),
            parts: parts.iter().map(outgoing::encode).collect(),
            report: codec::to_json(report),
            sizes: sizes.as_ref().map(codec::to_json),
        }
    }
}

/// The state of a turn when its answer is recorded.
struct Standing {
    /// Whether it waits for an answer.
    waits: bool,
    session: SessionId,
    /// That of the conversation.
    revision: i64,
    /// The next one in the live window.
    position: i64,
    /// The holder of the conversation's lease.
    leased_by: Option<String>,
}

impl Standing {
    /// Reads a row of [`STANDING`].
    fn of(row: Row<'_>) -> sql::Result<Standing> {
        Ok(Standing {
            waits: row.get(0)?,
            session: SessionId(row.get(1)?),
            revision: row.get(2)?,
            position: row.get(3)?,
            leased_by: row.get(4)?,
        })
    }
}

fn answer(conn: &Connection, turn: TurnId, recorded: &Recorded, report: &str, now_ms: i64) -> Result<(), Fault> {
    let Recorded { usage, placeholder, outcome, .. } = recorded;
    let [input, output, read, created] = stored_usage(*usage);
    let TurnOutcome { tags, failed, skipped, overflowed, reasked, asked_by } = outcome;
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
        placeholder,
        skipped
    ];
    Ok(conn.prepare_cached(ANSWER)?.run(values)?)
}

/// The four numbers as the database takes them: its integers are signed, and no provider counts that far.
fn stored_usage(usage: Usage) -> [i64; 4] {
    let Usage { input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens } = usage;
    [input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens]
        .map(|tokens| i64::try_from(tokens).unwrap_or(i64::MAX))
}
