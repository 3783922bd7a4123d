//! Ordinary tests: the policy runs natively, on the gateway's own types, and every plan goes before the gateway's
//! own guard.

use pmk_policy_sdk::testing::{Conversation, Harness};
use {{crate}}::{{Type}};

/// A knowledge-base seed, so many turns, and a question.
fn conversation(turns: usize) -> Conversation {
    let begun = Conversation::new().seed("the workspace has two repositories");
    (0..turns)
        .fold(begun, |conversation, turn| conversation.turn(&format!("question {turn}?"), &"because ".repeat(100)))
        .ask("and now?")
}

#[test]
fn a_short_conversation_is_sent_whole() {
    let transcript = conversation(3).transcript();
    let sent = Harness::<{{Type}}>::new().prune(&transcript, 100_000).expect("a plan that the guard accepts");
    assert!(!sent.changes_anything());
}

#[test]
fn the_newest_turns_of_a_long_one_stay() {
    let transcript = conversation(50).transcript();
    let harness = Harness::<{{Type}}>::new().with("keep-turns", 5);
    let sent = harness.prune(&transcript, 3_000).expect("a plan that the guard accepts");
    assert_eq!(sent.turns_dropped, 45);
    let marker = sent.marker.as_ref().map(|(marker, _)| marker.text());
    assert_eq!(marker.as_deref(), Some("(此處省略 45 輪較舊的對話以節省 context)"));
}

#[test]
fn a_last_turn_that_does_not_fit_is_shortened() {
    let transcript = Conversation::new().turn("what does it say?", &"because ".repeat(5_000)).ask("why?").transcript();
    let sent = Harness::<{{Type}}>::new().prune(&transcript, 3_000).expect("a plan that the guard accepts");
    assert_eq!((sent.turns_dropped, sent.replaced.len()), (0, 1));
}

#[test]
fn it_is_sound_on_conversations_of_all_kinds() {
    Harness::<{{Type}}>::new().assert_sound(500);
    Harness::<{{Type}}>::new().with("keep-turns", 1).assert_sound(100);
}
