//! Experiments: several policies on live traffic, and a statistically sound comparison between them.
//!
//! [The configuration](crate::config::ExperimentConfig) describes an experiment, [`arms`] loads its arms, [a hash
//! draw](crate::store::assignment) assigns each conversation the arm that it keeps, and [`live`] runs all of that in a
//! running gateway. [`shadow`] asks the arms that decide without any effect. [`signals`] detects implicit feedback: a
//! question asked twice, a thumb up or down. [The guard rail](crate::guard_rail) stops an arm that is worse than the
//! control beyond doubt; [`figures`] computes what is known of each arm, and [`allocation`] whether that can be
//! trusted.

mod allocation;
pub mod arms;
pub mod figures;
pub mod live;
mod mended;
pub mod shadow;
pub mod shared_arms;
pub mod signals;
