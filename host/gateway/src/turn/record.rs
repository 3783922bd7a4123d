//! Step 7: what came of the turn is stored, in one transaction, before anybody sees it.

use pmk_core::{Entry, Message};
use pmk_policy::DecidedBy;
use serde_json::json;

use super::{
    TurnError, absorb, deliver, track,
    work::{Tally, Work},
};
use crate::{
    clock,
    experiment::signals::Reask,
    front::Speech,
    gateway::Gateway,
    knowledge::Atom,
    ledger::{Event, InExperiment},
    store::{
        self, Answered, Escalating, Learnt, OpenTurn, Outgoing, Outturn, Part, Proposal, Purpose, Receipts, Recorded,
    },
};

/// An answer, or why there is none.
pub(super) enum Outcome {
    /// The words for the person, to be remembered.
    Answered { text: String },
    /// What the person is told instead; nothing of this turn enters the live window.
    Failed { message: String },
}

pub(super) async fn record(
    gateway: &Gateway,
    mut work: Work<'_>,
    outcome: Outcome,
    learnt: Option<Box<Atom>>,
) -> Result<Answered, TurnError> {
    let (reply, keep_live) = match outcome {
        Outcome::Answered { text } => {
            work.window.push(Entry::new(0, Message::assistant(text.clone())));
            let Tally { late, prefix, bounded, cut, .. } = &work.tally;
            (format!("{late}{prefix}{bounded}{cut}{text}"), true)
        }
        Outcome::Failed { message } => (format!("{}{message}", work.tally.late), false),
    };
    let mut parts = match (&work.turn.absorbs, &learnt) {
        // An answer that people gave reaches who asked, whatever the model has made of it.
        (Some(marker), atom) if keep_live => absorb::outgoing(gateway, &work, marker, &reply, atom.as_deref()),
        (Some(marker), atom) => {
            absorb::outgoing(gateway, &work, marker, work.turn.inbound.text.trim(), atom.as_deref())
        }
        (None, _) => deliver::parts(gateway, &work.turn.inbound.key, Speech { text: reply, pings: vec![] }),
    };
    let split = split(&work.turn.inbound.user, &parts);
    let escalation = work.tally.escalation.take().map(|(mut escalating, outgoing)| {
        for asking in &outgoing {
            parts.extend(deliver::pieces(gateway, &work.turn.inbound.key, asking));
        }
        if let Escalating::Proposed(proposal) = &mut escalating {
            // The last piece asks for the word.
            proposal.part = u32::try_from(parts.len().saturating_sub(1)).unwrap_or(u32::MAX);
        }
        escalating
    });
    let tracking = track::new_notes(gateway, &work, keep_live).await?;
    parts.extend(tracking.outgoing(gateway, &work));
    let report = report(&work);
    // Nobody else would read it.
    let reask = work.journal.tags().place.as_ref().and_then(|_| gateway.questions.ask(work.turn));
    split.into_iter().for_each(|event| work.journal.note(event));
    tracking.note(&work);
    note_escalations(&work, escalation.as_ref(), learnt.as_deref());
    note_reask(&work, reask.as_ref());
    let outturn = Outturn {
        tags: work.journal.tags().clone(),
        failed: work.journal.has_failures() || work.tally.gave_up,
        overflowed: work.tally.overflowed,
        reasked: reask.is_some(),
        asked_by: asked_by(&work),
    };
    let recorded = Recorded {
        messages: work.window.of_this_turn().cloned().collect(),
        usage: work.tally.usage,
        also: work.also.iter().map(|other| (other.turn, other.inbound.user.clone())).collect(),
        atoms: if keep_live { work.atoms.clone() } else { vec![] },
        parts: parts.clone(),
        calibration: learnt_of_the_model(gateway, &work),
        escalation,
        case: tracking.in_case(&work),
        report: report.clone(),
        outturn: outturn.clone(),
        keep_live,
        events: work.journal.take(),
        receipts: Receipts::default(),
    };
    gateway.store.record(work.turn.turn, recorded, clock::now_ms()).await?;
    // Others may add to the case now.
    drop(tracking);
    if let Some(arm) = bad_arm(&outturn) {
        gateway.experiment.judge(gateway, arm).await;
    }
    let OpenTurn { turn, session, inbound, received_at_ms, .. } = work.turn;
    let parts = (0..).zip(parts).map(|(number, outgoing)| Part { number, outgoing }).collect();
    Ok(Answered {
        turn: *turn,
        session: *session,
        inbound: inbound.clone(),
        received_at_ms: *received_at_ms,
        tags: outturn.tags,
        placeholder: work.placeholder,
        parts,
        resumed: false,
        report,
    })
}

/// What is known of the model now, where this turn has asked it.
fn learnt_of_the_model(gateway: &Gateway, work: &Work<'_>) -> Option<Learnt> {
    let (provider, model) = (gateway.model.provider().to_owned(), gateway.model.name().to_owned());
    let calibration = gateway.calibration();
    let (fit, bounds) = (calibration.fit(), *calibration.bounds());
    (work.tally.calls > 0).then_some(Learnt { provider, model, fit, bounds })
}

/// The event of a reply that takes several messages.
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

/// Who wrote the question, with what was merged into it, where that was one person: an answer that is passed on is put
/// together by us. What came later is a message of its own turn.
fn asked_by(work: &Work<'_>) -> Option<String> {
    let user = &work.turn.inbound.user;
    let is_one_persons =
        work.turn.absorbs.is_none() && work.also[..work.merged].iter().all(|other| other.inbound.user == *user);
    is_one_persons.then(|| user.clone())
}

fn note_escalations(work: &Work<'_>, escalated: Option<&Escalating>, learnt: Option<&Atom>) {
    match escalated {
        Some(Escalating::Asked(_, marker)) => work.journal.note(Event::escalated(marker.clone())),
        Some(Escalating::Proposed(Proposal { marker, .. })) => work.journal.note(Event::EscalateProposed {
            actor: work.turn.inbound.user.clone(),
            channel_id: marker.channel_id.clone(),
            thread_ts: marker.thread_ts.clone(),
        }),
        _ => {}
    }
    if let Some(flagged) = learnt.and_then(|atom| absorb::flagged(&work.turn.inbound.user, atom)) {
        work.journal.note(flagged);
    }
    // What is handed on was noted when it came in.
    if let Some(marker) = work.turn.absorbs.as_ref().filter(|_| !store::is_handed_on(&work.turn.inbound)) {
        work.journal.note(Event::EscalateAbsorbed {
            channel_id: marker.channel_id.clone(),
            thread_ts: marker.thread_ts.clone(),
            atom_id: learnt.map(|atom| atom.meta.id.clone()),
        });
    }
}

fn note_reask(work: &Work<'_>, reask: Option<&Reask>) {
    let Some(&Reask { after_ms, similarity }) = reask else { return };
    let inbound = &work.turn.inbound;
    let (actor, session) = (inbound.user.clone(), inbound.key.to_string());
    work.journal.note(Event::SignalReasked { actor, session, after_ms, similarity });
}

/// The arm that a turn went by in which something went wrong that policies answer for.
fn bad_arm(outturn: &Outturn) -> Option<&str> {
    let arm = outturn.tags.place.as_ref().map(|place| &*place.arm);
    arm.filter(|_| outturn.failed || outturn.overflowed)
}

/// Who decided what the model got to see; nobody where there was nothing to decide.
fn policy(decided_by: Option<&DecidedBy>) -> serde_json::Value {
    match decided_by {
        Some(DecidedBy::Policy(identity)) => json!(identity),
        Some(DecidedBy::Floor) => json!({"name": DecidedBy::Floor.name(), "version": null, "sha256": null}),
        None => serde_json::Value::Null,
    }
}

/// The `turn` line of the console, which the ledger's `turn.processed` is made from, too.
fn report(work: &Work<'_>) -> serde_json::Value {
    let tally = &work.tally;
    let mut report = json!({
        "type": "turn",
        "event_id": work.turn.inbound.event_id,
        "session": work.turn.inbound.key,
        "audience": work.audience,
        "policy": policy(tally.decided_by.as_ref()),
        "tokens": {
            "before": tally.tokens_before,
            "after": tally.tokens_after,
            "limit": work.room.limit,
        },
        "turns_dropped": tally.turns_dropped,
        "messages_replaced": tally.messages_replaced,
        "rungs": tally.rungs,
        "calls": tally.calls,
        "mra_asks": tally.mra_asks,
        "atoms": work.atoms,
    });
    if let Some(InExperiment { experiment, arm }) = &work.journal.tags().place {
        (report["experiment"], report["arm"]) = (json!(experiment), json!(arm));
    }
    if !tally.recalled.is_empty() {
        report["recalled"] = json!(tally.recalled);
    }
    if !work.also.is_empty() {
        // In the order they came: collected ones before the newest, others while it was being answered.
        let mut answered: Vec<&OpenTurn> = work.also.iter().chain([work.turn]).collect();
        answered.sort_by_key(|turn| turn.turn);
        report["event_ids"] = answered.into_iter().map(|turn| turn.inbound.event_id.clone()).collect();
    }
    report
}
