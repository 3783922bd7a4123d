//! Escalations: threads that wait for a contact's answer, and which messages belong to them.

use pmk_core::{FrontName, Place, SessionKey};

use super::{
    OpenTurn, Store, StoreError, Verbosity, changes, codec,
    error::Fault,
    events, handed_on,
    intake::{self, front_name},
    proposals,
    sql::{Connection, OptionalExtension, Row, Rows, params},
};
use crate::ids::TurnId;
use crate::{
    chat::Inbound,
    escalation::{EscalationRemark, Marker, Reading},
    ledger::{Event, TaggedEvent},
};

pub(super) const FIND_MARKER: &str = "SELECT marker FROM escalation
     WHERE front = ?1 AND channel = ?2 AND thread_ts = ?3 AND closed_at IS NULL
       AND (claimed_by IS NULL OR claimed_by = ?4)";
pub(super) const IS_WAITING: &str =
    "SELECT 1 FROM escalation WHERE front = ?1 AND channel = ?2 AND thread_ts = ?3 AND closed_at IS NULL";
/// What was last asked in a thread, answered or not.
pub(super) const LAST_ASKED: &str =
    "SELECT marker FROM escalation WHERE front = ?1 AND channel = ?2 AND thread_ts = ?3";
/// When a question was asked, by the front's time of the message that made the bot ask it.
pub(super) const ASKED_AT: &str = "SELECT ts FROM inbox WHERE id = ?1";
pub(super) const IN_CHANNEL: &str = "SELECT marker FROM escalation
     WHERE front = ?1 AND channel = ?2 AND closed_at IS NULL AND claimed_by IS NULL ORDER BY thread_ts DESC";
/// The escalation under whose message somebody writes, even if it is already answered: what its thread was last asked,
/// and the turn that has asked this person.
pub(super) const UNDER: &str = "SELECT e.marker, a.turn_id FROM asked_apart a
     JOIN outbox o ON o.turn_id = a.turn_id AND o.part = a.part
     JOIN escalation e ON e.front = a.front AND e.channel = a.channel AND e.thread_ts = a.thread_ts
     WHERE a.contact = ?1 AND a.front = ?2 AND o.sent_id = ?3 ORDER BY a.turn_id DESC LIMIT 1";
/// Escalations whose messages are just being posted, so that their ids are not known yet.
pub(super) const UNDER_WAY: &str = "SELECT e.marker, a.turn_id FROM asked_apart a
     JOIN outbox o ON o.turn_id = a.turn_id AND o.part = a.part
     JOIN escalation e ON e.front = a.front AND e.channel = a.channel AND e.thread_ts = a.thread_ts
     WHERE a.contact = ?1 AND a.front = ?2 AND o.sent_at IS NULL ORDER BY a.turn_id DESC";
pub(super) const NEWEST: &str = "SELECT e.marker, a.turn_id FROM asked_apart a
     JOIN escalation e ON e.front = a.front AND e.channel = a.channel AND e.thread_ts = a.thread_ts
     WHERE a.contact = ?1 AND a.front = ?2 AND e.closed_at IS NULL ORDER BY a.turn_id DESC";
/// The messages that ask a contact what waits.
pub(super) const ASKING: &str = "SELECT e.marker, a.turn_id, o.sent_id FROM asked_apart a
     JOIN outbox o ON o.turn_id = a.turn_id AND o.part = a.part
     JOIN escalation e ON e.front = a.front AND e.channel = a.channel AND e.thread_ts = a.thread_ts
     WHERE a.front = ?1 AND a.contact = ?2 AND o.sent_id IS NOT NULL AND e.closed_at IS NULL";
/// The turns that have sent the message under which somebody writes.
pub(super) const SENT_BY: &str = "SELECT turn_id FROM outbox WHERE sent_id = ?1";
pub(super) const OWN_THREADS: &str = "SELECT a.contact, o.sent_id, a.turn_id FROM asked_apart a
     JOIN outbox o ON o.turn_id = a.turn_id AND o.part = a.part
     WHERE a.front = ?1 AND a.channel = ?2 AND a.thread_ts = ?3
     ORDER BY a.contact, a.turn_id, a.part";
/// Whether the question that a turn has put to contacts in direct messages has reached one of them, or may still, apart
/// from one part of it.
pub(super) const REACHES: &str = "SELECT 1 FROM asked_apart a
     JOIN outbox o ON o.turn_id = a.turn_id AND o.part = a.part
     WHERE a.turn_id = ?1 AND a.part <> ?2 AND (o.sent_id IS NOT NULL OR o.sent_at IS NULL)";
pub(super) const ASKED_BY: &str = "SELECT e.marker FROM asked_apart a
     JOIN escalation e ON e.front = a.front AND e.channel = a.channel AND e.thread_ts = a.thread_ts
     WHERE a.turn_id = ?1";
pub(super) const CLAIM: &str = "UPDATE escalation SET claimed_by = ?4
     WHERE front = ?1 AND channel = ?2 AND thread_ts = ?3 AND closed_at IS NULL
       AND (claimed_by IS NULL OR claimed_by = ?4)";
/// Nobody has answered it after all. PostgreSQL takes nothing out of JSON with an escaped NUL in it, as earlier versions
/// have stored it.
macro_rules! unclaimed {
    () => {
        "claimed_by = NULL, marker = CASE WHEN json_valid(marker)
            THEN coalesce(json_remove(marker, '$.answeredBy'),
                          json_remove(replace(marker, '\\u0000', '\\ufffd'), '$.answeredBy'), marker)
            ELSE marker END"
    };
}
pub(super) use unclaimed;
/// An answer that was handed on stays claimed by the turn that passes it on.
pub(super) const RELEASE_CLAIM: &str = concat!(
    "UPDATE escalation SET ",
    unclaimed!(),
    " WHERE claimed_by = ?1 AND NOT EXISTS (SELECT 1 FROM turn WHERE id = ?1 AND answered_at IS NOT NULL)
       AND NOT EXISTS (SELECT 1 FROM inbox WHERE id = ?1 AND substr(event_id, 1, 8) = ':answer:')"
);
/// An answer that was handed on, and that nobody gets.
pub(super) const GIVE_UP: &str = concat!(
    "UPDATE escalation SET closed_at = ?2, ",
    unclaimed!(),
    " WHERE claimed_by = ?1 AND NOT EXISTS (SELECT 1 FROM turn WHERE id = ?1 AND answered_at IS NOT NULL)"
);
pub(super) const CLOSE: &str = "UPDATE escalation SET closed_at = ?4
     WHERE front = ?1 AND channel = ?2 AND thread_ts = ?3 AND closed_at IS NULL AND claimed_by IS NULL";
pub(super) const SET_MARKER: &str =
    "UPDATE escalation SET marker = ?4 WHERE front = ?1 AND channel = ?2 AND thread_ts = ?3";
/// The escalations that a message may have been a remark about: those of its channel, and those that its author was
/// asked in direct messages.
pub(super) const REMARKED: &str = "SELECT marker, claimed_by FROM escalation
     WHERE front = ?1 AND channel = ?2 AND (closed_at IS NULL OR closed_at > 0)
     UNION ALL SELECT e.marker, e.claimed_by FROM inbox i JOIN asked_apart a ON a.contact = i.user AND a.front = ?1
     JOIN escalation e ON e.front = a.front AND e.channel = a.channel AND e.thread_ts = a.thread_ts
     WHERE i.id = ?3 AND (e.closed_at IS NULL OR e.closed_at > 0)";
const OF_FRONT: &str = "SELECT marker, claimed_by FROM escalation
     WHERE front = ?1 AND (closed_at IS NULL OR closed_at > 0) ORDER BY channel, thread_ts";
/// Whatever an attempt at this turn still wants to store was made from what it was begun with.
pub(super) const BEGIN_ANEW: &str =
    "UPDATE session SET revision = revision + 1 WHERE id = (SELECT session_id FROM inbox WHERE id = ?1)";
pub(super) const READ_AS: &str = "UPDATE turn SET reading = ?2 WHERE id = ?1 AND answered_at IS NULL";
const IMPORT: &str = "INSERT INTO escalation (front, channel, thread_ts, marker) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (front, channel, thread_ts) DO NOTHING";
const ALL_MARKERS: &str = "SELECT marker FROM escalation WHERE closed_at IS NULL ORDER BY front, channel, thread_ts";
const CANCEL: &str = "UPDATE escalation SET closed_at = ?3
     WHERE channel = ?1 AND thread_ts = ?2 AND closed_at IS NULL AND claimed_by IS NULL RETURNING marker";

impl Store {
    /// Returns every thread that waits for an answer.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn escalations(&self) -> Result<Vec<Marker>, StoreError> {
        self.read(|conn| {
            let mut statement = conn.prepare_cached(ALL_MARKERS)?;
            let mut rows = statement.query([])?;
            let mut markers = Vec::new();
            while let Some(row) = rows.next()? {
                markers.push(marker(row)?);
            }
            Ok(markers)
        })
        .await
    }

    /// Whether a thread waits for an answer, or for one that is just being processed.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn is_waiting(&self, front: FrontName, channel: &str, thread_ts: &str) -> Result<bool, StoreError> {
        let (channel, thread_ts) = (channel.to_owned(), thread_ts.to_owned());
        self.read(move |conn| {
            Ok(conn.prepare_cached(IS_WAITING)?.exists(params![front_name(front), channel, thread_ts])?)
        })
        .await
    }

    /// Returns whether a channel is a direct message of several people, as far as any of its messages has said.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn knows_group(&self, channel: &str) -> Result<bool, StoreError> {
        let channel = channel.to_owned();
        self.read(move |conn| Ok(conn.prepare_cached(intake::KNOWS_GROUP)?.exists([channel])?)).await
    }

    /// Returns whether a message in a thread that does not mention the bot, but these, may be about a question that waits
    /// there.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn is_expected(&self, message: &Inbound, names: &[String]) -> Result<bool, StoreError> {
        let (message, names) = (message.clone(), names.to_vec());
        self.read(move |conn| is_expected(conn, &message, &names)).await
    }

    /// Imports a thread that an existing pmk left waiting; returns false when the thread already waits.
    ///
    /// # Errors
    /// Nothing was stored.
    pub async fn import_escalation(&self, front: FrontName, marker: &Marker) -> Result<bool, StoreError> {
        let marker = marker.clone();
        self.write(move |conn| Ok(put(conn, IMPORT, front, &marker)? > 0)).await
    }

    /// Stores how a message was interpreted, for every further attempt at its turn, with its ledger events.
    ///
    /// # Errors
    /// It was not stored; [`StoreError::Changed`] where people have changed the conversation since the turn began: the
    /// message may no longer be what was read.
    pub async fn read_as(
        &self,
        open: &OpenTurn,
        reading: &Reading,
        events: Vec<TaggedEvent>,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let (turn, session, revision) = (open.turn, open.session, open.live.revision);
        let (reading, lines) = (codec::to_json(reading), self.pen(now_ms).lines(&events));
        self.write_with_events(move |conn| {
            changes::refuse_stale(conn, session, revision)?;
            conn.prepare_cached(READ_AS)?.run(params![turn.0, reading])?;
            events::add(conn, Some(turn), &lines)
        })
        .await
    }

    /// Reserves the answer of an escalation for this turn. Returns false where another turn was first, or where the
    /// answer is no longer waited for.
    ///
    /// # Errors
    /// Nothing was changed; [`StoreError::Changed`] where people have changed the conversation since the turn began.
    pub async fn claim_answer(&self, open: &OpenTurn, marker: &Marker) -> Result<bool, StoreError> {
        let (turn, session, revision) = (open.turn, open.session, open.live.revision);
        let (front, marker, contact) = (open.inbound.key.front, marker.clone(), open.inbound.user.clone());
        self.write(move |conn| {
            changes::refuse_stale(conn, session, revision)?;
            let place = params![front_name(front), marker.channel_id, marker.thread_ts, turn.0];
            let Some(waiting) = waiting(conn, front, &marker, Some(turn))? else { return Ok(false) };
            if conn.prepare_cached(CLAIM)?.execute(place)? == 0 {
                return Ok(false);
            }
            put(conn, SET_MARKER, front, &Marker { answered_by: Some(contact.clone()), ..waiting })?;
            Ok(true)
        })
        .await
    }

    /// Returns whether the answer to this question is waited for, if not claimed by another turn.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn awaits_answer(&self, turn: TurnId, front: FrontName, marker: &Marker) -> Result<bool, StoreError> {
        let marker = marker.clone();
        self.read(move |conn| is_waiting(conn, front, &marker, Some(turn))).await
    }

    /// Returns the question that an answer was handed on for, if it waits for another one.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn reopened(&self, answer: &Inbound) -> Result<Option<Marker>, StoreError> {
        let (front, channel) = (answer.key.front, answer.reply_to.channel.clone());
        let is_answer = handed_on::is_handed_on(answer) && !handed_on::is_addition(answer);
        let thread_ts = answer.ts.clone();
        self.read(move |conn| {
            let claimed_by: Option<i64> = None;
            let place = params![front_name(front), channel, thread_ts, claimed_by];
            if is_answer { first(conn.prepare_cached(FIND_MARKER)?.query(place)?) } else { Ok(None) }
        })
        .await
    }

    /// Returns the contacts who were asked in direct messages of their own, and the message of each, where it was
    /// posted.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn asked_apart(
        &self,
        front: FrontName,
        marker: &Marker,
    ) -> Result<Vec<(String, Option<String>)>, StoreError> {
        let marker = marker.clone();
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(OWN_THREADS)?;
            let mut rows = statement.query(params![front_name(front), marker.channel_id, marker.thread_ts])?;
            let mut found: Vec<(String, Option<String>)> = Vec::new();
            while let Some(row) = rows.next()? {
                if marker.is_of(TurnId(row.get(2)?)) {
                    found.push((row.get(0)?, row.get(1)?));
                }
            }
            // A long question takes several messages; the first one is the thread's parent.
            found.dedup_by(|one, before| one.0 == before.0);
            Ok(found)
        })
        .await
    }

    /// Returns whether a question that a turn has put to contacts in direct messages has reached none of them and cannot
    /// any more, because this part of it was refused.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn is_unreached(&self, turn: TurnId, refused: u32) -> Result<bool, StoreError> {
        self.read(move |conn| Ok(unreached(conn, turn, refused)?.is_some())).await
    }

    /// Closes such an escalation. Writes a ledger event.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn close_unreached(&self, turn: TurnId, refused: u32, now_ms: i64) -> Result<(), StoreError> {
        let pen = self.pen(now_ms);
        self.write_with_events(move |conn| {
            let Some((front, marker)) = unreached(conn, turn, refused)? else { return Ok(()) };
            if is_waiting(conn, front, &marker, None)? {
                close(conn, (front, &marker), now_ms)?;
                let asker = marker.asker_user_id.as_deref().unwrap_or_default();
                pen.write(conn, Some(turn), Event::escalation_cancelled(asker, &marker))?;
            }
            Ok(())
        })
        .await
    }

    /// Cancels the escalation of a thread. `None` where the thread does not wait, or the answer is just being
    /// processed.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn cancel_escalation(
        &self,
        channel: &str,
        thread_ts: &str,
        actor: &str,
        now_ms: i64,
    ) -> Result<Option<Marker>, StoreError> {
        let [channel, thread_ts, actor] = [channel, thread_ts, actor].map(str::to_owned);
        let pen = self.pen(now_ms);
        self.write_with_events(move |conn| {
            let mut statement = conn.prepare_cached(CANCEL)?;
            let mut rows = statement.query(params![channel, thread_ts, now_ms])?;
            let mut cancelled = None;
            // All rows must be read, otherwise the remaining ones are not changed.
            while let Some(row) = rows.next()? {
                cancelled = Some(marker(row)?);
            }
            if let Some(marker) = &cancelled {
                pen.write(conn, None, Event::escalation_cancelled(&actor, marker))?;
            }
            Ok(cancelled)
        })
        .await
    }
}

/// The escalation that a message may be about, by the role of the message's author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Concern {
    /// The author is one of the contacts who were asked.
    Contact(Marker),
    /// The author is the one who asked, and still waits; and the contact under whose question back they write, if they
    /// write under one.
    Asker(Marker, Option<String>),
}

impl Concern {
    pub fn marker(&self) -> &Marker {
        let (Concern::Contact(marker) | Concern::Asker(marker, _)) = self;
        marker
    }
}

/// Whether a message may concern an escalation at all; most do not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Chance {
    /// One waits in its channel.
    pub(super) here: bool,
    /// Its author was asked one in a direct message.
    pub(super) apart: bool,
}

/// Returns the escalation that a message may be about, and its author's role.
pub(super) fn concern(
    conn: &Connection,
    turn: TurnId,
    inbound: &Inbound,
    chance: Chance,
) -> Result<Option<Concern>, Fault> {
    if handed_on::is_handed_on(inbound) {
        return handed_on::take_over(conn, inbound, turn).map(|marker| marker.map(Concern::Contact));
    }
    if let Some(marker) = proposals::meant(conn, inbound)? {
        let stands = waiting(conn, inbound.key.front, &marker, Some(turn))?;
        return Ok(Some(Concern::Contact(stands.unwrap_or(marker))));
    }
    if proposals::is_own(inbound) {
        return Ok(None);
    }
    // A command is no answer.
    let is_command = inbound.is_command() || Verbosity::ordered(&inbound.text).is_some();
    if is_command || inbound.text.trim().is_empty() && inbound.attached.is_empty() {
        return Ok(None);
    }
    if chance.here
        && let Some(marker) = in_thread(conn, Some(turn), inbound)?
    {
        if marker.absorbs(&inbound.user) {
            return Ok(Some(Concern::Contact(marker)));
        }
        if marker.is_askers(&inbound.user) {
            return Ok(Some(Concern::Asker(marker, None)));
        }
    }
    if let Place::Channel(_) = inbound.key.place {
        return Ok(None);
    }
    let own = if chance.here { own_question(conn, inbound)? } else { None };
    if inbound.reply_to.thread_ts.is_none() && own.as_ref().is_some_and(|own| own.marker().asked_back_by().is_some()) {
        return Ok(own);
    }
    match if chance.apart { apart(conn, inbound)? } else { None } {
        Some(marker) => Ok(Some(Concern::Contact(marker))),
        None => Ok(own),
    }
}

/// Returns the escalation that waits in the message's thread, unless somebody else has just answered it.
fn in_thread(conn: &Connection, turn: Option<TurnId>, inbound: &Inbound) -> Result<Option<Marker>, Fault> {
    let Some(thread_ts) = &inbound.reply_to.thread_ts else { return Ok(None) };
    let turn = turn.map(|turn| turn.0);
    let place = params![front_name(inbound.key.front), inbound.reply_to.channel, thread_ts, turn];
    first(conn.prepare_cached(FIND_MARKER)?.query(place)?)
}

/// Returns whether a message that mentions these, but not the bot, may be about a question that waits in its thread.
/// What was written before the question is not.
pub(super) fn is_expected(conn: &Connection, message: &Inbound, names: &[String]) -> Result<bool, Fault> {
    let Some(marker) = in_thread(conn, None, message)?.filter(|marker| marker.expects(&message.user, names)) else {
        return Ok(false);
    };
    let Some(asked_by) = marker.asked_by else { return Ok(true) };
    let mut statement = conn.prepare_cached(ASKED_AT)?;
    let asked_at: Option<String> = statement.query_row([asked_by.0], |row| row.get(0)).optional()?;
    Ok(asked_at.is_none_or(|asked_at| message.ts > asked_at))
}

/// Returns the escalation that this contact was asked in a direct message.
fn apart(conn: &Connection, inbound: &Inbound) -> Result<Option<Marker>, Fault> {
    let (contact, front) = (&inbound.user, front_name(inbound.key.front));
    let Some(thread_ts) = &inbound.reply_to.thread_ts else {
        return newest(conn.prepare_cached(NEWEST)?.query(params![contact, front])?);
    };
    let under = match conn.prepare_cached(UNDER)?.query(params![contact, front, thread_ts])?.next()? {
        Some(row) => marker(row)?.as_asked_by(TurnId(row.get(1)?), contact),
        None => None,
    };
    match under {
        Some(marker) => Ok(Some(marker)),
        None => newest(conn.prepare_cached(UNDER_WAY)?.query(params![contact, front])?),
    }
}

/// Returns the first escalation that was asked by the turn beside it.
fn newest(mut rows: Rows<'_>) -> Result<Option<Marker>, Fault> {
    while let Some(row) = rows.next()? {
        let marker = marker(row)?;
        if marker.is_of(TurnId(row.get(1)?)) {
            return Ok(Some(marker));
        }
    }
    Ok(None)
}

/// Returns this question as it stands, if its answer is waited for and no other turn has claimed that.
pub(super) fn waiting(
    conn: &Connection,
    front: FrontName,
    question: &Marker,
    claimed_by: Option<TurnId>,
) -> Result<Option<Marker>, Fault> {
    let claimed_by = claimed_by.map(|turn| turn.0);
    let place = params![front_name(front), question.channel_id, question.thread_ts, claimed_by];
    Ok(first(conn.prepare_cached(FIND_MARKER)?.query(place)?)?.filter(|waiting| waiting.is(question)))
}

/// Returns whether an answer to this question is waited for that no other turn has claimed.
pub(super) fn is_waiting(
    conn: &Connection,
    front: FrontName,
    question: &Marker,
    claimed_by: Option<TurnId>,
) -> Result<bool, Fault> {
    Ok(waiting(conn, front, question, claimed_by)?.is_some())
}

/// Returns the newest escalation that waits and that this person has asked here; one that a contact has asked back about
/// takes precedence, and before all, the one whose question back they write under.
fn own_question(conn: &Connection, inbound: &Inbound) -> Result<Option<Concern>, Fault> {
    let above = above(conn, inbound)?;
    let mut statement = conn.prepare_cached(IN_CHANNEL)?;
    let mut rows = statement.query(params![front_name(inbound.key.front), inbound.reply_to.channel])?;
    let (mut asked_back, mut newest) = (None, None);
    while let Some(row) = rows.next()? {
        let marker = marker(row)?;
        if !marker.is_askers(&inbound.user) {
            continue;
        }
        let said = marker.exchange.iter().find(|said| said.turn.is_some_and(|turn| above.contains(&turn)));
        if let Some(said) = said {
            let contact = Some(said.user_id.clone()).filter(|user| !marker.is_askers(user));
            return Ok(Some(Concern::Asker(marker, contact)));
        }
        if marker.apart.as_ref().is_none_or(|apart| apart.key != inbound.key) {
            continue;
        }
        if asked_back.is_none() && marker.asked_back_by().is_some() {
            asked_back = Some(marker);
        } else {
            newest.get_or_insert(marker);
        }
    }
    Ok(asked_back.or(newest).map(|marker| Concern::Asker(marker, None)))
}

/// Returns the turns that have sent the message under which this one is written.
fn above(conn: &Connection, inbound: &Inbound) -> Result<Vec<TurnId>, Fault> {
    let Some(thread_ts) = &inbound.reply_to.thread_ts else { return Ok(vec![]) };
    let mut statement = conn.prepare_cached(SENT_BY)?;
    let mut rows = statement.query([thread_ts])?;
    let mut turns = Vec::new();
    while let Some(row) = rows.next()? {
        turns.push(TurnId(row.get(0)?));
    }
    Ok(turns)
}

/// Returns the threads of a conversation in which an answer has been waited for since then or later: those of a channel,
/// or those under the messages that ask a contact.
pub(super) fn threads(conn: &Connection, key: &SessionKey, since_ms: i64) -> Result<Vec<String>, Fault> {
    let front = front_name(key.front);
    let (mut statement, of) = match &key.place {
        Place::Channel(channel) => (conn.prepare_cached(IN_CHANNEL)?, [front, channel.as_str()]),
        Place::Dm(contact) => (conn.prepare_cached(ASKING)?, [front, contact.as_str()]),
    };
    let mut rows = statement.query(of)?;
    let mut threads = Vec::new();
    while let Some(row) = rows.next()? {
        let marker = marker(row)?;
        let is_since = i64::try_from(marker.pending_since).is_ok_and(|pending_since| pending_since >= since_ms);
        match key.place {
            Place::Channel(_) if is_since => threads.push(marker.thread_ts),
            Place::Dm(_) if is_since && marker.is_of(TurnId(row.get(1)?)) => threads.push(row.get(2)?),
            _ => {}
        }
    }
    Ok(threads)
}

/// Returns the escalation that a turn has asked, if it reaches no contact without this part.
fn unreached(conn: &Connection, turn: TurnId, refused: u32) -> Result<Option<(FrontName, Marker)>, Fault> {
    if conn.prepare_cached(REACHES)?.exists(params![turn.0, refused])? {
        return Ok(None);
    }
    let asked = first(conn.prepare_cached(ASKED_BY)?.query([turn.0])?)?.filter(|asked| asked.is_of(turn));
    Ok(asked.and_then(|asked| Some((asked.apart.as_ref()?.key.front, asked))))
}

/// Erases what a message in this channel has said about an escalation.
pub(super) fn forget_remark(conn: &Connection, turn: TurnId, (front, channel): (FrontName, &str)) -> Result<(), Fault> {
    let mut statement = conn.prepare_cached(REMARKED)?;
    let mut rows = statement.query(params![front_name(front), channel, turn.0])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push((marker(row)?, row.get::<_, Option<i64>>(1)?));
    }
    for (marker, claimed_by) in found {
        forget_said(conn, front, (marker, claimed_by), |said| Ok(said.turn == Some(turn)))?;
    }
    Ok(())
}

/// Erases these remarks about whatever escalations.
pub(super) fn forget_remarks(
    conn: &Connection,
    is_gone: impl Fn(&EscalationRemark) -> Result<bool, Fault>,
) -> Result<(), Fault> {
    for front in [FrontName::Slack, FrontName::Console] {
        let mut statement = conn.prepare_cached(OF_FRONT)?;
        let mut rows = statement.query([front_name(front)])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            match marker(row) {
                Ok(marker) => found.push((marker, row.get::<_, Option<i64>>(1)?)),
                // A damaged one must not keep others from being erased.
                Err(Fault::Damaged(what)) => tracing::warn!("remarks about a question cannot be erased: {what}"),
                Err(fault) => return Err(fault),
            }
        }
        for found in found {
            forget_said(conn, front, found, &is_gone)?;
        }
    }
    Ok(())
}

fn forget_said(
    conn: &Connection,
    front: FrontName,
    (mut marker, claimed_by): (Marker, Option<i64>),
    is_gone: impl Fn(&EscalationRemark) -> Result<bool, Fault>,
) -> Result<(), Fault> {
    let mut kept = Vec::new();
    for said in &marker.exchange {
        if !is_gone(said)? {
            kept.push(said.clone());
        }
    }
    if kept.len() == marker.exchange.len() {
        return Ok(());
    }
    marker.exchange = kept;
    put(conn, SET_MARKER, front, &marker)?;
    if let Some(claimed_by) = claimed_by {
        conn.prepare_cached(BEGIN_ANEW)?.run([claimed_by])?;
    }
    Ok(())
}

/// Closes an escalation without an answer; [`StoreError::Changed`] if somebody has answered it meanwhile.
pub(super) fn close(conn: &Connection, (front, marker): (FrontName, &Marker), now_ms: i64) -> Result<(), Fault> {
    if !is_waiting(conn, front, marker, None)? {
        return Err(StoreError::Changed.into());
    }
    let values = params![front_name(front), marker.channel_id, marker.thread_ts, now_ms];
    Ok(conn.prepare_cached(CLOSE)?.run(values)?)
}

pub(super) fn put(conn: &Connection, sql: &str, front: FrontName, marker: &Marker) -> Result<usize, Fault> {
    let values = params![front_name(front), marker.channel_id, marker.thread_ts, codec::to_json(marker)];
    Ok(conn.prepare_cached(sql)?.execute(values)?)
}

pub(super) fn first(mut rows: Rows<'_>) -> Result<Option<Marker>, Fault> {
    rows.next()?.map(marker).transpose()
}

pub(super) fn marker(row: Row<'_>) -> Result<Marker, Fault> {
    codec::from_json(row.get_ref(0)?, "an escalation")
}
