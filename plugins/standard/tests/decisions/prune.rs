use std::sync::Arc;

use pmk_policy_sdk::testing::{
    Conversation, Harness, Room,
    core::{Applied, Block, Breach, Image, ImageId, ImageType, Message, Origin, Role, Transcript, floor},
};
use proptest::prelude::*;
use standard::Standard;

/// About 1,300 tokens.
fn long() -> String {
    "預算".repeat(500)
}

fn turns(count: usize) -> Conversation {
    let seeded = Conversation::new().seed("the workspace");
    (0..count).fold(seeded, |conversation, at| conversation.turn(&format!("question {at}"), &long()))
}

fn prune(transcript: &Arc<Transcript>, room: impl Into<Room>) -> Result<Applied, Breach> {
    Harness::<Standard>::new().prune(transcript, room)
}

fn replaced(applied: &Applied) -> Vec<u32> {
    applied.replaced.iter().map(|replaced| replaced.index).collect()
}

#[test]
fn at_the_hard_limit_nothing_changes() {
    let transcript = turns(10).ask("and now?").transcript();
    assert!(!prune(&transcript, transcript.total_tokens()).expect("accepted").changes_anything());
}

#[test]
fn above_it_turns_go_down_to_the_low_water_mark() {
    let transcript = turns(20).ask("and now?").transcript();
    let applied = prune(&transcript, 20_000).expect("accepted");
    assert!(applied.tokens_after <= 14_000, "{}", applied.tokens_after);
    assert!(applied.tokens_after > 14_000 - 1_400, "no more than needed: {}", applied.tokens_after);
    assert_eq!(applied.kept[..2], [0, 1], "the seed pair stays");
}

#[test]
fn after_a_prune_the_prefix_stays_for_many_turns() {
    let mut conversation = turns(0);
    let mut prunes = 0;
    for at in 0..60 {
        let transcript = conversation.clone().ask(&format!("question {at}")).transcript();
        let applied = prune(&transcript, 20_000).expect("accepted");
        if applied.changes_anything() {
            prunes += 1;
            let mut stays = applied.messages(&transcript);
            stays.pop();
            conversation = Conversation::from(stays);
        }
        conversation = conversation.turn(&format!("question {at}"), &long());
    }
    assert!((5..=12).contains(&prunes), "{prunes} prunes in 60 turns of a fifteenth of the limit");
}

#[test]
fn old_results_shrink_before_turns_go_and_the_newest_stay_whole() {
    let conversation = (0..8).fold(Conversation::new(), |conversation, at| {
        conversation.turn(&format!("question {at}"), "let me look").tool("grep", &long().repeat(5)).answer("so")
    });
    let transcript = conversation.ask("and now?").transcript();
    let applied = prune(&transcript, 50_000).expect("accepted");
    assert_eq!(applied.turns_dropped, 0);
    let shrunk = replaced(&applied);
    let results = (0..8).map(|at| at * 5 + 3).collect::<Vec<u32>>();
    assert!(results.starts_with(&shrunk), "oldest first: {shrunk:?}");
    assert!((1..=5).contains(&shrunk.len()), "the newest three stay whole: {shrunk:?}");
    assert!(applied.tokens_after <= 35_000);
}

#[test]
fn a_shrunk_result_keeps_head_and_tail() {
    let result = format!("HEAD {} TAIL", "x ".repeat(20_000));
    let conversation = Conversation::new().turn("look", "hm").tool("grep", &result).answer("so");
    let conversation = (0..3).fold(conversation, |c, _| c.turn("more", "hm").tool("ls", "a").answer("so"));
    let transcript = conversation.ask("and now?").transcript();
    let applied = prune(&transcript, 3_000).expect("accepted");
    let text = applied.messages(&transcript)[3].plain_text();
    assert!(text.starts_with("HEAD") && text.ends_with("TAIL") && text.contains("tool-result cap of 1200"), "{text}");
}

#[test]
fn a_result_that_shrinking_would_not_halve_stays_whole() {
    let conversation = (0..20).fold(Conversation::new(), |conversation, at| {
        conversation.turn(&format!("question {at}"), "let me look").tool("grep", &"預".repeat(1_500)).answer("so")
    });
    let applied = prune(&conversation.ask("and now?").transcript(), 20_000).expect("accepted");
    assert!(applied.replaced.is_empty() && applied.turns_dropped > 0);
}

#[test]
fn one_large_turn_does_not_empty_the_window() {
    let large = Conversation::new().turn("old", &long()).turn("large", &long().repeat(6)).turn("thanks", "welcome");
    let transcript = large.ask("and now?").transcript();
    let applied = prune(&transcript, 9_000).expect("accepted");
    assert_eq!(applied.turns_dropped, 1, "above the low-water mark, but most of what there is");
}

#[test]
fn the_text_of_a_last_turn_is_shortened_rather_than_given_up() {
    let transcript = Conversation::new().turn(&long().repeat(10), "so").ask("and now?").transcript();
    let applied = prune(&transcript, 4_000).expect("accepted");
    assert_eq!((applied.turns_dropped, replaced(&applied)), (0, vec![0]));
}

#[test]
fn a_bound_of_the_operators_own_prunes_earlier() {
    let transcript = turns(20).ask("and now?").transcript();
    let harness = Harness::<Standard>::new().with("max-session-tokens", 10_000).with("low-water", 50);
    let applied = harness.prune(&transcript, 100_000).expect("accepted");
    assert!(applied.tokens_after <= 5_000, "{}", applied.tokens_after);
}

#[test]
fn a_bound_of_one_token_keeps_the_last_turn() {
    let harness = Harness::<Standard>::new().with("max-session-tokens", 1);
    let transcript = turns(5).ask("and now?").transcript();
    let applied = harness.prune(&transcript, 100_000).expect("accepted");
    assert_eq!((applied.turns_dropped, applied.kept.as_slice()), (4, &[0, 1, 10, 11, 12][..]));
    let tiny = Conversation::new().turn("a", "b").turn("c", "d").ask("e").transcript();
    assert!(!harness.prune(&tiny, 100_000).expect("accepted").changes_anything(), "a marker would cost more");
}

#[test]
fn a_last_turn_that_is_too_large_loses_its_oldest_tool_groups() {
    let call = |at: usize| {
        let input = serde_json::json!({ "content": "word ".repeat(400) });
        let id = format!("w{at}");
        let call = Block::ToolUse { id: id.clone(), name: "write".into(), input };
        let result = Block::ToolResult { tool_use_id: id, content: "ok".into(), is_error: false };
        [
            Message { role: Role::Assistant, origin: Origin::Assistant, blocks: vec![call] },
            Message { role: Role::User, origin: Origin::ToolResult, blocks: vec![result] },
        ]
    };
    let asked = Conversation::new().turn("write it all", "I begin");
    let transcript =
        (0..20).flat_map(call).fold(asked, Conversation::message).answer("done").ask("thanks?").transcript();
    let applied = prune(&transcript, 5_000).expect("accepted");
    assert_eq!(applied.turns_dropped, 0, "question and final answer stay");
    assert!(applied.removed.starts_with(&[2, 3, 4, 5]) && !applied.removed.contains(&40), "{:?}", applied.removed);
}

#[test]
fn a_current_turn_that_is_too_large_loses_its_oldest_tool_groups() {
    let asked = turns(2).ask("read everything");
    let transcript = (0..30).fold(asked, |c, _| c.tool("read", &"x ".repeat(600))).transcript();
    let applied = prune(&transcript, 2_000).expect("accepted");
    assert!(applied.kept.contains(&6), "the new message");
    assert!(applied.removed.contains(&7) && applied.kept.contains(&66), "{:?}", applied.removed);
}

/// About 4,000 tokens: a grep's lines.
fn lines() -> String {
    "the code says so and so.\n".repeat(500)
}

/// Regression: they shrank down to the limit, so every later call of the turn shrank one more.
#[test]
fn results_of_a_current_turn_that_does_not_fit_shrink_down_to_the_low_water_mark() {
    let asked = Conversation::new().turn("hello", "hi").ask("what does the code say?");
    let at_work = |calls| (0..calls).fold(asked.clone(), |conversation, _| conversation.tool("grep", &lines()));
    let limit = at_work(10).transcript().total_tokens() + 1_000;
    let applied = prune(&at_work(11).transcript(), limit).expect("accepted");
    let low_water = limit * 70 / 100;
    assert!(applied.tokens_after <= low_water && applied.tokens_after > low_water - 4_500, "{}", applied.tokens_after);
    assert_eq!(replaced(&applied), [4, 6, 8, 10, 12], "the oldest");
    // Of the newest three, only as many shrink as must.
    let limit = at_work(3).transcript().total_tokens() + 1_000;
    let applied = prune(&at_work(4).transcript(), limit).expect("accepted");
    assert_eq!(replaced(&applied), [4]);
    let applied = prune(&at_work(4).transcript(), limit - 2_500).expect("accepted");
    assert_eq!(replaced(&applied), [4, 6]);
}

/// Regression: all of them were cut, and all older turns but one went.
#[test]
fn of_the_current_turns_results_only_as_many_shrink_as_must() {
    let asked = turns(4).ask("what does the code say?");
    let at_work = (0..4).fold(asked, |conversation, _| conversation.tool("grep", &lines())).transcript();
    let applied = prune(&at_work, at_work.tokens_in(10, 19)).expect("accepted");
    assert_eq!((replaced(&applied), applied.turns_dropped), (vec![12], 3), "the oldest, for what always stays");
    let one = turns(5).ask("what does the code say?").tool("grep", &lines().repeat(3)).transcript();
    let applied = prune(&one, 12_000).expect("accepted");
    assert_eq!((replaced(&applied), applied.turns_dropped), (vec![14], 0));
}

/// Several results of one message shrink less than it seems, so the first estimate is not enough.
#[test]
fn results_of_the_current_turn_that_shrink_less_than_estimated_shrink_on_one_by_one() {
    let id = |at: usize, call: usize| format!("round{at}call{call}");
    let call = |id| Block::ToolUse { id, name: "grep".into(), input: serde_json::json!({}) };
    let result = |id| Block::ToolResult { tool_use_id: id, content: "預".repeat(2_000), is_error: false };
    let message = |role, origin, blocks| Message { role, origin, blocks };
    let round = |conversation: Conversation, at: usize| {
        let calls = (0..4).map(|n| call(id(at, n))).collect();
        let results = (0..4).map(|n| result(id(at, n))).collect();
        let called = conversation.message(message(Role::Assistant, Origin::Assistant, calls));
        called.message(message(Role::User, Origin::ToolResult, results))
    };
    let transcript = (0..6).fold(turns(2).ask("what does the code say?"), round).transcript();
    let limit = transcript.tokens_in(6, transcript.len()) - 8_000;
    let applied = prune(&transcript, limit).expect("accepted");
    assert_eq!((replaced(&applied), applied.tokens_after > limit * 80 / 100), (vec![8, 10, 12], true));
}

/// Regression: older turns went for results of the last turn that had to shrink anyway.
#[test]
fn a_large_result_of_the_last_turn_does_not_cost_the_older_ones() {
    let conversation = turns(5).turn("what does the code say?", "let me look").tool("grep", &lines().repeat(3));
    let transcript = conversation.answer("this").ask("and now?").transcript();
    let applied = prune(&transcript, 12_000).expect("accepted");
    assert_eq!((replaced(&applied), applied.turns_dropped), (vec![15], 0));
}

#[test]
fn a_bound_of_the_operators_own_shrinks_no_result_of_the_current_turn() {
    let transcript = turns(4).ask("what does the code say?").tool("grep", &lines()).transcript();
    let harness = Harness::<Standard>::new().with("max-session-tokens", 3_000);
    let applied = harness.prune(&transcript, 100_000).expect("accepted");
    assert_eq!((replaced(&applied), applied.turns_dropped), (vec![], 3));
}

/// Regression: all older turns went, although they fit beside it.
#[test]
fn older_turns_stay_beside_a_last_turn_that_is_shortened() {
    let transcript = turns(4).turn("and all of it?", &long().repeat(16)).ask("and now?").transcript();
    for (limit, dropped) in [(20_000, 0), (11_000, 3)] {
        let applied = prune(&transcript, limit).expect("accepted");
        assert_eq!((replaced(&applied), applied.turns_dropped), (vec![11], dropped), "down to 70 % of {limit}");
    }
}

/// A turn, then four images, of which each costs about 2,000 tokens.
fn images() -> Conversation {
    let image = |name: &[u8]| {
        Block::Image(Image { sha256: ImageId::of(name), media_type: ImageType::Png, width: 1_920, height: 1_080 })
    };
    let images =
        Message { role: Role::User, origin: Origin::Attachment, blocks: b"abcd".chunks(1).map(image).collect() };
    Conversation::new().turn("hello", "hi").message(images)
}

/// Regression: the whole turn was dropped, because an image cannot be shortened.
#[test]
fn a_last_turn_of_images_was_dropped() {
    let conversation = images().turn("what do they show?", "let me see");
    let transcript = conversation.tool("zoom", "a chart").answer("charts").ask("and the third?").transcript();
    let applied = prune(&transcript, 8_000).expect("accepted");
    assert_eq!((replaced(&applied), applied.removed.len()), (vec![2], 0));
}

/// Regression: they were cut as well, although the digest was enough.
#[test]
fn fresh_results_stay_whole_beside_a_last_turn_of_images_that_is_digested() {
    let result = "the code says so and so.\n".repeat(190);
    let conversation = images().turn("what do they show?", "charts").ask("and the code?");
    let transcript = conversation.tool("grep", &result).tool("grep", &result).transcript();
    let applied = prune(&transcript, 8_000).expect("accepted");
    assert_eq!((replaced(&applied), applied.removed.len()), (vec![2], 0));
}

#[test]
fn what_is_shown_for_the_new_message_stays_longer_than_stored_turns() {
    let atoms = Message::text(Role::User, Origin::Retrieval, long());
    let transcript = turns(2).message(atoms).ask("and now?").transcript();
    let kept = |limit| prune(&transcript, limit).expect("accepted").kept;
    assert_eq!(kept(3_000), [0, 1, 4, 5, 6, 7]);
    assert_eq!(kept(1_600), [0, 1, 6, 7]);
    assert_eq!(kept(300), [0, 1, 7]);
}

#[test]
fn what_came_with_the_new_message_goes_after_what_is_shown_for_it_and_is_shortened_first() {
    let atoms = Message::text(Role::User, Origin::Retrieval, long());
    let transcript = turns(2).attached(&long()).message(atoms).ask("and now?").transcript();
    let bare = prune(&turns(2).ask("and now?").transcript(), 1_000).expect("accepted");
    assert_eq!(bare.kept, [0, 1, 6]);
    let cases: [(u64, &[u32], &[u32]); 4] = [
        (3_000, &[0, 1, 6, 7, 8], &[]),
        (1_600, &[0, 1, 6, 8], &[]),
        (700, &[0, 1, 6, 8], &[6]),
        (bare.tokens_after, &[0, 1, 8], &[]),
    ];
    for (limit, kept, shortened) in cases {
        let applied = prune(&transcript, limit).expect("accepted");
        assert_eq!((applied.kept.as_slice(), replaced(&applied).as_slice()), (kept, shortened), "{limit}");
    }
}

#[test]
fn results_of_the_current_turn_shrink_before_what_came_with_its_question_goes() {
    let transcript = turns(1).attached(&long()).ask("and now?").tool("grep", &long().repeat(5)).transcript();
    let applied = prune(&transcript, 3_500).expect("accepted");
    assert_eq!((applied.kept.as_slice(), replaced(&applied)), (&[0, 1, 4, 5, 6, 7][..], vec![7]));
}

#[test]
fn the_seed_goes_only_where_the_operator_allows_it() {
    let transcript = Conversation::new().seed(&long().repeat(4)).ask("why?").transcript();
    let applied = prune(&transcript, 3_000).expect("accepted");
    assert_eq!((applied.kept.len(), replaced(&applied)), (3, vec![0]));
    let applied = prune(&transcript, Room { seed_may_go: true, ..Room::from(3_000) }).expect("accepted");
    assert_eq!(applied.kept, [2]);
}

#[test]
fn a_new_message_that_alone_is_too_large_is_left_to_the_host() {
    let transcript = turns(1).ask(&long()).transcript();
    let harness = Harness::<Standard>::new();
    assert!(harness.plan(&transcript, 500).edits().is_empty());
    assert_eq!(harness.prune(&transcript, 500).expect_err("nothing fits").rule.number(), 9);
}

#[test]
fn several_results_in_a_message_do_not_cost_the_conversation() {
    let round = |conversation: Conversation, at: usize| {
        let id = |call: usize| format!("round{at}call{call}");
        let call = |n| Block::ToolUse { id: id(n), name: "grep".into(), input: serde_json::json!({ "q": n }) };
        let content = |n| format!("{n:>8} ").repeat(111);
        let result = |n| Block::ToolResult { tool_use_id: id(n), content: content(n), is_error: false };
        let message = |role, origin, blocks| Message { role, origin, blocks };
        conversation
            .message(Message::user(format!("question {at}")))
            .message(message(Role::Assistant, Origin::Assistant, (0..4).map(call).collect()))
            .message(message(Role::User, Origin::ToolResult, (0..4).map(result).collect()))
            .answer("so it is")
    };
    let transcript = (0..120).fold(Conversation::new(), round).ask("and now?").transcript();
    for limit in [15_000, 30_000, 50_000, 100_000] {
        let applied = prune(&transcript, limit).expect("accepted");
        assert!(applied.tokens_after > limit * 60 / 100, "{} of {limit}", applied.tokens_after);
    }
}

#[test]
fn results_that_do_not_shrink_as_estimated_leave_what_fits() {
    // The newer ones shrink less than it seems, the older ones more.
    let turn = |conversation: Conversation, at: usize| {
        let id = |call: usize| format!("round{at}call{call}");
        let call = |n| Block::ToolUse { id: id(n), name: "grep".into(), input: serde_json::json!({ "q": n }) };
        let chars = |n: usize| {
            if at > 90 {
                1_000
            } else if n == 0 {
                9_000
            } else {
                10
            }
        };
        let result = |n| Block::ToolResult { tool_use_id: id(n), content: "預".repeat(chars(n)), is_error: false };
        let message = |role, origin, blocks| Message { role, origin, blocks };
        conversation
            .message(Message::user(format!("question {at}")))
            .message(message(Role::Assistant, Origin::Assistant, (0..9).map(call).collect()))
            .message(message(Role::User, Origin::ToolResult, (0..9).map(result).collect()))
            .answer("so it is")
    };
    let transcript = (0..100).fold(Conversation::new(), turn).ask("and now?").transcript();
    for limit in [50_000, 100_000, 200_000] {
        let applied = prune(&transcript, limit).expect("accepted");
        assert!(applied.tokens_after > limit * 45 / 100, "{} of {limit}", applied.tokens_after);
    }
}

/// A random conversation; each number is the kind and length of one step.
fn conversation(
    seed: Option<usize>,
    steps: &[(u8, usize)],
    shown: Option<usize>,
    current: Option<&[usize]>,
) -> Arc<Transcript> {
    let text = |length: usize| "字a ".repeat(length);
    let mut conversation = Conversation::new();
    if let Some(length) = seed {
        conversation = conversation.seed(&text(length));
    }
    for &(kind, length) in steps {
        conversation = match kind {
            0 => conversation.turn(&text(length), "ok"),
            1 => conversation.turn("why?", &text(length)),
            2 => conversation.turn("look", "hm").tool("grep", &text(length)).tool("read", "x").answer("so"),
            3 => conversation.turn("look", "hm").mra_result(&text(length)).answer("so"),
            4 => (0..length / 8).fold(conversation.turn("go", "on"), |c, _| c.tool("step", "a ok")).answer("so"),
            _ => conversation.message(Message::text(
                Role::User,
                Origin::Marker,
                format!("(此處省略 {length} 輪較舊的對話以節省 context)"),
            )),
        };
    }
    if let Some(brought_in) = current {
        if let Some(length) = shown {
            conversation = conversation.message(Message::text(Role::User, Origin::Retrieval, text(length)));
        }
        conversation = conversation.ask("and now?");
        conversation = brought_in.iter().fold(conversation, |c, &length| c.tool("read", &text(length)));
    }
    conversation.transcript()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn there_is_a_plan_wherever_the_floor_finds_one(
        seed in prop::option::of(0usize..600),
        steps in prop::collection::vec((0u8..6, 0usize..300), 0..12),
        shown in prop::option::of(0usize..300),
        current in prop::option::of(prop::collection::vec(0usize..600, 0..6)),
        limit in 20u64..4_000,
        own in 0i64..4_000,
        seed_may_go: bool,
    ) {
        let transcript = conversation(seed, &steps, shown, current.as_deref());
        let total = transcript.total_tokens();
        let floor = floor::decide(&transcript, limit);
        let seed_stays = (0..transcript.seed_end() as u32).all(|at| floor.kept.contains(&at));
        let marked = floor.turns_dropped == 0 || floor.marker.is_some();
        let markers_stay = floor.marker.is_some() || transcript.markers().iter().all(|at| floor.kept.contains(at));
        // The floor may remove parts of the current turn because of the marker; a plan may not.
        let (seed_end, current) = (transcript.seed_end(), transcript.current());
        let seed_tokens = if seed_may_go { 0 } else { transcript.tokens_in(0, seed_end) };
        let too_large = seed_tokens + transcript.tokens_in(current, transcript.len()) > limit;
        let apart = floor.removed.last().is_some_and(|&at| at as usize > current);
        let legal_plan_exists = total <= limit
            || floor.tokens_after <= limit
                && (seed_stays || seed_may_go)
                && (too_large || !apart)
                && marked
                && markers_stay;
        let harness = Harness::<Standard>::new().with("max-session-tokens", own);
        let room = Room { seed_may_go, ..Room::from(limit) };
        let bound = if own > 0 { limit.min(own as u64) } else { limit };
        if total <= bound {
            prop_assert!(harness.plan(&transcript, room).edits().is_empty(), "an edit below the bound");
        }
        match harness.prune(&transcript, room) {
            Ok(applied) => prop_assert!(applied.corrected.is_empty()),
            Err(breach) => prop_assert!(!legal_plan_exists, "{breach}; the floor leaves {}", floor.tokens_after),
        }
    }
}

#[test]
fn it_is_sound_on_conversations_of_all_kinds() {
    Harness::<Standard>::new().assert_sound(500);
}
