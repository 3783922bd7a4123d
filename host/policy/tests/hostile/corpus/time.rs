//! Using up the host's time.

use std::time::Duration;

use pmk_policy::Limits;

use super::{Attack, SAME_MEMORY, forever, pruning};
use crate::{
    component::{Component, DATA},
    run::LIMITS,
};

const GROUP: &str = "Time";

const SPIN: &str = "(loop $l (br $l))";

pub fn attacks() -> Vec<Attack> {
    let everywhere = ["cap", "prune", "summarize", "recover"]
        .into_iter()
        .fold(Component::new(), |component, export| component.export(export, SPIN));
    let spinning = |start: &str| Component::pruning("").items(start);
    let with = |body: &str, items: &str| Component::pruning(body).items(items);
    let by_clock = Limits { fuel_base: u64::MAX / 2, wall: Duration::from_millis(100), ..LIMITS };
    let grapheme = "(i32.store8 (i32.const 65536) (i32.const 101)) ".to_owned()
        + "(local.set $i (i32.const 0)) (loop $f (i32.store16 (i32.add (i32.const 65537) (i32.mul (local.get \
            $i) (i32.const 2))) (i32.const 0x81cc)) "
        + "(br_if $f (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100000)))) ";
    let mut attacks = vec![
        Attack::new(GROUP, "every export loops", &everywhere),
        Attack::new(GROUP, "every export loops, with fuel for centuries", &everywhere).with_limits(by_clock),
        Attack::new(GROUP, "`describe` loops", &Component::pruning("").export("describe", SPIN)),
        Attack::new(GROUP, "the start function loops", &spinning("(func $spin (loop $l (br $l))) (start $spin)")),
        Attack::new(GROUP, "the start function recurses", &spinning("(func $deep (call $deep)) (start $deep)")),
        Attack::new(GROUP, "recursion", &with("(call $deep)", "(func $deep (call $deep))")),
        Attack::new(
            GROUP,
            "recursion through a table",
            &with(
                "(call $deep)",
                "(table 1 funcref) (elem (i32.const 0) $deep) (func $deep (call_indirect (i32.const 0)))",
            ),
        ),
        Attack::new(
            GROUP,
            "recursion that logs at every depth",
            &with("(call $deep)", "(func $deep (call $log (i32.const 3) (i32.const 0) (i32.const 4)) (call $deep))"),
        ),
        Attack::new(GROUP, "tail calls for ever", &with("(call $spin)", "(func $spin (return_call $spin))")),
        Attack::new(GROUP, "a function runs after the call and loops", &Component::pruning("").after(SPIN)),
        Attack::new(
            GROUP,
            "memory is handed out by a function that loops",
            &Component::pruning("(call $tokens (local.get $transcript) (i32.const 0) (i32.const 9) (i32.const 256))")
                .realloc("", "(loop $l (br $l)) (i32.const 0)"),
        ),
        Attack::new(
            GROUP,
            "reads a column for ever",
            &Component::pruning(&forever(
                "(call $tokens (local.get $transcript) (i32.const 0) (i32.const -1) (i32.const 256))",
            ))
            .realloc("", SAME_MEMORY),
        ),
        Attack::new(
            GROUP,
            "the summary is one endless grapheme, again and again",
            &Component::new().export(
                "summarize",
                &(grapheme.clone()
                    + &forever("(call $append (local.get $summary) (i32.const 65536) (i32.const 200001))")),
            ),
        ),
        Attack::new(
            GROUP,
            "the log is one endless grapheme, again and again",
            &Component::pruning(
                &(grapheme + &forever("(call $log (i32.const 3) (i32.const 65536) (i32.const 200001))")),
            ),
        ),
        Attack::new(
            GROUP,
            "a large text is read again and again",
            &Component::new().export(
                "cap",
                &(forever(
                    "(call $incoming-text (local.get $incoming) (i32.const 99999) (i32.const 1) (i32.const 256))",
                )),
            ),
        ),
    ];
    attacks.extend(pruning(
        GROUP,
        &[
            ("a jump table that leads back", "(loop $l (br_table $l $l $l (local.get $i)))"),
            (
                "a megabyte is filled again and again",
                &forever(
                    "(memory.fill (i32.const 0) (i32.const 7) \
                (i32.const 1000000))",
                ),
            ),
            (
                "half a megabyte is copied again and again",
                &forever(
                    "(memory.copy (i32.const 0) (i32.const \
                600000) (i32.const 500000))",
                ),
            ),
            ("logs for ever", &forever(&format!("(call $log (i32.const 1) (i32.const {DATA}) (i32.const 500000))"))),
            ("asks what the plan costs for ever", &forever("(drop (call $plan-tokens (local.get $plan)))")),
            (
                "shortens and takes it back for ever",
                &forever(
                    "(call $shorten (local.get $plan) (i32.const 4) \
                (i32.const 9) (i32.const 9)) (call $clear (local.get $plan))",
                ),
            ),
            (
                "shortens a tool call and takes it back for ever",
                &forever(
                    "(call $shorten (local.get $plan) \
                (i32.const 3) (i32.const 9) (i32.const 9)) (call $clear (local.get $plan))",
                ),
            ),
            (
                "asks for a setting with a name of a megabyte for ever",
                &forever(
                    "(call $setting-integer \
                (i32.const 0) (i32.const 1000000) (i32.const 1100000))",
                ),
            ),
        ],
    ));
    attacks
}
