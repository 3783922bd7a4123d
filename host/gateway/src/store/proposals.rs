//! Proposals: questions to people that wait for the asker's confirmation, and messages of contacts that may be
//! answers.

use std::time::Duration;

use pmk_knowledge::reaction::ReactionVerdict;

use super::{
    Pending, Store, StoreError, Verdict, codec,
    error::Fault,
    escalations,
    events::EventWriter,
    intake, presses,
    sql::{Connection, params},
};
use crate::{
    chat::{Attachments, Inbound, ReplyTo},
    escalation::Marker,
    ids::TurnId,
    ledger::Event,
};

/// How long a confirmation is waited for: as long as for a verdict on an atom.
pub const CONFIRMED_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) const PROPOSE: &str =
    "INSERT INTO proposal (turn_id, part, marker, confirmation, proposed_at) VALUES (?1, ?2, ?3, ?4, ?5)";
/// A confirmed proposal is kept until it is carried out, and one about a thread that waits until that waits no more: a
/// contact may say late that they have answered.
pub(super) const FORGET: &str = "DELETE FROM proposal WHERE proposed_at <= ?1 AND confirmed_by IS NULL
       AND NOT EXISTS (SELECT 1 FROM escalation e WHERE e.front IN ('slack', 'console')
             AND e.channel = CASE WHEN json_valid(proposal.marker) THEN json_extract(proposal.marker, '$.channelId') END
             AND e.thread_ts = CASE WHEN json_valid(proposal.marker) THEN json_extract(proposal.marker, '$.threadTs') END
             AND e.closed_at IS NULL)
     RETURNING confirmation";
pub(super) const FIND: &str = "SELECT p.turn_id, p.confirmation, p.proposed_at, p.confirmed_by, p.marker
     FROM outbox o JOIN proposal p ON p.turn_id = o.turn_id AND p.part = o.part
     WHERE o.sent_id = ?1";
pub(super) const CONFIRM: &str = "UPDATE proposal SET confirmed_by = ?2 WHERE turn_id = ?1";
pub(super) const DROP: &str = "DELETE FROM proposal WHERE turn_id = ?1";
pub(super) const CONFIRMATION: &str = "SELECT confirmation FROM proposal WHERE turn_id = ?1";
pub(super) const SET_CONFIRMATION: &str = "UPDATE proposal SET confirmation = ?2 WHERE turn_id = ?1";
pub(super) const CONFIRMED: &str = "SELECT marker FROM proposal WHERE confirmed_by = ?1";
pub(super) const REOPEN: &str = "UPDATE proposal SET confirmed_by = NULL, proposed_at = ?2 WHERE confirmed_by = ?1";
/// What a message says since it was edited.
pub(super) const EDITED: &str = "SELECT edited FROM inbox WHERE id = ?1 AND edited IS NOT NULL";
pub(super) const CARRIED_OUT: &str =
    "DELETE FROM proposal WHERE confirmed_by = (SELECT event_id FROM inbox WHERE id = ?1)";

/// The prefix of the event id of a confirmation; the proposing turn's number and the time follow. No id from
/// outside begins with a colon, so nobody can send such an id first and have the confirmation treated as a
/// duplicate.
const YES: &str = ":confirmed:";

/// The same for a contact's message that could not be classified as an answer, and that the contact says is one.
const MEANT: &str = ":meant:";

/// The same for one that the contact says is none: it is their own.
const OWN: &str = ":own:";

/// An escalation that is first shown to its asker; or a contact's message, where the contact is asked whether it is
/// an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Which part of the turn's answer shows it.
    pub part: u32,
    pub marker: Marker,
    /// The message that a confirmation becomes: it goes through the inbox like any other.
    pub confirmation: Box<Inbound>,
}

/// The effect of a verdict on a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProposalVerdict {
    /// It is confirmed: this message is to be accepted.
    Confirmed(Box<Inbound>),
    /// It is rejected: nobody will be asked.
    Dropped,
    /// The confirmation came too late: nobody will be asked.
    Expired,
    /// The contact says that it is an answer: this message is to be accepted as the answer.
    Meant(Box<Inbound>),
    /// The contact says that it is no answer: it was accepted as a message of their own. `waits`: an answer is still
    /// waited for.
    NotMeant { own: Option<Pending>, waits: bool },
    /// The contact says that it is an answer, but none is waited for any more.
    NotNeeded,
    /// Another person's confirmation is needed, in the conversation that is had here.
    NotTheirs(ReplyTo),
}

/// The texts that the message of a closed proposal then shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    pub dropped: String,
    pub expired: String,
    pub not_meant: String,
    pub not_needed: String,
}

impl Ends {
    /// Returns the text after this verdict.
    pub fn of(&self, judged: &ProposalVerdict) -> Option<&str> {
        match judged {
            ProposalVerdict::Dropped => Some(&self.dropped),
            ProposalVerdict::Expired => Some(&self.expired),
            ProposalVerdict::NotMeant { waits: true, .. } => Some(&self.not_meant),
            ProposalVerdict::NotMeant { waits: false, .. } | ProposalVerdict::NotNeeded => Some(&self.not_needed),
            ProposalVerdict::Confirmed(_) | ProposalVerdict::Meant(_) | ProposalVerdict::NotTheirs(_) => None,
        }
    }
}

impl Proposal {
    /// Returns a proposal that this turn shows in reply to this message.
    pub fn new(turn: TurnId, asked: &Inbound, marker: Marker) -> Proposal {
        let confirmation = Inbound {
            event_id: format!("{YES}{turn}"),
            aliases: vec![],
            text: String::new(),
            attached: Attachments::default(),
            ts: String::new(),
            ..asked.clone()
        };
        Proposal { part: 0, marker, confirmation: Box::new(confirmation) }
    }

    /// Returns a proposal that asks a contact whether this message is their answer.
    pub fn meant(turn: TurnId, said: &Inbound, marker: Marker) -> Proposal {
        let confirmation = Inbound { event_id: format!("{MEANT}{turn}"), aliases: vec![], ..said.clone() };
        // What was said about it meanwhile is read where it waits.
        let marker = Marker { exchange: vec![], ..marker };
        Proposal { part: 0, marker, confirmation: Box::new(confirmation) }
    }
}

/// Whether a message is an answer because its author has said so.
pub fn is_meant(inbound: &Inbound) -> bool {
    inbound.event_id.starts_with(MEANT)
}

/// Whether a message is no answer because its author has said so.
pub fn is_own(inbound: &Inbound) -> bool {
    inbound.event_id.starts_with(OWN)
}

impl Store {
    /// Applies a person's verdict to the proposal that a message shows. `None`: the message shows none, or one that
    /// is decided already. If the verdict closes the proposal, the text from `ends` that its message is to show is
    /// stored with it. A rejected or expired escalation gets a ledger event.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn judge_proposal(
        &self,
        verdict: &Verdict,
        ends: Ends,
        now_ms: i64,
    ) -> Result<Option<ProposalVerdict>, StoreError> {
        let (verdict, pen) = (verdict.clone(), self.pen(now_ms));
        self.write_with_events(move |conn| {
            let judged = judge(conn, pen, &verdict, now_ms)?;
            if let Some(text) = judged.as_ref().and_then(|judged| ends.of(judged)) {
                presses::keep(conn, &verdict, text, None)?;
            }
            if let Some(ProposalVerdict::Dropped | ProposalVerdict::Expired) = &judged {
                let (actor, channel_id) = (verdict.user.clone(), verdict.message.channel.clone());
                pen.write(conn, None, Event::EscalateDropped { actor, channel_id })?;
            }
            Ok(judged)
        })
        .await
    }
}

/// Stores a proposal that waits for its confirmation.
pub(super) fn propose(
    conn: &Connection,
    pen: EventWriter,
    (turn, proposal): (TurnId, &Proposal),
    now_ms: i64,
) -> Result<(), Fault> {
    forget(conn, pen, now_ms)?;
    let Proposal { part, marker, confirmation } = proposal;
    let values = params![turn.0, part, codec::to_json(marker), codec::to_json(&**confirmation), now_ms];
    conn.prepare_cached(PROPOSE)?.run(values)?;
    Ok(())
}

/// Forgets the proposals on which nobody has given a verdict in time. Questions among them get a ledger event.
fn forget(conn: &Connection, pen: EventWriter, now_ms: i64) -> Result<(), Fault> {
    let mut statement = conn.prepare_cached(FORGET)?;
    let mut rows = statement.query([expired(now_ms)])?;
    let mut dropped = Vec::new();
    while let Some(row) = rows.next()? {
        // Whose a damaged one was is not known.
        if let Ok(confirmation) = codec::from_json::<Inbound>(row.get_ref(0)?, "a proposal")
            && confirmation.event_id.starts_with(YES)
        {
            dropped.push(confirmation);
        }
    }
    for Inbound { user: actor, reply_to: ReplyTo { channel: channel_id, .. }, .. } in dropped {
        pen.write(conn, None, Event::EscalateDropped { actor, channel_id })?;
    }
    Ok(())
}

/// Makes the proposal that a message has confirmed wait for confirmation again.
pub(super) fn reopen(conn: &Connection, confirmed_by: &str, now_ms: i64) -> Result<(), Fault> {
    conn.prepare_cached(REOPEN)?.run(params![confirmed_by, now_ms])?;
    Ok(())
}

/// Stores what comes by now with a contact's message, where the contact is asked whether it is an answer.
pub(super) fn reattach(conn: &Connection, turn: TurnId, attached: &Attachments) -> Result<(), Fault> {
    let mut statement = conn.prepare_cached(CONFIRMATION)?;
    let mut rows = statement.query([turn.0])?;
    let Some(row) = rows.next()? else { return Ok(()) };
    let mut confirmation: Inbound = codec::from_json(row.get_ref(0)?, "a proposal")?;
    if is_meant(&confirmation) {
        confirmation.attached = attached.clone();
        conn.prepare_cached(SET_CONFIRMATION)?.run(params![turn.0, codec::to_json(&confirmation)])?;
    }
    Ok(())
}

/// Deletes the proposal that a finished turn was the confirmation of.
pub(super) fn carried_out(conn: &Connection, turn: TurnId) -> Result<(), Fault> {
    conn.prepare_cached(CARRIED_OUT)?.run([turn.0])?;
    Ok(())
}

/// Returns the escalation that a message confirms, if it is a confirmation.
pub(super) fn confirmed(conn: &Connection, inbound: &Inbound) -> Result<Option<Marker>, Fault> {
    if !inbound.event_id.starts_with(YES) {
        return Ok(None);
    }
    find_confirmed(conn, inbound)
}

/// Returns the escalation that a message answers, if it is one that its contact has said to be an answer.
pub(super) fn meant(conn: &Connection, inbound: &Inbound) -> Result<Option<Marker>, Fault> {
    if !is_meant(inbound) {
        return Ok(None);
    }
    find_confirmed(conn, inbound)
}

fn find_confirmed(conn: &Connection, inbound: &Inbound) -> Result<Option<Marker>, Fault> {
    let mut statement = conn.prepare_cached(CONFIRMED)?;
    let mut rows = statement.query([&inbound.event_id])?;
    match rows.next()? {
        Some(row) => codec::from_json(row.get_ref(0)?, "a proposal").map(Some),
        None => Ok(None),
    }
}

fn judge(
    conn: &Connection,
    pen: EventWriter,
    verdict: &Verdict,
    now_ms: i64,
) -> Result<Option<ProposalVerdict>, Fault> {
    let Some(Found { turn, proposed_at, confirmed_by, marker, mut confirmation }) = find(conn, verdict)? else {
        return Ok(None);
    };
    if confirmation.user != verdict.user {
        return Ok(Some(ProposalVerdict::NotTheirs(confirmation.reply_to)));
    }
    let is_late = proposed_at <= expired(now_ms);
    if confirmed_by.is_some() && (is_late || verdict.says == ReactionVerdict::Reject) {
        // It goes out regardless.
        return Ok(None);
    }
    let is_contacts = is_meant(&confirmation);
    if is_contacts && let Some(row) = conn.prepare_cached(EDITED)?.query([turn])?.next()? {
        // They mean what they have written there now.
        confirmation.text = row.get(0)?;
    }
    let dropped = if is_contacts {
        // However late: the question waits for as long as nobody answers it.
        let waits = confirmed_by.is_some() || escalations::is_waiting(conn, confirmation.key.front, &marker, None)?;
        match (verdict.says, waits) {
            (ReactionVerdict::Reject, _) => {
                Some(ProposalVerdict::NotMeant { own: own(conn, pen, (turn, &confirmation), now_ms)?, waits })
            }
            (ReactionVerdict::Approve, false) => Some(ProposalVerdict::NotNeeded),
            (ReactionVerdict::Approve, true) => None,
        }
    } else {
        match (verdict.says, is_late) {
            (ReactionVerdict::Reject, _) => Some(ProposalVerdict::Dropped),
            (ReactionVerdict::Approve, true) => Some(ProposalVerdict::Expired),
            (ReactionVerdict::Approve, false) => None,
        }
    };
    if dropped.is_some() {
        conn.prepare_cached(DROP)?.run([turn])?;
        return Ok(dropped);
    }
    // The same confirmation repeated is the same message; a later one, after the first could not be carried out, is
    // a new message.
    confirmation.event_id = confirmed_by.unwrap_or_else(|| format!("{}:{now_ms}", confirmation.event_id));
    conn.prepare_cached(CONFIRM)?.run(params![turn, confirmation.event_id])?;
    if is_contacts {
        return Ok(Some(ProposalVerdict::Meant(Box::new(confirmation))));
    }
    // It replaces the message that showed the proposal, and is looked for after it.
    confirmation.ts.clone_from(&verdict.message.ts);
    Ok(Some(ProposalVerdict::Confirmed(Box::new(confirmation))))
}

/// Accepts a contact's message, which is no answer, as one of their own.
fn own(
    conn: &Connection,
    pen: EventWriter,
    (turn, said): (i64, &Inbound),
    now_ms: i64,
) -> Result<Option<Pending>, Fault> {
    let own = Inbound { event_id: format!("{OWN}{turn}"), if_awaited: false, ..said.clone() };
    let inbox = intake::accept(conn, pen, (&own, &codec::to_json(&own)), now_ms)?;
    Ok(inbox.map(|inbox| Pending { inbox, key: own.key, ts: own.ts }))
}

/// A stored proposal.
struct Found {
    turn: i64,
    proposed_at: i64,
    /// The event id that confirmed it.
    confirmed_by: Option<String>,
    marker: Marker,
    confirmation: Inbound,
}

/// Returns the proposal that a message shows.
fn find(conn: &Connection, verdict: &Verdict) -> Result<Option<Found>, Fault> {
    let mut statement = conn.prepare_cached(FIND)?;
    let mut rows = statement.query([&verdict.message.ts])?;
    while let Some(row) = rows.next()? {
        let confirmation: Inbound = codec::from_json(row.get_ref(1)?, "a proposal")?;
        // Messages of two channels may have the same timestamp.
        if confirmation.reply_to.channel == verdict.message.channel {
            let marker = codec::from_json(row.get_ref(4)?, "a proposal")?;
            let (turn, proposed_at, confirmed_by) = (row.get(0)?, row.get(2)?, row.get(3)?);
            return Ok(Some(Found { turn, proposed_at, confirmed_by, marker, confirmation }));
        }
    }
    Ok(None)
}

fn expired(now_ms: i64) -> i64 {
    now_ms.saturating_sub(CONFIRMED_WITHIN.as_millis() as i64)
}
