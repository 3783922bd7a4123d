//! Messages that are orders to the gateway: `verbose off|summary|full` says what a conversation is shown of
//! tool calls.

use serde_json::json;

use super::TurnError;
use crate::{
    clock,
    gateway::Gateway,
    ledger::Tags,
    model::Usage,
    store::{Answered, OpenTurn, Outgoing, Outturn, Part, Recorded, Verbosity},
};

/// An order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Verbose(Verbosity),
}

impl Command {
    /// The order that a message is, if it is one and nothing else.
    pub fn of(text: &str) -> Option<Command> {
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
    let Command::Verbose(verbosity) = command;
    gateway.store.set_verbosity(turn.session, verbosity).await?;
    let parts = vec![Outgoing::reply(gateway.say.verbose(verbosity))];
    let report = json!({
        "type": "turn",
        "event_id": turn.inbound.event_id,
        "session": turn.inbound.key,
        "command": "verbose",
    });
    let recorded = Recorded {
        messages: vec![],
        usage: Usage::default(),
        also: vec![],
        parts: parts.clone(),
        calibration: None,
        escalation: None,
        report: report.clone(),
        outturn: Outturn::default(),
        keep_live: false,
    };
    gateway.store.record(turn.turn, recorded, clock::now_ms()).await?;
    let OpenTurn { turn, session, inbound, received_at_ms, placeholder, .. } = turn;
    let parts = (0..).zip(parts).map(|(number, outgoing)| Part { number, outgoing }).collect();
    let tags = Tags::default();
    Ok(Answered { turn, session, inbound, received_at_ms, tags, placeholder, parts, resumed: false, report })
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
            assert_eq!(Command::of(text), Some(Command::Verbose(verbosity)), "{text}");
        }
        for text in ["verbose", "verbose loud", "verbose full please", "why is it verbose off?", ""] {
            assert_eq!(Command::of(text), None, "{text}");
        }
    }
}
