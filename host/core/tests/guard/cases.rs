//! One case per rule, and edge cases that random histories rarely reach.

use std::{ops::Range, sync::Arc};

use pmk_core::{
    Applied, Archived, Block, Entry, Guard, Image, ImageId, ImageType, Language, Message, Origin, Plan, Quote, Role,
    Transcript, Verdict, floor, marker, replace::Reduction,
};

const GUARD: Guard = Guard { limit: u64::MAX, seed_may_go: false, must_shrink: false };
const LONG: usize = 400;

fn message(role: Role, origin: Origin) -> Message {
    Message::text(role, origin, "word ".repeat(LONG))
}

fn question() -> Message {
    message(Role::User, Origin::User)
}

fn answer() -> Message {
    message(Role::Assistant, Origin::Assistant)
}

fn call(id: &str) -> Message {
    let block = Block::ToolUse { id: id.into(), name: "ls".into(), input: serde_json::json!({}) };
    Message { role: Role::Assistant, origin: Origin::Assistant, blocks: vec![block] }
}

fn result(id: &str) -> Message {
    let content = "line ".repeat(LONG);
    let block = Block::ToolResult { tool_use_id: id.into(), content, is_error: false };
    Message { role: Role::User, origin: Origin::ToolResult, blocks: vec![block] }
}

fn seed() -> [Message; 2] {
    [message(Role::User, Origin::Seed), message(Role::Assistant, Origin::SeedAck)]
}

/// Seed pair 0..2, turns 2..4 and 4..8 (with a tool pair 5..7), the new message 8.
fn history() -> Transcript {
    let turns = [question(), answer(), question(), call("a"), result("a"), answer(), question()];
    Transcript::of_messages(seed().into_iter().chain(turns))
}

fn with_current(messages: Vec<Message>, current: usize) -> Transcript {
    Transcript::new((1..).zip(messages).map(|(id, message)| Entry::new(id, message)).collect(), current, "")
}

fn removing(transcript: &Transcript, ranges: &[(u32, u32)]) -> Plan {
    let mut plan = Plan::new();
    ranges.iter().for_each(|&(start, end)| plan.remove(transcript, start, end));
    plan
}

fn judge(guard: Guard, ranges: &[(u32, u32)]) -> Result<Applied, u8> {
    let transcript = history();
    guard.apply(&transcript, &removing(&transcript, ranges)).map_err(|breach| breach.rule.number())
}

#[test]
fn every_rule_has_its_number() {
    assert_eq!(judge(GUARD, &[(2, 4)]).expect("a whole turn").kept, [0, 1, 4, 5, 6, 7, 8]);
    assert_eq!(judge(GUARD, &[(2, 3)]).err(), Some(1), "half a turn");
    assert_eq!(judge(GUARD, &[(5, 6)]).err(), Some(1), "a call without its result");
    assert_eq!(judge(GUARD, &[(5, 7)]).err(), Some(1), "a pair of a turn that is not too large");
    assert_eq!(judge(GUARD, &[(8, 9)]).err(), Some(2), "the new message");
    assert_eq!(judge(GUARD, &[(2, 9)]).err(), Some(2), "the new message among others");
    assert_eq!(judge(GUARD, &[(0, 2)]).err(), Some(3), "the seed pair");
    assert_eq!(judge(Guard { seed_may_go: true, ..GUARD }, &[(0, 1)]).err(), Some(3), "half the seed pair");
    assert!(judge(Guard { seed_may_go: true, ..GUARD }, &[(0, 2)]).is_ok());
    assert_eq!(judge(Guard { must_shrink: true, ..GUARD }, &[]).err(), Some(5), "nothing shrinks");
    assert!(judge(Guard { must_shrink: true, ..GUARD }, &[(2, 4)]).is_ok());
    assert_eq!(judge(Guard { limit: 500, ..GUARD }, &[(2, 4)]).err(), Some(9), "still too large");
}

#[test]
fn nonsense_is_rule_8() {
    let len = history().len() as u32;
    for ranges in [
        vec![(len, len + 1)],
        vec![(3, 2)],
        vec![(4, 4)],
        vec![(u32::MAX, u32::MAX)],
        vec![(u32::MAX - 1, u32::MAX)],
        vec![(2, 4), (2, 4)],
        vec![(2, 8), (4, 8)],
        vec![(2, 4); 40],
    ] {
        assert_eq!(judge(GUARD, &ranges).err(), Some(8), "{ranges:?}");
    }
    let transcript = history();
    let mut plan = Plan::new();
    plan.replace(&transcript, u32::MAX, Reduction::Digest);
    assert_eq!(GUARD.apply(&transcript, &plan).expect_err("no such message").rule.number(), 8);
    let mut plan = removing(&transcript, &[(2, 4)]);
    plan.replace(&transcript, 3, Reduction::Digest);
    assert_eq!(GUARD.apply(&transcript, &plan).expect_err("removed and replaced").rule.number(), 8);
}

#[test]
fn a_replaced_new_message_is_rule_2() {
    let transcript = history();
    let mut plan = Plan::new();
    plan.replace(&transcript, 8, Reduction::Shorten { head: 3, tail: 0 });
    assert_eq!(GUARD.apply(&transcript, &plan).expect_err("the new message").rule.number(), 2);
}

#[test]
fn without_the_seed_pair_a_request_may_not_start_with_an_answer() {
    let transcript = Transcript::of_messages(seed().into_iter().chain([answer(), question(), answer(), question()]));
    let guard = Guard { seed_may_go: true, ..GUARD };
    let rule = |ranges: &[(u32, u32)]| {
        guard
            .apply(&transcript, &removing(&transcript, ranges))
            .map(|applied| applied.kept)
            .map_err(|b| b.rule.number())
    };
    assert_eq!(rule(&[(0, 2)]), Err(4));
    assert_eq!(rule(&[(0, 2), (3, 5)]), Ok(vec![2, 5]), "a marker comes first");
    assert_eq!(rule(&[(0, 3)]), Ok(vec![3, 4, 5]));
}

#[test]
fn a_marker_larger_than_what_it_stands_for_is_rule_5() {
    let transcript = Transcript::of_messages([Message::user("hi"), Message::assistant("ho"), Message::user("q")]);
    let plan = removing(&transcript, &[(0, 2)]);
    assert_eq!(GUARD.apply(&transcript, &plan).expect_err("it grows").rule.number(), 5);
    assert!(!floor::decide(&transcript, u64::MAX).changes_anything());
}

#[test]
fn a_bad_marker_becomes_the_hosts() {
    let transcript = history();
    for words in ["gone".to_owned(), format!("{{turns}}{}", "x".repeat(1 << 20))] {
        let mut plan = removing(&transcript, &[(2, 4)]);
        plan.set_marker(words);
        let applied = GUARD.apply(&transcript, &plan).expect("only the text is wrong");
        assert_eq!(applied.verdict(), Verdict::Corrected(vec![pmk_core::Rule::Marker]));
        assert_eq!(applied.messages(&transcript)[2].plain_text(), "(此處省略 1 輪較舊的對話以節省 context)");
    }
    let mut plan = Plan::new();
    plan.set_marker("gone");
    assert_eq!(GUARD.apply(&transcript, &plan).expect("no marker is needed").verdict(), Verdict::Accepted);
}

#[test]
fn stray_markers_become_one_that_counts_on() {
    let stray = |turns: u32| Message::text(Role::User, Origin::Marker, format!("（此處省略 {turns} 輪）"));
    let messages = [question(), answer(), stray(3), question(), stray(4), answer(), question()];
    let transcript = Transcript::of_messages(messages);
    assert_eq!(transcript.dropped_turns(), 7);
    let applied = GUARD.apply(&transcript, &removing(&transcript, &[(0, 3)])).expect("the first turn");
    assert_eq!((applied.kept.as_slice(), applied.removed.as_slice()), (&[3, 5, 6][..], &[0, 1, 2, 4][..]));
    let (written, before) = applied.marker.clone().expect("a marker");
    assert_eq!((written.turns, before, applied.turns_dropped_total), (8, 3, 8));

    // A third prune, of the result of the second.
    let pruned = Transcript::of_messages(applied.messages(&transcript));
    let applied = GUARD.apply(&pruned, &removing(&pruned, &[(1, 3)])).expect("the last stored turn");
    let messages = applied.messages(&pruned);
    assert_eq!(messages.len(), 2);
    assert_eq!(marker::parse(&messages[0].plain_text()), Some(9));
}

#[test]
fn inside_a_turn_that_is_too_large_whole_pairs_may_go() {
    let turn = [question(), call("a"), result("a"), call("a"), result("a"), answer()];
    let transcript = Transcript::of_messages(turn.into_iter().chain([question()]));
    let limit = transcript.total_tokens() - 1;
    let rule = |guard: Guard, ranges: &[(u32, u32)]| {
        guard
            .apply(&transcript, &removing(&transcript, ranges))
            .map(|applied| applied.kept)
            .map_err(|b| b.rule.number())
    };
    assert_eq!(rule(Guard { limit: limit + 1, ..GUARD }, &[(1, 3)]), Err(1), "it just fits");
    let tight = Guard { limit, ..GUARD };
    assert_eq!(rule(tight, &[(1, 3)]), Ok(vec![0, 3, 4, 5, 6]));
    assert_eq!(rule(tight, &[(3, 5)]), Ok(vec![0, 1, 2, 5, 6]), "any pair, not only the oldest");
    assert_eq!(rule(tight, &[(1, 2)]), Err(1));
    assert_eq!(rule(tight, &[(2, 4)]), Err(1), "a result and the next call");
    assert_eq!(rule(tight, &[(5, 6)]), Err(1), "an answer is no pair");
}

#[test]
fn turns_tied_together_by_a_pair_go_together() {
    let messages = [question(), call("a"), question(), result("a"), answer(), question()];
    let transcript = Transcript::of_messages(messages);
    assert_eq!(transcript.structure().cuts, [0, 5]);
    assert!(GUARD.apply(&transcript, &removing(&transcript, &[(0, 2)])).is_err());
    let applied = GUARD.apply(&transcript, &removing(&transcript, &[(0, 5)])).expect("both turns");
    assert_eq!((applied.turns_dropped, applied.kept.as_slice()), (2, &[5][..]));
}

#[test]
fn what_is_shown_for_the_new_message_is_part_of_no_stored_turn() {
    let messages = [question(), answer(), message(Role::User, Origin::Retrieval), question()];
    let transcript = Transcript::of_messages(messages);
    for (range, kept) in [((0, 2), vec![2, 3]), ((2, 3), vec![0, 1, 3]), ((0, 3), vec![3])] {
        let applied = GUARD.apply(&transcript, &removing(&transcript, &[range])).expect("parts of their own");
        assert_eq!(applied.kept, kept);
    }
    let first = Transcript::of_messages([message(Role::User, Origin::Retrieval), question()]);
    assert!(floor::trim(&first).edits().is_empty());
}

#[test]
fn a_history_without_a_new_message_may_go_as_a_whole() {
    let transcript = Transcript::of_messages([question(), answer()]);
    assert_eq!(transcript.new_message(), None);
    assert!(GUARD.apply(&transcript, &removing(&transcript, &[(0, 2)])).is_ok());
    assert!(floor::decide(&transcript, 0).messages(&transcript).is_empty());
}

#[test]
fn nothing_at_all_is_fine() {
    let transcript = Transcript::of_messages([]);
    let applied = GUARD.apply(&transcript, &Plan::new()).expect("nothing to refuse");
    assert_eq!((applied.tokens_before, applied.tokens_after), (0, 0));
    assert!(floor::trim(&transcript).edits().is_empty());
    assert!(floor::decide(&transcript, 0).messages(&transcript).is_empty());
    let plan = removing(&transcript, &[(0, 1)]);
    assert_eq!(GUARD.apply(&transcript, &plan).expect_err("there is no message 0").rule.number(), 8);
}

#[test]
fn the_floor_gives_up_one_thing_after_the_other() {
    // Seed pair 0..2, turns 2..4 and 4..6, the new message 6 with two tool pairs and a result of `mra ask`.
    let working = [call("a"), result("a"), call("b"), result("b"), answer(), message(Role::User, Origin::MraResult)];
    let turns = [question(), answer(), question(), answer(), question()];
    let transcript = with_current(seed().into_iter().chain(turns).chain(working).collect(), 6);
    let cost = |indexes: &[u32]| indexes.iter().map(|&at| u64::from(transcript.tokens()[at as usize])).sum::<u64>();
    let marker = |turns| u64::from(pmk_core::Marker::new(turns).tokens());
    let steps: [(&[u32], u64); 7] = [
        (&[0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12], marker(1)),
        (&[0, 1, 6, 7, 8, 9, 10, 11, 12], marker(2)),
        (&[0, 1, 6, 9, 10, 11, 12], marker(2)),
        (&[0, 1, 6, 11, 12], marker(2)),
        (&[6, 11, 12], marker(2)),
        (&[6, 11, 12], 0),
        (&[6, 12], 0),
    ];
    for (nth, (kept, marker)) in steps.into_iter().enumerate() {
        let limit = cost(kept) + marker;
        let applied = floor::decide(&transcript, limit);
        assert_eq!((applied.kept.as_slice(), applied.tokens_after), (kept, limit), "step {nth}");
    }
    let alone = floor::decide(&transcript, 1);
    assert_eq!((alone.kept.as_slice(), alone.tokens_after), (&[6][..], cost(&[6])));
    assert_eq!((alone.turns_dropped, alone.turns_dropped_total), (2, 2));
}

/// Regression: where no turn is stored that could be removed, the marker that stays was counted as if it were written
/// anew, and a request that nothing makes fit was held against the policy.
#[test]
fn a_marker_that_stays_counts_as_it_is() {
    let stands = Message::text(Role::User, Origin::Marker, "（此處省略 7 輪）");
    let mut entries: Vec<Entry> = (1..).zip([stands, question()]).map(|(id, m)| Entry::new(id, m)).collect();
    entries[0].tokens = 50_000;
    let transcript = Transcript::new(entries.clone(), 1, "");
    let fits = |transcript: &Transcript| Guard { limit: 40_000, ..GUARD }.whole_turns_can_fit(transcript);
    assert_eq!((transcript.turns(), transcript.dropped_turns(), fits(&transcript)), (0, 7, false));
    // With a turn that can go, a new one is written.
    entries.splice(1..1, (3..).zip([question(), answer()]).map(|(id, m)| Entry::new(id, m)));
    let transcript = Transcript::new(entries, 3, "");
    assert!(fits(&transcript) && GUARD.apply(&transcript, &removing(&transcript, &[(1, 3)])).is_ok());
}

#[test]
fn the_largest_numbers_do_not_overflow() {
    let mut entries: Vec<Entry> =
        (1..).zip([question(), answer(), question()]).map(|(id, m)| Entry::new(id, m)).collect();
    entries.iter_mut().for_each(|entry| entry.tokens = u32::MAX);
    let transcript = Transcript::new(entries, 2, "").with_dropped_turns(u32::MAX);
    assert_eq!(transcript.total_tokens(), 3 * u64::from(u32::MAX));
    let plan = removing(&transcript, &[(0, 2)]);
    let applied = Guard { must_shrink: true, ..GUARD }.apply(&transcript, &plan).expect("a whole turn");
    assert_eq!(applied.turns_dropped_total, u32::MAX);
    assert_eq!(applied.tokens_after, plan.tokens(&transcript));
}

/// Regression: an image that the model's server had refused was sent again once a policy shortened the words beside it.
#[test]
fn an_image_that_is_no_longer_shown_came_back_with_a_shorter_text() {
    let picture = Image { sha256: ImageId::of(b""), media_type: ImageType::Png, width: 300, height: 300 };
    let words = Block::Text { text: "word ".repeat(LONG) };
    let refused = Block::Text { text: picture.refused("m2", Language::default()) };
    let of = |blocks: Vec<Block>| Message { role: Role::User, origin: Origin::Attachment, blocks };
    let whole = of(vec![words.clone(), Block::Image(picture.clone())]);
    // In place of it stands what was said of it; or its piece has other blocks now.
    let standing = [of(vec![words.clone(), refused.clone()]), of(vec![words])];
    let digest = Block::Text { text: picture.digest("m2", Language::default()) };
    for (standing, expected) in standing.into_iter().zip([refused, digest]) {
        let entries = vec![
            Entry::new(1, question()),
            Entry::new(2, whole.clone()).standing(standing),
            Entry::new(3, answer()),
            Entry::new(4, question()),
        ];
        let transcript = Transcript::new(entries, 3, "");
        let mut plan = Plan::new();
        plan.replace(&transcript, 1, Reduction::Shorten { head: 20, tail: 0 });
        let applied = GUARD.apply(&transcript, &plan).expect("a good plan");
        assert_eq!(applied.replaced[0].message.blocks[1], expected);
    }
}

/// A quote of an archived message that is not in [`history`].
fn quote(number: u32) -> Option<Quote> {
    Quote::of(
        number,
        &Archived { id: 100 + i64::from(number), message: Arc::new(question()) },
        4_000,
        Language::English,
    )
}

fn recalling(quotes: &[(u32, Option<Quote>)], ranges: &[(u32, u32)], limit: u64) -> Result<Applied, u8> {
    let transcript = history();
    let mut plan = removing(&transcript, ranges);
    quotes.iter().for_each(|(number, quote)| plan.recall(*number, quote.clone()));
    Guard { limit, ..GUARD }.apply(&transcript, &plan).map_err(|breach| breach.rule.number())
}

#[test]
fn a_recall_may_make_the_request_larger_but_not_exceed_the_limit() {
    let total = history().total_tokens();
    let applied = recalling(&[(5, quote(5)), (3, quote(3))], &[], u64::MAX).expect("a recall");
    assert!(applied.tokens_after > total);
    assert_eq!(applied.recall.as_ref().map(|recall| recall.ids.clone()), Some(vec![103, 105]));
    assert_eq!(recalling(&[(5, quote(5))], &[], total + 1).unwrap_err(), 5);
    assert!(recalling(&[(5, quote(5))], &[(2, 4)], total).is_ok());
}

#[test]
fn a_recall_is_of_something_absent_and_made_once() {
    assert_eq!(recalling(&[(5, None)], &[], u64::MAX).unwrap_err(), 8);
    assert_eq!(recalling(&[(5, quote(5)), (5, quote(5))], &[], u64::MAX).unwrap_err(), 8);
    let transcript = history();
    let present = Archived { id: transcript.entries()[2].id, message: Arc::clone(&transcript.entries()[2].message) };
    let present = || Quote::of(2, &present, 9, Language::English);
    assert_eq!(recalling(&[(2, present())], &[], u64::MAX).unwrap_err(), 8);
    assert!(recalling(&[(2, present())], &[(2, 4)], u64::MAX).is_ok(), "what the plan takes out may be quoted");
}

#[test]
fn a_recall_takes_the_place_of_an_earlier_one() {
    let recalled = message(Role::User, Origin::Recall);
    let transcript = Transcript::of_messages([question(), answer(), recalled, question()]);
    let mut plan = Plan::new();
    plan.recall(7, quote(7));
    let applied = GUARD.apply(&transcript, &plan).expect("a recall");
    assert_eq!((applied.removed.as_slice(), applied.tokens_after), (&[2][..], plan.tokens(&transcript)));
    plan.replace(&transcript, 2, Reduction::Digest);
    assert_eq!(GUARD.apply(&transcript, &plan).unwrap_err().rule.number(), 8);
}

#[test]
fn what_a_plan_has_too_many_of_is_named_with_the_limit() {
    let transcript = Transcript::of_messages([question(), answer(), question()]);
    let mut recalls = Plan::new();
    (0..=500).for_each(|number| recalls.recall(number, quote(number)));
    let mut edits = Plan::new();
    (0..=22).for_each(|_| edits.remove(&transcript, 0, 2));
    for (plan, reason) in [(recalls, "more than 500 recalls"), (edits, "more than 22 edits of 3 messages")] {
        let breach = GUARD.apply(&transcript, &plan).expect_err("too many");
        assert_eq!(breach.what, reason);
    }
}

/// It counted as the most recent turn, for whose sake the conversation was dropped.
#[test]
fn what_came_with_a_message_is_of_its_turn() {
    let attachment = || message(Role::User, Origin::Attachment);
    let found = || message(Role::User, Origin::Retrieval);
    let stored = || [attachment(), question(), answer()];
    for shown in [vec![attachment()], vec![attachment(), found()]] {
        let before = seed().into_iter().chain([question(), answer()]).chain(stored());
        let transcript = with_current(before.chain(shown.clone()).chain([question()]).collect(), 7 + shown.len());
        assert_eq!((transcript.turns(), transcript.last_turn(), transcript.shown_part()), (2, 4, 7));
        let trimmed = GUARD.apply(&transcript, &floor::trim(&transcript)).expect("a good plan");
        assert_eq!((trimmed.removed, trimmed.turns_dropped), (vec![2, 3], 1));
        // It may be removed by itself; what came with an earlier message, only with its turn.
        assert!(
            GUARD.apply(&transcript, &removing(&transcript, &[(7, 8)])).is_ok_and(|applied| applied.turns_dropped == 0)
        );
        assert!(GUARD.apply(&transcript, &removing(&transcript, &[(4, 5)])).is_err());
        assert!(!transcript.structure().cuts.contains(&7));
        // The floor leaves it with its message while there is room for both.
        let room = transcript.tokens_in(0, 2) + transcript.tokens_in(7, transcript.len()) + 50;
        let floor = floor::decide(&transcript, room);
        assert_eq!((floor.removed, floor.turns_dropped), (vec![2, 3, 4, 5, 6], 2));
    }
}

/// A recall block beside what was retrieved could only go with it, and a policy that removed it alone was at fault.
#[test]
fn what_stands_before_the_new_message_for_its_sake_goes_message_by_message() {
    let beside = [Origin::Attachment, Origin::Attachment, Origin::Retrieval, Origin::Recall];
    let beside = beside.map(|origin| message(Role::User, origin));
    let transcript = with_current([question(), answer()].into_iter().chain(beside).chain([question()]).collect(), 6);
    for at in 2..6 {
        let applied = GUARD.apply(&transcript, &removing(&transcript, &[(at, at + 1)])).expect("a message by itself");
        assert_eq!((applied.removed, applied.turns_dropped), (vec![at], 0));
    }
    let half = GUARD.apply(&transcript, &removing(&transcript, &[(1, 3)])).expect_err("half of a stored turn as well");
    assert_eq!(half.rule.number(), 1);
}

#[test]
fn a_recall_needs_a_new_message() {
    let transcript = Transcript::of_messages([question(), answer()]);
    let mut plan = Plan::new();
    plan.recall(7, quote(7));
    assert_eq!(GUARD.apply(&transcript, &plan).unwrap_err().rule.number(), 8);
}

/// The result of asking for a summary of these messages.
fn summing_up(transcript: &Transcript, start: u32, end: u32) -> Result<Option<Range<usize>>, u8> {
    let mut plan = Plan::new();
    plan.compact(start, end);
    GUARD.apply(transcript, &plan).map(|applied| applied.compaction).map_err(|breach| breach.rule.number())
}

#[test]
fn only_whole_turns_between_the_seed_and_the_most_recent_one_are_summed_up() {
    let transcript = history();
    assert_eq!(summing_up(&transcript, 2, 4), Ok(Some(2..4)));
    // The seed, half a turn, an empty range, a reversed range, the most recent turn, the new message, beyond the end.
    for (start, end) in [(0, 2), (0, 4), (2, 3), (3, 4), (2, 2), (4, 2), (2, 8), (4, 8), (2, 9), (8, 9), (2, 90)] {
        assert_eq!(summing_up(&transcript, start, end), Err(1), "{start}..{end}");
    }
}

#[test]
fn what_is_summed_up_may_begin_behind_a_marker_and_has_none_in_it() {
    let turns = || [question(), answer(), question(), answer(), question()];
    for before in [seed().to_vec(), vec![], vec![question(), answer()]] {
        let at = before.len() as u32;
        let marker = Message::text(Role::User, Origin::Marker, "（此處省略 1 輪）");
        let transcript = Transcript::of_messages(before.into_iter().chain([marker]).chain(turns()));
        assert_eq!(summing_up(&transcript, at + 1, at + 3), Ok(Some(at as usize + 1..at as usize + 3)));
        assert_eq!(summing_up(&transcript, at, at + 3), Err(1));
        assert_eq!(summing_up(&transcript, at + 2, at + 3), Err(1));
    }
}

/// Regression: the result behind the marker was summed up, and its call stayed without it.
#[test]
fn a_marker_between_a_call_and_its_result_is_no_place_to_begin_a_summary() {
    let marker = Message::text(Role::User, Origin::Marker, "（此處省略 1 輪）");
    let torn = [question(), call("a"), marker, result("a"), answer()];
    let transcript = Transcript::of_messages(torn.into_iter().chain([question(), answer(), question()]));
    assert_eq!(summing_up(&transcript, 3, 5), Err(1));
}

#[test]
fn what_is_said_of_a_recall_that_has_no_room_adds_up() {
    let transcript = history();
    let mut plan = Plan::new();
    plan.recall(5, quote(5));
    let applied = GUARD.apply(&transcript, &plan).expect("a recall");
    let recalled = u64::from(applied.recall.expect("a recall").tokens);
    let limit = transcript.total_tokens() + 1;
    let refused = Guard { limit, ..GUARD }.apply(&transcript, &plan).unwrap_err();
    let rest = applied.tokens_after - recalled;
    assert!(refused.what.contains(&format!("{recalled} tokens plus {rest} tokens exceeds")), "{refused}");
}

/// Growth is computed without the recalled messages, which may make the request larger.
#[test]
fn what_is_said_of_a_plan_that_grows_leaves_out_what_it_recalls() {
    let transcript = Transcript::of_messages([Message::user("hi"), Message::assistant("ho"), Message::user("q")]);
    let plan = removing(&transcript, &[(0, 2)]);
    let mut recalling = plan.clone();
    recalling.recall(5, quote(5));
    let [alone, recalling] = [plan, recalling].map(|plan| GUARD.apply(&transcript, &plan).expect_err("it grows").what);
    assert_eq!(alone, recalling);
}
