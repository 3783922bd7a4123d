//! Escalations: questions to the contacts.

use pmk_core::{Block, Entry, Message, Origin, Place, SessionKey, text};

use super::{
    super::{TurnError, batching, work::Work},
    Done, bounds,
};
use crate::{
    directive::{Given, Kind, asked_share, own_words},
    escalation::{Marker, PriorAttempts, PrivateConversation},
    front::Front,
    messages::{self, Messages},
    services::Services,
    store::{EscalationUpdate, Outgoing, Proposal, Purpose, Store},
};

/// The least share of a question's words that must be the asker's own for the question to count as theirs: a
/// fifth, because it should be phrased so that it can be understood without the conversation.
const LEAST_ASKED: f64 = 0.2;

/// The most characters of a question, and of its reason, that people are shown.
const MOST_OF_A_QUESTION: usize = 2_000;
const MOST_OF_A_REASON: usize = 300;

/// The outcome of an escalation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EscalationOutcome {
    Asked,
    /// The asker is shown the question first.
    Proposed,
    /// The thread is waiting for another answer.
    Waiting,
    Nobody,
    /// A contact has just answered.
    Answered,
    /// The hourly limit is reached; the person is told so in the reply.
    Bounded,
    /// The question cannot be sent as it is; the model is told.
    Refused,
}

/// Prepares the question to the contacts. It is sent, and its marker is stored, together with the turn's
/// answer. Returns what the model is told.
pub(super) async fn escalate(
    services: &Services,
    work: &mut Work<'_>,
    repo: Option<String>,
    question: String,
    reason: Option<String>,
) -> Result<(Done, EscalationOutcome), TurnError> {
    if work.turn.absorbs().is_some() {
        return Ok((Done::refused(services.messages.told_just_answered()), EscalationOutcome::Answered));
    }
    match &work.tally.escalation {
        Some((EscalationUpdate::Proposed(_), _)) => {
            return Ok((Done::refused(services.messages.told_proposed()), EscalationOutcome::Proposed));
        }
        Some(_) => return Ok((Done::refused(services.messages.told_already()), EscalationOutcome::Asked)),
        None => {}
    }
    // What the asker confirms reads exactly as what is sent.
    let question = text::plain(&question).into_owned();
    if question.chars().nth(MOST_OF_A_QUESTION).is_some() {
        return Ok((Done::refused(services.messages.told_too_long()), EscalationOutcome::Refused));
    }
    let repo = repo.map(|repo| text::plain_line(&repo));
    let inbound = &work.turn.inbound;
    let contacts = services.contacts(repo.as_deref(), &inbound.user);
    // Only one answer per thread can be told from other messages: a second question would get the
    // first one's answer.
    let (front, channel) = (inbound.key.front, &inbound.reply_to.channel);
    if services.store.is_waiting(front, channel, inbound.thread()).await? {
        tracing::info!(session = %inbound.key, "an escalation is postponed: the thread is waiting for another answer");
        return Ok((Done::refused(services.messages.told_already()), EscalationOutcome::Waiting));
    }
    if contacts.is_empty() {
        tracing::warn!(session = %inbound.key, repo, "nobody is set up to be asked");
        return Ok((Done::refused(services.messages.told_nobody()), EscalationOutcome::Nobody));
    }
    if services.store.knows_group(channel).await? {
        return Ok((Done::refused(services.messages.told_in_group()), EscalationOutcome::Refused));
    }
    if let Some(why) = bounds::count(services, work, Kind::Escalate).await? {
        return Ok((Done::refused(why), EscalationOutcome::Bounded));
    }
    let reason = reason.map(|reason| text::head(&text::plain_line(&reason), MOST_OF_A_REASON).to_owned());
    let is_askers = is_askers(&services.store, work, &question, reason.as_deref()).await?;
    let inbound = &work.turn.inbound;
    let marker = Marker {
        channel_id: inbound.reply_to.channel.clone(),
        thread_ts: inbound.thread().to_owned(),
        question,
        scope: bounds::scope(&services.people, &services.config, repo).await,
        reason,
        pending_since: u64::try_from(services.now_ms()).unwrap_or(0),
        mentioned_user_ids: contacts,
        asker_user_id: Some(inbound.user.clone()),
        tried: PriorAttempts { atoms: u32::try_from(work.atoms.len()).unwrap_or(u32::MAX), mra: work.tally.mra_asks },
        apart: match inbound.key.place {
            Place::Dm(_) => Some(PrivateConversation { key: inbound.key.clone(), reply_to: inbound.reply_to.clone() }),
            Place::Channel(_) => None,
        },
        exchange: vec![],
        asked_by: None,
        answered_by: None,
        earlier: vec![],
    };
    let (told, fate, prepared) = if is_askers {
        let told = services.messages.told_asked(marker.apart.is_some());
        let asking = outgoing(&services.messages, &inbound.key, &inbound.user, &marker);
        (told, EscalationOutcome::Asked, (EscalationUpdate::Asked(inbound.key.front, marker), asking))
    } else {
        let (proposed, shown) = propose(&*services.front, &services.messages, work, marker);
        (services.messages.told_proposed(), EscalationOutcome::Proposed, (proposed, vec![shown]))
    };
    work.tally.escalation = Some(prepared);
    Ok((Done { text: told, is_error: false, found_in: None }, fate))
}

/// Returns the question as the contacts read it: one message in its thread, or, if they cannot see that, a direct
/// message to each.
pub(in crate::turn) fn outgoing(messages: &Messages, key: &SessionKey, asker: &str, marker: &Marker) -> Vec<Outgoing> {
    let ask = |contacts: &[String]| {
        messages.escalation(&messages::Escalation {
            contacts,
            asker,
            question: &marker.question,
            reason: marker.reason.as_deref(),
            tried: marker.tried,
            in_channel: matches!(key.place, Place::Channel(_)),
        })
    };
    let purpose = Purpose::Escalation;
    if marker.apart.is_none() {
        let thread_ts = Some(marker.thread_ts.clone());
        return vec![Outgoing { speech: ask(&marker.mentioned_user_ids), thread_ts, purpose, ..Outgoing::default() }];
    }
    let asking = marker.mentioned_user_ids.iter().map(|contact| Outgoing {
        speech: ask(std::slice::from_ref(contact)),
        to: Some(contact.clone()),
        purpose: purpose.clone(),
        ..Outgoing::default()
    });
    asking.collect()
}

/// Returns the question as its asker is shown it, and the proposal that waits for their consent.
fn propose(front: &dyn Front, messages: &Messages, work: &Work<'_>, marker: Marker) -> (EscalationUpdate, Outgoing) {
    let (inbound, by_words) = (&work.turn.inbound, front.takes_words());
    let shown = Outgoing {
        speech: messages.proposal(&inbound.user, &marker.question, marker.reason.as_deref(), by_words),
        purpose: Purpose::Proposal,
        ..Outgoing::default()
    };
    (EscalationUpdate::Proposed(Proposal::new(work.turn.turn, inbound, marker)), shown)
}

/// Returns whether the person on whose behalf a question would be sent has asked any of it, in their own words, not
/// in what they quote. The reason, too, must not repeat what somebody else has put before the model.
async fn is_askers(store: &Store, work: &Work<'_>, question: &str, reason: Option<&str>) -> Result<bool, TurnError> {
    let asker = &work.turn.inbound.user;
    let said_now = batching::words_of_asker(work.turn, &work.merged, work.steered());
    let (session, is_private) = (work.turn.session, matches!(work.turn.inbound.key.place, Place::Dm(_)));
    // In private nobody else writes, but answers are passed on there.
    let known = match is_private {
        true => store.passed_on(session).await?,
        false => store.written_by(session, asker).await?,
    };
    let is_theirs = |entry: &&Entry| entry.message.origin == Origin::User && known.contains(&entry.id) != is_private;
    if let Some(reason) = reason {
        let others = work.exchange.window.entries().filter(|entry| !is_theirs(entry));
        // The other authors of a merged new message are among them.
        if Given::of(others.map(|entry| &*entry.message)).repeats(reason)
            && !Given::of([&Message::user(&*said_now)]).repeats(reason)
        {
            return Ok(false);
        }
    }
    let said = work.exchange.window.entries().filter(is_theirs);
    let said = said.flat_map(|entry| entry.message.blocks.iter().filter_map(Block::content));
    let own: Vec<String> = said.chain([said_now.as_str()]).map(own_words).collect();
    Ok(asked_share(question, own.iter().map(String::as_str)) >= LEAST_ASKED)
}
