//! Exhausting the host's memory.

use pmk_policy::Limits;

use super::{Attack, forever, pruning, times};
use crate::{
    component::{Component, DATA},
    run::LIMITS,
};

const GROUP: &str = "Memory";

pub fn attacks() -> Vec<Attack> {
    let with = |name: &str, body: &str, items: &str| Attack::new(GROUP, name, &Component::pruning(body).items(items));
    let instances: String = (0..70).map(|n| format!("(core instance $extra{n} (instantiate $extra))")).collect();
    let mut attacks = pruning(
        GROUP,
        &[
            ("memory grows for ever", &forever("(drop (memory.grow (i32.const 1)))")),
            ("memory grows by 4 GiB at once", "(drop (memory.grow (i32.const 65515)))"),
            ("memory grows by more than there can be", "(drop (memory.grow (i32.const -1)))"),
            ("5,000 edits", &times(5_000, "(call $remove (local.get $plan) (i32.const 0) (i32.const 27))")),
        ],
    );
    attacks.extend([
        Attack::new(GROUP, "starts with more memory than is allowed", &Component::pruning("").pages(129)),
        Attack::new(GROUP, "starts with 4 GiB", &Component::pruning("").pages(65_536)),
        with(
            "the start function grows memory for ever",
            "",
            "(func $grow (loop $l (drop (memory.grow \
            (i32.const 1))) (br $l))) (start $grow)",
        ),
        with("many memories, each within the ceiling", "", "(memory 70) (memory 70)"),
        with("more memories than the pool has", "", &"(memory 1)".repeat(9)),
        with("a memory with 64-bit addresses, of a terabyte", "", "(memory i64 16777216)"),
        with("a memory shared between threads", "", "(memory 1 1 shared)"),
        with(
            "a table grows for ever",
            &forever("(drop (table.grow (ref.null func) (i32.const 100)))"),
            "(table \
            1 funcref)",
        ),
        with(
            "a table grows by 4,000,000,000 at once",
            "(drop (table.grow (ref.null func) (i32.const \
            -300000000)))",
            "(table 1 funcref)",
        ),
        with("starts with a table of ten million", "", "(table 10000000 funcref)"),
        with("starts with a table above the ceiling", "", "(table 10001 funcref)"),
        with("more tables than the pool has", "", &"(table 1 funcref)".repeat(40)),
        Attack::new(
            GROUP,
            "more core instances than the pool has",
            &Component::pruning("").outside(&format!("(core module $extra (memory 1)) {instances}")),
        ),
        Attack::new(
            GROUP,
            "memory is handed out without end",
            &Component::pruning(&forever(
                "(call $text (local.get $transcript) (i32.const 4) (i32.const 0) \
                (i32.const -1) (i32.const 256))",
            ))
            .realloc("", "(i32.mul (i32.const 65536) (memory.grow (i32.const 1)))"),
        ),
        Attack::new(
            GROUP,
            "99 settings with texts of 400,000 bytes",
            &Component::pruning("").describing(&times(
                99,
                "(call $declare-text (local.get $description) (i32.const 65536) (i32.const 400000) \
                 (i32.const 65536) (i32.const 400000) (i32.const 0) (i32.const 0))",
            )),
        )
        .with_limits(Limits { fuel_base: 900_000_000, ..LIMITS }),
        Attack::new(
            GROUP,
            "100,000 settings",
            &Component::pruning("").describing(&times(
                100_000,
                "(call $declare-integer (local.get $description) (i32.const 0) (i32.const 4) (i64.const 0) \
                    (i64.const 0) (i64.const 0) (i32.const 0) (i32.const 0))",
            )),
        ),
        Attack::new(
            GROUP,
            "a summary of a megabyte, ten times",
            &Component::new().export(
                "summarize",
                &format!(
                    "(memory.fill (i32.const {DATA}) (i32.const 120) (i32.const 1000000)) {}",
                    times(10, &format!("(call $append (local.get $summary) (i32.const {DATA}) (i32.const 90000))"))
                ),
            ),
        ),
    ]);
    attacks
}
