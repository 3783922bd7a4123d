//! Messages that are orders to the gateway: [`/pmk …`](crate::command); `verbose off|summary|full`, which says what a
//! conversation is shown of tool calls; a yes of an asker, which lets a question go out that they were shown.

use serde_json::json;

use super::{TurnError, act::ask_people, deliver};
use crate::{
    clock,
    command::Asked,
    escalation::Marker,
    front::Speech,
    gateway::Gateway,
    ledger::{Event, Tags},
    may::{Action, Reason},
    model::Usage,
    store::{Answered, Escalating, OpenTurn, Outgoing, Outturn, Part, Recorded, Verbosity},
};

mod pmk;

/// An order.
#[derive(Clone, Debug)]
pub(super) enum Command {
    /// What is asked for, and why it is refused, where it is.
    Pmk(Asked, Option<Reason>),
    Verbose(Verbosity),
    /// Put this to the people who know.
    Confirmed(Marker),
}

impl Command {
    /// The order that a message is, if it is one and nothing else.
    pub fn of(turn: &OpenTurn) -> Option<Command> {
        turn.confirms.as_deref().cloned().map(Command::Confirmed).or_else(|| Command::of_text(&turn.inbound.text))
    }

    /// What somebody does by it.
    pub fn action(&self) -> Action {
        match self {
            Command::Pmk(asked, _) => asked.action(),
            Command::Verbose(_) => Action::Command,
            Command::Confirmed(_) => Action::Judge,
        }
    }

    fn of_text(text: &str) -> Option<Command> {
        if let Some(asked) = Asked::of(text) {
            return Some(Command::Pmk(asked, None));
        }
        let mut words = text.split_whitespace();
        let (order, value, more) = (words.next()?, words.next()?, words.next());
        if more.is_some() || !order.trim_start_matches('/').eq_ignore_ascii_case("verbose") {
            return None;
        }
        Verbosity::from_name(value).map(Command::Verbose)
    }
}

/// Does it, and confirms it. The model never hears of it.
pub(super) async fn carry_out(gateway: &Gateway, turn: OpenTurn, command: Command) -> Result<Answered, TurnError> {
    let (name, parts, escalating) = match command {
        Command::Pmk(asked, refused) => {
            let answer = pmk::carry_out(gateway, &turn, asked, refused).await?;
            ("pmk", deliver::parts(gateway, &turn.inbound.key, Speech { text: answer, pings: vec![] }), None)
        }
        Command::Verbose(verbosity) => {
            gateway.store.set_verbosity(turn.session, verbosity).await?;
            ("verbose", vec![Outgoing::reply(gateway.say.verbose(verbosity))], None)
        }
        Command::Confirmed(marker) => {
            let (parts, escalating) = escalate(gateway, &turn, marker).await?;
            ("escalate", parts, escalating)
        }
    };
    let placeholder = match (name, &escalating) {
        // It has to be read again, for another yes.
        (_, Some(Escalating::Reopened(_))) => None,
        // The answer takes the place of the question to the asker.
        ("escalate", _) => Some(turn.inbound.ts.clone()),
        _ => turn.placeholder.clone(),
    };
    if let Some(placeholder) = &placeholder {
        gateway.store.placed(turn.turn, placeholder).await?;
    }
    let report = json!({
        "type": "turn",
        "event_id": turn.inbound.event_id,
        "session": turn.inbound.key,
        "command": name,
    });
    let recorded = Recorded {
        messages: vec![],
        usage: Usage::default(),
        also: vec![],
        parts: parts.clone(),
        calibration: None,
        escalation: escalating.clone(),
        case: None,
        report: report.clone(),
        outturn: Outturn::default(),
        keep_live: false,
    };
    gateway.store.record(turn.turn, recorded, clock::now_ms()).await?;
    if let Some(Escalating::Asked(_, marker)) = escalating {
        gateway.ledger.note(Event::escalated(marker));
    }
    let OpenTurn { turn, session, inbound, received_at_ms, .. } = turn;
    let parts = (0..).zip(parts).map(|(number, outgoing)| Part { number, outgoing }).collect();
    let tags = Tags::default();
    Ok(Answered { turn, session, inbound, received_at_ms, tags, placeholder, parts, resumed: false, report })
}

/// Puts a confirmed question to whoever may be asked now. What goes out, and what becomes of the question.
async fn escalate(
    gateway: &Gateway,
    turn: &OpenTurn,
    marker: Marker,
) -> Result<(Vec<Outgoing>, Option<Escalating>), TurnError> {
    let (key, asker) = (&turn.inbound.key, &turn.inbound.user);
    if gateway.store.is_waiting(key.front, &marker.channel_id, &marker.thread_ts).await? {
        let reopened = Escalating::Reopened(turn.inbound.event_id.clone());
        return Ok((vec![Outgoing::reply(gateway.say.confirm_again())], Some(reopened)));
    }
    let mentioned_user_ids = gateway.contacts(marker.scope.as_deref(), asker);
    if mentioned_user_ids.is_empty() {
        return Ok((vec![Outgoing::reply(gateway.say.nobody_to_ask())], None));
    }
    let pending_since = u64::try_from(clock::now_ms()).unwrap_or(0);
    let marker = Marker { mentioned_user_ids, pending_since, ..marker };
    let asking = ask_people(gateway, key, asker, &marker);
    let mut parts = vec![Outgoing::reply(gateway.say.escalated())];
    parts.extend(deliver::pieces(gateway, key, &asking));
    Ok((parts, Some(Escalating::Asked(key.front, marker))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_all_of_a_message() {
        for (text, verbosity) in [
            ("verbose full", Verbosity::Full),
            (" /Verbose  OFF ", Verbosity::Off),
            ("verbose summary", Verbosity::Summary),
        ] {
            assert!(matches!(Command::of_text(text), Some(Command::Verbose(read)) if read == verbosity), "{text}");
        }
        for text in ["verbose", "verbose loud", "verbose full please", "why is it verbose off?", ""] {
            assert!(Command::of_text(text).is_none(), "{text}");
        }
    }
}
