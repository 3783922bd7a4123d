//! Using host time below its price: each host call in a loop, where possible as one without effect.

use super::{Attack, SAME_MEMORY, forever};
use crate::component::{
    Component, DATA,
    functions::{FUNCTIONS, Function},
};

pub const GROUP: &str = "Host calls";

/// Where the results of a call are stored.
const BACK: &str = "(i32.const 2048)";

pub fn attacks() -> Vec<Attack> {
    FUNCTIONS
        .iter()
        .filter(|function| ["host", "context"].contains(&function.interface))
        .map(again)
        .chain(aimed())
        .collect()
}

fn again(function: &Function) -> Attack {
    let nothing = match function.export() {
        "describe" => Component::pruning(""),
        _ => Component::new(),
    };
    let component = nothing.export(function.export(), &forever(&function.call()));
    Attack::new(GROUP, &format!("`{}` for ever", function.shown()), &component.realloc("", SAME_MEMORY))
}

/// Calls that find something, and calls that find nothing.
fn aimed() -> Vec<Attack> {
    let counting = "(local.set $i (i32.add (local.get $i) (i32.const 1)))";
    let table = [
        (
            "reads an archived message that nobody has for ever",
            format!("(call $archived-text (local.get $transcript) (i32.const -1) (i32.const 0) (i32.const 10) {BACK})"),
        ),
        (
            "reads one archived message after the other for ever",
            format!(
                "(call $archived-text (local.get $transcript) (i32.rem_u (local.get $i) (i32.const 26)) (i32.const 0) (i32.const -1) {BACK}) {counting}"
            ),
        ),
        (
            "asks for ever what a message costs that nobody has",
            format!("(call $archived-tokens (local.get $transcript) (i32.const 90000) (i32.const 90200) {BACK})"),
        ),
        (
            "recalls a message that nobody has for ever",
            "(call $recall (local.get $plan) (i32.const -1) (i32.const 9))".into(),
        ),
        ("recalls the same message for ever", "(call $recall (local.get $plan) (i32.const 7) (i32.const 4000))".into()),
        (
            "searches for what nobody said for ever",
            format!("(call $search (local.get $transcript) (i32.const {DATA}) (i32.const 7) (i32.const 200) {BACK})"),
        ),
        (
            "searches for words of a thousand parts for ever",
            format!(
                "(call $search (local.get $transcript) (i32.const {DATA}) (i32.const 1900) (i32.const 200) {BACK})"
            ),
        ),
        (
            "reads the text of one message after the other for ever",
            format!(
                "(call $text (local.get $transcript) (i32.rem_u (local.get $i) (i32.const 27)) (i32.const 0) (i32.const -1) {BACK}) {counting}"
            ),
        ),
    ];
    let attack = |(name, body): &(&str, String)| {
        let component = Component::pruning(&forever(body)).data(&"zyzzyva.".repeat(237)).realloc("", SAME_MEMORY);
        Attack::new(GROUP, name, &component)
    };
    table.iter().map(attack).collect()
}
