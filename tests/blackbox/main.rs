//! Black-box tests: the built program, real components, a real store, real processes, loopback
//! servers. One module a topic.

mod audit;
mod chat;
mod console;
mod crash;
mod ladder;
mod model;
mod moving;
mod operator;
mod plan;
mod policies;
mod sessions;
mod slack;
mod starting;
mod support;
