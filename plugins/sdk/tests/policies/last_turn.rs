//! What a policy leaves of a last turn that is too large for the limit.

use pmk_policy_sdk::{
    Prune,
    testing::{
        Conversation, Harness,
        core::{Block, Image, ImageId, ImageType, Message, Origin, Role},
    },
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

/// Images cannot be shortened: they are digested, and what was said of them stays.
pub fn gives_up_its_images_first<P: Prune>() {
    let image = |name: &[u8]| {
        Block::Image(Image { sha256: ImageId::of(name), media_type: ImageType::Png, width: 1_920, height: 1_080 })
    };
    let images =
        Message { role: Role::User, origin: Origin::Attachment, blocks: b"abcd".chunks(1).map(image).collect() };
    let conversation = Conversation::new().turn("hello", "hi").message(images).turn("what do they show?", "charts");
    let transcript = conversation.ask("and the third?").transcript();
    let applied = Harness::<P>::new().prune(&transcript, 8_000_u64).expect("a plan that breaks no rule");
    assert_eq!((applied.turns_dropped, applied.replaced.len(), applied.replaced[0].index), (0, 1, 2));
}

/// Of four older turns of 540 tokens, those that this limit has no room for go, beside a last turn that is shortened, and
/// beside a current one.
pub fn leaves_older_turns_their_room<P: Prune>(last: [(u64, u32); 2], current: [(u64, u32); 2]) {
    let older = (0..4).fold(Conversation::new(), |conversation, _| conversation.turn("why?", &"because ".repeat(500)));
    let long = "字".repeat(16_000);
    let after_one = older.clone().turn("and all of it?", &long).ask("and now?").transcript();
    let at_work = older.ask("and all of it?").tool("cat", &long).transcript();
    for (transcript, cases) in [(after_one, last), (at_work, current)] {
        for (limit, dropped) in cases {
            let applied = Harness::<P>::new().prune(&transcript, limit).expect("a plan that breaks no rule");
            assert_eq!((applied.replaced.len(), applied.turns_dropped), (1, dropped), "{limit}");
        }
    }
}
