//! Decisions of the policy, run natively and checked by the host's guard.

use pmk_policy_sdk::{
    rung,
    testing::{
        Conversation, Harness, Refused,
        core::{Block, Message, Origin, Role},
    },
};
use proptest::prelude::*;
use rolling_summary::RollingSummary;

/// This many turns of about a hundred tokens, and a new message.
fn talk(turns: usize) -> Conversation {
    let mut conversation = Conversation::new();
    for turn in 0..turns {
        conversation = conversation.turn(&format!("question {turn} {}", "word ".repeat(40)), &"answer ".repeat(40));
    }
    conversation.ask("and now?")
}

#[test]
fn below_the_mark_nothing_happens() {
    let transcript = talk(10).transcript();
    let limit = transcript.total_tokens() * 2;
    let applied = Harness::<RollingSummary>::new().prune(&transcript, limit).expect("a good plan");
    assert!(!applied.changes_anything() && applied.compaction.is_none());
}

#[test]
fn above_the_mark_the_older_turns_are_summed_up_and_nothing_is_lost_meanwhile() {
    let transcript = talk(20).transcript();
    let limit = transcript.total_tokens() * 5 / 4;
    let applied = Harness::<RollingSummary>::new().prune(&transcript, limit).expect("a good plan");
    let range = applied.compaction.clone().expect("a summary is wanted");
    assert!(range.start == 0 && range.end > 10 && range.end < transcript.current(), "{range:?}");
    assert!(!applied.changes_anything(), "the rest of the plan sends everything");
}

#[test]
fn over_the_limit_the_oldest_turns_go_if_the_summary_fails() {
    let transcript = talk(20).transcript();
    let limit = transcript.total_tokens() / 2;
    let applied = Harness::<RollingSummary>::new().prune(&transcript, limit).expect("a good plan");
    assert!(applied.compaction.is_some() && applied.turns_dropped > 5 && applied.tokens_after <= limit);
}

/// In an imported history a marker may stand between a call and its result.
#[test]
fn nothing_is_summed_up_from_a_marker_that_stands_within_a_tool_pair() {
    let call = Block::ToolUse { id: "t".into(), name: "ls".into(), input: Default::default() };
    let result = Block::ToolResult { tool_use_id: "t".into(), content: "a file".into(), is_error: false };
    let message = |role, origin, blocks| Message { role, origin, blocks };
    let mut conversation = Conversation::new()
        .message(Message::user("look"))
        .message(message(Role::Assistant, Origin::Assistant, vec![call]))
        .message(Message::text(Role::User, Origin::Marker, "（此處省略 1 輪）"))
        .message(message(Role::User, Origin::ToolResult, vec![result]))
        .answer("so it is");
    for turn in 0..20 {
        conversation = conversation.turn(&format!("question {turn} {}", "word ".repeat(40)), &"answer ".repeat(40));
    }
    let transcript = conversation.ask("and now?").transcript();
    let limit = transcript.total_tokens() * 5 / 4;
    let applied = Harness::<RollingSummary>::new().prune(&transcript, limit).expect("a good plan");
    assert!(applied.compaction.is_none() && !applied.changes_anything());
}

#[test]
fn the_ladder_begins_with_a_summary() {
    let harness = Harness::<RollingSummary>::new();
    let mut tried = vec![];
    for expected in [rung::COMPACT, rung::ROTATE, rung::GIVE_UP] {
        let chosen = harness.recover(Refused { tried: tried.clone(), ..Refused::default() });
        assert_eq!(chosen, Some(expected));
        tried.push(expected);
    }
}

proptest! {
    #[test]
    fn no_plan_breaks_a_rule_where_whole_turns_fit(turns in 1usize..40, percent in 20u64..150) {
        let transcript = talk(turns).transcript();
        let limit = (transcript.total_tokens() * percent / 100).max(200);
        let applied = Harness::<RollingSummary>::new().prune(&transcript, limit);
        prop_assert!(applied.is_ok(), "{:?}", applied.err());
    }
}

#[test]
fn it_is_sound_on_conversations_of_all_kinds() {
    Harness::<RollingSummary>::new().assert_sound(500);
}
