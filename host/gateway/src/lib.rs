//! The gateway: people on one side, a model on the other, and between them a policy that decides how
//! much of a conversation the model gets to see.
//!
//! One turn reads like the list in [`turn`]. What talks to people is a [`front`], what answers is a
//! [`model`], what survives a crash is in [`store`].

pub mod cli;
pub mod clock;
pub mod config;
pub mod error;
pub mod front;
pub mod gateway;
pub mod home;
pub mod json;
pub mod ledger;
pub mod model;
pub mod say;
pub mod store;
pub mod turn;
