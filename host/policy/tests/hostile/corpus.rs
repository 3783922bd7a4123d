//! The attacks, by what they go for.

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

/// A component that attacks.
pub struct Attack {
    pub group: &'static str,
    pub name: String,
    pub bytes: Vec<u8>,
    /// What each of its decisions may use.
    pub limits: Limits,
    /// What the host may need to load it.
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

/// All of them.
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

/// Those that are told to go on and on: each fails in another way.
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

/// Attacks that are a body of `prune` and nothing else.
fn pruning(group: &'static str, table: &[(&str, &str)]) -> Vec<Attack> {
    table.iter().map(|(name, body)| Attack::new(group, name, &Component::pruning(body))).collect()
}

/// A plan that is carried out, for attacks that are about something else.
const GOOD: &str = "(call $remove (local.get $plan) (i32.const 2) (i32.const 6))";

/// Hands out the same memory again and again, so that there is always some.
const SAME_MEMORY: &str = "(i32.const 65536)";

/// Does something this many times.
fn times(count: u32, body: &str) -> String {
    format!(
        "(loop $l {body} (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const \
            {count}))))"
    )
}

/// Does something for ever.
fn forever(body: &str) -> String {
    format!("(loop $l {body} (br $l))")
}
