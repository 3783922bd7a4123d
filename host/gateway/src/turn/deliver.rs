//! Step 8: delivers the reply. One part replaces the placeholder, the others are posted after it. Each part is
//! marked as sent before the next one goes out, so that a crash leaves at most one delivery uncertain. That
//! part is searched for before it is posted again.

use std::time::Duration;

use self::post::{UncertainDelivery, send};
use super::{TurnError, buttons, journal::Journal, placeholder};
use crate::{
    chat::Inbound,
    dispatch::Batch,
    front::{Delivery, Front, FrontError, Kind},
    ledger::{
        Event,
        report::{QuestionReport, TokenReport, TurnKind, TurnReport},
    },
    services::Services,
    store::{Answered, Outgoing, Part, Purpose, Sent, Store},
};

mod elsewhere;
mod in_person;
mod notice;
mod post;
mod unreached;

/// How long an answer is retried after a refusal whose meaning is unknown. Meanwhile no reaction in its channel is
/// acknowledged, because it may be to this answer: Slack sends a reaction again after a minute, and gives up after two
/// more attempts.
const MAY_PASS_WITHIN: Duration = Duration::from_secs(30);

/// Delivers the parts of an answer that were not delivered yet.
pub(super) async fn deliver(services: &Services, answered: Answered, batch: &Batch) -> Result<(), TurnError> {
    let inbound = &answered.inbound;
    let mut reply_ts = answered.reply_ts.clone().or_else(|| answered.placeholder.clone());
    let mut sent = Vec::new();
    let journal = Journal::new(answered.tags.clone());
    let is_streamed = answered.is_streamed;
    let mut doubt = answered.resumed.then_some(UncertainDelivery { of: inbound, is_streamed, journal: &journal });
    let mut in_file = false;
    // What an earlier attempt has streamed is searched for together with the first part, if that is
    // searched for.
    let is_looked_for = answered.resumed && answered.parts.first().is_some_and(is_looked_for);
    if answered.is_streamed && !is_looked_for {
        services.front.recall(&inbound.event_id, &inbound.reply_to, &inbound.ts).await?;
    }
    for part in &answered.parts {
        if in_file && matches!(part.outgoing.purpose, Purpose::Reply | Purpose::PassedOn) {
            // Marked before the file itself: after a crash the file is searched for, and these parts
            // are not.
            sent.insert(0, Sent { part: part.number, id: None });
            continue;
        }
        for sent in sent.drain(..) {
            services.store.part_sent(answered.turn, sent, journal.take(), services.now_ms()).await?;
        }
        // No verdict on it is accepted before the store knows its message id.
        let judging = match part.outgoing.purpose {
            Purpose::Proposal => Some(services.judging.lock(&inbound.reply_to.channel).await),
            _ => None,
        };
        // A person asked in a direct message answers under it, possibly at once.
        let is_awaited = judging.is_some() || part.outgoing.to.is_some();
        let is_file = part.outgoing.purpose == Purpose::Document;
        let in_doubt = doubt.take();
        let id = match deliver_part(services, &answered, part, in_doubt, batch).await {
            Err(TurnError::Front(FrontError::Refused { what, .. })) if is_file => {
                note_cut(&journal, inbound, what);
                None
            }
            Err(TurnError::Front(FrontError::Refused { what, may_pass })) => {
                handle_refused_part(services, &answered, part, in_doubt, (what, may_pass), &journal).await?
            }
            id => {
                in_file |= is_file;
                id?
            }
        };
        if part.number == 0 {
            reply_ts = id.clone().or(reply_ts);
        }
        let posted = Sent { part: part.number, id };
        match is_awaited {
            true => services.store.part_sent(answered.turn, posted, journal.take(), services.now_ms()).await?,
            false => sent.push(posted),
        }
    }
    // After the turn is finished, nothing would remove what was shown.
    if let Err(error) = clear(&*services.front, &answered).await {
        for sent in sent {
            services.store.part_sent(answered.turn, sent, journal.take(), services.now_ms()).await?;
        }
        return Err(error.into());
    }
    services.front.report(&inbound.event_id, &answered.report).await?;
    services.front.over(&inbound.event_id).await;
    if answered.resumed {
        services.front.resumed(inbound).await;
    }
    for event_id in &answered.report.event_ids {
        services.front.over(event_id).await;
    }
    // The last part is marked as sent together with the turn.
    let now_ms = services.now_ms();
    journal.note(processed(&answered, reply_ts, now_ms));
    services.store.finish(answered.turn, sent, journal.take(), now_ms).await?;
    log(&answered, now_ms);
    Ok(())
}

/// Handles a part that its conversation refused. An answer still reaches the asker, or is parked: it is retried for a
/// while if the refusal may pass, and then sent to the asker as a direct message. The refusal of any other part is only
/// noted.
async fn handle_refused_part(
    services: &Services,
    answered: &Answered,
    part: &Part,
    doubt: Option<UncertainDelivery<'_>>,
    (what, may_pass): (String, bool),
    journal: &Journal,
) -> Result<Option<String>, TurnError> {
    let Outgoing { purpose, to, .. } = &part.outgoing;
    let is_the_answer = matches!(purpose, Purpose::Reply | Purpose::PassedOn) && to.is_none();
    if is_the_answer {
        let waited = services.now_ms().abs_diff(answered.answered_at_ms);
        if may_pass && u128::from(waited) < MAY_PASS_WITHIN.as_millis() {
            return Err(FrontError::Transient { what, retry_after: None, not_made: true }.into());
        }
        let id = in_person::deliver(services, answered, part, doubt).await?;
        return id.map(Some).ok_or_else(|| FrontError::Refused { what, may_pass: false }.into());
    }
    note_undelivered(journal, &answered.inbound, what);
    if *purpose == Purpose::Escalation {
        unreached::tell(services, answered, part.number, doubt).await?;
    }
    Ok(None)
}

/// Returns whether this part, as the first remaining one of a resumed answer, is searched for in its
/// conversation.
fn is_looked_for(Part { outgoing, .. }: &Part) -> bool {
    let is_there = outgoing.to.is_none() && outgoing.thread_ts.is_none();
    is_there && matches!(outgoing.purpose, Purpose::Reply | Purpose::PassedOn)
}

/// Removes what was shown of answers to these questions and did not become this answer.
async fn clear(front: &dyn Front, answered: &Answered) -> Result<(), FrontError> {
    front.clear(&answered.inbound.event_id).await?;
    for event_id in &answered.report.event_ids {
        front.clear(event_id).await?;
    }
    Ok(())
}

/// Logs one line per turn.
fn log(Answered { report, received_at_ms, .. }: &Answered, now_ms: i64) {
    let TurnReport { event_id, session, kind, .. } = report;
    let ms = now_ms - received_at_ms;
    match kind {
        TurnKind::Command { command } => tracing::info!(%session, event_id, command, ms, "turn"),
        TurnKind::Question(question) => {
            let QuestionReport { policy, tokens, turns_dropped, calls, rungs, .. } = &**question;
            let policy = policy.as_ref().map(|policy| policy.name.as_str());
            let rungs = (!rungs.is_empty()).then(|| rungs.join(","));
            let TokenReport { after: tokens, limit, .. } = tokens;
            tracing::info!(%session, event_id, policy, tokens, limit, turns_dropped, rungs, calls, ms, "turn");
        }
    }
}

async fn deliver_part(
    services: &Services,
    answered: &Answered,
    part: &Part,
    doubt: Option<UncertainDelivery<'_>>,
    batch: &Batch,
) -> Result<Option<String>, TurnError> {
    let (Part { number, outgoing }, buttons) = (part, buttons::under(&services.messages, &answered.parts, part));
    let Outgoing { speech, purpose, .. } = outgoing;
    let inbound = &answered.inbound;
    let reply_to = elsewhere::place(&*services.front, inbound, outgoing).await?;
    let (kind, replaces) = match purpose {
        Purpose::Mark { emoji } => return elsewhere::mark(services, inbound, emoji, (*number, speech), doubt).await,
        Purpose::Withdraw(withdrawal) => {
            if let Some(placeholder) = placeholder::withdrawn(&*services.front, &reply_to, withdrawal).await? {
                placeholder::withdraw(&*services.front, &reply_to, &placeholder).await?;
            }
            return Ok(None);
        }
        Purpose::HandOn { answer } => {
            batch.take_in((**answer).clone()).await?;
            return Ok(None);
        }
        Purpose::Reply => (Kind::Reply, answered.placeholder.as_deref().filter(|_| *number == 0)),
        Purpose::PassedOn => (Kind::Reply, None),
        Purpose::Document => (Kind::Document, None),
        Purpose::Escalation => (Kind::Escalation, None),
        Purpose::Proposal | Purpose::Tracked => (Kind::Notice, None),
        Purpose::Notice { .. } => (Kind::Notice, answered.placeholder.as_deref()),
    };
    let answers = if is_last_of_reply(answered, part) { asked(&services.store, answered).await? } else { vec![] };
    let delivery = Delivery {
        event_id: &inbound.event_id,
        event_ids: &answered.report.event_ids,
        answers: &answers,
        number: *number,
        reply_to: &reply_to,
        replaces,
        speech,
        buttons: &buttons,
        kind,
        is_stopped: answered.report.command() == Some("stop"),
        parked_at_ms: None,
    };
    match purpose {
        Purpose::Notice { atom, saved_in } => {
            notice::ask(services, answered.turn, delivery, (atom, saved_in.as_deref()), doubt).await
        }
        _ => Ok(send(services, delivery, doubt).await?),
    }
}

/// Returns whether nothing of the reply follows this part, except as a file.
fn is_last_of_reply(answered: &Answered, part: &Part) -> bool {
    let is_of_reply = |part: &&Part| matches!(part.outgoing.purpose, Purpose::Reply | Purpose::Document);
    let next = answered.parts.iter().filter(is_of_reply).find(|other| other.number > part.number);
    part.outgoing.purpose == Purpose::Reply && next.is_none_or(|next| next.outgoing.purpose == Purpose::Document)
}

/// Returns the ids of all messages that were answered.
async fn asked(store: &Store, answered: &Answered) -> Result<Vec<String>, TurnError> {
    let mut asked = vec![answered.inbound.ts.clone()];
    if !answered.report.event_ids.is_empty() {
        let along = store.asked_along(answered.turn).await?;
        asked.extend(along.into_iter().map(|(_, ts)| ts));
    }
    Ok(asked)
}

/// Returns the ledger event of a finished turn.
fn processed(
    Answered { inbound, report, received_at_ms, .. }: &Answered,
    reply_ts: Option<String>,
    now_ms: i64,
) -> Event {
    let question = report.question();
    let atom_ids = question.map(|question| question.atoms.clone()).unwrap_or_default();
    Event::TurnProcessed {
        actor: inbound.user.clone(),
        session: inbound.key.to_string(),
        audience: question.map(|question| question.audience.to_string()).unwrap_or_default(),
        command: report.command().map(str::to_owned),
        channel_id: inbound.reply_to.channel.clone(),
        thread_ts: inbound.reply_to.thread_ts.clone(),
        reply_ts,
        had_mra_ask: question.is_some_and(|question| question.mra_asks > 0),
        atoms_injected: atom_ids.len(),
        atom_ids,
        // A request that was never sent has no cost.
        tokens_sent: question.filter(|question| question.calls > 0).map_or(0, |question| question.tokens.after),
        rungs: question.map(|question| question.rungs.clone()).unwrap_or_default(),
        unanswered: question.and_then(|question| question.unanswered.clone()),
        latency_ms: u64::try_from(now_ms - received_at_ms).unwrap_or(0),
    }
}

/// Reports to the operator that the front will never accept a message that is not the answer
/// itself.
fn note_undelivered(journal: &Journal, inbound: &Inbound, what: String) {
    tracing::error!(session = %inbound.key, what, "a message was refused and will not reach the person");
    let (actor, session) = (inbound.user.clone(), inbound.key.to_string());
    journal.note(Event::ReplyUndelivered { actor, session, reason: what });
}

/// Notes that a person gets only the beginning of a reply.
fn note_cut(journal: &Journal, inbound: &Inbound, what: String) {
    tracing::warn!(session = %inbound.key, what, "cannot post a long reply as a file; posting its first parts");
    let (actor, session) = (inbound.user.clone(), inbound.key.to_string());
    journal.note(Event::ReplyCut { actor, session, reason: what });
}
