//! Decisions of the policy, run natively and checked by the host's guard.

#[path = "../../sdk/tests/policies/last_turn.rs"]
mod last_turn;

use std::sync::Arc;

use pmk_policy_sdk::testing::{
    Conversation, Harness,
    core::{Applied, Block, Guard, Message, Origin, Role, Transcript, testing},
};
use proptest::prelude::*;
use tool_lean::ToolLean;

/// About 1,500 tokens of tool output.
fn output(at: usize) -> String {
    format!("$ step {at}\n{}\ndone: {at}", "a line of what was found\n".repeat(250))
}

/// Turns of five messages; the results are at 3, 8, 13 …
fn session(turns: usize) -> Conversation {
    (0..turns).fold(Conversation::new(), |conversation, at| {
        conversation.turn(&format!("question {at}"), "let me look").tool("grep", &output(at)).answer("so it is")
    })
}

/// A turn with a round of five calls, whose results come in one message, as the gateway stores them.
fn round(conversation: Conversation, at: usize, result: &str) -> Conversation {
    let id = |call| format!("round{at}call{call}");
    let call = |n| Block::ToolUse { id: id(n), name: "grep".into(), input: Default::default() };
    let result = |n| Block::ToolResult { tool_use_id: id(n), content: result.into(), is_error: false };
    let message = |role, origin, blocks| Message { role, origin, blocks };
    conversation
        .message(Message::user(format!("question {at}")))
        .message(message(Role::Assistant, Origin::Assistant, (0..5).map(call).collect()))
        .message(message(Role::User, Origin::ToolResult, (0..5).map(result).collect()))
        .answer("so it is")
}

fn prune(transcript: &Arc<Transcript>, limit: u64) -> Applied {
    Harness::<ToolLean>::new().prune(transcript, limit).expect("a plan that breaks no rule")
}

fn replaced(applied: &Applied) -> Vec<u32> {
    applied.replaced.iter().map(|by| by.index).collect()
}

#[test]
fn below_half_of_the_limit_nothing_is_touched() {
    let transcript = session(10).ask("and now?").transcript();
    assert!(!prune(&transcript, transcript.total_tokens() * 2).changes_anything());
}

#[test]
fn above_it_old_results_are_cleared_and_the_newest_three_stay() {
    let transcript = session(10).ask("and now?").transcript();
    let applied = prune(&transcript, transcript.total_tokens() * 3 / 2);
    assert_eq!(applied.turns_dropped, 0);
    assert_eq!(replaced(&applied), (0..7).map(|at| at * 5 + 3).collect::<Vec<u32>>());
    let cleared = applied.messages(&transcript)[3].plain_text();
    assert!(cleared.starts_with("$ step 0\n") && cleared.ends_with("\ndone: 0"), "{cleared}");
    assert!(applied.tokens_after < transcript.total_tokens() / 2);
}

#[test]
fn results_of_the_current_turn_count_among_the_newest() {
    let conversation = session(5).ask("look again").tool("grep", &output(5)).tool("grep", &output(6));
    let transcript = conversation.transcript();
    let applied = prune(&transcript, transcript.total_tokens() * 3 / 2);
    assert_eq!(replaced(&applied), [3, 8, 13, 18], "the two new ones and that of the last turn stay");
}

#[test]
fn turns_go_last_and_down_to_the_low_water_mark() {
    let conversation = (0..60).fold(Conversation::new(), |conversation, at| {
        conversation.turn(&format!("question {at} {}", "why ".repeat(150)), "let me look").tool("grep", &output(at))
    });
    let transcript = conversation.ask("and now?").transcript();
    let applied = prune(&transcript, 15_000);
    assert!(applied.turns_dropped > 20 && applied.turns_dropped < 50, "{}", applied.turns_dropped);
    assert!(applied.tokens_after <= 15_000 * 70 / 100 + 300, "{}", applied.tokens_after);
    let whole = applied.kept.len() - applied.replaced.len();
    assert!(applied.replaced.len() >= 10 && whole >= 3, "what stays of the old results stays cleared");
}

#[test]
fn a_clearing_that_is_hardly_worth_it_is_put_off() {
    let transcript = session(4).turn("talk", &"words ".repeat(30_000)).ask("and now?").transcript();
    let limit = transcript.total_tokens() * 5 / 4;
    assert!(!prune(&transcript, limit).changes_anything(), "one result of 1,500 tokens in a limit of 45,000");
    let eager = Harness::<ToolLean>::new().with("clear-at-least", 0);
    assert_eq!(replaced(&eager.prune(&transcript, limit).expect("a good plan")), [3]);
}

#[test]
fn what_was_cleared_stays_as_it_is() {
    let transcript = session(10).ask("and now?").transcript();
    let limit = transcript.total_tokens() * 3 / 2;
    let mut sent = prune(&transcript, limit).messages(&transcript);
    sent.pop();
    let next = Conversation::from(sent).ask("again").transcript();
    let harness = Harness::<ToolLean>::new().with("clear-at", 1).with("clear-at-least", 0);
    assert!(!harness.prune(&next, limit).expect("a good plan").changes_anything());
}

#[test]
fn several_results_in_a_message_do_not_cost_the_conversation() {
    let mut conversation = Conversation::new();
    for at in 0..120 {
        let transcript = conversation.clone().ask("and now?").transcript();
        let applied = prune(&transcript, 40_000);
        if applied.changes_anything() {
            assert!(applied.tokens_after > 15_000, "{} tokens at turn {at}", applied.tokens_after);
            let mut sent = applied.messages(&transcript);
            sent.pop();
            conversation = Conversation::from(sent);
        }
        conversation = round(conversation, at, &output(at));
    }
}

#[test]
fn several_results_of_a_message_that_were_cleared_stay_as_they_are() {
    let conversation = (0..10).fold(Conversation::new(), |conversation, at| round(conversation, at, &output(at)));
    let transcript = conversation.ask("and now?").transcript();
    let limit = transcript.total_tokens() * 3 / 2;
    let mut sent = prune(&transcript, limit).messages(&transcript);
    sent.pop();
    let next = Conversation::from(sent).ask("again").transcript();
    let harness = Harness::<ToolLean>::new().with("clear-at", 1).with("clear-at-least", 0);
    assert!(harness.plan(&next, limit).edits().is_empty());
}

#[test]
fn digests_that_are_larger_than_estimated_leave_what_fits() {
    let line = "預算".repeat(200);
    let result = format!("{line}\n{}{line}", "項目\n".repeat(10));
    let conversation = (0..60).fold(Conversation::new(), |conversation, at| round(conversation, at, &result));
    let transcript = conversation.ask("and now?").transcript();
    for limit in [10_000, 20_000, 40_000, 80_000] {
        let applied = prune(&transcript, limit);
        assert!(applied.tokens_after > limit / 2, "{} of {limit}", applied.tokens_after);
    }
}

#[test]
fn a_last_turn_too_large_even_if_shortened_keeps_its_newest_pairs() {
    last_turn::keeps_its_newest_pairs::<ToolLean>();
}

#[test]
fn a_turn_that_is_too_large_alone_is_shortened() {
    let conversation = session(2).ask("look at it all").tool("cat", &"endless ".repeat(20_000));
    let applied = prune(&conversation.transcript(), 4_000);
    assert!(applied.tokens_after <= 4_000 && applied.kept.contains(&10));
}

#[test]
fn a_last_turn_that_is_too_large_stays_in_part() {
    last_turn::stays_in_part::<ToolLean>();
}

#[test]
fn a_last_turn_of_images_was_dropped() {
    last_turn::gives_up_its_images_first::<ToolLean>();
}

#[test]
fn all_older_turns_went_for_a_last_turn_that_was_shortened() {
    // 70 % of 16,000.
    let cases = [(20_000, 0), (16_000, 3)];
    last_turn::leaves_older_turns_their_room::<ToolLean>(cases, cases);
}

#[test]
fn a_plan_breaks_no_rule_where_whole_turns_fit() {
    Harness::<ToolLean>::new().assert_sound(500);
}

proptest! {
    #[test]
    fn a_plan_breaks_no_rule_unless_nothing_fits(seed in any::<u64>(), turns in 0usize..30, percent in 5u64..150) {
        let transcript = Arc::new(testing::random_transcript(seed, turns));
        // The gateway does not start a turn between a call and its result.
        prop_assume!(transcript.current_part() == transcript.current());
        let total = transcript.total_tokens();
        let limit = (total * percent / 100).max(600);
        if let Err(breach) = Harness::<ToolLean>::new().prune(&transcript, limit) {
            prop_assert_eq!(breach.rule.number(), 9, "{}", breach);
            let guard = Guard { limit, seed_may_go: false, must_shrink: false };
            prop_assert!(!guard.whole_turns_can_fit(&transcript), "{}", breach);
        }
    }
}
