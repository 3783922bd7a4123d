//! Asking the people who know.

use pmk_core::Place;

use super::{
    super::{TurnError, work::Work},
    Done,
};
use crate::{
    clock,
    escalation::Marker,
    gateway::Gateway,
    say::Escalation,
    store::{Outgoing, Purpose},
};

/// Told to the model when it wants to ask a second question.
const ALREADY: &str = "not asked: people have been asked in this thread already and have not answered yet; tell the \
    person that this question has to wait for that answer";

/// What became of a question to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Asked,
    /// The thread waits for another answer first.
    Waiting,
    Nobody,
    /// They have just answered.
    Answered,
}

/// Prepares the question to the contacts; it goes out, and its marker is stored, together with the turn's
/// answer. Returns what the model is told.
pub(super) async fn escalate(
    gateway: &Gateway,
    work: &mut Work<'_>,
    repo: Option<String>,
    question: String,
    reason: Option<String>,
) -> Result<(Done, Fate), TurnError> {
    if work.turn.absorbs.is_some() {
        let why = "somebody who knows has just answered: pass on what they said";
        return Ok((Done::refused(why), Fate::Answered));
    }
    if work.tally.escalation.is_some() {
        return Ok((Done::refused(ALREADY), Fate::Asked));
    }
    let inbound = &work.turn.inbound;
    let contacts = gateway.contacts(repo.as_deref(), &inbound.user);
    // A thread can tell only one answer from talk: a second question would get the first one's.
    let (front, channel) = (inbound.key.front, &inbound.reply_to.channel);
    if gateway.store.is_waiting(front, channel, inbound.thread()).await? {
        tracing::info!(session = %inbound.key, "an escalation is put off: the thread waits for another answer");
        return Ok((Done::refused(ALREADY), Fate::Waiting));
    }
    if contacts.is_empty() {
        tracing::warn!(session = %inbound.key, repo, "nobody is set up to be asked");
        let why = "nobody is set up to be asked: tell the person so, and that an admin can change it";
        return Ok((Done::refused(why), Fate::Nobody));
    }
    let ask = Escalation {
        contacts: &contacts,
        asker: &inbound.user,
        question: &question,
        reason: reason.as_deref(),
        must_mention_bot: matches!(inbound.key.place, Place::Channel(_)),
    };
    let outgoing = Outgoing {
        speech: gateway.say.escalation(&ask),
        thread_ts: Some(inbound.thread().to_owned()),
        purpose: Purpose::Escalation,
    };
    let told = "the question was put to the people who know, in the same thread; their answer comes later";
    let marker = Marker {
        channel_id: inbound.reply_to.channel.clone(),
        thread_ts: inbound.thread().to_owned(),
        question,
        scope: repo,
        reason,
        pending_since: u64::try_from(clock::now_ms()).unwrap_or(0),
        mentioned_user_ids: contacts,
        asker_user_id: Some(inbound.user.clone()),
    };
    work.tally.escalation = Some((marker, outgoing));
    Ok((Done { text: told.into(), is_error: false, found: false }, Fate::Asked))
}
