//! The gateway: people on one side, a model on the other, and between them a policy that decides how
//! much of a conversation the model gets to see.
//!
//! One turn reads like the list in [`turn`]; who works on which is up to [`dispatch`]. What talks to people is a [`front`], what answers is a
//! model ([`pmk_models`]), what survives a crash is in [`store`]. What the team knows is in [`pmk_knowledge`]; what the model may do to
//! learn more is a [`directive`]: ask [`mra`], or a person by [`escalation`]; what a channel is looking into is a [`case`]. Which of two policies does better, [`compare`] tells from recorded conversations and an
//! [`experiment`] from live ones. What operators change meanwhile is in [`admin`], and what they can say for it where people
//! talk is a [`command`]; what moves conversations between
//! stores, and over from pmk, is [`transfer`]. Whether anybody is there to answer is [`presence`]. What the authors of
//! policies work with is the [`authoring`].

pub mod admin;
pub mod admins;
pub mod audience;
pub mod audit;
pub mod authoring;
pub mod authorization;
pub mod calibration;
pub mod case;
pub mod case_service;
pub mod chat;
pub mod cli;
pub mod command;
pub mod compare;
pub mod config;
pub mod control;
pub mod database;
pub mod demo;
pub mod directive;
pub mod dispatch;
pub mod doctor;
mod embedded;
pub mod escalation;
mod exchange;
pub mod experiment;
pub mod front;
pub mod gateway;
pub mod guard_rail;
pub mod ids;
pub mod language;
pub mod ledger;
pub mod messages;
pub mod mra;
pub mod people;
pub mod permissions;
pub mod policies;
pub mod preambles;
pub mod presence;
pub mod progress;
pub mod report;
mod roots;
pub mod services;
pub mod sharing;
pub mod slack_id;
mod spelling;
mod stderr;
pub mod store;
pub mod transfer;
pub mod turn;
