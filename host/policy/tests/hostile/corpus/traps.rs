//! Every kind of trap.

use super::{Attack, pruning};
use crate::component::{Component, DATA};

const GROUP: &str = "Traps";

pub fn attacks() -> Vec<Attack> {
    let mut attacks = pruning(
        GROUP,
        &[
            ("`unreachable`", "unreachable"),
            ("division by zero", "(drop (i32.div_u (i32.const 1) (local.get $i)))"),
            ("integer overflow", "(drop (i32.div_s (i32.const 0x80000000) (i32.const -1)))"),
            ("not a number made an integer", "(drop (i32.trunc_f32_s (f32.const nan)))"),
            ("reads outside its memory", "(drop (i32.load (i32.const -4)))"),
            ("fills outside its memory", "(memory.fill (i32.const 1000000) (i32.const 0) (i32.const 1000000))"),
        ],
    );
    let with = |name: &str, body: &str, items: &str| Attack::new(GROUP, name, &Component::pruning(body).items(items));
    let panicking = |words: &str| {
        let length = words.replace("\\1b", "x").replace("\\n", "x").len();
        Component::pruning(&format!("(call $log (i32.const 1) (i32.const {DATA}) (i32.const {length})) unreachable"))
            .data(words)
    };
    let after_flood = format!(
        "(memory.fill (i32.const 65536) (i32.const 120) (i32.const 9000)) \
         (call $log (i32.const 3) (i32.const 65536) (i32.const 9000)) \
         (call $log (i32.const 1) (i32.const {DATA}) (i32.const 12)) unreachable"
    );
    let all = ["cap", "prune", "summarize", "recover"]
        .into_iter()
        .fold(Component::new(), |component, export| component.export(export, "unreachable"));
    attacks.extend([
        Attack::new(GROUP, "every export traps", &all),
        Attack::new(GROUP, "`describe` traps", &Component::pruning("").export("describe", "unreachable")),
        with("calls what is not in the table", "(call_indirect (i32.const 7))", "(table 1 funcref)"),
        with("calls an empty place of the table", "(call_indirect (i32.const 0))", "(table 1 funcref)"),
        with(
            "calls a function of another type",
            "(call_indirect (param i32) (i32.const 1) (i32.const 0))",
            "(table 1 funcref) (elem (i32.const 0) $f) (func $f)",
        ),
        with("data outside its memory", "", "(data (i32.const 1310719) \"outside\")"),
        with("elements outside its table", "", "(table 1 funcref) (elem (i32.const 1) $f) (func $f)"),
        Attack::new(GROUP, "the message of a panic steers the terminal", &panicking("\\1b[2J\\1b]0;pwned\\nno")),
        Attack::new(
            GROUP,
            "a panic after a flood of log lines",
            &Component::pruning(&after_flood).data("it went bust"),
        ),
        with(
            "the name of a function steers the terminal",
            "(call $f)",
            "(func $f (@name \"\\1b[2J\\nno\") unreachable)",
        ),
        with(
            "the name of a function has 90,000 letters",
            "(call $f)",
            &format!("(func $f (@name \"{}\") unreachable)", "name".repeat(22_500)),
        ),
        with(
            "the name of a function unfolds without end",
            "(call $f)",
            &format!("(func $f (@name \"_RIC3foo{}E\") unreachable)", "TB5_B5_B5_B5_B5_E".repeat(40)),
        ),
    ]);
    attacks
}
