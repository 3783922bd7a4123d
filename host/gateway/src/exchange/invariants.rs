//! Invariants of every request, however it was made. They are asserted just before a request is sent, in release
//! builds, too: a violation is a defect of the program. The dispatcher catches the panic, retries the turn once, and
//! then parks the message and tells people; the process and all other conversations go on.

use pmk_core::{Role, structure::pair_tools};
use pmk_models::Request;

use super::Exchange;

/// Asserts the invariants.
///
/// # Panics
/// One of them is violated.
pub(super) fn hold(exchange: &Exchange, request: &Request) {
    let Exchange { key, tally, budget, below, .. } = exchange;
    let size = exchange.estimate();
    if let Some(below) = below {
        assert!(size < *below, "`{key}`: {size} tokens would be sent again, and {below} were refused");
    } else {
        let most = budget.limit.max(budget.alone);
        let tokens = tally.draft.tokens_after;
        assert!(tokens <= most, "`{key}`: {tokens} tokens would be sent, and {most} may be");
    }
    assert!(exchange.window.new_message().original.is_none(), "`{key}`: the new message was replaced");
    let roles: Vec<Role> = request.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles.first(), Some(&Role::User), "`{key}`: a request begins with a user's message");
    assert!(roles.windows(2).all(|pair| pair[0] != pair[1]), "`{key}`: roles alternate");
    let orphans = pair_tools(&request.messages).orphans.len();
    assert_eq!(orphans, 0, "`{key}`: a tool call and its result are sent together or not at all");
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pmk_core::{Block, Entry, Message, Origin};

    use super::*;
    use crate::{
        calibration::{Sizes, TokenBudget},
        exchange::{Draft, Tally, window::Window},
        ids::SessionId,
        preambles::Preamble,
        store::Live,
    };

    fn exchange() -> Exchange {
        Exchange {
            session: SessionId::of(1),
            key: "slack:dm:U1".into(),
            asker: "U1".into(),
            preamble: Arc::new(Preamble::new("be brief", [])),
            budget: TokenBudget::of(8_000, 10),
            below: None,
            is_collected: false,
            sizes: Sizes::default(),
            trial: None,
            window: Window::new(Live::default(), None, Message::user("how much is left?"), "D1".into()),
            atoms: 0,
            tally: Tally { draft: Draft { tokens_after: 20, ..Draft::default() }, ..Tally::default() },
        }
    }

    fn breach(exchange: &Exchange) -> String {
        let request = exchange.request();
        let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hold(exchange, &request)));
        held.err().map(|panic| pmk_system::panics::words(&*panic)).unwrap_or_default()
    }

    #[test]
    fn a_request_that_breaks_what_is_always_true_is_not_sent() {
        assert_eq!(breach(&exchange()), "");
        let mut too_large = exchange();
        too_large.tally.draft.tokens_after = too_large.budget.limit + 1;
        assert!(breach(&too_large).contains("may be"), "{}", breach(&too_large));
        let mut again = exchange();
        again.below = Some(again.estimate());
        assert!(breach(&again).contains("were refused"), "{}", breach(&again));
        let mut torn = exchange();
        let input = serde_json::json!({});
        let blocks = vec![Block::ToolUse { id: "1".into(), name: "mra_ask".into(), input }];
        torn.window.push(Entry::new(0, Message { role: Role::Assistant, origin: Origin::Assistant, blocks }));
        assert!(breach(&torn).contains("together or not at all"), "{}", breach(&torn));
        let mut two = exchange();
        two.window.push(Entry::new(0, Message::assistant("one")));
        assert_eq!(breach(&two), "");
    }
}
