use pmk_policy_sdk::testing::{
    Harness,
    core::{CapVerdict, Language, Origin, cap, tokens},
};
use proptest::prelude::*;
use standard::Standard;

const ROOMY: u64 = 1_000_000;

#[test]
fn each_kind_has_its_cap_and_keeps_head_and_tail() {
    let harness = Harness::<Standard>::new();
    let text = "word ".repeat(20_000);
    for (kind, cap) in [
        (Origin::Seed, 30_000),
        (Origin::MraResult, 40_000),
        (Origin::ToolResult, 30_000),
        (Origin::Attachment, 40_000),
    ] {
        let CapVerdict::Shorten { head, tail } = harness.cap(kind, "n", &text, ROOMY) else {
            panic!("{kind:?} is kept")
        };
        assert_eq!((head + tail, tail), (cap, cap / 3), "{kind:?}");
    }
}

#[test]
fn a_text_at_the_cap_is_kept() {
    let harness = Harness::<Standard>::new().with("seed-cap", 4);
    assert_eq!(harness.cap(Origin::Seed, "erp", "預算預算", ROOMY), CapVerdict::Keep);
    assert_eq!(harness.cap(Origin::Seed, "erp", "預算預算表", ROOMY), CapVerdict::Shorten { head: 3, tail: 1 });
}

#[test]
fn very_long_results_stand_as_a_digest_where_the_operator_wants_it() {
    let harness = Harness::<Standard>::new().with("digest-above", 100);
    let long = "line\n".repeat(100);
    assert_eq!(harness.cap(Origin::ToolResult, "grep", &long, ROOMY), CapVerdict::Digest);
    assert_eq!(harness.cap(Origin::MraResult, "erp", &long, ROOMY), CapVerdict::Digest);
    assert_eq!(harness.cap(Origin::Seed, "", &long, ROOMY), CapVerdict::Keep);
    assert_eq!(harness.cap(Origin::ToolResult, "grep", "short", ROOMY), CapVerdict::Keep);
}

proptest! {
    #[test]
    fn nothing_stored_takes_more_than_its_share_of_a_small_window(
        text in "(預算 |word |\\PC|👨‍👩‍👧){0,400}",
        limit in 800u64..4_000,
    ) {
        let verdict = Harness::<Standard>::new().cap(Origin::ToolResult, "grep", &text, limit);
        let capped = cap::apply(&text, verdict, "tool-result", "m1", Language::English);
        // The share is computed from the average characters per token; the kept part can be denser.
        prop_assert!(!capped.capped || u64::from(tokens::estimate(&text)) > limit / 4);
        prop_assert!(capped.capped || u64::from(tokens::estimate(&text)) <= limit / 4 + 1);
    }
}
