//! Well-formed but absurd answers.

use super::{Attack, GOOD, SAME_MEMORY, forever, pruning, times};
use crate::component::Component;

const GROUP: &str = "Answers";

pub fn attacks() -> Vec<Attack> {
    let remove =
        |start: i64, end: i64| format!("(call $remove (local.get $plan) (i32.const {start}) (i32.const {end}))");
    let compact =
        |start: i64, end: i64| format!("(call $compact (local.get $plan) (i32.const {start}) (i32.const {end}))");
    let shorten = |index: i64, head: i64, tail: i64| {
        format!("(call $shorten (local.get $plan) (i32.const {index}) (i32.const {head}) (i32.const {tail}))")
    };
    let each = |edit: &str, from: u32| format!("(local.set $i (i32.const {from})) {}", times(26, edit));
    let mut attacks = pruning(
        GROUP,
        &[
            ("does nothing although the request is too large", ""),
            ("removes everything", &remove(0, 27)),
            ("removes all but the new message", &remove(0, 26)),
            ("removes every turn", &remove(2, 26)),
            ("removes half the seed pair", &remove(1, 6)),
            ("removes nothing", &remove(6, 6)),
            ("removes backwards", &remove(8, 6)),
            ("removes what is not there", &remove(6, 28)),
            ("removes what can be nowhere", &remove(-2, -1)),
            ("removes half a turn", &remove(6, 7)),
            ("tears a tool pair", &remove(4, 5)),
            ("removes the same twice", &format!("{} {}", remove(2, 8), remove(6, 10))),
            ("removes and shortens the same", &format!("{} {}", remove(2, 6), shorten(4, 9, 9))),
            ("71 edits of 27 messages", &times(71, &remove(2, 6))),
            ("shortens the new message to nothing", &shorten(26, 0, 0)),
            ("puts a digest in place of the new message", "(call $digest (local.get $plan) (i32.const 26))"),
            ("shortens a message that is not there", &shorten(-1, 1, 1)),
            (
                "shortens every message to nothing",
                &each("(call $shorten (local.get $plan) (local.get $i) (i32.const 0) (i32.const 0))", 0),
            ),
            ("puts a digest in place of every message", &each("(call $digest (local.get $plan) (local.get $i))", 0)),
            ("shortens to more than there is", &shorten(4, -1, -1)),
            ("compacts everything", &format!("{} {}", remove(2, 6), compact(0, 27))),
            ("compacts backwards", &format!("{} {}", remove(2, 6), compact(20, 6))),
            ("compacts what can be nowhere", &format!("{} {}", remove(2, 6), compact(-2, -1))),
            ("compacts half a turn", &format!("{} {}", remove(2, 6), compact(7, 9))),
            (
                "not a number decides",
                "(call $remove (local.get $plan) (i32.reinterpret_f32 (f32.div (f32.neg (f32.const 0)) \
                    (f32.const 0))) (i32.const 27))",
            ),
            (
                "memory it never wrote decides",
                "(call $remove (local.get $plan) (i32.load (i32.const 900000)) (i32.load8_u (i32.const 1000000)))",
            ),
            (
                "how far memory grows decides",
                "(call $remove (local.get $plan) (i32.const 2) (i32.sub (memory.grow (i32.const 3)) (i32.const 14)))",
            ),
        ],
    );
    let cap = |name: &str, body: &str| Attack::new(GROUP, name, &Component::new().export("cap", body));
    let verdict =
        |head: i64, tail: i64| format!("(call $cap (local.get $cap-verdict) (i32.const {head}) (i32.const {tail}))");
    let recover = |name: &str, body: &str| Attack::new(GROUP, name, &Component::new().export("recover", body));
    let choose = |rung: u32| format!("(call $choose (local.get $recovery) (i32.const {rung}))");
    attacks.extend([
        cap("keeps a hundred thousand characters", ""),
        cap("keeps nothing", &verdict(0, 0)),
        cap("keeps more than can be counted", &verdict(-1, -1)),
        cap(
            "changes its mind 1,000 times",
            &times(1_000, &format!("{} (call $cap-digest (local.get $cap-verdict))", verdict(1, 1))),
        ),
        Attack::new(GROUP, "sums up to nothing", &Component::new().export("summarize", "")),
        recover("chooses no rung", ""),
        recover("chooses a rung that does not exist", &choose(77)),
        recover("chooses the rung 0", &choose(0)),
        recover("chooses a rung that is not available", &choose(3)),
        recover("gives up at once", &choose(4)),
    ]);
    attacks.extend(archive());
    attacks
}

/// Queries that ask the archive for too much, or for messages that do not exist.
fn archive() -> Vec<Attack> {
    let asking = |name: &str, body: &str| {
        let component = Component::pruning(&format!("{GOOD} {body}")).version("1.2.0").realloc("", SAME_MEMORY);
        Attack::new(GROUP, name, &component)
    };
    let search = "(call $search (local.get $transcript) (i32.const 0) (i32.const 4) (i32.const -1) (i32.const 256))";
    let giant = "(call $search (local.get $transcript) (i32.const 0) (i32.const 900000) (i32.const 9) (i32.const 256))";
    let recall = "(call $recall (local.get $plan) (i32.const -1) (i32.const -1))";
    vec![
        asking("searches the archive for ever", &forever(search)),
        asking("searches the archive for 900,000 bytes for ever", &forever(giant)),
        asking("recalls what was never archived", recall),
        asking("recalls what was never archived, for ever", &forever(recall)),
    ]
}
