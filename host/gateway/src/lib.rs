//! The gateway: connects people with a model. A policy decides how much of a conversation the model sees.
//!
//! - [`turn`]: the steps of one turn. [`dispatch`] runs the turns.
//! - [`front`]: the connection to people. The models are in [`pmk_models`].
//! - [`store`]: everything that survives a crash; [`transfer`](store::transfer) moves conversations between stores.
//! - [`pmk_knowledge`]: what the team knows. With a [`directive`], the model asks for more: from [`mra`], or from
//!   people by [`escalation`].
//! - [`case`]: what a channel is looking into.
//! - [`evaluation`] compares policies on recorded conversations, an [`experiment`](policies::experiment) compares them
//!   on live ones.
//! - [`operator`]: what operators change at run time, and their commands where people talk. [`diagnostics`]: reports on
//!   the gateway.
//! - [`presence`]: whether a gateway is running to answer.

pub mod access;
pub mod calibration;
pub mod case;
pub mod chat;
pub mod cli;
pub mod config;
pub mod control;
pub mod database;
pub mod diagnostics;
pub mod directive;
pub mod dispatch;
mod embedded;
pub mod escalation;
pub mod evaluation;
mod exchange;
pub mod front;
pub mod gateway;
pub mod guard_rail;
pub mod ids;
pub mod language;
pub mod ledger;
pub mod messages;
pub mod mra;
pub mod operator;
pub mod policies;
pub mod preambles;
pub mod presence;
mod roots;
pub mod services;
pub mod sharing;
pub mod slack_id;
mod spelling;
mod stderr;
pub mod store;
pub mod turn;
