//! The attacks, grouped by target.

mod calls;
mod files;
mod handles;
mod memory;
mod plans;
mod text;
mod time;
mod traps;
mod wasi;

pub use calls::GROUP as CALLS;
use pmk_policy::Limits;

use crate::{component::Component, memory::MIB, run::LIMITS};

/// A hostile component.
pub struct Attack {
    pub group: &'static str,
    pub name: String,
    pub bytes: Vec<u8>,
    /// The limits of each of its decisions.
    pub limits: Limits,
    /// The memory that the host may need to load it.
    pub load_bytes: u64,
}

impl Attack {
    fn new(group: &'static str, name: &str, component: &Component) -> Self {
        Attack::of_bytes(group, name, component.build())
    }

    fn of_bytes(group: &'static str, name: &str, bytes: Vec<u8>) -> Self {
        Attack { group, name: name.to_owned(), bytes, limits: LIMITS, load_bytes: 48 * MIB }
    }

    fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

/// All attacks.
pub fn all() -> Vec<Attack> {
    [
        time::attacks(),
        calls::attacks(),
        memory::attacks(),
        traps::attacks(),
        text::attacks(),
        handles::attacks(),
        wasi::attacks(),
        plans::attacks(),
        files::attacks(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Attacks that repeat without end: each fails in another way.
pub fn repeated() -> Vec<Attack> {
    let ways = [
        ("memory", "(loop $l (drop (memory.grow (i32.const 16))) (br $l))"),
        ("trap", "unreachable"),
        ("host allocation", "(call $marker (local.get $plan) (i32.const 0) (i32.const 1300000))"),
        (
            "plan",
            "(loop $l (call $remove (local.get $plan) (i32.const 2) (i32.const 6)) (br_if $l (i32.lt_u \
                (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 500))))",
        ),
    ];
    ways.iter().map(|(name, body)| Attack::new("again", name, &Component::pruning(body))).collect()
}

/// Attacks that consist of a body of `prune` only.
fn pruning(group: &'static str, table: &[(&str, &str)]) -> Vec<Attack> {
    table.iter().map(|(name, body)| Attack::new(group, name, &Component::pruning(body))).collect()
}

/// A valid plan, for attacks that target something else.
const GOOD: &str = "(call $remove (local.get $plan) (i32.const 2) (i32.const 6))";

/// Returns the same memory for every allocation, so that it never runs out.
const SAME_MEMORY: &str = "(i32.const 65536)";

/// Repeats something this many times.
fn times(count: u32, body: &str) -> String {
    format!(
        "(loop $l {body} (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const \
            {count}))))"
    )
}

/// Repeats something forever.
fn forever(body: &str) -> String {
    format!("(loop $l {body} (br $l))")
}
