//! The checked-in components decide as the same code does natively.

use std::{path::Path, sync::Arc};

use pmk_core::{Block, Message, Origin, Role, Transcript};
use pmk_policy::{DecidedBy, Layer, Outcome, Phase, Policy, PruneInput, Settings, Stack};
use pmk_policy_sdk::{
    Prune,
    testing::{Harness, Room},
};

use crate::runtime_with;

fn same_plans<P: Prune>(name: &str) {
    let runtime = runtime_with(pmk_policy::Limits::default());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins").join(name).with_extension("wasm");
    let policy = Policy::load(&runtime, file).unwrap();
    let settings = Settings::defaults(policy.description());
    let stack = Stack::new([], Layer { policy: Arc::new(policy), settings });
    let native = Harness::<P>::new();
    for (at, transcript) in [with_tools(30), with_tools(400), Arc::new(Transcript::of_messages([]))].iter().enumerate()
    {
        for limit in [100, 1_000, 8_000, 20_000, 200_000] {
            let input = PruneInput { limit, window: limit + 500, phase: Phase::First, seed_may_go: false };
            let component = stack.prune(transcript, input);
            match native.prune(transcript, Room { window: limit + 500, ..Room::from(limit) }) {
                Ok(expected) => {
                    assert_ne!(component.decided_by, DecidedBy::Floor, "{at} {limit}: {:?}", component.records);
                    assert_eq!(component.applied.kept, expected.kept, "{at} {limit}");
                    assert_eq!(component.applied.tokens_after, expected.tokens_after, "{at} {limit}");
                    assert_eq!(component.applied.marker, expected.marker, "{at} {limit}");
                }
                Err(breach) => assert_eq!(
                    component.records[0].outcome,
                    Outcome::Rejected { rule: breach.rule.number(), reason: breach.what },
                    "{at} {limit}"
                ),
            }
        }
    }
}

#[test]
fn strict_is_the_same_in_both() {
    same_plans::<strict::Strict>("strict");
}

#[test]
fn standard_is_the_same_in_both() {
    same_plans::<standard::Standard>("standard");
}

/// A seed pair, then turns of which every third calls a tool with a long result.
fn with_tools(turns: usize) -> Arc<Transcript> {
    let mut messages = vec![
        Message::text(Role::User, Origin::Seed, "知識庫 ".repeat(60)),
        Message::text(Role::Assistant, Origin::SeedAck, "understood"),
    ];
    for turn in 0..turns {
        messages.push(Message::user(format!("question {turn} {}", "預算 ".repeat(turn % 17))));
        if turn % 3 == 0 {
            let (id, name) = (format!("t{}", turn % 5), "search".to_owned());
            let call = Block::ToolUse { id: id.clone(), name, input: serde_json::json!({ "q": turn }) };
            let result = Block::ToolResult {
                tool_use_id: id,
                content: "a line of what was found\n".repeat(90),
                is_error: false,
            };
            messages.push(Message { role: Role::Assistant, origin: Origin::Assistant, blocks: vec![call] });
            messages.push(Message { role: Role::User, origin: Origin::ToolResult, blocks: vec![result] });
        }
        messages.push(Message::assistant(format!("answer {turn} {}", "it is fine ".repeat(turn % 13))));
    }
    messages.push(Message::user("and now?"));
    Arc::new(Transcript::of_messages(messages))
}
