//! Step 1: claims the conversation and sees what there is to do: take in an awaited answer, ask, go on
//! delivering what an earlier run has answered, or nothing.

use std::time::Duration;

use super::{TurnError, command::Command};

use crate::{
    access::authorization::{AccessDecision, Action, Reason},
    chat::MessageBody,
    front::Delivery,
    ids::InboxId,
    services::Services,
    store::{self, Answered, BeginOutcome, CalledOff, Hold, OpenTurn},
};

/// How often to look whether a subcommand has let go of the conversation.
const LEASE_POLL: Duration = Duration::from_millis(50);

/// What is to be done with a message.
pub(super) enum Admission {
    /// It gets an answer. Where [`OpenTurn::absorbs`] says so, it is itself one that somebody waits for.
    Ask(OpenTurn),
    /// It is an order to the gateway.
    Command(OpenTurn, Command),
    /// It gets none of the model's any more.
    CalledOff(OpenTurn),
    /// It has one, which was not delivered whole.
    Deliver(Answered),
    /// It is done, or from somebody who is ignored.
    Nothing,
}

pub(super) async fn admit(services: &Services, inbox: InboxId, hold: Hold) -> Result<Admission, TurnError> {
    loop {
        let begun = services.store.begin_as(inbox, hold, services.now_ms()).await?;
        match begun {
            BeginOutcome::Busy => tokio::time::sleep(LEASE_POLL).await,
            BeginOutcome::Elsewhere => return Err(TurnError::Elsewhere),
            BeginOutcome::Done => return Ok(Admission::Nothing),
            BeginOutcome::Deliver(answered) => return Ok(Admission::Deliver(answered)),
            BeginOutcome::Ask(turn) => return of_person(services, turn).await,
        }
    }
}

/// What somebody wants by a message, if they may.
async fn of_person(services: &Services, turn: OpenTurn) -> Result<Admission, TurnError> {
    // What it was the answer to is there no more.
    if store::is_handed_on(&turn.inbound) && turn.absorbs.is_none() {
        services.store.finish(turn.turn, vec![], vec![], services.now_ms()).await?;
        return Ok(Admission::Nothing);
    }
    match turn.called_off {
        // Others wait for what a contact says, and an order may have been carried out by then.
        Some(CalledOff::Stopped) if turn.absorbs.is_some() || Command::is_at_once(&turn) => {}
        Some(_) => return Ok(Admission::CalledOff(turn)),
        None => {}
    }
    let (action, command) = match (&turn.absorbs, Command::of(&turn)) {
        (Some(_), _) => (Action::Answer, None),
        (None, Some(command @ Command::Confirmed(_))) => (Action::Judge, Some(command)),
        (None, Some(command)) => (command.action(), Some(command)),
        (None, None) => (Action::Speak, None),
    };
    let ruling = services.people.may(&turn.inbound.user, action, Some(&turn.inbound.reply_to.channel));
    Ok(match (ruling, command) {
        (AccessDecision::Allowed, Some(command)) => Admission::Command(turn, command),
        (AccessDecision::Allowed, None) => Admission::Ask(turn),
        // Who may give this order to no effect is told so.
        (AccessDecision::Refused { reason }, Some(Command::Pmk(asked, _))) if reason != Reason::Blocked => {
            Admission::Command(turn, Command::Pmk(asked, Some(reason)))
        }
        (AccessDecision::Refused { .. }, _) => {
            ignore(services, turn).await?;
            Admission::Nothing
        }
    })
}

/// Nothing is answered. A script that drives the console gets to know why; Slack is left in silence.
async fn ignore(services: &Services, turn: OpenTurn) -> Result<(), TurnError> {
    if services.front.tells_programs() {
        let speech = MessageBody { text: services.messages.blocked(), pings: vec![] };
        services.front.deliver(Delivery::notice(&turn.inbound.event_id, &turn.inbound.reply_to, &speech)).await?;
    }
    services.store.finish(turn.turn, vec![], vec![], services.now_ms()).await?;
    services.front.over(&turn.inbound.event_id).await;
    Ok(())
}
