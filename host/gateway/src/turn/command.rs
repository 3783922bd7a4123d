//! Messages that are commands to the gateway: [`/pmk …`](crate::operator::command);
//! `verbose off|progress|summary|full`, which sets what a conversation is shown of tool calls; and an asker's yes, which
//! sends a proposed question to the contacts.

use super::{
    TurnError,
    act::ask_people,
    conclude::{Conclusion, conclude},
    parts,
};

use crate::{
    access::authorization::{Action, Reason},
    chat::MessageBody,
    dispatch::Batch,
    escalation::Marker,
    ledger::{Event, TaggedEvent},
    operator::command::ParsedCommand,
    services::Services,
    store::{Answered, EscalationUpdate, OpenTurn, Outgoing, Verbosity},
};

mod pmk;

pub(super) use pmk::log_refusal;

/// A command.
#[derive(Clone, Debug)]
pub(super) enum Command {
    /// The parsed command, and why it is refused, if it is.
    Pmk(ParsedCommand, Option<Reason>),
    Verbose(Verbosity),
    /// Puts this question to the contacts.
    Confirmed(Box<Marker>),
}

impl Command {
    /// Returns the command if the whole message is one.
    pub fn of(turn: &OpenTurn) -> Option<Command> {
        turn.confirms.clone().map(Command::Confirmed).or_else(|| Command::of_text(&turn.inbound.text))
    }

    /// Returns whether a message is a command that takes effect immediately, before its answer is
    /// stored.
    pub fn is_at_once(turn: &OpenTurn) -> bool {
        matches!(Command::of(turn), Some(Command::Pmk(..) | Command::Verbose(_)))
    }

    /// Returns the action to authorize.
    pub fn action(&self) -> Action {
        match self {
            Command::Pmk(asked, _) => asked.action(),
            Command::Verbose(_) => Action::Command,
            Command::Confirmed(_) => Action::Judge,
        }
    }

    fn of_text(text: &str) -> Option<Command> {
        match ParsedCommand::of(text) {
            Some(asked) => Some(Command::Pmk(asked, None)),
            None => Verbosity::ordered(text).map(Command::Verbose),
        }
    }
}

/// Carries out the command and confirms it. The model does not see it. What earlier attempts have cost, which took the
/// message for a question, is noted with it.
pub(super) async fn carry_out(
    services: &Services,
    turn: OpenTurn,
    command: Command,
    batch: &Batch,
) -> Result<Answered, TurnError> {
    let (name, parts, escalation, event) = match command {
        Command::Pmk(asked, refused) => {
            let (answer, event) = pmk::carry_out(services, &turn, asked, refused).await?;
            let reply = MessageBody { text: answer, pings: vec![] };
            ("pmk", parts::of_reply(&*services.front, &services.messages, &turn.inbound.key, reply), None, event)
        }
        Command::Verbose(verbosity) => {
            services.store.set_verbosity(turn.session, verbosity).await?;
            ("verbose", vec![Outgoing::reply(services.messages.verbose(verbosity))], None, None)
        }
        Command::Confirmed(marker) => {
            let (parts, escalation) = escalate(services, &turn, *marker).await?;
            let asked = match &escalation {
                Some(EscalationUpdate::Asked(_, marker)) => Some(Event::escalated(marker.clone())),
                _ => None,
            };
            ("escalate", parts, escalation, asked)
        }
    };
    let placeholder = match (name, &escalation) {
        // The proposal must stay readable for another yes.
        (_, Some(EscalationUpdate::Reopened(_))) => None,
        // The answer replaces the proposal.
        ("escalate", _) => Some(turn.inbound.ts.clone()),
        _ => turn.placeholder.clone(),
    };
    let mut events = batch.take_lasting_events();
    events.extend(event.map(TaggedEvent::from));
    let conclusion = Conclusion { command: name, parts, escalation, placeholder, events: events.clone() };
    conclude(services, turn, conclusion).await.inspect_err(|_| batch.put_back_events(events))
}

/// Puts a confirmed question to the contacts that may be asked now. Returns the messages to send, and the
/// update of the escalation.
async fn escalate(
    services: &Services,
    turn: &OpenTurn,
    marker: Marker,
) -> Result<(Vec<Outgoing>, Option<EscalationUpdate>), TurnError> {
    let (key, asker) = (&turn.inbound.key, &turn.inbound.user);
    if services.store.is_waiting(key.front, &marker.channel_id, &marker.thread_ts).await? {
        let reopened = EscalationUpdate::Reopened(turn.inbound.event_id.clone());
        return Ok((vec![Outgoing::reply(services.messages.confirm_again())], Some(reopened)));
    }
    let mentioned_user_ids = services.contacts(marker.scope.as_deref(), asker);
    if mentioned_user_ids.is_empty() {
        return Ok((vec![Outgoing::reply(services.messages.nobody_to_ask())], None));
    }
    let pending_since = u64::try_from(services.now_ms()).unwrap_or(0);
    let marker = Marker { mentioned_user_ids, pending_since, ..marker };
    let mut parts = vec![Outgoing::reply(services.messages.escalated(marker.apart.is_some()))];
    for asking in ask_people(&services.messages, key, asker, &marker) {
        parts.extend(parts::of_question(&*services.front, &services.messages, key, &asking));
    }
    Ok((parts, Some(EscalationUpdate::Asked(key.front, marker))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_all_of_a_message() {
        for (text, verbosity) in [
            ("verbose full", Verbosity::Full),
            (" /Verbose  OFF ", Verbosity::Off),
            ("verbose progress", Verbosity::Progress),
            ("verbose summary", Verbosity::Summary),
        ] {
            assert!(matches!(Command::of_text(text), Some(Command::Verbose(read)) if read == verbosity), "{text}");
        }
        for text in ["verbose", "verbose loud", "verbose full please", "why is it verbose off?", ""] {
            assert!(Command::of_text(text).is_none(), "{text}");
        }
    }
}
