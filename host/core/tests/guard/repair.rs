//! Any list of messages can be repaired into one that a provider accepts.

use pmk_core::{Block, Message, Origin, Role, history::repair, message, request, structure::pair_tools, testing::Rng};
use proptest::prelude::*;

use crate::oracle::check_sendable;

/// Random messages in no valid order.
fn heap(seed: u64, len: usize) -> Vec<Message> {
    let mut rng = Rng::new(seed);
    (0..rng.below(len + 1))
        .map(|_| {
            let role = rng.pick(&[Role::User, Role::Assistant]);
            let origin = if role == Role::User { Origin::User } else { Origin::Assistant };
            let blocks = (0..rng.below(4)).map(|_| block(&mut rng)).collect();
            Message { role, origin, blocks }
        })
        .collect()
}

fn block(rng: &mut Rng) -> Block {
    let id = format!("call_{}", rng.below(3));
    match rng.below(5) {
        0 => Block::Text { text: " ".into() },
        1 => Block::Text { text: "預算?".into() },
        2 => Block::ToolUse { id, name: "ls".into(), input: serde_json::json!({}) },
        _ => Block::ToolResult { tool_use_id: id, content: String::new(), is_error: false },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_repaired_can_be_sent(seed in any::<u64>(), len in 0usize..14) {
        let repaired = repair(heap(seed, len));
        let messages: Vec<Message> = repaired.messages.into_iter().map(|(_, message)| message).collect();
        prop_assert!(pair_tools(&messages).orphans.is_empty());
        check_sendable(&request::alternate(message::shared(messages.clone())));

        let again = repair(messages.clone());
        prop_assert!(again.repairs.is_empty(), "{:?}", again.repairs);
        prop_assert!(again.messages.into_iter().map(|(_, message)| message).eq(messages));
    }
}
