//! Asking the people who know.

use pmk_core::Place;

use super::{super::work::Work, Done};
use crate::{
    clock,
    escalation::Marker,
    gateway::Gateway,
    say::Escalation,
    store::{Outgoing, Purpose},
};

/// Prepares the question to the contacts; it goes out, and its marker is stored, together with the turn's
/// answer. Returns what the model is told.
pub(super) fn escalate(
    gateway: &Gateway,
    work: &mut Work<'_>,
    repo: Option<String>,
    question: String,
    reason: Option<String>,
) -> Done {
    if work.turn.absorbs.is_some() {
        return Done::refused("somebody who knows has just answered: pass on what they said");
    }
    if work.tally.escalation.is_some() {
        return Done::refused("somebody is being asked already; one question at a time");
    }
    let inbound = &work.turn.inbound;
    let contacts = gateway.people.now().escalation.contacts(repo.as_deref(), &inbound.user);
    if contacts.is_empty() {
        tracing::warn!(session = %inbound.key, repo, "nobody is set up to be asked");
        return Done::refused("nobody is set up to be asked: tell the person so, and that an admin can change it");
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
    Done { text: told.into(), is_error: false, found: false }
}
