//! The gateway: people on one side, a model on the other, and between them a policy that decides how
//! much of a conversation the model gets to see.
//!
//! One turn reads like the list in [`turn`]; who works on which is up to [`dispatch`]. What talks to people is a [`front`], what
//! answers is a model ([`pmk_models`]), what survives a crash is in [`store`], and what moves conversations between stores is its
//! [`transfer`](store::transfer). What the team knows is in [`pmk_knowledge`]; what the model may do to learn more is a
//! [`directive`]: ask [`mra`], or a person by [`escalation`]; what a channel is looking into is a [`case`]. Which of two policies
//! does better is told by [`evaluation`] from recorded conversations, and by an [`experiment`](policies::experiment) from live
//! ones. What operators change meanwhile, and say for it where people talk, is in [`operator`]; what tells them how the gateway
//! does is in [`diagnostics`]. Whether anybody is there to answer is [`presence`].

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
