//! Carries out `/pmk …` commands, or refuses them with a reply and a log entry.

use std::{path::Path, sync::Arc};

use jiff::Timestamp;
use pmk_core::{Entry, Place};
use pmk_knowledge::reaction::ReactionVerdict;
use pmk_system::threads::offload;

use super::super::{TurnError, gather::audience};
use crate::{
    access::authorization::{Action, Reason},
    case,
    config::Config,
    ledger::Event,
    messages::Messages,
    operator::{
        admin::Actor,
        case_service::{CaseService, CaseServiceError},
        command::{CaseAction, CommandExecutor, Order, ParsedCommand, help, show, window},
    },
    services::Services,
    store::OpenTurn,
};

/// Carries out the command and returns the reply, with the event for the ledger; if it is refused, says so.
pub(super) async fn carry_out(
    services: &Services,
    turn: &OpenTurn,
    asked: ParsedCommand,
    refused: Option<Reason>,
) -> Result<(String, Option<Event>), TurnError> {
    if let Some(reason) = refused {
        log_refusal(services, turn, &asked, reason.name()).await;
        return Ok((services.messages.may_not(reason), None));
    }
    let Some(order) = asked.order() else {
        let why = match &asked {
            ParsedCommand::Entry { entry, .. } if entry.changes => Some(show::FORM),
            ParsedCommand::Unknown { .. } if asked.action() == Action::Administer => Some(show::WORD),
            ParsedCommand::Entry { .. } | ParsedCommand::Group { .. } | ParsedCommand::Unknown { .. } => None,
        };
        if let Some(why) = why {
            log_refusal(services, turn, &asked, why).await;
        }
        return Ok((help::usage(&services.messages, &asked), None));
    };
    let (action, _) = asked.logged();
    answer(services, turn, clerk(&services.home, turn), order, action).await
}

/// Logs a command that is not carried out, and why.
pub(in crate::turn) async fn log_refusal(
    services: &Services,
    turn: &OpenTurn,
    asked: &ParsedCommand,
    why: &'static str,
) {
    let clerk = clerk(&services.home, turn);
    let (action, arguments) = asked.logged();
    offload(move || clerk.refuse(&action, &arguments, why)).await;
}

async fn answer(
    services: &Services,
    turn: &OpenTurn,
    clerk: CommandExecutor,
    order: Order,
    action: String,
) -> Result<(String, Option<Event>), TurnError> {
    let (messages, people) = (&services.messages, services.people.people());
    let mut event = None;
    let done = match order {
        Order::Help => Ok(help::page(messages, Action::Command)),
        Order::AdminHelp => Ok(help::page(messages, Action::Administer)),
        Order::Context => Ok(context(services, turn).await?),
        Order::Policies => {
            let (deciding, place) = services.experiment.decides_for(turn.session).await?;
            Ok(window::policies(messages, deciding.stack(), place.as_ref()))
        }
        Order::Status => {
            let Config { mra_workspace, default_ingest, .. } = &services.config;
            let workspace = mra_workspace.as_ref().map(|path| path.display().to_string());
            let ingest = default_ingest.as_ref().map(ToString::to_string);
            Ok(show::status(messages, workspace.as_deref(), ingest.as_deref(), &people))
        }
        Order::ListAudiences => Ok(show::audiences(messages, &people.audience)),
        Order::ListContacts => Ok(show::contacts(messages, &people.escalation)),
        Order::ListAdmins => Ok(show::admins(messages, &people.admins)),
        Order::ListAtoms(which) => {
            offload(move || clerk.list(which)).await.map(|listed| show::atoms(messages, &listed))
        }
        Order::ShowAtom(prefix) => {
            offload(move || clerk.show(&prefix)).await.map(|stored| show::atom(messages, &stored.atom))
        }
        Order::ShowLog(most) => offload(move || clerk.log(most)).await.map(|entries| show::log(messages, &entries)),
        Order::JudgeAtom(verdict, prefix) => {
            let judged = offload(move || clerk.judge(&action, verdict, &prefix)).await;
            judged.map(|atom_id| {
                let (words, told) = judged_as(messages, &turn.inbound.user, verdict, atom_id);
                event = Some(told);
                words
            })
        }
        Order::Case(wanted) => Ok(on_case(services, turn, wanted).await),
        Order::Change(change) => {
            let change = Arc::new(change);
            let made = Arc::clone(&change);
            offload(move || clerk.change(&action, &made)).await.map(|()| show::changed(messages, &change))
        }
    };
    Ok((done.unwrap_or_else(|failed| show::failed(messages, failed)), event))
}

/// Describes the window of the next question, without the question itself.
async fn context(services: &Services, turn: &OpenTurn) -> Result<String, TurnError> {
    let Services { store, messages, preambles, calibrator, model, .. } = services;
    let dropped = store.session(&turn.inbound.key).await?.dropped_turns;
    let stored = store.session_messages(&turn.inbound.key, false).await?;
    let entries: Vec<&Entry> = stored.iter().map(|stored| &stored.entry).collect();
    let people = services.people.people();
    let preamble = preambles.of(audience(&people, turn), services.offer(&people, &turn.inbound.user), true);
    let (sizes, now_ms) = (turn.sizes.clone().of(model.provider(), model.name()), services.now_ms());
    let budget = calibrator.token_budget(turn.session, preamble.tokens, now_ms);
    let budget = sizes.capped(budget, preamble.tokens, now_ms);
    Ok(window::window(messages, &entries, dropped, budget.limit))
}

/// A command that is repeated after a crash has the same event id, and so counts as the same
/// command.
async fn on_case(services: &Services, turn: &OpenTurn, wanted: CaseAction) -> String {
    let Services { store, messages, clock, .. } = services;
    let casework = CaseService { store, messages, clock };
    let inbound = &turn.inbound;
    let channel = match &inbound.key.place {
        Place::Channel(channel) => channel.clone(),
        Place::Dm(_) => inbound.reply_to.channel.clone(),
    };
    let (front, user, event_id) = (inbound.key.front, inbound.user.clone(), inbound.event_id.clone());
    let order = case::Order { front, channel, user, event_id };
    let done = match wanted {
        CaseAction::Open(title) => casework.open(&order, &title).await,
        CaseAction::Show => casework.show(front, &order.channel).await,
        CaseAction::Close => casework.close(&order).await,
        CaseAction::List => casework.list(front, &order.channel).await,
    };
    done.unwrap_or_else(|error| {
        tracing::info!(session = %inbound.key, %error, "a case command was not carried out");
        match error {
            CaseServiceError::Refused(refusal) => messages.case_refused(&refusal),
            CaseServiceError::Store(_) => messages.case_failed(),
        }
    })
}

/// The reply to a verdict, and its event.
fn judged_as(messages: &Messages, actor: &str, verdict: ReactionVerdict, atom_id: String) -> (String, Event) {
    let actor = actor.to_owned();
    match verdict {
        ReactionVerdict::Approve => (messages.atom_approved(&atom_id), Event::AtomApproved { actor, atom_id }),
        ReactionVerdict::Reject => (messages.atom_rejected(&atom_id), Event::AtomRejected { actor, atom_id }),
    }
}

fn clerk(home: &Path, turn: &OpenTurn) -> CommandExecutor {
    let actor = Actor::of_person(turn.inbound.key.front, &turn.inbound.user);
    let again_since = turn.begun_at_ms.map(|at| Timestamp::from_millisecond(at).unwrap_or_default());
    CommandExecutor { home: home.to_owned(), actor, again_since }
}
