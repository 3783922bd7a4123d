//! Step 7: stores the results of the turn, in one transaction, before anybody sees them.

use pmk_core::{Entry, Message};
use pmk_knowledge::Atom;
use pmk_models::Model;

use super::{
    TurnError, absorb, act, attach, batching, buttons,
    journal::Journal,
    parts,
    placeholder::{self, Placeholder},
    track,
    work::{Tally, Work},
};
use crate::{
    calibration::Calibrator,
    chat::{Inbound, MessageBody},
    exchange::{Cut, GivenUp},
    ledger::{
        Event,
        report::{Decider, QuestionReport, TokenReport, TurnKind, TurnReport},
    },
    messages::Messages,
    policies::experiment::signals::Reask,
    services::Services,
    store::{
        self, Answered, EscalationUpdate, ModelCalibration, OpenTurn, Outgoing, Proposal, Purpose, Recorded,
        TurnOutcome,
    },
};

/// An answer, or why there is none.
pub(super) enum Ending {
    /// The text for the person, which enters the conversation.
    Answered { text: String },
    /// The text that the person gets instead; nothing of this turn enters the live window.
    Failed {
        message: String,
        /// Whether a retry may succeed.
        may_pass: bool,
    },
}

/// Stores an answer. `attempt` are the results so far, with what still counts of earlier attempts.
pub(super) async fn record(
    services: &Services,
    mut work: Work<'_>,
    ending: Ending,
    learnt: Option<Box<Atom>>,
    attempt: GivenUp,
) -> Result<Answered, TurnError> {
    let (front, messages) = (&*services.front, &*services.messages);
    let may_pass = matches!(ending, Ending::Failed { may_pass: true, .. });
    let cut = attempt.cut.map(|cut| words(messages, cut)).unwrap_or_default();
    let (reply, keep_live) = match ending {
        Ending::Answered { text } => {
            work.exchange.sizes.turn_answered();
            work.exchange.window.push(Entry::new(0, Message::assistant(text.clone())));
            let Tally { late, prefix, bounded, .. } = &work.tally;
            (format!("{late}{prefix}{bounded}{cut}{text}"), true)
        }
        // What was cut stays cut, and the next attempt will not mention it.
        Ending::Failed { message, may_pass } => {
            let cut = if may_pass { cut } else { String::new() };
            // The question to the contacts goes out all the same.
            let escalated = act::said_of_escalation(messages, &work).map(|said| format!("\n\n{said}"));
            (format!("{}{cut}{message}{}", work.tally.late, escalated.unwrap_or_default()), false)
        }
    };
    let mut parts = match (work.turn.absorbs(), &learnt) {
        // A contact's answer reaches the asker, whatever the model has made of it.
        (Some(marker), atom) if keep_live => absorb::outgoing(services, &work, marker, &reply, atom.as_deref()),
        (Some(marker), atom) => {
            let told = attach::told(&services.config, &work.turn.inbound, &work.attached);
            absorb::outgoing(services, &work, marker, &told.text, atom.as_deref())
        }
        (None, _) => {
            parts::of_reply(front, messages, &work.turn.inbound.key, MessageBody { text: reply, pings: vec![] })
        }
    };
    // The model is not rated on a contact's answer.
    let is_models = keep_live && work.turn.absorbs().is_none();
    if is_models && services.config.slack_settings.feedback.asks(work.ports.journal.tags().place.is_some()) {
        buttons::ask_opinion(&mut parts);
    }
    // A question that contacts have been asked waits for their answer.
    let is_asked = matches!(&work.tally.escalation, Some((EscalationUpdate::Asked(..), _)));
    if may_pass && !is_asked && work.turn.absorbs().is_none() {
        buttons::offer_again(&mut parts);
    }
    let split = split(&work.turn.inbound.user, &parts);
    let escalation = work.tally.escalation.take().map(|(mut escalating, outgoing)| {
        for asking in &outgoing {
            parts.extend(parts::of_question(front, messages, &work.turn.inbound.key, asking));
        }
        if let EscalationUpdate::Proposed(proposal) = &mut escalating {
            // The last piece asks for the asker's consent.
            proposal.part = u32::try_from(parts.len().saturating_sub(1)).unwrap_or(u32::MAX);
        }
        escalating
    });
    let tracking = track::new_notes(services, &work, keep_live).await?;
    parts.extend(tracking.outgoing(front, messages, &work));
    let in_doubt = (work.placeholder.get() == Some(&Placeholder::InDoubt)).then_some(work.turn);
    parts.extend(placeholder::withdrawals(work.others(), in_doubt));
    let report = report(&work);
    // Computed only in an experiment; nothing else reads it.
    let reask = work.ports.journal.tags().place.as_ref().and_then(|_| services.questions.ask(work.turn));
    split.into_iter().for_each(|event| work.ports.journal.note(event));
    tracking.note(&work);
    note_escalations(&work, escalation.as_ref(), learnt.as_deref());
    reask.into_iter().for_each(|reask| work.ports.journal.note(reasked(&work.turn.inbound, reask)));
    let GivenUp { usage, outcome, mut events, .. } = attempt;
    let outcome = TurnOutcome { reasked: reask.is_some(), asked_by: work.asked_by().map(str::to_owned), ..outcome };
    events.extend(work.ports.journal.take());
    let placeholder = work.placeholder.get().and_then(Placeholder::known);
    let (calibration, samples) = learnt_of_the_model(&services.calibrator, &*services.model, &work).unzip();
    let recorded = Recorded {
        messages: work.exchange.window.of_this_turn().cloned().collect(),
        usage,
        also: work.others().map(|other| (other.turn, other.inbound.user.clone())).collect(),
        atoms: if keep_live { work.atoms.clone() } else { vec![] },
        calibration,
        sizes: (work.exchange.sizes != work.turn.sizes).then(|| work.exchange.sizes.clone()),
        escalation,
        case: tracking.in_case(&work),
        outcome: outcome.clone(),
        keep_live,
        events,
        receipts: work.ports.scribe.take(),
        pieces: batching::pieces(work.turn, &work.merged),
        placeholder: placeholder.clone(),
        ..Recorded::of(report, parts, work.exchange.window.revision())
    };
    let answered = store_answer(services, work.turn, recorded, placeholder).await?;
    samples.into_iter().for_each(|samples| services.calibrator.known().note_stored(samples));
    // Other turns may add to the case now.
    drop(tracking);
    services.experiment.judge(work.turn.turn, work.turn.session, outcome);
    Ok(answered)
}

/// Stores how a turn ends, before anybody sees it. `placed` is the message that the first part replaces.
pub(super) async fn store_answer(
    services: &Services,
    turn: &OpenTurn,
    recorded: Recorded,
    placed: Option<String>,
) -> Result<Answered, TurnError> {
    let (outcome, parts, report) = (recorded.outcome.clone(), recorded.parts.clone(), recorded.report.clone());
    let now_ms = services.now_ms();
    let stored = services.store.record(turn.turn, recorded, now_ms).await;
    stored.inspect_err(|_| services.experiment.overdue(&outcome))?;
    Ok(Answered::recorded(turn, outcome.tags, placed, parts, report, now_ms))
}

/// Returns the text that precedes an answer for which history was removed.
fn words(messages: &Messages, cut: Cut) -> String {
    match cut {
        Cut::Trimmed(turns) => messages.trimmed(turns),
        Cut::Compacted(turns) => messages.compacted(turns),
        Cut::Rotated(turns) => messages.rotated(turns),
    }
}

/// Returns what is known of the model now, and from how many samples, if this turn has called it.
fn learnt_of_the_model(calibrator: &Calibrator, model: &dyn Model, work: &Work<'_>) -> Option<(ModelCalibration, u64)> {
    if work.exchange.tally.calls == 0 {
        return None;
    }
    let (provider, model) = (model.provider().to_owned(), model.name().to_owned());
    let known = calibrator.known();
    let (fit, bounds) = (known.fit(), *known.bounds());
    Some((ModelCalibration { provider, model, fit, bounds }, known.samples()))
}

/// Returns the event of a reply that takes several messages.
fn split(actor: &str, outgoing: &[Outgoing]) -> Option<Event> {
    let chars = |part: &Outgoing| part.speech.text.chars().count();
    let is_reply = |part: &&Outgoing| matches!(part.purpose, Purpose::Reply | Purpose::PassedOn);
    let replies = || outgoing.iter().filter(is_reply);
    let (parts, chars) = match outgoing.iter().find(|part| part.purpose == Purpose::Document) {
        Some(document) => (2, chars(document)),
        None => (replies().count(), replies().map(chars).sum()),
    };
    (parts > 1).then(|| Event::ReplySplit { actor: actor.to_owned(), parts, chars })
}

fn note_escalations(work: &Work<'_>, escalated: Option<&EscalationUpdate>, learnt: Option<&Atom>) {
    match escalated {
        Some(EscalationUpdate::Asked(_, marker)) => work.ports.journal.note(Event::escalated(marker.clone())),
        Some(EscalationUpdate::Proposed(Proposal { marker, .. })) => work.ports.journal.note(Event::EscalateProposed {
            actor: work.turn.inbound.user.clone(),
            channel_id: marker.channel_id.clone(),
            thread_ts: marker.thread_ts.clone(),
        }),
        _ => {}
    }
    if let Some(flagged) = learnt.and_then(|atom| absorb::flagged(&work.turn.inbound.user, atom)) {
        work.ports.journal.note(flagged);
    }
    // A handed-on answer was noted when it arrived.
    if let Some(marker) = work.turn.absorbs().filter(|_| !store::is_handed_on(&work.turn.inbound)) {
        work.ports.journal.note(Event::EscalateAbsorbed {
            channel_id: marker.channel_id.clone(),
            thread_ts: marker.thread_ts.clone(),
            atom_id: learnt.map(|atom| atom.meta.id.clone()),
        });
    }
}

/// Returns the event of a question that was asked again.
pub(super) fn reasked(inbound: &Inbound, Reask { after_ms, similarity }: Reask) -> Event {
    Event::SignalReasked { actor: inbound.user.clone(), session: inbound.key.to_string(), after_ms, similarity }
}

/// Returns what policies have made of a turn so far.
fn of_policies(journal: &Journal) -> TurnOutcome {
    TurnOutcome {
        tags: journal.tags().clone(),
        failed: journal.has_failures(),
        skipped: journal.has_skips(),
        ..TurnOutcome::default()
    }
}

/// Returns the outcome of a turn so far.
fn outcome(work: &Work<'_>) -> TurnOutcome {
    let mut outcome = of_policies(&work.ports.journal);
    outcome.failed |= work.exchange.tally.gave_up;
    outcome.overflowed = work.exchange.tally.overflowed;
    outcome
}

/// Returns the results of an attempt that ends before there is a request.
pub(super) fn given_up_early(journal: &Journal) -> GivenUp {
    GivenUp { outcome: of_policies(journal), events: journal.take(), ..GivenUp::default() }
}

/// Returns the results of an attempt, for the case that it ends without a stored answer.
pub(super) fn given_up(work: &Work<'_>) -> GivenUp {
    let (usage, cut) = (work.exchange.tally.usage, work.exchange.cut());
    GivenUp { usage, outcome: outcome(work), cut, events: work.ports.journal.take() }
}

/// Returns the turn's report, which is also the source of the ledger's `turn.processed`.
fn report(work: &Work<'_>) -> TurnReport {
    let (tally, place) = (&work.exchange.tally, work.ports.journal.tags().place.as_ref());
    let draft = &tally.draft;
    let question = QuestionReport {
        audience: work.ports.audience,
        policy: tally.decided_by.as_ref().map(Decider::from),
        tokens: TokenReport {
            before: tally.tokens_before,
            after: draft.tokens_after,
            limit: work.exchange.budget.limit,
        },
        turns_dropped: draft.turns_dropped,
        messages_replaced: draft.messages_replaced,
        rungs: tally.rungs.iter().map(|&rung| rung.to_owned()).collect(),
        calls: tally.calls,
        mra_asks: work.tally.mra_asks,
        atoms: work.atoms.clone(),
        experiment: place.map(|place| place.experiment.to_string()),
        arm: place.map(|place| place.arm.to_string()),
        recalled: draft.recalled.clone(),
        unanswered: work.tally.unanswered.map(str::to_owned),
    };
    TurnReport {
        event_id: work.turn.inbound.event_id.clone(),
        session: work.turn.inbound.key.clone(),
        event_ids: batching::event_ids(work.turn, work.others()),
        kind: TurnKind::Question(Box::new(question)),
    }
}
