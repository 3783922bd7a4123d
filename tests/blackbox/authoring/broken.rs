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
