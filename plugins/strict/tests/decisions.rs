//! The decisions of strict, run natively: the numbers of specification 000, and a plan wherever turns are enough.

use std::sync::Arc;

use pmk_policy_sdk::{
    rung,
    testing::{
        Conversation, Harness, Refused, Room, Value,
        core::{CapVerdict, Language, Message, Origin, Role, Transcript, cap, floor},
    },
};
use proptest::prelude::*;
use strict::Strict;

/// About 1,300 tokens.
fn long() -> String {
    "預算".repeat(500)
}

fn turns(count: usize) -> Conversation {
    let seeded = Conversation::new().seed("the workspace");
    (0..count).fold(seeded, |conversation, at| conversation.turn(&format!("question {at}"), &long()))
}

fn strict(max_session_tokens: i64) -> Harness<Strict> {
    Harness::new().with("max-session-tokens", max_session_tokens)
}

#[test]
fn the_defaults_are_those_of_seed_000() {
    let harness = Harness::<Strict>::new();
    let settings: Vec<(&str, &Value)> = harness.settings().collect();
    let [tokens, mra, seed, other] = [25_000, 16_000, 12_000, 30_000].map(Value::Integer);
    let of_seed_000 = [("max-session-tokens", &tokens), ("mra-result-cap", &mra), ("seed-cap", &seed)];
    assert!(of_seed_000.iter().all(|setting| settings.contains(setting)), "{settings:?}");
    let of_seed_004 = [("tool-result-cap", &other), ("attachment-cap", &other)];
    assert!(of_seed_004.iter().all(|setting| settings.contains(setting)), "{settings:?}");
    assert_eq!(settings.len(), 5);
    assert_eq!(harness.name(), "strict");
}

#[test]
fn below_the_budget_nothing_changes() {
    let transcript = turns(15).ask("and now?").transcript();
    assert!(transcript.total_tokens() < 25_000);
    let applied = Harness::<Strict>::new().prune(&transcript, 100_000).expect("accepted");
    assert!(!applied.changes_anything());
}

#[test]
fn above_the_budget_the_seed_pair_and_ten_turns_stay() {
    let transcript = turns(25).ask("and now?").transcript();
    assert!(transcript.total_tokens() > 25_000);
    let applied = Harness::<Strict>::new().prune(&transcript, 100_000).expect("accepted");
    assert_eq!(applied.turns_dropped, 15);
    let texts: Vec<String> = applied.messages(&transcript).iter().map(Message::plain_text).collect();
    assert_eq!(texts.len(), 2 + 1 + 20 + 1);
    assert_eq!(texts[2], "(此處省略 15 輪較舊的對話以節省 context)");
    assert_eq!(texts[3], "question 15");
}

#[test]
fn a_turn_with_an_mra_round_is_one_turn() {
    let conversation = (0..14).fold(Conversation::new(), |conversation, at| {
        conversation.turn(&format!("question {at}"), "let me look").mra_result(&long()).answer(&long())
    });
    let transcript = conversation.ask("and now?").transcript();
    let applied = Harness::<Strict>::new().prune(&transcript, 100_000).expect("accepted");
    assert_eq!((applied.turns_dropped, applied.kept[0]), (4, 16));
}

#[test]
fn a_turn_with_an_attachment_is_one_turn() {
    let conversation = (0..14).fold(Conversation::new(), |conversation, at| {
        conversation.attached(&long()).turn(&format!("question {at}"), &long())
    });
    let transcript = conversation.attached("and this").ask("and now?").transcript();
    let applied = Harness::<Strict>::new().prune(&transcript, 100_000).expect("accepted");
    assert_eq!((applied.turns_dropped, applied.kept[0], applied.kept.len()), (4, 12, 32));
}

#[test]
fn pruning_again_changes_nothing() {
    let transcript = turns(25).transcript();
    let first = strict(5_000).prune(&transcript, 100_000).expect("accepted");
    let again = Conversation::from(first.messages(&transcript)).transcript();
    assert!(again.total_tokens() > 5_000, "still above the budget");
    let second = strict(5_000).prune(&again, 100_000).expect("accepted");
    assert!(!second.changes_anything());
}

#[test]
fn the_marker_counts_on_over_several_prunes() {
    let transcript = turns(25).transcript();
    let first = strict(5_000).prune(&transcript, 100_000).expect("accepted");
    let more = Conversation::from(first.messages(&transcript)).turn("one", &long()).turn("two", &long());
    let second_view = more.transcript();
    let second = strict(5_000).prune(&second_view, 100_000).expect("accepted");
    assert_eq!((second.turns_dropped, second.turns_dropped_total), (2, 17));
}

#[test]
fn fewer_turns_stay_where_ten_exceed_the_hard_limit() {
    let transcript = turns(25).ask("and now?").transcript();
    for limit in [12_000, 6_000, 2_000, 400] {
        let applied = Harness::<Strict>::new().prune(&transcript, limit).expect("accepted");
        assert!(applied.tokens_after <= limit);
        assert!(applied.turns_dropped > 15, "limit {limit}");
        assert!(applied.replaced.is_empty(), "limit {limit}: whole turns are enough");
    }
}

#[test]
fn the_hard_limit_counts_below_the_budget_too() {
    let transcript = turns(5).ask("and now?").transcript();
    assert!(transcript.total_tokens() < 25_000);
    let applied = Harness::<Strict>::new().prune(&transcript, 3_500).expect("accepted");
    assert_eq!(applied.turns_dropped, 3);
}

/// Regression: room was kept for a marker that nothing needed, and the only turn was dropped for it.
#[test]
fn ten_turns_that_fit_stay_however_little_room_is_left() {
    for count in [1, 10] {
        let transcript = turns(count).ask("and now?").transcript();
        let applied = strict(1).prune(&transcript, transcript.total_tokens()).expect("accepted");
        assert!(!applied.changes_anything(), "{count} turns");
    }
}

/// Regression: pairs were removed from a turn that could stay whole, which the guard refuses.
#[test]
fn a_seed_that_may_go_makes_room_for_the_whole_last_turn() {
    let worked = (0..30).fold(Conversation::new().seed(&long()).turn("read it all", "yes"), |conversation, at| {
        conversation.tool("cat", &format!("{at} {}", "line ".repeat(60)))
    });
    let transcript = worked.answer("so it is").ask("and now?").transcript();
    let limit = transcript.total_tokens() - 100;
    let room = Room { seed_may_go: true, ..Room::from(limit) };
    let applied = Harness::<Strict>::new().prune(&transcript, room).expect("accepted");
    assert_eq!((applied.removed.as_slice(), applied.turns_dropped), (&[0, 1][..], 0));
    let applied = Harness::<Strict>::new().prune(&transcript, limit).expect("accepted");
    assert!(applied.kept.starts_with(&[0, 1]) && applied.removed.starts_with(&[4, 5]), "{:?}", applied.removed);
}

#[test]
fn what_the_current_turn_brought_in_is_shortened_when_it_alone_is_too_much() {
    let transcript = turns(3).ask("why?").tool("grep", &long().repeat(20)).transcript();
    let applied = Harness::<Strict>::new().prune(&transcript, 4_000).expect("accepted");
    assert!(applied.tokens_after <= 4_000);
    assert_eq!(applied.replaced.len(), 1, "the seed stays whole");
}

/// Regression: all older turns went, although they fit beside it.
#[test]
fn ten_turns_stay_beside_one_that_is_shortened() {
    let large = turns(12).turn("and all of it?", &long().repeat(20)).ask("and now?");
    let at_work = turns(13).ask("why?").tool("grep", &long().repeat(20));
    for conversation in [large, at_work] {
        let applied = Harness::<Strict>::new().prune(&conversation.transcript(), 25_000).expect("accepted");
        assert_eq!((applied.turns_dropped, applied.replaced.len()), (3, 1));
    }
}

#[test]
fn a_seed_that_exceeds_the_limit_is_shortened_last() {
    let transcript = Conversation::new().seed(&long().repeat(10)).turn("q", "a").ask("why?").transcript();
    let applied = Harness::<Strict>::new().prune(&transcript, 4_000).expect("accepted");
    assert_eq!(applied.replaced.iter().map(|replaced| replaced.index).collect::<Vec<_>>(), [0]);
}

#[test]
fn what_is_shown_for_the_new_message_is_no_stored_turn() {
    let atoms = Message::text(Role::User, Origin::Retrieval, long());
    let transcript = turns(2).message(atoms).ask("and now?").transcript();
    let applied = Harness::<Strict>::new().prune(&transcript, 1_600).expect("accepted");
    assert_eq!(applied.kept, [0, 1, 6, 7]);
}

#[test]
fn a_budget_of_one_token_still_leaves_a_conversation() {
    let transcript = turns(25).ask("and now?").transcript();
    let applied = strict(1).prune(&transcript, 100_000).expect("accepted");
    assert_eq!(applied.turns_dropped, 15);
    let tiny = Conversation::new().turn("a", "b").turn("c", "d").ask("e").transcript();
    assert!(!strict(1).prune(&tiny, 100_000).expect("accepted").changes_anything());
}

#[test]
fn caps_keep_the_head_of_seed_and_mra_results_only() {
    let harness = Harness::<Strict>::new();
    let head = |head| CapVerdict::Shorten { head, tail: 0 };
    assert_eq!(harness.cap(Origin::Seed, "erp", "x", 100_000), head(12_000));
    assert_eq!(harness.cap(Origin::MraResult, "erp", "x", 100_000), head(16_000));
    // Regression: these were kept whole, all 440,000 characters (specification 004 §advice-3).
    assert_eq!(harness.cap(Origin::ToolResult, "grep", "x", 100_000), head(30_000));
    assert_eq!(harness.cap(Origin::Attachment, "a.txt", "x", 100_000), head(30_000));
}

#[test]
fn a_cap_counts_characters_of_any_width() {
    let harness = Harness::<Strict>::new().with("seed-cap", 3);
    for (content, kept) in [("預算表", "預算表"), ("預算表格", "預算表\n…"), ("a👨‍👩‍👧b", "a\n…")]
    {
        let capped = cap::apply(
            content,
            harness.cap(Origin::Seed, "erp", content, 100_000),
            "seed",
            "m1",
            Language::TraditionalChinese,
        );
        assert!(capped.text.starts_with(kept), "{}", capped.text);
        assert_eq!(capped.capped, kept.ends_with('…'));
    }
}

#[test]
fn recovery_trims_once_and_then_gives_up() {
    let harness = Harness::<Strict>::new();
    assert_eq!(harness.recover(Refused::default()), Some(rung::TRIM));
    let tried = Refused { tried: vec![rung::TRIM], ..Refused::default() };
    assert_eq!(harness.recover(tried), Some(rung::GIVE_UP));
    let unavailable = Refused { available: vec![rung::ROTATE, rung::GIVE_UP], ..Refused::default() };
    assert_eq!(harness.recover(unavailable), Some(rung::GIVE_UP));
}

/// A random conversation; each number is the kind and length of one step.
fn conversation(seeded: bool, steps: &[(u8, usize)], asks: bool, brought_in: &[usize]) -> Arc<Transcript> {
    let mut conversation = Conversation::new();
    if seeded {
        conversation = conversation.seed(&"x ".repeat(40));
    }
    for &(kind, length) in steps {
        let text = "字a ".repeat(length);
        conversation = match kind {
            0 => conversation.turn(&text, "ok"),
            1 => conversation.turn("why?", &text),
            2 => conversation.turn("look", "hm").tool("grep", &text).tool("read", "x").answer("so"),
            _ => conversation.turn("look", "hm").mra_result(&text).answer("so"),
        };
    }
    if asks {
        conversation = conversation.ask("and now?");
        conversation = brought_in.iter().fold(conversation, |c, &length| c.tool("read", &"字a ".repeat(length)));
    }
    conversation.transcript()
}

proptest! {
    #[test]
    fn where_removing_turns_is_enough_the_guard_accepts(
        seeded: bool,
        steps in prop::collection::vec((0u8..4, 0usize..120), 0..25),
        asks: bool,
        brought_in in prop::collection::vec(0usize..120, 0..3),
        budget in 1i64..4_000,
        limit in 1u64..4_000,
    ) {
        let transcript = conversation(seeded, &steps, asks, &brought_in);
        let by_turns = floor::decide(&transcript, limit);
        let enough = by_turns.tokens_after <= limit
            && by_turns.removed.iter().all(|&at| (transcript.seed_end()..transcript.current()).contains(&(at as usize)))
            && (by_turns.turns_dropped == 0 || by_turns.marker.is_some());
        let outcome = strict(budget).prune(&transcript, limit);
        if transcript.total_tokens() <= limit || enough {
            let applied = outcome.expect("accepted");
            prop_assert!(applied.corrected.is_empty());
            let again = Conversation::from(applied.messages(&transcript)).transcript();
            if !asks && again.turns() <= 10 {
                let second = strict(budget).prune(&again, limit).expect("accepted");
                prop_assert!(!second.changes_anything(), "not idempotent");
            }
        }
    }
}

#[test]
fn it_is_sound_on_conversations_of_all_kinds() {
    Harness::<Strict>::new().assert_sound(500);
}
