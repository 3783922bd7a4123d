//! The host's side of the contract: what a component may call during a decision.
//!
//! Every call costs fuel in proportion to the work that it causes ([`crate::prices`]), so that a component cannot use
//! host time below its price, and a decision costs the same on every machine.

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

/// Adds the contract's imports to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    host::add_to_linker::<State, HasSelf<State>>(linker, |state| state)?;
    context::add_to_linker::<State, HasSelf<State>>(linker, |state| state)
}

impl context::Host for State {}

/// The range, limited to what exists.
fn cut(start: u32, end: u32, len: usize) -> std::ops::Range<usize> {
    let end = (end as usize).min(len);
    (start as usize).min(end)..end
}
