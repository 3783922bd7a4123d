//! Step 1: claims the conversation and decides what there is to do: take in an awaited answer, ask the
//! model, continue the delivery of an earlier run's answer, or nothing.

use std::time::Duration;

use super::{
    TurnError,
    command::{self, Command},
    hear, placeholder,
};

use crate::{
    access::authorization::{AccessDecision, Action, Reason},
    chat::MessageBody,
    dispatch::Batch,
    front::Delivery,
    ids::InboxId,
    ledger::{Event, TaggedEvent},
    services::Services,
    store::{self, Answered, BeginOutcome, CalledOff, Hold, OpenTurn},
};

/// How often to check whether a subcommand has released the lease on the conversation.
const LEASE_POLL: Duration = Duration::from_millis(50);

/// The most questions of one app, and of all apps in one conversation, that the model is asked within an hour. Two apps
/// that answer each other would go on for ever.
const MOST_OF_APPS: u32 = 20;

/// What is to be done with a message.
pub(super) enum Admission {
    /// It gets an answer. If [`OpenTurn::absorbs`] names an escalation, the message is itself an answer that somebody
    /// waits for.
    Ask(OpenTurn),
    /// It is a command to the gateway.
    Command(OpenTurn, Command),
    /// It was stopped or deleted, or is an answer that nobody gets, so the model does not answer it.
    CalledOff(OpenTurn),
    /// It has an answer that was not delivered completely.
    Deliver(Answered),
    /// It is done, or its author is ignored.
    Nothing,
}

pub(super) async fn admit(
    services: &Services,
    batch: &Batch,
    inbox: InboxId,
    hold: Hold,
) -> Result<Admission, TurnError> {
    loop {
        let begun = services.store.begin(inbox, Some(batch.key()), hold, services.now_ms()).await?;
        match begun {
            BeginOutcome::Busy => tokio::time::sleep(LEASE_POLL).await,
            BeginOutcome::Elsewhere => return Err(TurnError::Elsewhere),
            BeginOutcome::Done => return Ok(Admission::Nothing),
            BeginOutcome::Deliver(answered) => return Ok(Admission::Deliver(answered)),
            BeginOutcome::Ask(turn) => return of_person(services, turn, batch).await,
        }
    }
}

/// Decides what the author wants and whether they are allowed to.
async fn of_person(services: &Services, mut turn: OpenTurn, batch: &Batch) -> Result<Admission, TurnError> {
    // Nobody waits for it any more, or its author has taken it back.
    if store::is_handed_on(&turn.inbound) && turn.absorbs().is_none() {
        return Ok(Admission::CalledOff(turn));
    }
    // The escalation that it was about no longer waits.
    if turn.inbound.if_awaited && !hear::is_heard(&turn) && turn.called_off != Some(CalledOff::Deleted) {
        end(services, &turn, vec![], batch).await?;
        return Ok(Admission::Nothing);
    }
    // Whoever has given an answer that was handed on was allowed to.
    let gets = turn.absorbs().filter(|_| store::is_handed_on(&turn.inbound));
    let gets = gets.and_then(|marker| marker.asker_user_id.as_deref());
    match turn.called_off {
        // Others wait for a contact's answer, and a command may have been carried out already.
        Some(CalledOff::Stopped) if turn.absorbs().is_some() || Command::is_at_once(&turn) => {}
        Some(_) => return Ok(Admission::CalledOff(turn)),
        None => {}
    }
    let (action, command) = match (turn.absorbs(), Command::of(&turn)) {
        (Some(_), _) if gets.is_some() => (Action::Hear, None),
        (Some(_), _) => (Action::Answer, None),
        (None, Some(command @ Command::Confirmed(_))) => (Action::Judge, Some(command)),
        (None, Some(command)) => (command.action(), Some(command)),
        (None, None) => (Action::Speak, None),
    };
    let (actor, channel) = (gets.unwrap_or(&turn.inbound.user), Some(turn.inbound.reply_to.channel.as_str()));
    let ruling = match services.people.may(actor, action, channel) {
        // Whoever holds a token of an admin is not that admin.
        AccessDecision::Allowed if turn.inbound.by_app && action == Action::Administer => {
            services.people.refuse(actor, action, channel, Reason::ByApp)
        }
        ruling => ruling,
    };
    let is_blocked = matches!(ruling, AccessDecision::Refused { reason: Reason::Blocked });
    // Commands cost no model, and an app cannot have its own question asked once more.
    if turn.inbound.by_app
        && !is_blocked
        && command.is_none()
        && !store::is_again(&turn.inbound)
        && let Some(of) = services.store.count_of_app(&turn, MOST_OF_APPS, services.now_ms()).await?
    {
        let (session, actor, of, most) =
            (turn.inbound.key.to_string(), turn.inbound.user.clone(), of.name(), MOST_OF_APPS);
        tracing::warn!(
            session,
            user = actor,
            of,
            most,
            "an app is not answered: the hourly limit is reached\n  hint: let the app ask less often; if two bots answer \
             each other, put one on the `blocklist`"
        );
        // Not even that it is refused is said: it might answer that.
        ignore(services, turn, vec![Event::AppBounded { actor, session, of, most }.into()], batch).await?;
        return Ok(Admission::Nothing);
    }
    Ok(match (ruling, command) {
        (AccessDecision::Allowed, Some(command)) => Admission::Command(turn, command),
        (AccessDecision::Allowed, None) => {
            // What may go to other people keeps the ids, which they see as mentions.
            if !hear::is_heard(&turn) {
                turn.inbound.text = services.front.with_names(turn.inbound.text).await;
            }
            Admission::Ask(turn)
        }
        // A person whose command is refused is told why, unless they are blocked.
        (AccessDecision::Refused { reason }, Some(Command::Pmk(asked, _))) if reason != Reason::Blocked => {
            Admission::Command(turn, Command::Pmk(asked, Some(reason)))
        }
        (AccessDecision::Refused { reason }, command) => {
            if let (Action::Administer, Some(Command::Pmk(asked, _))) = (action, command) {
                command::log_refusal(services, &turn, &asked, reason.name()).await;
            }
            ignore(services, turn, vec![], batch).await?;
            Admission::Nothing
        }
    })
}

/// Finishes the turn without an answer. A script that drives the console is told why; in Slack there
/// is no reply.
async fn ignore(services: &Services, turn: OpenTurn, events: Vec<TaggedEvent>, batch: &Batch) -> Result<(), TurnError> {
    if services.front.tells_programs() {
        let speech = MessageBody { text: services.messages.blocked(), pings: vec![] };
        services.front.deliver(Delivery::notice(&turn.inbound.event_id, &turn.inbound.reply_to, &speech)).await?;
    }
    end(services, &turn, events, batch).await
}

/// Finishes a turn that gets no answer, notes what earlier attempts have cost, and removes what they have shown of one.
async fn end(services: &Services, turn: &OpenTurn, events: Vec<TaggedEvent>, batch: &Batch) -> Result<(), TurnError> {
    placeholder::take_away(&*services.front, turn).await?;
    let mut all = batch.take_lasting_events();
    all.extend(events);
    let finished = services.store.finish(turn.turn, vec![], all.clone(), services.now_ms()).await;
    finished.inspect_err(|_| batch.put_back_events(all))?;
    services.front.over(&turn.inbound.event_id).await;
    if turn.resumed {
        services.front.resumed(&turn.inbound).await;
    }
    Ok(())
}
