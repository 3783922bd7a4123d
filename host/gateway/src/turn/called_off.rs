//! Questions that the model no longer answers because people called them off. A deleted question is finished without a
//! trace; a stopped one ends with what there was of the answer, and a note that it was stopped. If a contact takes an answer
//! back before it was passed on, the others are told that the question is open again.

use pmk_core::{Entry, Message};

use super::{
    TurnError, batching,
    conclude::{Conclusion, conclude},
    deliver, hear, parts, placeholder, record,
};
use crate::{
    chat::MessageBody,
    dispatch::Batch,
    exchange::GivenUp,
    front::settled::unfenced,
    ledger::{TaggedEvent, Tags, report::TurnReport},
    services::Services,
    store::{self, Answered, CalledOff, CaseEntry, OpenTurn, Outgoing, Recorded, TurnOutcome},
};

/// Ends called-off questions of one batch. `said` is the model's answer so far, and `given_up` the results of making
/// it, which count. Otherwise a policy whose answers are often stopped would look cheaper. Cleared once stored.
pub(super) async fn end(
    services: &Services,
    turns: Vec<OpenTurn>,
    said: &str,
    given_up: &mut GivenUp,
    batch: &Batch,
) -> Result<(), TurnError> {
    let is_stopped =
        |turn: &OpenTurn| turn.called_off == Some(CalledOff::Stopped) && !store::is_handed_on(&turn.inbound);
    let (mut stopped, deleted): (Vec<_>, Vec<_>) = turns.into_iter().partition(is_stopped);
    for turn in deleted {
        placeholder::take_away(&*services.front, &turn).await?;
        services.front.over(&turn.inbound.event_id).await;
        if turn.resumed {
            services.front.resumed(&turn.inbound).await;
        }
        // It was an attempt at all of them.
        let counts = stopped.is_empty();
        let GivenUp { usage, outcome, events, .. } = if counts { given_up.clone() } else { GivenUp::default() };
        if outcome.tags != Tags::default() {
            services.store.spent(turn.turn, usage, &outcome).await?;
        }
        let (ended, session) = (turn.turn, turn.session);
        let closed = close(services, turn, events, batch).await;
        closed.inspect_err(|_| services.experiment.overdue(&outcome))?;
        if counts {
            *given_up = GivenUp::default();
        }
        services.experiment.judge(ended, session, outcome);
    }
    match stopped.pop() {
        Some(newest) => deliver::deliver(services, stop(services, newest, stopped, said, given_up).await?, batch).await,
        None => Ok(()),
    }
}

/// Ends a deleted question, and tells the other contacts if it was an answer to theirs.
async fn close(services: &Services, turn: OpenTurn, events: Vec<TaggedEvent>, batch: &Batch) -> Result<(), TurnError> {
    let parts = open_again(services, &turn).await?;
    if parts.is_empty() {
        return Ok(services.store.finish(turn.turn, vec![], events, services.now_ms()).await?);
    }
    let told = Conclusion { events, ..Conclusion::of("taken-back", parts) };
    deliver::deliver(services, conclude(services, turn, told).await?, batch).await
}

/// Returns the messages that tell the other contacts that the question is open again, if this was an answer to one.
async fn open_again(services: &Services, turn: &OpenTurn) -> Result<Vec<Outgoing>, TurnError> {
    let Some(marker) = services.store.reopened(&turn.inbound).await? else { return Ok(vec![]) };
    let contributor = &turn.inbound.user;
    let text = services.messages.answer_taken_back(contributor, &marker.question);
    let others = |contact: &str| contact != contributor;
    hear::to_contacts(services, turn, &marker, &MessageBody { text, pings: vec![] }, others).await
}

/// Stores the answer so far as the answer, so that the conversation continues from it.
async fn stop(
    services: &Services,
    mut turn: OpenTurn,
    merged: Vec<OpenTurn>,
    said: &str,
    given_up: &mut GivenUp,
) -> Result<Answered, TurnError> {
    let asked_by = batching::author(&turn, &merged).map(str::to_owned);
    batching::merge(&mut turn, &merged);
    let pieces = batching::pieces(&turn, &merged);
    let text = match unfenced(said).trim() {
        "" => services.messages.stopped(),
        said => format!("{said}\n\n{}", services.messages.stopped()),
    };
    let key = turn.inbound.key.clone();
    let mut parts =
        parts::of_reply(&*services.front, &services.messages, &key, MessageBody { text: text.clone(), pings: vec![] });
    let in_doubt = (turn.begun_with.placeholder && turn.placeholder.is_none()).then_some(&turn);
    parts.extend(placeholder::withdrawals(merged.iter(), in_doubt));
    let report = TurnReport {
        event_ids: batching::event_ids(&turn, merged.iter()),
        ..TurnReport::of_command(turn.inbound.event_id.clone(), key, "stop")
    };
    let asked = &turn.inbound.text;
    let GivenUp { usage, outcome, mut events, .. } = given_up.clone();
    // Whoever stops an answer may ask again.
    let reask = outcome.tags.place.as_ref().and_then(|_| services.questions.ask(&turn));
    events.extend(
        reask.map(|reask| TaggedEvent { event: record::reasked(&turn.inbound, reask), tags: outcome.tags.clone() }),
    );
    let (user, asked_at_ms) = (asked_by.clone(), turn.received_at_ms);
    let outcome = TurnOutcome { asked_by, reasked: reask.is_some(), ..outcome };
    let recorded = Recorded {
        messages: [Message::user(asked.clone()), Message::assistant(text)].map(|said| Entry::new(0, said)).into(),
        usage,
        also: merged.iter().map(|other| (other.turn, other.inbound.user.clone())).collect(),
        pieces,
        outcome: outcome.clone(),
        // No provider accepts an empty message.
        keep_live: !asked.trim().is_empty(),
        case: turn.case.map(|case| CaseEntry { case, user, asked_at_ms, notes: vec![] }),
        events,
        ..Recorded::of(report, parts, turn.live.revision)
    };
    let answered = record::store_answer(services, &turn, recorded, turn.placeholder.clone()).await?;
    *given_up = GivenUp::default();
    services.experiment.judge(turn.turn, turn.session, outcome);
    Ok(answered)
}
