//! Decisions of the policy, run natively and checked by the host's guard.

#[path = "../../sdk/tests/policies/last_turn.rs"]
mod last_turn;

use std::sync::Arc;

use pmk_policy_sdk::testing::{
    Conversation, Harness, MemoryArchive,
    core::{Applied, Entry, Guard, Message, Origin, Role, Transcript, testing},
};
use proptest::prelude::*;
use recall::Recall;

const LIMIT: u64 = 4_000;

/// Unrelated small talk, about 75 tokens per turn.
fn chatter(conversation: Conversation, turns: std::ops::Range<usize>) -> Conversation {
    turns.fold(conversation, |conversation, at| {
        let (question, answer) = (format!("item {at} of the list, please"), format!("done with {at}, next one then"));
        conversation.turn(&format!("{question} {}", "hm ".repeat(20)), &format!("{answer} {}", "well ".repeat(20)))
    })
}

fn prune(transcript: &Arc<Transcript>, limit: u64) -> Applied {
    Harness::<Recall>::new().prune(transcript, limit).expect("a plan that breaks no rule")
}

/// The recall block of the request.
fn block(applied: &Applied) -> String {
    applied.recall.as_ref().map(|recall| recall.message.plain_text()).unwrap_or_default()
}

#[test]
fn what_fits_is_sent_as_it_is() {
    let transcript = chatter(Conversation::new(), 0..20).ask("and now?").transcript();
    assert!(!prune(&transcript, LIMIT).changes_anything());
}

#[test]
fn an_old_fact_comes_back_for_its_question() {
    let conversation = chatter(Conversation::new(), 0..5)
        .turn("the wedding cake is ordered from Baumann's, three tiers", "lovely")
        .turn("會議室改到三樓的竹軒", "好的，三樓竹軒");
    let conversation = chatter(conversation, 5..100);
    for (question, fact) in [("who makes the wedding cake?", "Baumann's"), ("會議室在哪裡？", "三樓的竹軒")]
    {
        let transcript = conversation.clone().ask(question).transcript();
        let applied = prune(&transcript, LIMIT);
        assert!(block(&applied).contains(fact), "{question}: {}", block(&applied));
        assert!(applied.tokens_after <= LIMIT);
        let sent = applied.messages(&transcript);
        let [.., block, new] = sent.as_slice() else { panic!("a block and the new message") };
        assert_eq!((block.origin, new.plain_text().as_str()), (Origin::Recall, question));
    }
}

#[test]
fn the_newest_turns_keep_their_share() {
    let transcript = chatter(Conversation::new(), 0..200).ask("what about item 7?").transcript();
    let applied = prune(&transcript, LIMIT);
    let tokens: u64 = applied.kept.iter().map(|&at| u64::from(transcript.tokens()[at as usize])).sum();
    assert!((1_000..=1_250).contains(&tokens), "{tokens}");
    assert!(applied.kept.ends_with(&[398, 399, 400]));
}

#[test]
fn a_follow_up_is_asked_with_the_turns_it_follows() {
    let conversation = chatter(Conversation::new(), 0..3)
        .turn("Okonkwo joined the astronomy club", "welcome to her")
        .turn("it was in the second week of March", "noted");
    let conversation = chatter(conversation, 3..100);
    // Also where something came with the question.
    for before in [conversation.clone(), conversation.attached("the list of clubs")] {
        let asked = before.turn("which club did Okonkwo join?", "the astronomy club").ask("and when was that?");
        let applied = prune(&asked.transcript(), LIMIT);
        assert!(block(&applied).contains("second week of March"), "{}", block(&applied));
    }
}

#[test]
fn of_a_fact_and_its_correction_both_are_quoted_in_their_order() {
    let conversation = Conversation::new().turn("the launch party is on Friday", "noted");
    let conversation = chatter(conversation, 0..50).turn("the launch party has moved to Tuesday", "noted");
    let applied = prune(&chatter(conversation, 50..100).ask("when is the launch party?").transcript(), LIMIT);
    let block = block(&applied);
    let (old, new) = (block.find("Friday").expect("the fact"), block.find("Tuesday").expect("the correction"));
    assert!(old < new && block.contains("the later one holds"), "{block}");
}

#[test]
fn of_what_is_nearly_the_same_the_latest_has_room() {
    let conversation = (0..40).fold(Conversation::new(), |conversation, day| {
        chatter(conversation.turn(&format!("the launch party is on day {day} now"), "noted"), day..day + 1)
    });
    let transcript = chatter(conversation, 50..100).ask("when is the launch party?").transcript();
    let applied = Harness::<Recall>::new().with("recall-most", 500).prune(&transcript, LIMIT).expect("a good plan");
    let block = block(&applied);
    assert!(block.contains("on day 39 now") && !block.contains("on day 0 now"), "{block}");
}

/// Regression: where messages are short, the room was for more than the host quotes, and it refused every such plan.
#[test]
fn more_messages_were_recalled_than_a_plan_may_have() {
    let conversation = (0..2_400).fold(Conversation::new(), |conversation, at| match at % 30 {
        0 => conversation.turn(&format!("the launch party has {at} guests"), "noted"),
        _ => conversation.turn(&format!("item {at} of the list, please"), "done, next one then"),
    });
    let transcript = conversation.ask("how many guests does the launch party have?").transcript();
    let harness = Harness::<Recall>::new().with("neighbours", 10).with("recall-most", 1_000_000);
    let applied = harness.prune(&transcript, transcript.total_tokens() * 3 / 4).expect("a plan that breaks no rule");
    assert_eq!(applied.recall.map(|recall| recall.ids.len()), Some(500));
}

/// Simulates turns as in the gateway: dropped messages stay dropped, and the block is not stored.
#[test]
fn the_prefix_before_the_block_stays_for_many_turns() {
    let archive = Arc::new(MemoryArchive::default());
    let mut live: Vec<Entry> = vec![];
    let (mut prunes, mut dropped, mut blocks, mut id) = (0, 0, 0, 0);
    for turn in 0..150 {
        let say = |message: Message, id: &mut i64| {
            *id += 1;
            Entry::new(*id, message)
        };
        let question = say(Message::user(format!("what of item {} {}", turn / 3, "hm ".repeat(20))), &mut id);
        let entries: Vec<Entry> = live.iter().cloned().chain([question.clone()]).collect();
        let current = live.len();
        let transcript =
            Transcript::new(entries, current, "").with_dropped_turns(dropped).with_archive(archive.clone());
        let applied = prune(&Arc::new(transcript), LIMIT);
        assert!(applied.tokens_after <= LIMIT);
        prunes += usize::from(applied.edits_window());
        blocks += usize::from(applied.recall.is_some());
        dropped = applied.turns_dropped_total;
        live = applied.kept.iter().filter_map(|&at| live.get(at as usize).cloned()).collect();
        let answer = say(Message::assistant(format!("item {turn} is fine {}", "well ".repeat(20))), &mut id);
        for entry in [question, answer] {
            archive.record(entry.clone());
            live.push(entry);
        }
    }
    assert!((3..=16).contains(&prunes), "{prunes} prunes in 150 turns");
    assert!(blocks > 80, "{blocks} blocks");
}

#[test]
fn a_further_call_of_the_turn_goes_on_with_the_same_block() {
    let block = Message::text(Role::User, Origin::Recall, "recalled");
    let conversation = chatter(Conversation::new(), 0..3).message(block).ask("so?").tool("ls", "a file");
    assert!(!prune(&conversation.transcript(), LIMIT).changes_anything());
}

#[test]
fn a_further_call_gives_the_block_up_before_the_turn_is_cut() {
    let block = Message::text(Role::User, Origin::Recall, "recalled ".repeat(1_500));
    let conversation = Conversation::new().message(block).ask("so?").tool("cat", &"line ".repeat(3_000));
    let applied = prune(&conversation.transcript(), LIMIT);
    assert_eq!((applied.removed.as_slice(), applied.replaced.len()), (&[0][..], 0));
}

#[test]
fn a_further_call_that_gives_the_block_up_keeps_what_came_with_the_question() {
    let block = Message::text(Role::User, Origin::Recall, "recalled ".repeat(1_500));
    let attached = Conversation::new().attached("the list of clubs").message(block);
    let applied = prune(&attached.ask("so?").tool("cat", &"line ".repeat(3_000)).transcript(), LIMIT);
    assert_eq!((applied.removed.as_slice(), applied.replaced.len()), (&[1][..], 0));
}

#[test]
fn a_last_turn_that_is_too_large_stays_in_part() {
    last_turn::stays_in_part::<Recall>();
}

#[test]
fn a_last_turn_of_images_was_dropped() {
    last_turn::gives_up_its_images_first::<Recall>();
}

#[test]
fn all_older_turns_went_for_a_last_turn_that_was_shortened() {
    // 30 % of 14,000, and of 5,000 beside the turn.
    last_turn::leaves_older_turns_their_room::<Recall>([(20_000, 0), (14_000, 2)], [(9_000, 0), (5_000, 2)]);
}

/// Regression: older turns filled the limit beside it.
#[test]
fn a_last_turn_that_was_shortened_left_no_room_to_recall() {
    let conversation = chatter(Conversation::new(), 0..5).turn("the cake is ordered from Baumann's", "lovely");
    let conversation = chatter(conversation, 5..100).turn("and all of it?", &"字".repeat(16_000));
    // 500 characters of it are more than 45 % of the limit.
    let applied = prune(&conversation.ask("who makes the cake?").transcript(), 1_300);
    assert!(block(&applied).contains("Baumann's"), "{}", block(&applied));
}

#[test]
fn a_last_turn_too_large_even_if_shortened_keeps_its_newest_pairs() {
    last_turn::keeps_its_newest_pairs::<Recall>();
}

#[test]
fn a_plan_breaks_no_rule_where_whole_turns_fit() {
    Harness::<Recall>::new().assert_sound(500);
}

proptest! {
    #[test]
    fn a_plan_breaks_no_rule_unless_nothing_fits(seed in any::<u64>(), turns in 0usize..30, percent in 5u64..150) {
        let transcript = testing::random_transcript(seed, turns);
        // The gateway does not start a turn between a call and its result.
        prop_assume!(transcript.current_part() == transcript.current());
        let archive = MemoryArchive::of(&transcript.entries()[..transcript.current()]);
        let limit = (transcript.total_tokens() * percent / 100).max(600);
        let transcript = Arc::new(transcript.with_archive(Arc::new(archive)));
        if let Err(breach) = Harness::<Recall>::new().prune(&transcript, limit) {
            prop_assert_eq!(breach.rule.number(), 9, "{}", breach);
            let guard = Guard { limit, seed_may_go: false, must_shrink: false };
            prop_assert!(!guard.whole_turns_can_fit(&transcript), "{}", breach);
        }
    }
}
