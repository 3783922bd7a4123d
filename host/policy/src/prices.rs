//! The prices of host calls, in fuel.
//!
//! Fuel has to end every decision before the clock does, whatever a component calls and however long the conversation
//! is, because only fuel ends it at the same point on every machine. So no call may be cheaper than the time it takes:
//! 5 units per nanosecond, measured in the most expensive case on a conversation of 100,000 messages with its archive
//! in SQLite. The machine executes ordinary instructions worth one unit in 0.1 to 0.3 ns, so time is no cheaper in a
//! call than outside. The most fuel that a decision has ([`crate::limits::DEFAULT_FUEL_MOST`]) is then 0.7 s of host
//! calls; a machine nearly three times as slow stays below two seconds.
//!
//! The table below was measured by `cargo run --release --workspace --example prices`; run it again when a call
//! changes. What does not exist costs as much as what exists, so that a component cannot query it at a discount. The
//! price depends on the input alone, never on the clock or on what happens to be cached.

use pmk_core::lookup::Work;
use wasmtime::OperatorCost;

/// A call that returns or takes numbers: 90 to 130 ns, most of it for leaving and entering the component.
pub const CALL: u64 = 1_000;
/// A call that returns a list or a text, for which the component first has to allocate memory: 150 to 220 ns.
pub const GIVE: u64 = 2_000;
/// Each element of a column that is copied: 0.2 ns.
pub const ELEMENT: u64 = 4;
/// Each element that is looked up, message by message: 3 ns.
pub const LOOKED_UP: u64 = 20;
/// Each byte that is copied: 0.05 ns, or 0.7 ns where the component uses UTF-16.
pub const BYTE: u64 = 6;
/// Each byte that is scanned to find a character, or counted: 0.8 ns.
pub const WALKED_BYTE: u64 = 5;
/// Each byte that is cut at graphemes and whose tokens are counted: 2 to 3 ns.
pub const COUNTED_BYTE: u64 = 20;
/// Each handle of a list of handles: 50 ns.
pub const HANDLE: u64 = 500;

/// Counting the tokens of a marker, or of the frame of a recall block: up to 600 ns.
pub const FRAME: u64 = 4_000;
/// An edit that replaces a message, in addition to its bytes: up to 2.7 µs.
pub const REPLACE: u64 = 15_000;
/// Each edit of a plan that is examined and sorted: 40 ns.
pub const EDIT: u64 = 200;

/// One read from the store, whether there is a result or not: 27 µs.
pub const READ: u64 = 150_000;
/// Each message that is returned: 3 µs.
pub const MESSAGE: u64 = 20_000;
/// Each row of the archive's columns: 60 ns.
pub const ROW: u64 = 400;

/// A search, in addition to what it has to read.
pub const SEARCH: u64 = 1_000_000;
/// Each archived message whose length is read for the first search of a decision: 150 ns.
pub const LENGTH: u64 = 800;
/// Each archived message, each search: 2 ns.
pub const SEARCHED: u64 = 20;
/// Each term of the query that is looked up in the index: 22 µs.
pub const TERM: u64 = 120_000;
/// Each message that contains one of them and is counted: 50 ns.
pub const DOCUMENT: u64 = 300;
/// Each occurrence that is read of the terms that are rare enough to rank messages: 300 ns.
pub const PLACE: u64 = 1_500;

/// The price of the work that a component's archive queries caused.
pub(crate) fn of_archive(work: Work) -> u64 {
    [
        (work.reads, READ),
        (work.messages, MESSAGE),
        (work.rows, ROW),
        (work.bytes, WALKED_BYTE),
        (work.quoted_bytes, COUNTED_BYTE),
        (work.searches, SEARCH),
        (work.lengths, LENGTH),
        (work.searched, SEARCHED),
        (work.terms, TERM),
        (work.documents, DOCUMENT),
        (work.places, PLACE),
    ]
    .into_iter()
    .fold(0, |sum, (count, price)| sum.saturating_add(count.saturating_mul(price)))
}

/// The prices of instructions that take much longer than the others, which cost 1. `memory.grow` and the like leave the
/// component for the engine; growing by nothing takes 62 ns.
pub(crate) fn instructions() -> OperatorCost {
    let mut cost = OperatorCost::new();
    for grow in [&mut cost.MemoryGrow, &mut cost.TableGrow] {
        *grow = 255;
    }
    for bulk in [
        &mut cost.MemoryFill,
        &mut cost.MemoryCopy,
        &mut cost.MemoryInit,
        &mut cost.DataDrop,
        &mut cost.TableFill,
        &mut cost.TableCopy,
        &mut cost.TableInit,
        &mut cost.ElemDrop,
    ] {
        *bulk = 100;
    }
    // Entering and leaving a function, with a check of fuel and clock each time.
    for call in [&mut cost.Call, &mut cost.CallIndirect, &mut cost.ReturnCall, &mut cost.ReturnCallIndirect] {
        *call = 12;
    }
    for root in [&mut cost.F32Sqrt, &mut cost.F64Sqrt, &mut cost.F32x4Sqrt, &mut cost.F64x2Sqrt] {
        *root = 30;
    }
    for division in [
        &mut cost.I32DivS,
        &mut cost.I32DivU,
        &mut cost.I32RemS,
        &mut cost.I32RemU,
        &mut cost.I64DivS,
        &mut cost.I64DivU,
        &mut cost.I64RemS,
        &mut cost.I64RemU,
        &mut cost.F32Div,
        &mut cost.F64Div,
        &mut cost.F32x4Div,
        &mut cost.F64x2Div,
    ] {
        *division = 20;
    }
    cost
}

/// Every function of the contract that a component may import, named as in [`crate::Capability`], with the minimum
/// price of a call and what it costs in addition.
pub const OF_CALLS: &[(&str, u64, &str)] = &[
    ("log", CALL, "BYTE each of the message"),
    ("setting-integer", CALL, "BYTE each of the name"),
    ("setting-boolean", CALL, "BYTE each of the name"),
    ("setting-text", GIVE, "BYTE each of name and value"),
    ("description.name", CALL, "BYTE each of the texts"),
    ("description.version", CALL, "BYTE each of the texts"),
    ("description.about", CALL, "BYTE each of the texts"),
    ("description.setting-integer", CALL, "BYTE each of the texts"),
    ("description.setting-boolean", CALL, "BYTE each of the texts"),
    ("description.setting-text", CALL, "BYTE each of the texts"),
    ("transcript.length", CALL, ""),
    ("transcript.total-tokens", CALL, ""),
    ("transcript.tokens", GIVE, "ELEMENT each"),
    ("transcript.chars", GIVE, "LOOKED_UP each"),
    ("transcript.roles", GIVE, "LOOKED_UP each"),
    ("transcript.origins", GIVE, "LOOKED_UP each"),
    ("transcript.flags", GIVE, "ELEMENT each"),
    ("transcript.groups", GIVE, "ELEMENT each"),
    ("transcript.cuts", GIVE, "ELEMENT each that is given"),
    ("transcript.turns", CALL, ""),
    ("transcript.current", CALL, ""),
    ("transcript.seed-end", CALL, ""),
    ("transcript.dropped-turns", CALL, ""),
    ("transcript.channel", GIVE, "BYTE each"),
    ("transcript.text", GIVE, "WALKED_BYTE each of the whole message, BYTE each that is given"),
    ("transcript.tools", GIVE, "GIVE and BYTE for each name"),
    ("transcript.archived", CALL, ""),
    (
        "transcript.search",
        GIVE,
        "WALKED_BYTE each of the query; unless it is one too many: SEARCH, TERM, DOCUMENT, PLACE and, for each archived message, SEARCHED, the first time LENGTH",
    ),
    (
        "transcript.archived-tokens",
        GIVE,
        "ROW each, EDIT for each edit; for what is not read yet READ, and for each message of it MESSAGE, WALKED_BYTE, COUNTED_BYTE",
    ),
    ("transcript.archived-origins", GIVE, "as archived-tokens"),
    ("transcript.archived-text", GIVE, "as archived-tokens, and the bytes anew each time"),
    ("budget.limit", CALL, ""),
    ("budget.window", CALL, ""),
    ("budget.marker-tokens", FRAME, ""),
    ("budget.recall-tokens", FRAME, ""),
    ("budget.phase", CALL, ""),
    ("budget.seed-may-go", CALL, ""),
    ("plan.remove", CALL, ""),
    ("plan.shorten", REPLACE, "COUNTED_BYTE each of the original"),
    ("plan.digest", REPLACE, "COUNTED_BYTE each of the original"),
    ("plan.marker", CALL, "BYTE each"),
    ("plan.tokens", FRAME, "EDIT for each edit where something is recalled"),
    ("plan.clear", CALL, "EDIT for each edit"),
    ("plan.compact", CALL, ""),
    ("plan.recall", CALL, "as archived-text"),
    ("incoming.kind", CALL, ""),
    ("incoming.name", GIVE, "BYTE each"),
    ("incoming.chars", CALL, "WALKED_BYTE each of the text"),
    ("incoming.tokens", CALL, "COUNTED_BYTE each of the text"),
    ("incoming.limit", CALL, ""),
    ("incoming.text", GIVE, "WALKED_BYTE each of the text, BYTE each that is given"),
    ("cap-verdict.keep", CALL, ""),
    ("cap-verdict.shorten", CALL, ""),
    ("cap-verdict.digest", CALL, ""),
    ("overflow.phase", CALL, ""),
    ("overflow.tried", GIVE, ""),
    ("overflow.available", GIVE, ""),
    ("overflow.observed-tokens", CALL, ""),
    ("overflow.allowed-tokens", CALL, ""),
    ("recovery.choose", CALL, ""),
    ("summary.max-tokens", CALL, ""),
    ("summary.append", CALL, "COUNTED_BYTE each"),
];
