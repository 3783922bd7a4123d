//! The policy runtime: loads policy components, limits them, and runs them in layers.
//!
//! A policy is a WebAssembly component that implements the contract in `wit/policy.wit`. It is loaded once
//! ([`Policy::load`]: checks, [`compile`], link, describe) and then asked for decisions, each in a fresh instance with
//! its own limits on fuel, memory and wall-clock time. Whatever goes wrong inside a component is a [`Failure`] of that
//! layer of the [`Stack`]; the layer below decides, and under all of them the floor of [`pmk_core::floor`].
//!
//! Read in this order: [`contract`] (what is offered), [`limits`] and [`prices`], [`runtime`] (the engine), [`trust`],
//! [`policy`] (loading), [`settings`], [`input`] (what a decision is about), [`stack`] (deciding), [`record`] (what is
//! recorded of a decision), [`breaker`] (the effect of repeated failures).

#![deny(missing_docs)]

pub mod breaker;
pub mod capabilities;
pub mod compile;
pub mod contract;
pub mod decision;
pub mod description;
pub mod error;
pub mod failure;
pub mod input;
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
mod images;
mod instance;
#[cfg(test)]
mod later;
mod log;
mod state;
mod wasi;

pub use breaker::{Change, Suspension};
pub use capabilities::Capability;
pub use compile::{CacheStats, Compiler};
pub use decision::{DecidedBy, Decision, FLOOR, Identity};
pub use description::{Description, SettingKind, SettingSpec};
pub use error::LoadError;
pub use failure::Failure;
pub use input::{IncomingInput, OverflowInput, Phase, PruneInput, Rung};
pub use limits::{CompileLimits, Limits, Size};
pub use log::{LogLevel, LogLine};
pub use policy::{Exports, Policy};
pub use record::{ArchiveUse, Outcome, Record};
pub use runtime::{Runtime, RuntimeConfig};
pub use settings::{
    Bounds, ChangedSettings, ConfiguredSettings, Overrides, SetOverride, SettingError, Settings, Value, Warning,
};
pub use stack::{CapDecision, Layer, PruneDecision, RecoverDecision, Stack, SummaryDecision};
pub use texts::TextsRead;
pub use trust::Trust;
