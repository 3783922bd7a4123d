//! The host's side of the contract: what a component may call during a decision.
//!
//! Every call costs fuel in proportion to the work it makes the host do ([`crate::prices`]), so that a
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
