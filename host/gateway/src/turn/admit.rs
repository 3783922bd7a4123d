//! Step 1: claims the conversation and sees what there is to do: take in an awaited answer, ask, go on
//! delivering what an earlier run has answered, or nothing.

use std::time::Duration;

use super::{TurnError, command::Command};

use crate::{
    front::Delivery,
    ids::InboxId,
    may::{Action, Reason, Ruling},
    services::Services,
    store::{self, Answered, Begin, CalledOff, Hold, OpenTurn},
    talk::Speech,
};

/// How often to look whether a subcommand has let go of the conversation.
const LEASE_POLL: Duration = Duration::from_millis(50);

/// What is to be done with a message.
pub(super) enum Admitted {
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

pub(super) async fn admit(services: &Services, inbox: InboxId, hold: Hold) -> Result<Admitted, TurnError> {
    loop {
        let begun = services.store.begin_as(inbox, hold, services.now_ms()).await?;
        match begun {
            Begin::Busy => tokio::time::sleep(LEASE_POLL).await,
            Begin::Elsewhere => return Err(TurnError::Elsewhere),
            Begin::Done => return Ok(Admitted::Nothing),
            Begin::Deliver(answered) => return Ok(Admitted::Deliver(answered)),
            Begin::Ask(turn) => return of_person(services, turn).await,
        }
    }
}

/// What somebody wants by a message, if they may.
async fn of_person(services: &Services, turn: OpenTurn) -> Result<Admitted, TurnError> {
    // What it was the answer to is there no more.
    if store::is_handed_on(&turn.inbound) && turn.absorbs.is_none() {
        services.store.finish(turn.turn, vec![], vec![], services.now_ms()).await?;
        return Ok(Admitted::Nothing);
    }
    match turn.called_off {
        // Others wait for what a contact says, and an order may have been carried out by then.
        Some(CalledOff::Stopped) if turn.absorbs.is_some() || Command::is_at_once(&turn) => {}
        Some(_) => return Ok(Admitted::CalledOff(turn)),
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
        (Ruling::Allowed, Some(command)) => Admitted::Command(turn, command),
        (Ruling::Allowed, None) => Admitted::Ask(turn),
        // Who may give this order to no effect is told so.
        (Ruling::Refused { reason }, Some(Command::Pmk(asked, _))) if reason != Reason::Blocked => {
            Admitted::Command(turn, Command::Pmk(asked, Some(reason)))
        }
        (Ruling::Refused { .. }, _) => {
            ignore(services, turn).await?;
            Admitted::Nothing
        }
    })
}

/// Nothing is answered. A script that drives the console gets to know why; Slack is left in silence.
async fn ignore(services: &Services, turn: OpenTurn) -> Result<(), TurnError> {
    if services.front.tells_programs() {
        let speech = Speech { text: services.messages.blocked(), pings: vec![] };
        services.front.deliver(Delivery::notice(&turn.inbound.event_id, &turn.inbound.reply_to, &speech)).await?;
    }
    services.store.finish(turn.turn, vec![], vec![], services.now_ms()).await?;
    services.front.over(&turn.inbound.event_id).await;
    Ok(())
}
