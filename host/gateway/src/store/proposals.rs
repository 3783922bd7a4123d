//! Questions to people that wait for the word of who they are asked for.

use std::time::Duration;

use super::{
    Store, StoreError, VerdictSource, codec,
    error::Fault,
    presses,
    sql::{Connection, params},
};
use crate::ids::TurnId;
use crate::{
    chat::{Attachments, Inbound, Reaction},
    escalation::Marker,
    ledger::Event,
};

/// How long a word is waited for: as long as for one on an atom.
pub const CONFIRMED_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) const PROPOSE: &str =
    "INSERT INTO proposal (turn_id, part, marker, confirmation, proposed_at) VALUES (?1, ?2, ?3, ?4, ?5)";
/// What was confirmed is known until it is carried out.
pub(super) const FORGET: &str = "DELETE FROM proposal WHERE proposed_at <= ?1 AND confirmed_by IS NULL";
pub(super) const FIND: &str = "SELECT p.turn_id, p.confirmation, p.proposed_at, p.confirmed_by
     FROM outbox o JOIN proposal p ON p.turn_id = o.turn_id AND p.part = o.part
     WHERE o.sent_id = ?1";
pub(super) const CONFIRM: &str = "UPDATE proposal SET confirmed_by = ?2 WHERE turn_id = ?1";
pub(super) const DROP: &str = "DELETE FROM proposal WHERE turn_id = ?1";
pub(super) const CONFIRMED: &str = "SELECT marker FROM proposal WHERE confirmed_by = ?1";
pub(super) const REOPEN: &str = "UPDATE proposal SET confirmed_by = NULL, proposed_at = ?2 WHERE confirmed_by = ?1";
pub(super) const CARRIED_OUT: &str =
    "DELETE FROM proposal WHERE confirmed_by = (SELECT event_id FROM inbox WHERE id = ?1)";

/// What the event id of a yes begins with; the proposing turn's number and the time follow. No id from outside has a
/// colon at this place: nobody can send one first, and have the yes taken for a duplicate.
const YES: &str = ":confirmed:";

/// The same of the message of a contact that nobody could tell to be an answer, and that is one by their own word.
const MEANT: &str = ":meant:";

/// A question that its asker is shown first; or what a contact has written, where they are asked whether it is an
/// answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Which of the turn's messages shows it.
    pub part: u32,
    pub marker: Marker,
    /// The message that a yes becomes: it goes through the inbox as any other.
    pub confirmation: Box<Inbound>,
}

/// What a reaction has done to a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProposalVerdict {
    /// This is to be taken in.
    Confirmed(Box<Inbound>),
    /// It will not be asked.
    Dropped,
    /// It was too late: it will not be asked either.
    Expired,
    /// A contact has answered: this is to be taken in as the answer.
    Meant(Box<Inbound>),
    /// What a contact has written was no answer, or they said so too late.
    NotMeant,
    /// Somebody else is asked for their word.
    NotTheirs,
}

/// What a message says whose proposal has come to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    pub dropped: String,
    pub expired: String,
    pub not_meant: String,
}

impl Ends {
    /// What it says after this.
    pub fn of(&self, judged: &ProposalVerdict) -> Option<&str> {
        match judged {
            ProposalVerdict::Dropped => Some(&self.dropped),
            ProposalVerdict::Expired => Some(&self.expired),
            ProposalVerdict::NotMeant => Some(&self.not_meant),
            ProposalVerdict::Confirmed(_) | ProposalVerdict::Meant(_) | ProposalVerdict::NotTheirs => None,
        }
    }
}

impl Proposal {
    /// One that is shown in answer to this message, by this turn.
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

    /// One that asks a contact whether this is their answer.
    pub fn meant(turn: TurnId, said: &Inbound, marker: Marker) -> Proposal {
        let confirmation = Inbound { event_id: format!("{MEANT}{turn}"), aliases: vec![], ..said.clone() };
        Proposal { part: 0, marker, confirmation: Box::new(confirmation) }
    }
}

/// Whether a message is an answer by its author's own word.
pub fn is_meant(inbound: &Inbound) -> bool {
    inbound.event_id.starts_with(MEANT)
}

impl Store {
    /// Takes somebody's word on the proposal that a message shows. `None`: it shows none, or one that is decided. Where it
    /// ends the proposal, its message is to say so in the words of `ends`, which is kept with that. The ledger tells of a
    /// question that is not asked because of it.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn judge_proposal(
        &self,
        (word, yes): (&Reaction, bool),
        said_by: VerdictSource,
        ends: Ends,
        now_ms: i64,
    ) -> Result<Option<ProposalVerdict>, StoreError> {
        let (word, pen) = (word.clone(), self.pen(now_ms));
        self.write_with_events(move |conn| {
            let judged = judge(conn, &word, yes, now_ms)?;
            if let Some(text) = judged.as_ref().and_then(|judged| ends.of(judged)) {
                presses::keep(conn, (&word, yes), said_by, text, None)?;
            }
            if let Some(ProposalVerdict::Dropped | ProposalVerdict::Expired) = &judged {
                let (actor, channel_id) = (word.user.clone(), word.channel.clone());
                pen.write(conn, None, Event::EscalateDropped { actor, channel_id })?;
            }
            Ok(judged)
        })
        .await
    }
}

/// From now on a question waits for its asker's word.
pub(super) fn propose(conn: &Connection, turn: TurnId, proposal: &Proposal, now_ms: i64) -> Result<(), Fault> {
    conn.prepare_cached(FORGET)?.run([expired(now_ms)])?;
    let Proposal { part, marker, confirmation } = proposal;
    let values = params![turn.0, part, codec::to_json(marker), codec::to_json(&**confirmation), now_ms];
    conn.prepare_cached(PROPOSE)?.run(values)?;
    Ok(())
}

/// What a message has confirmed waits for a word again, from now on.
pub(super) fn reopen(conn: &Connection, confirmed_by: &str, now_ms: i64) -> Result<(), Fault> {
    conn.prepare_cached(REOPEN)?.run(params![confirmed_by, now_ms])?;
    Ok(())
}

/// A turn is over, and with it the proposal that it was the yes to.
pub(super) fn carried_out(conn: &Connection, turn: TurnId) -> Result<(), Fault> {
    conn.prepare_cached(CARRIED_OUT)?.run([turn.0])?;
    Ok(())
}

/// What a message confirms, if it is one that a yes has become.
pub(super) fn confirmed(conn: &Connection, inbound: &Inbound) -> Result<Option<Marker>, Fault> {
    if !inbound.event_id.starts_with(YES) {
        return Ok(None);
    }
    find_confirmed(conn, inbound)
}

/// What a message answers, if it is one that a contact's word has made an answer.
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

fn judge(conn: &Connection, word: &Reaction, yes: bool, now_ms: i64) -> Result<Option<ProposalVerdict>, Fault> {
    let Some((turn, proposed_at, confirmed_by, mut confirmation)) = find(conn, word)? else { return Ok(None) };
    if confirmation.user != word.user {
        return Ok(Some(ProposalVerdict::NotTheirs));
    }
    let is_late = proposed_at <= expired(now_ms);
    if confirmed_by.is_some() && (is_late || !yes) {
        // It goes out, whatever is said now.
        return Ok(None);
    }
    let is_answer = is_meant(&confirmation);
    if is_late || !yes {
        conn.prepare_cached(DROP)?.run([turn])?;
        return Ok(Some(match yes {
            _ if is_answer => ProposalVerdict::NotMeant,
            true => ProposalVerdict::Expired,
            false => ProposalVerdict::Dropped,
        }));
    }
    // The same yes taken in again is the same message; a later one, where this one could not be carried out, is not.
    confirmation.event_id = confirmed_by.unwrap_or_else(|| format!("{}:{now_ms}", confirmation.event_id));
    conn.prepare_cached(CONFIRM)?.run(params![turn, confirmation.event_id])?;
    if is_answer {
        return Ok(Some(ProposalVerdict::Meant(Box::new(confirmation))));
    }
    // It takes the place of what was shown, and is looked for after it.
    confirmation.ts.clone_from(&word.ts);
    Ok(Some(ProposalVerdict::Confirmed(Box::new(confirmation))))
}

/// A proposal as it is stored: its turn, when it was made, who confirmed it, and what its asker had said.
type Found = (i64, i64, Option<String>, Inbound);

/// The proposal that a message shows.
fn find(conn: &Connection, word: &Reaction) -> Result<Option<Found>, Fault> {
    let mut statement = conn.prepare_cached(FIND)?;
    let mut rows = statement.query([&word.ts])?;
    while let Some(row) = rows.next()? {
        let confirmation: Inbound = codec::from_json(row.get_ref(1)?, "a proposal")?;
        // Two channels may have a message of the same moment.
        if confirmation.reply_to.channel == word.channel {
            return Ok(Some((row.get(0)?, row.get(2)?, row.get(3)?, confirmation)));
        }
    }
    Ok(None)
}

fn expired(now_ms: i64) -> i64 {
    now_ms.saturating_sub(CONFIRMED_WITHIN.as_millis() as i64)
}
