//! The host's side of the contract: what a component may call during a decision.
//!
//! Every call costs fuel in proportion to the work it makes the host do ([`cost`]), so that a
//! component cannot buy host time below its price, and what a decision costs is the same everywhere.

mod archive;
mod cap;
mod describe;
mod log;
mod prune;
mod recover;
mod summarize;
mod transcript;

use wasmtime::component::{HasSelf, Linker};

use crate::{
    contract::bindings::pmk::policy::{context, host},
    state::State,
};

/// Fuel of host calls. One unit is about a nanosecond, as for one simple instruction of the component.
pub(crate) mod cost {
    /// Any call.
    pub const CALL: u64 = 50;
    /// Each element of a column.
    pub const ELEMENT: u64 = 1;
    /// Each byte of text that is read over or copied.
    pub const BYTE: u64 = 1;
    /// Each byte of text that is cut at graphemes and counted in tokens.
    pub const COUNTED_BYTE: u64 = 20;
    /// A search of the archive, and each message that there is to search.
    pub const SEARCH: u64 = 1_000_000;
    pub const SEARCHED: u64 = 100;
}

/// Offers the contract's imports.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    host::add_to_linker::<State, HasSelf<State>>(linker, |state| state)?;
    context::add_to_linker::<State, HasSelf<State>>(linker, |state| state)
}

impl context::Host for State {}

/// A range cut to what is there.
fn cut(start: u32, end: u32, len: usize) -> std::ops::Range<usize> {
    let end = (end as usize).min(len);
    (start as usize).min(end)..end
}
