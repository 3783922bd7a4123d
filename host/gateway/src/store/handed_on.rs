//! Answers that are handed on: a contact who was asked in a direct message has answered there, and the answer becomes a
//! message in the conversation of the asker. So does what the contact adds to it, which therefore comes after it.

use super::{
    Purpose, codec,
    error::Fault,
    escalations,
    intake::front_name,
    outgoing::How,
    sql::{Connection, params},
};
use crate::{
    chat::{Attachments, Inbound},
    escalation::Marker,
    ids::TurnId,
};

/// The prefix of the event id of such an answer; the number of the contact's turn follows.
pub(super) const HANDED_ON: &str = ":answer:";

/// The same for what they add to it, which is handed on like an answer. Hosts of earlier versions read the number from its
/// sign on, and no turn with such a number has claimed anything.
const ADDED: &str = ":answer:-";

pub(super) const TAKE_OVER: &str =
    "UPDATE escalation SET claimed_by = ?2 WHERE claimed_by IN (?1, ?2) RETURNING marker";
pub(super) const TAKE_BACK: &str =
    concat!("UPDATE escalation SET ", escalations::unclaimed!(), " WHERE claimed_by = ?1");
pub(super) const PARTS: &str = "SELECT part, how FROM outbox WHERE turn_id = ?1 AND (how LIKE '%\"for\":\"hand-on\"%'
         OR (sent_at IS NOT NULL AND how LIKE '%\"for\":\"notice\"%'))";
/// The conversation of the contact may be erased before that of the asker.
pub(super) const KEEP_IMAGES: &str = "INSERT INTO image (inbox_id, sha256, bytes)
     SELECT CAST(?2 AS BIGINT), sha256, bytes FROM image WHERE inbox_id = ?1 ON CONFLICT DO NOTHING";
pub(super) const SET_PART: &str = "UPDATE outbox SET how = ?3 WHERE turn_id = ?1 AND part = ?2";

/// Returns the answer that a contact's turn hands on to the asker's conversation, as the message it becomes there.
/// No message from outside can have its event id.
pub fn handed_on(turn: TurnId, contact: &Inbound, marker: &Marker) -> Option<Inbound> {
    let apart = marker.apart.as_ref()?;
    Some(Inbound {
        event_id: format!("{HANDED_ON}{turn}"),
        aliases: vec![],
        key: apart.key.clone(),
        user: contact.user.clone(),
        reply_to: apart.reply_to.clone(),
        text: contact.text.clone(),
        attached: contact.attached.clone(),
        if_awaited: false,
        by_app: false,
        team: None,
        in_group: false,
        asked_at: None,
        // Its position is that of the question, so that it is looked for after it.
        ts: marker.thread_ts.clone(),
    })
}

/// Returns what a contact's turn adds to their answer, in the words that the asker reads, as the message it becomes in
/// the asker's conversation.
pub fn addition(turn: TurnId, contact: &Inbound, marker: &Marker, text: String) -> Option<Inbound> {
    let answer = handed_on(turn, contact, marker)?;
    Some(Inbound { event_id: format!("{ADDED}{turn}"), text, attached: Attachments::default(), ..answer })
}

/// Whether a message is one that adds to an answer that was handed on.
pub fn is_addition(inbound: &Inbound) -> bool {
    inbound.event_id.starts_with(ADDED)
}

/// Whether a message is an answer that was handed on, or adds to one.
pub fn is_handed_on(inbound: &Inbound) -> bool {
    inbound.event_id.starts_with(HANDED_ON)
}

/// Transfers the claim on an answer from the contact's turn that has handed it on to this turn. What adds to an answer
/// claims nothing: it is about what its thread was last asked, answered or not.
pub(super) fn take_over(conn: &Connection, answer: &Inbound, turn: TurnId) -> Result<Option<Marker>, Fault> {
    if is_addition(answer) {
        let place = params![front_name(answer.key.front), answer.reply_to.channel, answer.ts];
        return escalations::first(conn.prepare_cached(escalations::LAST_ASKED)?.query(place)?);
    }
    let from = contacts_turn(answer);
    let from = from.ok_or_else(|| Fault::Damaged("an answer that was passed on names no turn".into()))?;
    let mut statement = conn.prepare_cached(TAKE_OVER)?;
    let mut rows = statement.query(params![from, turn.0])?;
    let mut taken = None;
    while let Some(row) = rows.next()? {
        taken = Some(escalations::marker(row)?);
    }
    Ok(taken)
}

/// Returns the turn in which a contact has given an answer that was handed on.
fn contacts_turn(answer: &Inbound) -> Option<i64> {
    answer.event_id.strip_prefix(HANDED_ON)?.parse().ok()
}

/// Keeps the images of an answer that was handed on for the turn that passes it on, too.
pub(super) fn keep_images(conn: &Connection, answer: &Inbound, turn: TurnId) -> Result<(), Fault> {
    match contacts_turn(answer) {
        Some(from) => Ok(conn.prepare_cached(KEEP_IMAGES)?.run(params![from, turn.0])?),
        None => Ok(()),
    }
}

/// Makes the question wait again whose answer this turn has claimed, or has handed on.
pub(super) fn take_back(conn: &Connection, turn: TurnId) -> Result<(), Fault> {
    Ok(conn.prepare_cached(TAKE_BACK)?.run([turn.0])?)
}

/// Returns the answers that a contact's turn hands on.
pub(super) fn by(conn: &Connection, turn: TurnId) -> Result<Vec<Inbound>, Fault> {
    let answer = |(_, how): (i64, How)| match how.purpose {
        Purpose::HandOn { answer } => Some(*answer),
        _ => None,
    };
    Ok(parts(conn, turn)?.into_iter().filter_map(answer).collect())
}

/// Erases the text of what a contact's turn hands on, and of the atom that was made from it.
pub(super) fn erase(conn: &Connection, turn: TurnId) -> Result<(), Fault> {
    for (part, mut how) in parts(conn, turn)? {
        match &mut how.purpose {
            Purpose::HandOn { answer } => {
                answer.text.clear();
                answer.attached = Attachments::default();
            }
            Purpose::Notice { atom, .. } => atom.clear(),
            _ => {}
        }
        conn.prepare_cached(SET_PART)?.run(params![turn.0, part, codec::to_json(&how)])?;
    }
    Ok(())
}

/// Stores what comes by now with a message whose contact's turn hands it on, and erases the text of the atom that was made
/// from it.
pub(super) fn reattach(conn: &Connection, turn: TurnId, attached: &Attachments) -> Result<(), Fault> {
    for (part, mut how) in parts(conn, turn)? {
        match &mut how.purpose {
            Purpose::HandOn { answer } if !answer.attached.is_empty() => answer.attached = attached.clone(),
            Purpose::Notice { atom, .. } => atom.clear(),
            _ => continue,
        }
        conn.prepare_cached(SET_PART)?.run(params![turn.0, part, codec::to_json(&how)])?;
    }
    Ok(())
}

/// The parts that have the text of a contact's answer.
fn parts(conn: &Connection, turn: TurnId) -> Result<Vec<(i64, How)>, Fault> {
    let mut statement = conn.prepare_cached(PARTS)?;
    let mut rows = statement.query([turn.0])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push((row.get(0)?, codec::from_json(row.get_ref(1)?, &format!("a part of turn {turn}"))?));
    }
    Ok(found)
}
