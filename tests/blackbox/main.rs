//! Black-box tests: the built program, real components, a real store, real processes, loopback
//! servers. One module a topic.

mod chat;
mod console;
mod crash;
mod model;
mod operator;
mod plan;
mod policies;
mod replies;
mod sessions;
mod slack;
mod starting;
mod support;
