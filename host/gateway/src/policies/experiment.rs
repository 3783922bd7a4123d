//! Experiments: several policies on live traffic, and an honest word on which of them is better.
//!
//! [An operator writes it](crate::config::ExperimentConfig), [`arms`] loads it, [a lot](crate::store::assignment) gives a conversation its
//! arm, which it keeps, and [`live`] does all that while the gateway runs. [`shadow`] asks the arms that only watch.
//! [`signals`] are what people say without words: a question asked twice, a thumb up or down. [The guard rail](crate::guard_rail)
//! takes an arm out that is worse than the control beyond doubt, [`figures`] says what is known of each.

pub mod arms;
pub mod figures;
pub mod live;
pub mod shadow;
pub mod shared_arms;
pub mod signals;
