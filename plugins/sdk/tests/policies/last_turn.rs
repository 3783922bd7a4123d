//! What a policy leaves of a last turn that is too large for the limit.

use pmk_policy_sdk::{
    Prune,
    testing::{Conversation, Harness},
};

/// One large result is shortened, and nothing is dropped.
pub fn stays_in_part<P: Prune>() {
    let limit = 4_000_u64;
    let conversation = Conversation::new().turn("look at it all", "yes").tool("cat", &"endless ".repeat(20_000));
    let transcript = conversation.answer("so it is").ask("and now?").transcript();
    let applied = Harness::<P>::new().prune(&transcript, limit).expect("a plan that breaks no rule");
    assert_eq!((applied.turns_dropped, applied.kept.as_slice()), (0, &[0, 1, 2, 3, 4, 5][..]));
    assert!(applied.tokens_after <= limit && !applied.replaced.is_empty());
}

/// Of results that are too large even if shortened, the newest stay with their calls.
pub fn keeps_its_newest_pairs<P: Prune>() {
    let asked = Conversation::new().turn("look at it all", "yes");
    let worked =
        (0..24).fold(asked, |conversation, at| conversation.tool("cat", &format!("{at} {}", "endless ".repeat(500))));
    let transcript = worked.answer("so it is").ask("and now?").transcript();
    let applied = Harness::<P>::new().prune(&transcript, 3_000_u64).expect("a plan that breaks no rule");
    assert_eq!(applied.turns_dropped, 0);
    assert!(applied.removed.starts_with(&[2, 3]) && applied.kept.contains(&49), "{:?}", applied.removed);
}
