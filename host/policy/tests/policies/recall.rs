//! Searching the archive and recalling messages.

use std::{ops::Range, sync::Arc, thread, time::Duration};

use pmk_core::{Archive, Archived, Matches, Origin, Transcript};
use pmk_policy::{ArchiveUse, Limits, Outcome, Stack};
use pmk_search::MemoryArchive;

use crate::{
    component::{Component, DATA},
    decided_by, good, layer, over_a_good_one, reason, room, runtime, runtime_with, small_limits, transcript,
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

/// An archive in a database that takes this long for each message.
#[derive(Debug)]
struct Pausing(MemoryArchive, Duration);

impl Pausing {
    /// The archive of this many turns, with them.
    fn of(turns: usize, pause: Duration) -> Arc<Transcript> {
        let transcript = Arc::unwrap_or_clone(transcript(turns));
        let archive = Pausing(MemoryArchive::of(&transcript.entries()[..transcript.current()]), pause);
        Arc::new(transcript.with_archive(Arc::new(archive)))
    }
}

impl Archive for Pausing {
    fn len(&self) -> u32 {
        self.0.len()
    }

    fn read(&self, numbers: Range<u32>) -> Vec<(u32, Archived)> {
        thread::sleep(self.1);
        self.0.read(numbers)
    }

    fn look_for(&self, query: &str, max: usize, wanted: &dyn Fn(i64) -> bool) -> Matches {
        self.0.look_for(query, max, wanted)
    }
}

/// Regression: it counted as a failure of the policy, which was suspended after five of them.
#[test]
fn a_policy_was_blamed_for_a_database_that_paused() {
    let runtime = runtime_with(Limits { wall: Duration::from_millis(300), ..small_limits() });
    // The clock is looked at where a loop begins again.
    let read = "(call $archived-text (local.get $transcript) (i32.const 0) (i32.const 0) (i32.const 9) (i32.const 256))
        (loop $l (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100))))";
    let stack = over_a_good_one(&runtime, &Component::pruning(read));
    let decision = stack.prune(&Pausing::of(5, Duration::from_millis(1_500)), room());
    let record = &decision.records[0];
    assert!(matches!(record.outcome, Outcome::Failed { kind: "system", .. }), "{record:?}");
    assert!(reason(&decision).ends_with(" ms for the archive"), "{record:?}");
    assert_eq!((record.outcome.is_fault(), record.reproducible), (None, false));
    assert_eq!(decision.applied.removed, [0, 1], "the layer below decides");
}

/// Regression: whatever time the archive took for it was the archive's fault, so such a policy was never suspended.
#[test]
fn a_policy_that_asks_the_archive_for_ever_was_not_blamed_for_it() {
    let limits = Limits { fuel_base: u64::MAX / 2, wall: Duration::from_millis(300), ..small_limits() };
    // Each message once: a second time it takes no query.
    let read = "(loop $l
        (call $archived-text (local.get $transcript) (local.get $i) (i32.const 0) (i32.const 9) (i32.const 256))
        (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1000))))";
    let stack = over_a_good_one(&runtime_with(limits), &Component::pruning(read));
    let transcript = Pausing::of(500, Duration::from_millis(5));
    // A machine that is busy may let a query take as long as a database that pauses does.
    let is_blamed = |_| {
        let outcome = stack.prune(&transcript, room()).records.swap_remove(0).outcome;
        matches!(outcome, Outcome::Failed { kind: "time", .. }) && outcome.is_fault() == Some(true)
    };
    assert!((0..20).any(is_blamed));
}
