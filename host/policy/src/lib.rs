//! The policy runtime: loads policy components, limits them, runs them in layers.
//!
//! A policy is a WebAssembly component behind the contract in `wit/policy.wit`. It is loaded once
//! ([`Policy::load`]: checks, [`compile`], link, describe) and then asked for decisions, each in a fresh
//! instance with its own fuel, memory ceiling and wall-clock rescue. Whatever goes wrong inside a component
//! is a [`Failure`] of that layer of the [`Stack`]; the layer below decides, and under all of them
//! the native floor of [`pmk_core::floor`].
//!
//! Read in this order: [`contract`] (what is offered), [`limits`] and [`prices`], [`runtime`] (the engine),
//! [`trust`], [`policy`] (loading), [`settings`], [`stack`] (deciding), [`record`] (what is remembered of a decision),
//! [`breaker`] (what repeated failures lead to).

#![deny(missing_docs)]

pub mod breaker;
pub mod capabilities;
pub mod compile;
pub mod contract;
pub mod description;
pub mod error;
pub mod failure;

pub mod limits;
pub mod policy;
pub mod prices;
pub mod record;
pub mod runtime;
pub mod settings;
pub mod stack;
pub mod texts;
pub mod trust;

mod checks;
mod engine;
mod host;
mod instance;
#[cfg(test)]
mod later;
mod log;
mod state;
mod wasi;

pub use breaker::Change;
pub use capabilities::Capability;
pub use compile::{CacheStats, Compiler};
pub use description::{Description, SettingKind, SettingSpec};
pub use error::LoadError;
pub use failure::Failure;
pub use limits::{CompileLimits, Limits, Size};

pub use policy::{Exports, Policy};
pub use record::{ArchiveUse, DecidedBy, Decision, Identity, LogLevel, LogLine, Outcome, Record};
pub use runtime::{Runtime, RuntimeConfig};
pub use settings::{Bounds, Overrides, SetOverride, SettingError, Settings, Value, Warning};
pub use stack::{
    CapDecision, IncomingInput, Layer, OverflowInput, Phase, PruneDecision, PruneInput, RecoverDecision, Rung, Stack,
    SummaryDecision,
};
pub use texts::TextsRead;
pub use trust::Trust;
