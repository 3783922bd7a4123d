//! Experiments: several policies on live traffic, and an honest word on which of them is better.
//!
//! [`config`] is what an operator writes, [`arms`] loads it, [`assignment`] gives a conversation its arm, which
//! it keeps, and [`live`] does all that while the gateway runs. [`shadow`] asks the arms that only watch.
//! [`signals`] are what people say without words: a question asked twice, a thumb up or down. [`guard_rail`]
//! takes an arm out that is worse than the control beyond doubt, [`figures`] says what is known of each.

pub mod arms;
pub mod assignment;
pub mod config;
pub mod figures;
pub mod guard_rail;
pub mod live;
pub mod shadow;
pub mod signals;
#[cfg(test)]
mod simulation;

pub use config::{ArmConfig, ArmPolicy, ExperimentConfig};
