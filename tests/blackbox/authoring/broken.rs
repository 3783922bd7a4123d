//! Components that no gateway should run, in a few instructions each.

use crate::component::{Component, DATA};

/// Takes out half of a turn.
pub fn tears() -> Component {
    Component::pruning("(call $remove (local.get $plan) (i32.const 0) (i32.const 1))")
}

/// Says why and traps, as a panic does, in a function with a mangled name.
pub fn panics() -> Component {
    let says = format!("(call $log (i32.const 1) (i32.const {DATA}) (i32.const 12))");
    Component::pruning(&format!("{says} (call $_ZN6policy5inner17h0123456789abcdefE)"))
        .items("(func $_ZN6policy5inner17h0123456789abcdefE unreachable)")
        .data("no such turn")
}

/// Caps nothing, and traps if its setting `test` is 1 and not 0.
pub fn traps_if_set() -> Component {
    let declares = "(call $declare-integer (local.get $description) (i32.const 0) (i32.const 4) (i64.const 0) \
                    (i64.const 0) (i64.const 1) (i32.const 8) (i32.const 3))";
    let asks = "(call $setting-integer (i32.const 0) (i32.const 4) (i32.const 256))";
    let traps = "(if (i64.eq (i64.load (i32.const 264)) (i64.const 1)) (then unreachable))";
    Component::new().describing(declares).export("cap", &format!("{asks} {traps}"))
}
