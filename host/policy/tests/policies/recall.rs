//! Searching the archive and recalling messages.

use std::sync::Arc;

use pmk_core::{Origin, Transcript};
use pmk_policy::{ArchiveUse, Outcome, Stack};
use pmk_search::MemoryArchive;

use crate::{
    component::{Component, DATA},
    decided_by, good, layer, over_a_good_one, room, runtime, transcript,
};

/// Removes the first turn, searches, and recalls the best match.
fn recalling() -> Component {
    let body = format!(
        "(call $remove (local.get $plan) (i32.const 0) (i32.const 2))
         (call $search (local.get $transcript) (i32.const {DATA}) (i32.const 8) (i32.const 5) (i32.const 2048))
         (call $recall (local.get $plan) (i32.load (i32.load (i32.const 2048))) (i32.const 10))"
    );
    Component::pruning(&body).data("question")
}

fn with_archive(turns: usize) -> Arc<Transcript> {
    let transcript = Arc::unwrap_or_clone(transcript(turns));
    let archive = MemoryArchive::of(&transcript.entries()[..transcript.current()]);
    Arc::new(transcript.with_archive(Arc::new(archive)))
}

#[test]
fn what_a_plan_drops_is_found_and_quoted_before_the_new_message() {
    let runtime = runtime();
    let stack = Stack::new([layer(&runtime, &recalling())], layer(&runtime, &good()));
    let transcript = with_archive(5);
    let decision = stack.prune(&transcript, room());
    assert_eq!(decision.records[0].outcome, Outcome::Accepted);
    let used = ArchiveUse { searches: 1, found: vec![0], texts_read: 0, recalled: vec![0] };
    assert_eq!(decision.records[0].archive, used, "of five questions only the first is out of view");
    let messages = decision.applied.messages(&transcript);
    let [.., block, new] = messages.as_slice() else { panic!("a block and the new message") };
    assert_eq!((block.origin, new.plain_text().as_str()), (Origin::Recall, "and now?"));
    assert!(block.plain_text().contains("[m0] user:\n> question 0\n(of "), "{}", block.plain_text());
}

#[test]
fn without_an_archive_there_is_nothing_to_recall() {
    let runtime = runtime();
    let component = Component::pruning("(call $recall (local.get $plan) (i32.const 0) (i32.const 10))");
    let stack = over_a_good_one(&runtime, &component);
    let decision = stack.prune(&transcript(5), room());
    assert_eq!(decided_by(&decision), stack.layers().nth(1).unwrap().policy.identity().sha256);
    assert!(matches!(decision.records[0].outcome, Outcome::Rejected { rule: 8, .. }), "{:?}", decision.records[0]);
}

#[test]
fn the_record_holds_ids_and_no_text() {
    let runtime = runtime();
    let stack = Stack::new([layer(&runtime, &recalling())], layer(&runtime, &good()));
    let record = &stack.prune(&with_archive(5), room()).records[0];
    let json = serde_json::to_string(record).unwrap();
    assert!(json.contains(r#""archive":{"searches":1,"found":[0],"texts_read":0,"recalled":[0]}"#), "{json}");
    assert!(!json.contains("question"), "{json}");
}
