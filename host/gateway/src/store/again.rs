//! Questions that are asked once more, and what their earlier answers leave.

use pmk_core::{Place, SessionKey};

use super::{
    CalledOff, Pending, Store, StoreError,
    changes::{Known, WAITING_AT, find, reply_at},
    codec, erase,
    error::Fault,
    intake,
    sql::{Connection, OptionalExtension, params},
};
use crate::{
    chat::{self, Inbound, MessageRef, ReplyTo},
    ids::{SessionId, TurnId},
    ledger::Event,
};

pub(super) const PLACE: &str = "SELECT channel, ts FROM inbox WHERE id = ?1";
pub(super) const ASKED: &str = "SELECT i.user, i.channel, i.ts, i.edited, i.called_off, i.attached,
            i.by_app IS NOT NULL AS by_app, i.team AS team, t.asked_by IS NOT NULL OR t.answered_with IS NOT NULL AS is_question, t.delivered_at IS NOT NULL AS is_over
     FROM turn t JOIN inbox i ON i.id = t.id WHERE t.id = ?1";
const PIECES: &str = "SELECT t.id, t.piece_start, t.piece_bytes, i.user FROM turn t JOIN inbox i ON i.id = t.id
     WHERE t.answered_with = ?1 ORDER BY t.piece_start IS NULL, t.piece_start, t.id";
pub(super) const WROTE_IN: &str = "SELECT 1 FROM turn t JOIN inbox i ON i.id = t.id
     WHERE t.answered_with = ?1 AND i.user = ?2";
pub(super) const AGAIN_OF: &str = "UPDATE inbox SET again_of = ?2 WHERE id = ?1";
pub(super) const OF_AGAIN: &str = "SELECT again_of FROM inbox WHERE id = ?1";
pub(super) const LEAVE_LIVE: &str = "DELETE FROM live WHERE session_id = ?1 AND message_id IN
     (SELECT m.id FROM message m WHERE m.turn_id = ?2
      UNION ALL SELECT m.id FROM turn t JOIN message m ON m.turn_id = t.id WHERE t.answered_with = ?2)";

/// The prefix of the event id of a question that is asked again. No id from outside begins with a colon.
const AGAIN: &str = ":again:";

/// What requests that a question be asked once more.
#[derive(Clone, Debug)]
pub enum RegenerateTrigger {
    /// A reaction of this name; each reaction is a request of its own.
    Reaction(String),
    /// The button under a failed answer: valid as long as that is the last answer to its question.
    Button,
}

/// The result of a request to ask a question once more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegenerateOutcome {
    Taken(Pending),
    /// The same request was accepted before, or the question was asked once more since.
    Before,
    /// It is somebody else's question, in the conversation that is had here.
    NotTheirs(ReplyTo),
    /// It still waits for its first answer, or for another.
    Waits,
    /// There is no such question, or it is about to be over.
    Nothing,
}

/// Whether a message is a question that is asked again.
pub fn is_again(inbound: &Inbound) -> bool {
    inbound.event_id.starts_with(AGAIN)
}

impl Store {
    /// Asks once more the question that a message is, or that it answers, with its edited text if it was edited. Of
    /// several that were answered together, each is asked again, as the message of its own that it was. What was
    /// answered leaves the live window when the new turn begins; the archive keeps it. The same request is accepted
    /// only once. Writes a ledger event.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn again(
        &self,
        (actor, is_admin): (&str, bool),
        message: &MessageRef,
        by: RegenerateTrigger,
        now_ms: i64,
    ) -> Result<RegenerateOutcome, StoreError> {
        let (actor, message) = (actor.to_owned(), message.clone());
        let event_id = match &by {
            RegenerateTrigger::Reaction(name) => format!("{AGAIN}{name}"),
            RegenerateTrigger::Button => format!("{AGAIN}again:{}:{}", message.channel, message.ts),
        };
        let pen = self.pen(now_ms);
        self.write_with_events(move |conn| {
            let (turn, key) = match question_at(conn, &message)? {
                QuestionAt::Over(turn, key) => (turn, key),
                // The question may have been asked once more already and wait, perhaps since before a crash.
                _ if intake::is_known(conn, &event_id, now_ms)? => return Ok(RegenerateOutcome::Before),
                QuestionAt::Waits => return Ok(RegenerateOutcome::Waits),
                QuestionAt::NotYet => return Ok(RegenerateOutcome::Nothing),
            };
            let questions = asked_again(conn, turn, &key, &event_id)?;
            let is_theirs = questions.iter().any(|question| question.user == actor)
                || conn.prepare_cached(WROTE_IN)?.exists(params![turn.0, actor])?;
            let Some(newest) = questions.last() else { return Ok(RegenerateOutcome::Nothing) };
            if !is_theirs && !is_admin {
                let place = ReplyTo { channel: message.channel.clone(), thread_ts: key.thread.clone() };
                return Ok(RegenerateOutcome::NotTheirs(place));
            }
            // It would go on for ever; people may still do it.
            if questions.iter().any(|question| question.by_app && question.user == actor) {
                return Ok(RegenerateOutcome::Nothing);
            }
            let is_settled = matches!(by, RegenerateTrigger::Button) && was_answered_since(conn, &message)?;
            if is_settled || intake::was_seen(conn, newest, now_ms)? {
                return Ok(RegenerateOutcome::Before);
            }
            let mut taken = None;
            for question in &questions {
                let message = (question, &*codec::to_json(question));
                let Some(inbox) = intake::accept(conn, pen, message, now_ms)? else { continue };
                conn.prepare_cached(AGAIN_OF)?.run(params![inbox.0, turn.0])?;
                taken = Some((inbox, question.ts.clone()));
            }
            let Some((inbox, ts)) = taken else { return Ok(RegenerateOutcome::Before) };
            let event = Event::TurnAgain { actor: actor.clone(), session: key.to_string() };
            pen.write(conn, Some(TurnId(inbox.0)), event)?;
            Ok(RegenerateOutcome::Taken(Pending { inbox, key, ts }))
        })
        .await
    }

    /// Returns what a turn of this conversation has answered: who has asked, and their words, in the order they were
    /// written.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn asked_together(&self, turn: TurnId, key: &SessionKey) -> Result<Vec<(String, String)>, StoreError> {
        let key = key.clone();
        self.read(move |conn| {
            let mut asked = Vec::new();
            for (of, text) in texts(conn, turn, &key)? {
                let user: Option<String> =
                    conn.prepare_cached(ASKED)?.query_row([of.0], |row| row.get(0)).optional()?.flatten();
                asked.extend(user.map(|user| (user, text)));
            }
            Ok(asked)
        })
        .await
    }
}

/// Removes what was answered before from the live window, where this turn's question is asked again.
pub(super) fn leave_live(conn: &Connection, session: SessionId, turn: TurnId) -> Result<(), Fault> {
    let of: Option<i64> = conn.prepare_cached(OF_AGAIN)?.query_row([turn.0], |row| row.get(0)).optional()?.flatten();
    of.map_or(Ok(()), |of| leave_live_of(conn, session, of))
}

/// Removes from the live window what a turn has answered.
pub(super) fn leave_live_of(conn: &Connection, session: SessionId, turn: i64) -> Result<(), Fault> {
    Ok(conn.prepare_cached(LEAVE_LIVE)?.run(params![session.0, turn])?)
}

/// The question that a message is, or answers; as it was last asked, where it was asked again.
enum QuestionAt {
    /// It was answered, or ended otherwise, in this turn.
    Over(TurnId, SessionKey),
    /// It waits for its answer, and can be stopped.
    Waits,
    /// It is unknown, or its end is not stored yet.
    NotYet,
}

impl From<Known> for QuestionAt {
    fn from(known: Known) -> QuestionAt {
        match known.message {
            None if known.is_answered => QuestionAt::Over(known.turn(), known.key),
            _ if known.waits() => QuestionAt::Waits,
            _ => QuestionAt::NotYet,
        }
    }
}

fn question_at(conn: &Connection, message: &MessageRef) -> Result<QuestionAt, Fault> {
    let Some(newest) = find(conn, message)?.into_iter().next() else {
        let Some(reply) = reply_at(conn, message)? else {
            let is_placeholder = conn.prepare_cached(WAITING_AT)?.exists([&message.channel, &message.ts])?;
            return Ok(if is_placeholder { QuestionAt::Waits } else { QuestionAt::NotYet });
        };
        let (turn, newest) = newest_of(conn, reply.turn)?;
        // On some fronts, messages have no timestamp of their own.
        return Ok(newest.map_or(QuestionAt::Over(turn, reply.key), QuestionAt::from));
    };
    let (turn, of_group) = newest_of(conn, newest.turn())?;
    Ok(of_group.filter(|_| turn != newest.turn()).unwrap_or(newest).into())
}

/// Whether the question that a message answers was asked once more after that.
fn was_answered_since(conn: &Connection, message: &MessageRef) -> Result<bool, Fault> {
    let Some(reply) = reply_at(conn, message)? else { return Ok(false) };
    let (of, newest) = newest_of(conn, reply.turn)?;
    // A contact's answer that was handed on comes after its question.
    Ok(newest.is_some_and(|newest| newest.turn().0 > of.0))
}

/// Returns the turn that has answered this one's question together with its own (otherwise this turn), and the
/// newest inbox entry of that turn's message.
fn newest_of(conn: &Connection, turn: TurnId) -> Result<(TurnId, Option<Known>), Fault> {
    let with: Option<i64> =
        conn.prepare_cached(erase::PIECE_OF)?.query_row([turn.0], |row| row.get(1)).optional()?.flatten();
    let of = with.map_or(turn, TurnId);
    let place: Option<(Option<String>, String)> =
        conn.prepare_cached(PLACE)?.query_row([of.0], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let newest = match place {
        Some((Some(channel), ts)) => find(conn, &MessageRef { channel, ts })?.into_iter().next(),
        _ => None,
    };
    Ok((of, newest))
}

/// Returns the questions that a finished turn has answered, each as a message of its own, in the order they were
/// written; none where it has answered none, or all were deleted. The newest gets this event id.
fn asked_again(conn: &Connection, turn: TurnId, key: &SessionKey, event_id: &str) -> Result<Vec<Inbound>, Fault> {
    let mut questions = Vec::new();
    for (of, text) in texts(conn, turn, key)? {
        let mut statement = conn.prepare_cached(ASKED)?;
        let mut rows = statement.query([of.0])?;
        let Some(row) = rows.next()? else { continue };
        let (Some(user), Some(channel), ts) = (row.get(0)?, row.get(1)?, row.get(2)?) else { continue };
        let called_off: Option<String> = row.get(4)?;
        let is_gone = called_off.as_deref() == Some(CalledOff::Deleted.name());
        if is_gone || !row.get::<_, bool>("is_question")? || !row.get::<_, bool>("is_over")? {
            continue;
        }
        let edited: Option<String> = row.get(3)?;
        let attached: Option<String> = row.get("attached")?;
        let by_app = row.get("by_app")?;
        questions.push(Inbound {
            event_id: format!("{event_id}:{of}"),
            aliases: vec![],
            key: key.clone(),
            user,
            reply_to: ReplyTo { channel, thread_ts: key.thread.clone() },
            text: edited.unwrap_or(text),
            attached: attached.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default(),
            if_awaited: false,
            by_app,
            team: row.get("team")?,
            in_group: false,
            asked_at: None,
            ts,
        });
    }
    if let Some(newest) = questions.last_mut() {
        newest.event_id = event_id.to_owned();
    }
    Ok(questions)
}

/// Returns the stored text of each question that a turn has answered: of those merged into its own, its own, and those
/// that came while it was being answered, which are stored as messages of their own.
fn texts(conn: &Connection, turn: TurnId, key: &SessionKey) -> Result<Vec<(TurnId, String)>, Fault> {
    let Some((_, stored)) = erase::question_text(conn, turn)? else { return Ok(vec![]) };
    let mut statement = conn.prepare_cached(PIECES)?;
    let mut rows = statement.query([turn.0])?;
    let (mut texts, mut followed_by) = (vec![], vec![]);
    while let Some(row) = rows.next()? {
        let of = TurnId(row.get(0)?);
        let user: Option<String> = row.get(3)?;
        // In a channel each text was prefixed with its author's name.
        let named = user.filter(|_| matches!(key.place, Place::Channel(_)));
        let unnamed =
            |text: &str| named.as_deref().map_or_else(|| text.to_owned(), |user| chat::unattributed(user, text));
        match (row.get::<_, Option<u32>>(1)?, row.get::<_, Option<u32>>(2)?) {
            (Some(start), Some(bytes)) => {
                let (start, end) = (start as usize, start as usize + bytes as usize);
                texts.push((of, unnamed(stored.get(start..end).unwrap_or_default())));
            }
            _ => followed_by.extend(erase::question_text(conn, of)?.map(|(_, text)| (of, unnamed(&text)))),
        }
    }
    if texts.is_empty() {
        texts.push((turn, stored));
    }
    texts.append(&mut followed_by);
    Ok(texts)
}
