//! Asking the people who know.

use pmk_core::{Block, Origin, Place, SessionKey, text};

use super::{
    super::{TurnError, together, work::Work},
    Done, bounds,
};
use crate::{
    clock,
    directive::{Kind, asked_share, own_words},
    escalation::Marker,
    gateway::Gateway,
    say,
    store::{Escalating, Outgoing, Proposal, Purpose},
};

/// Told to the model when it wants to ask a second question.
const ALREADY: &str = "not asked: people have been asked in this thread already and have not answered yet; tell the \
    person that this question has to wait for that answer";

/// Told to the model when its question is shown to the asker first.
const PROPOSED: &str = "not asked yet: the person has not asked this themselves, so they are shown the question, and it \
    goes out once they say yes to it; tell them so";

/// From this share of its words on a question counts as asked by the person themselves: a fifth, for it should
/// be put so that it can be understood without the conversation.
const LEAST_ASKED: f64 = 0.2;

/// Characters of a question, and of the reason given for it, that people are shown.
const MOST_OF_A_QUESTION: usize = 2_000;
const MOST_OF_A_REASON: usize = 300;

/// What became of a question to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Asked,
    /// The asker is shown it first.
    Proposed,
    /// The thread waits for another answer first.
    Waiting,
    Nobody,
    /// They have just answered.
    Answered,
    /// There were too many within the hour; the person reads so.
    Bounded,
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
    if let Some(why) = bounds::count(gateway, work, Kind::Escalate).await? {
        return Ok((Done::refused(why), Fate::Bounded));
    }
    // What is confirmed reads as what is sent, and stays one message.
    let question = text::head(&text::plain(&question), MOST_OF_A_QUESTION).to_owned();
    let reason = reason.map(|reason| text::head(&text::plain_line(&reason), MOST_OF_A_REASON).to_owned());
    let is_askers = is_askers(gateway, work, &question).await?;
    let inbound = &work.turn.inbound;
    let marker = Marker {
        channel_id: inbound.reply_to.channel.clone(),
        thread_ts: inbound.thread().to_owned(),
        question,
        scope: bounds::scope(gateway, repo).await,
        reason,
        pending_since: u64::try_from(clock::now_ms()).unwrap_or(0),
        mentioned_user_ids: contacts,
        asker_user_id: Some(inbound.user.clone()),
    };
    let (told, fate, prepared) = if is_askers {
        let told = "the question was put to the people who know, in the same thread; their answer comes later";
        let asking = outgoing(gateway, &inbound.key, &inbound.user, &marker);
        (told, Fate::Asked, (Escalating::Asked(inbound.key.front, marker), asking))
    } else {
        (PROPOSED, Fate::Proposed, propose(gateway, work, marker))
    };
    work.tally.escalation = Some(prepared);
    Ok((Done { text: told.into(), is_error: false, found: false }, fate))
}

/// The question as the contacts read it.
pub(in crate::turn) fn outgoing(gateway: &Gateway, key: &SessionKey, asker: &str, marker: &Marker) -> Outgoing {
    let ask = say::Escalation {
        contacts: &marker.mentioned_user_ids,
        asker,
        question: &marker.question,
        reason: marker.reason.as_deref(),
        must_mention_bot: matches!(key.place, Place::Channel(_)),
    };
    Outgoing {
        speech: gateway.say.escalation(&ask),
        thread_ts: Some(marker.thread_ts.clone()),
        purpose: Purpose::Escalation,
    }
}

/// The question as its asker is shown it, and what waits for their word.
fn propose(gateway: &Gateway, work: &Work<'_>, marker: Marker) -> (Escalating, Outgoing) {
    let inbound = &work.turn.inbound;
    let shown = Outgoing {
        speech: gateway.say.proposal(&inbound.user, &marker.question, marker.reason.as_deref()),
        thread_ts: None,
        purpose: Purpose::Proposal,
    };
    (Escalating::Proposed(Proposal::new(work.turn.turn, inbound, marker)), shown)
}

/// Whether anything of a question was asked by the person on whose behalf it would go out: in their own words, not in
/// what they quote.
async fn is_askers(gateway: &Gateway, work: &Work<'_>, question: &str) -> Result<bool, TurnError> {
    let asker = &work.turn.inbound.user;
    let said_now = together::words_of_asker(work.turn, &work.also);
    let theirs = match &work.turn.inbound.key.place {
        Place::Dm(_) => None,
        Place::Channel(_) => Some(gateway.store.written_by(work.turn.session, asker).await?),
    };
    let said = work.window.entries().filter(|entry| {
        entry.message.origin == Origin::User && theirs.as_ref().is_none_or(|theirs| theirs.contains(&entry.id))
    });
    let said = said.flat_map(|entry| entry.message.blocks.iter().filter_map(Block::content));
    let own: Vec<String> = said.chain([said_now.as_str()]).map(own_words).collect();
    Ok(asked_share(question, own.iter().map(String::as_str)) >= LEAST_ASKED)
}
