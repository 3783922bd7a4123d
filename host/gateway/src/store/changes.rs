//! Changes that people make to messages they have sent: edited, deleted, stopped, asked again.
//!
//! A question that waits is changed where it is stored, in the inbox. If its turn is under way, or the live window
//! that a turn was begun with changes, the conversation's *revision* goes up: whatever the attempt under way still
//! wants to store is refused with [`StoreError::Changed`], and the turn is begun anew.

use std::iter;

use pmk_core::{Place, SessionKey};

use super::{
    CalledOff, Store, StoreError, archive, codec,
    early::{self, KEEP_EARLY, KEEP_STOP},
    erase::{self, Erased},
    error::Fault,
    escalations,
    events::EventWriter,
    following, handed_on, images,
    intake::{self, CALL_OFF, SET_MESSAGE},
    moment,
    outgoing::purpose,
    presence, receipt, sessions,
    sql::{self, Connection, OptionalExtension, Row, Rows, params},
};
use crate::{
    chat::{Addressing, Attachments, DeletedAuthor, Deletion, Edit, Inbound, MessageRef},
    ids::{InboxId, SessionId, TurnId},
    ledger::Event,
};

macro_rules! select_known {
    () => {
        "SELECT i.id, i.session_id, s.key, i.channel, i.message, i.edited, i.edited_at, i.called_off,
            i.attached IS NOT NULL AS had_attached, t.id IS NOT NULL AS begun, i.parked_at IS NOT NULL AS parked,
            t.answered_at IS NOT NULL AS answered
     FROM inbox i JOIN session s ON s.id = i.session_id LEFT JOIN turn t ON t.id = i.id WHERE "
    };
}
pub(super) use select_known;
macro_rules! find {
    ($which:literal) => {
        concat!(select_known!(), "i.channel = ?1 AND i.ts = ?2 AND i.ts <> '' AND ", $which, " ORDER BY i.id DESC")
    };
}
/// All inbox entries of a message: one more for each time that it was asked again. Newest first. An answer that was
/// handed on has the position of its question, and is not its author's to change.
pub(super) const FIND: &str = find!("substr(i.event_id, 1, 8) <> ':answer:'");
pub(super) const FIND_HANDED_ON: &str = find!("i.event_id = ?3");
/// A message of the gateway's own that is part of an answer, in its conversation or in person.
pub(super) const FIND_REPLY: &str = concat!(
    "SELECT o.turn_id, i.session_id, s.key
     FROM outbox o JOIN inbox i ON i.id = o.turn_id JOIN session s ON s.id = i.session_id
     WHERE o.sent_id = ?2 AND s.channel = ?1 AND ",
    purpose!(),
    " IN ('reply', 'passed-on')
     UNION ALL SELECT p.turn_id, i.session_id, s.key
     FROM in_person p JOIN inbox i ON i.id = p.turn_id JOIN session s ON s.id = i.session_id
     WHERE p.sent_id = ?2 AND p.channel = ?1"
);
/// A conversation in a direct message: all there are with the same person.
pub(super) const IN_DIRECT: &str = "SELECT s.key FROM inbox i JOIN session s ON s.id = i.session_id
     WHERE i.channel = ?1 AND i.ts <> '' LIMIT 1";
pub(super) const SET_EDITED: &str = "UPDATE inbox SET edited = ?2, edited_at = ?3 WHERE id = ?1";
/// That an inbox entry waits for an answer, as long as its turn has none; it may be parked.
macro_rules! waits {
    () => {
        "message IS NOT NULL AND called_off IS NULL"
    };
}
macro_rules! find_waiting {
    ($which:literal) => {
        concat!(
            "SELECT i.id, i.user, t.id IS NOT NULL, i.ts, s.key
     FROM inbox i JOIN session s ON s.id = i.session_id LEFT JOIN turn t ON t.id = i.id WHERE ",
            waits!(),
            " AND t.answered_at IS NULL AND ",
            $which
        )
    };
}
pub(super) const STOP: &str = concat!(
    "UPDATE inbox SET called_off = 'stopped' WHERE id = ?1 AND ",
    waits!(),
    " AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.id = ?1 AND t.answered_at IS NOT NULL)
     RETURNING session_id, parked_at IS NULL AND EXISTS (SELECT 1 FROM turn t WHERE t.id = ?1) AS begun"
);
pub(super) const NEXT_REVISION: &str = "UPDATE session SET revision = revision + 1 WHERE id = ?1";
pub(super) const REVISION: &str = "SELECT revision FROM session WHERE id = ?1";
/// When the turn of a question was begun with the words that it has by now.
pub(super) const SET_STARTED: &str = "UPDATE turn SET started_at = ?2 WHERE id = ?1";
/// It was begun with other words only.
pub(super) const NOT_STARTED: i64 = 0;
/// In the order in which they are answered.
pub(super) const WAITING_IN: &str = find_waiting!("s.key = ?1 AND i.parked_at IS NULL ORDER BY i.ts, i.id");
/// The waiting question that a message is, or whose placeholder or growing answer it is, also where it is parked.
pub(super) const WAITING_AT: &str = find_waiting!(
    "i.channel = ?1 AND ?2 <> '' AND ?2 IN (i.ts, t.placeholder, t.streamed_ts)
         AND substr(i.event_id, 1, 8) <> ':answer:'"
);

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// No such message has arrived.
    Unknown,
    /// The change has no effect.
    Nothing,
    /// Something has changed in this conversation. `anew`: the turn under way there has to be begun anew.
    Here { key: SessionKey, anew: bool },
}

/// A question that waits for its answer, and who asks it, where that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    pub inbox: InboxId,
    pub user: Option<String>,
    /// Its turn has begun, here or on another host.
    pub has_begun: bool,
    /// When it was written, by the front's timestamp; empty where the front gives none.
    pub ts: String,
}

impl Store {
    /// Stores that a message was edited. A waiting question is asked with its new text; for one that has its
    /// answer, or is an app's and was begun, the new text is noted. An edit that arrives twice, or after a later edit,
    /// changes nothing. Writes a ledger event.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn edit(&self, edit: &Edit, now_ms: i64) -> Result<Changed, StoreError> {
        let (edit, pen) = (edit.clone(), self.pen(now_ms));
        self.write_with_events(move |conn| self::edit(conn, pen, &edit, now_ms)).await
    }

    /// Stores that a message was deleted, where it may concern the gateway. A waiting question gets no answer. With
    /// `words`, what was said before is erased: its two texts replace the question and the answer. A deletion that
    /// arrives twice changes nothing. Writes a ledger event.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn delete(
        &self,
        deletion: &Deletion,
        words: Option<[String; 2]>,
        now_ms: i64,
    ) -> Result<Changed, StoreError> {
        let (deletion, pen) = (deletion.clone(), self.pen(now_ms));
        // Most deletions concern no message that is known here, and then nothing is written.
        let asked = deletion.clone();
        if !self.read(move |conn| concerns_us(conn, &asked)).await? {
            return Ok(Changed::Unknown);
        }
        let windows = self.windows();
        let work = move |conn: &Connection| {
            windows.forget_all();
            delete(conn, pen, &deletion, words.as_ref(), now_ms)
        };
        self.write_with_events(work).await
    }

    /// Returns the questions of a conversation that wait for an answer, in the order in which they get one. Parked ones
    /// get none by themselves.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn open_questions(&self, key: &SessionKey) -> Result<Vec<Open>, StoreError> {
        let key = key.to_string();
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(WAITING_IN)?;
            let rows = statement.query_map([key], open)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Returns the waiting question that this message is, or whose placeholder or growing answer it is, also where it is
    /// parked; and its conversation.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn open_question(&self, message: &MessageRef) -> Result<Option<(SessionKey, Open)>, StoreError> {
        let message = message.clone();
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(WAITING_AT)?;
            let mut rows = statement.query([&message.channel, &message.ts])?;
            let Some(row) = rows.next()? else { return Ok(None) };
            Ok(Some((codec::key(row.get_ref(4)?)?, open(row)?)))
        })
        .await
    }

    /// Stores that a message that has not arrived yet must not be answered. Returns false if it has arrived.
    ///
    /// # Errors
    /// Nothing was stored.
    pub async fn stop_early(&self, message: &MessageRef, actor: &str, now_ms: i64) -> Result<bool, StoreError> {
        let (message, actor) = (message.clone(), actor.to_owned());
        self.write(move |conn| {
            let is_new = find(conn, &message)?.is_empty();
            if is_new {
                let at = moment::of(conn, now_ms)?;
                conn.prepare_cached(KEEP_STOP)?.run(params![message.channel, message.ts, actor, at])?;
            }
            Ok(is_new)
        })
        .await
    }

    /// Closes questions of this conversation without an answer; [`Changed::Nothing`] where all of them have one by
    /// now. Parked ones are reopened, so that they can be closed. `word` is a message that says nothing but to stop: it
    /// is closed, too, and stops nothing more when it is delivered again. Writes a ledger event.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn stop(
        &self,
        key: &SessionKey,
        questions: Vec<InboxId>,
        actor: &str,
        word: Option<Inbound>,
        now_ms: i64,
    ) -> Result<Changed, StoreError> {
        let (key, actor, pen) = (key.clone(), actor.to_owned(), self.pen(now_ms));
        self.write_with_events(move |conn| {
            if let Some(word) = &word
                && (intake::was_seen(conn, word, now_ms)? || presence::is_known(conn, word)?)
            {
                return Ok(Changed::Here { key: key.clone(), anew: false });
            }
            let (mut stopped, mut anew) = (None, false);
            for question in &questions {
                let row = conn.prepare_cached(STOP)?.query_row([question.0], |row| {
                    Ok((row.get::<_, i64>("session_id")?, row.get::<_, bool>("begun")?))
                });
                let Some((session, is_begun)) = row.optional()? else { continue };
                intake::unpark(conn, *question)?;
                stopped = Some((SessionId(session), TurnId(question.0)));
                anew |= is_begun;
            }
            let Some((session, turn)) = stopped else { return Ok(Changed::Nothing) };
            // Where none of these has begun, the turn under way is for another question.
            if anew {
                next_revision(conn, session)?;
            }
            if let Some(word) = &word {
                intake::see(conn, word, now_ms)?;
                let known = sessions::find(conn, &word.key)?;
                intake::enter(conn, known, word, None, now_ms)?;
            }
            pen.write(conn, Some(turn), Event::TurnStopped { actor: actor.clone(), session: key.to_string() })?;
            Ok(Changed::Here { key: key.clone(), anew })
        })
        .await
    }
}

/// Refuses what an attempt wants to store where people have changed the conversation since the attempt began.
pub(super) fn refuse_stale(conn: &Connection, session: SessionId, revision: i64) -> Result<(), Fault> {
    let now: i64 = conn.prepare_cached(REVISION)?.query_row([session.0], |row| row.get(0))?;
    if now == revision { Ok(()) } else { Err(StoreError::Changed.into()) }
}

/// An inbox entry of a message, and what has happened to it.
pub(super) struct Known {
    pub(super) inbox: InboxId,
    pub(super) session: SessionId,
    pub(super) key: SessionKey,
    /// Where it was written.
    pub(super) channel: Option<String>,
    /// The message, while it waits in the inbox.
    pub(super) message: Option<Inbound>,
    /// Its current text, where it was edited after it was answered, and when it was edited.
    pub(super) edited: Option<String>,
    pub(super) edited_at: Option<String>,
    pub(super) called_off: Option<CalledOff>,
    /// Whether files came with it.
    pub(super) had_attached: bool,
    pub(super) is_begun: bool,
    pub(super) is_parked: bool,
    pub(super) is_answered: bool,
}

impl Known {
    /// Whether it has no answer yet, and is to get one.
    pub(super) fn waits(&self) -> bool {
        self.message.is_some() && !self.is_answered && self.called_off.is_none()
    }

    pub(super) fn turn(&self) -> TurnId {
        TurnId(self.inbox.0)
    }
}

pub(super) fn find(conn: &Connection, MessageRef { channel, ts }: &MessageRef) -> Result<Vec<Known>, Fault> {
    known(conn.prepare_cached(FIND)?.query([channel, ts])?)
}

/// Returns what became of an answer in the conversation that it was handed on to.
pub(super) fn find_handed_on(conn: &Connection, answer: &Inbound) -> Result<Vec<Known>, Fault> {
    let place = params![answer.reply_to.channel, answer.ts, answer.event_id];
    known(conn.prepare_cached(FIND_HANDED_ON)?.query(place)?)
}

/// Reads rows of [`select_known`].
pub(super) fn known(mut rows: Rows<'_>) -> Result<Vec<Known>, Fault> {
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let called_off: Option<String> = row.get("called_off")?;
        let message: Option<String> = row.get("message")?;
        // One that cannot be read is parked when its turn begins.
        let message: Option<Inbound> = message.and_then(|json| serde_json::from_str(&json).ok());
        let has_attached = message.as_ref().is_some_and(|message| !message.attached.is_empty());
        found.push(Known {
            inbox: InboxId(row.get("id")?),
            session: SessionId(row.get("session_id")?),
            key: codec::key(row.get_ref("key")?)?,
            channel: row.get("channel")?,
            message,
            edited: row.get("edited")?,
            edited_at: row.get("edited_at")?,
            called_off: called_off.as_deref().and_then(CalledOff::from_name),
            had_attached: has_attached || row.get("had_attached")?,
            is_begun: row.get("begun")?,
            is_parked: row.get("parked")?,
            is_answered: row.get("answered")?,
        });
    }
    Ok(found)
}

fn edit(conn: &Connection, pen: EventWriter, edit: &Edit, now_ms: i64) -> Result<Changed, Fault> {
    let Edit { message, at, is_for_us, comes_alone, manner, lost_files: _ } = edit;
    let edited = message.message_ref();
    let MessageRef { channel, ts } = &edited;
    let mut found = find(conn, &edited)?;
    // What was for nobody here may be a question since.
    found.sort_by_key(|known| known.called_off == Some(CalledOff::Deleted));
    // A question that is asked again has an entry of its own; an edit may have been noted with an earlier entry.
    let last_edit = found.iter().filter_map(|known| known.edited_at.clone()).max();
    let Some(known) = found.into_iter().next() else {
        let is_for_us = *is_for_us
            || match manner {
                Some(manner) if manner.goes_on() && following::is_theirs(conn, &message.key, &message.user, ts)? => {
                    true
                }
                Some(Addressing::Plain { names, .. }) => escalations::is_expected(conn, message, names)?,
                _ => false,
            };
        if is_for_us && *comes_alone {
            early::clear_stop(conn, &edited, at)?;
        } else if is_for_us {
            let came_at = moment::of(conn, now_ms)?;
            conn.prepare_cached(KEEP_EARLY)?.run(params![channel, ts, at, message.text, came_at])?;
        }
        return Ok(Changed::Unknown);
    };
    if known.called_off == Some(CalledOff::Deleted) {
        // Unlike one that was deleted, or erased after it was answered, a message that was for nobody here is new once it
        // is for the bot.
        let is_new =
            *is_for_us && !erase::is_in_archive(conn, known.turn())? && !intake::was_seen(conn, message, now_ms)?;
        return Ok(if is_new { Changed::Unknown } else { Changed::Nothing });
    }
    if last_edit.as_ref().is_some_and(|last| last > at) {
        return Ok(Changed::Nothing);
    }
    // A stopped question enters the conversation, too, with the words that it has by then. An app's is kept as it is being
    // answered: an app that writes bit by bit would have the model asked anew for each bit.
    let unanswered = known.message.as_ref().filter(|_| !known.is_answered);
    let waits = unanswered.is_some_and(|asked| !(asked.by_app && known.is_begun && !known.is_parked));
    let turn = known.turn();
    match known.message {
        Some(mut asked) if waits => {
            // An edit may add the mention.
            asked.if_awaited &= !matches!(manner, Some(Addressing::Mention { .. }));
            if asked.text == message.text {
                // An earlier edit may arrive later, so the time of this one is stored.
                conn.prepare_cached(SET_MESSAGE)?.run(params![turn.0, codec::to_json(&asked), at])?;
                return Ok(Changed::Nothing);
            }
            let asked = Inbound { text: message.text.clone(), attached: message.attached.clone(), ..asked };
            conn.prepare_cached(SET_MESSAGE)?.run(params![turn.0, codec::to_json(&asked), at])?;
            archive::forget(conn, turn)?;
            conn.prepare_cached(images::FORGET)?.run([turn.0])?;
            // No command that it has become was carried out yet.
            conn.prepare_cached(SET_STARTED)?.run([turn.0, NOT_STARTED])?;
            // Read anew, it may be no answer.
            conn.prepare_cached(erase::FORGET_READING)?.run([turn.0])?;
            conn.prepare_cached(escalations::RELEASE_CLAIM)?.run([turn.0])?;
            if known.is_begun {
                next_revision(conn, known.session)?;
            }
        }
        kept => {
            let begun = kept.filter(|_| !known.is_answered).map(|asked| asked.text);
            let said = match known.edited.or(begun) {
                None => erase::question_text(conn, turn)?.map(|(_, text)| text),
                said => said,
            };
            let comes_again = match &said {
                Some(said) => *said == message.text,
                // It may have been erased with its conversation since, and must not come back.
                None => last_edit.as_ref() == Some(at),
            };
            if comes_again {
                return Ok(Changed::Nothing);
            }
            conn.prepare_cached(SET_EDITED)?.run(params![turn.0, message.text, at])?;
        }
    }
    let (actor, session) = (message.user.clone(), known.key.to_string());
    pen.write(conn, Some(turn), Event::MessageEdited { actor, session, waiting: waits })?;
    Ok(Changed::Here { key: known.key, anew: waits && known.is_begun })
}

/// Whether a deletion is of something known here, or may be of a message that has not arrived yet.
fn concerns_us(conn: &Connection, deletion: &Deletion) -> Result<bool, Fault> {
    let Deletion { message: MessageRef { channel, ts }, of, .. } = deletion;
    Ok(*of == DeletedAuthor::Us
        || conn.prepare_cached(FIND)?.exists([channel, ts])?
        || conn.prepare_cached(FIND_REPLY)?.exists([channel, ts])?
        || read_in(conn, deletion)?.is_some())
}

/// Returns the conversation whose model may have been shown a message, or is being shown it, as what was said before in
/// its thread. Of the gateway's own messages, only the one that begins a thread is shown.
fn read_in(conn: &Connection, deletion: &Deletion) -> Result<Option<(SessionKey, SessionId)>, Fault> {
    let Deletion { message: MessageRef { channel, ts }, thread, of } = deletion;
    let key = match (of, thread) {
        (DeletedAuthor::Own, Some(key)) if key.thread.as_ref() != Some(ts) => None,
        // The front does not say whose direct message it is.
        (DeletedAuthor::Own, None) => in_direct(conn, channel)?.map(|key| under(key, ts)),
        (_, thread) => thread.clone(),
    };
    match key {
        Some(key) => stored(conn, key),
        None => Ok(None),
    }
}

fn in_direct(conn: &Connection, channel: &str) -> Result<Option<SessionKey>, Fault> {
    let mut statement = conn.prepare_cached(IN_DIRECT)?;
    let mut rows = statement.query([channel])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let key = codec::key(row.get_ref(0)?)?;
    Ok(Some(key).filter(|key| matches!(key.place, Place::Dm(_))))
}

/// Returns the key of the thread that begins with a message in the place of this conversation.
fn under(key: SessionKey, ts: &str) -> SessionKey {
    SessionKey { thread: Some(ts.to_owned()), ..key }
}

fn stored(conn: &Connection, key: SessionKey) -> Result<Option<(SessionKey, SessionId)>, Fault> {
    Ok(sessions::find(conn, &key)?.map(|session| (key, session)))
}

fn delete(
    conn: &Connection,
    pen: EventWriter,
    deletion: &Deletion,
    words: Option<&[String; 2]>,
    now_ms: i64,
) -> Result<Changed, Fault> {
    let Deletion { message, of, .. } = deletion;
    let MessageRef { channel, ts } = message;
    let mut found = find(conn, message)?;
    let reply = if found.is_empty() { reply_at(conn, message)? } else { None };
    let read_in = match (&reply, read_in(conn, deletion)?) {
        _ if words.is_none() => None,
        (Some(reply), None) => stored(conn, under(reply.key.clone(), ts))?,
        (_, read_in) => read_in,
    };
    match (&reply, words) {
        (Some(_), None) => return Ok(Changed::Nothing),
        (None, _) if found.is_empty() && *of == DeletedAuthor::Own && read_in.is_none() => return Ok(Changed::Unknown),
        _ => {}
    }
    // Where answered messages stay, they can be asked again, and their contacts can say what they meant by them.
    let stays = words.is_none() && !found.is_empty() && !found.iter().any(Known::waits);
    // Otherwise the message may come yet, and this deletion once more.
    let (deleted, came_at): (Option<&str>, i64) = (None, moment::of(conn, now_ms)?);
    if !stays && conn.prepare_cached(KEEP_EARLY)?.execute(params![channel, ts, deleted, deleted, came_at])? == 0 {
        return Ok(Changed::Nothing);
    }
    let mut shown_in = None;
    if let Some((key, session)) = read_in
        && erase::background(conn, session, ts)?
    {
        shown_in = Some(key);
    }
    if let (Some(Reply { turn, session, key }), Some([_, answer])) = (reply, words) {
        let Some(erased) = erase::answer(conn, turn, answer, now_ms)? else {
            return Ok(shown_in.map_or(Changed::Nothing, anew));
        };
        next_revision(conn, session)?;
        let event = Event::MessageDeleted {
            session: key.to_string(),
            what: "answer",
            waiting: false,
            summaries: erased.summaries,
        };
        pen.write(conn, Some(turn), event)?;
        // Whatever else is begun anew notices that when it stores anything.
        return Ok(anew(shown_in.unwrap_or(key)));
    }
    if found.is_empty() {
        return Ok(shown_in.map_or(Changed::Unknown, anew));
    }
    let mut handed_on = Vec::new();
    for turn in found.iter().map(Known::turn) {
        for answer in handed_on::by(conn, turn)? {
            handed_on.extend(find_handed_on(conn, &answer)?);
            // Nobody passes it on any more, so another answer is waited for.
            for turn in iter::once(turn).chain(handed_on.iter().map(Known::turn)) {
                handed_on::take_back(conn, turn)?;
            }
        }
    }
    found.extend(handed_on);
    let mut changed = Changed::Nothing;
    for mut known in found.into_iter().filter(|known| known.called_off != Some(CalledOff::Deleted)) {
        let (turn, waiting) = (known.turn(), known.message.is_some() && !known.is_answered);
        if !waiting && words.is_none() {
            continue;
        }
        call_off(conn, &mut known)?;
        let erased = match words {
            Some([question, _]) if !waiting => {
                let mut gone = Vec::new();
                let erased = erase_said(conn, &known, (question, now_ms), &mut gone)?;
                receipt::erase_texts_of(conn, known.session, &gone)?;
                erased
            }
            _ => None,
        };
        let concerns_others = erased.is_some() || (waiting && known.is_begun) || shown_in.as_ref() == Some(&known.key);
        let summaries = erased.map_or(0, |erased| erased.summaries);
        let event = Event::MessageDeleted { session: known.key.to_string(), what: "question", waiting, summaries };
        pen.write(conn, Some(turn), event)?;
        if !matches!(changed, Changed::Here { anew: true, .. }) {
            changed = Changed::Here { key: known.key, anew: concerns_others };
        }
    }
    Ok(match (changed, shown_in) {
        (Changed::Nothing, Some(key)) => anew(key),
        (changed, _) => changed,
    })
}

/// The turn that is under way in this conversation has to be begun anew.
const fn anew(key: SessionKey) -> Changed {
    Changed::Here { key, anew: true }
}

/// Calls off a message, and erases what the inbox has of it and what is stored beside that. An attempt at it that is under
/// way begins anew.
pub(super) fn call_off(conn: &Connection, known: &mut Known) -> Result<(), Fault> {
    let waits = known.message.is_some() && !known.is_answered;
    if let Some(message) = known.message.take() {
        let emptied = Inbound { text: String::new(), attached: Attachments::default(), ..message };
        conn.prepare_cached(SET_MESSAGE)?.run(params![known.inbox.0, codec::to_json(&emptied), known.edited_at])?;
    }
    erase_beside(conn, known)?;
    if waits {
        // A parked one is reopened, so that it can be closed; no further attempt forgets what the last one has archived.
        intake::unpark(conn, known.inbox)?;
        archive::forget(conn, known.turn())?;
        if known.is_begun {
            next_revision(conn, known.session)?;
        }
    }
    Ok(())
}

/// Calls off a message, and erases what is stored of it beside its text.
pub(super) fn erase_beside(conn: &Connection, known: &Known) -> Result<(), Fault> {
    conn.prepare_cached(CALL_OFF)?.run(params![known.inbox.0, CalledOff::Deleted.name()])?;
    erase::beside(conn, known.turn())?;
    match &known.channel {
        Some(channel) => escalations::forget_remark(conn, known.turn(), (known.key.front, channel)),
        None => Ok(()),
    }
}

/// Erases the text of an answered message, and what came with it; the words replace each. `None`: no text of it is stored.
/// The texts of receipts are left to the caller: those of the messages in `gone`.
pub(super) fn erase_said(
    conn: &Connection,
    known: &Known,
    by: (&str, i64),
    gone: &mut Vec<i64>,
) -> Result<Option<Erased>, Fault> {
    if known.had_attached {
        erase::attached(conn, known.turn(), by, gone)?;
    }
    let erased = erase::question(conn, known.turn(), by, gone)?;
    if erased.is_some() {
        next_revision(conn, known.session)?;
    }
    Ok(erased)
}

fn open(row: Row<'_>) -> sql::Result<Open> {
    Ok(Open { inbox: InboxId(row.get(0)?), user: row.get(1)?, has_begun: row.get(2)?, ts: row.get(3)? })
}

pub(super) fn next_revision(conn: &Connection, session: SessionId) -> Result<(), Fault> {
    conn.prepare_cached(NEXT_REVISION)?.run([session.0])?;
    Ok(())
}

/// A message of the gateway's own, and the question that it answers.
pub(super) struct Reply {
    pub(super) turn: TurnId,
    pub(super) session: SessionId,
    pub(super) key: SessionKey,
}

pub(super) fn reply_at(conn: &Connection, MessageRef { channel, ts }: &MessageRef) -> Result<Option<Reply>, Fault> {
    let mut statement = conn.prepare_cached(FIND_REPLY)?;
    let mut rows = statement.query([channel, ts])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(Reply { turn: TurnId(row.get(0)?), session: SessionId(row.get(1)?), key: codec::key(row.get_ref(2)?)? }))
}
