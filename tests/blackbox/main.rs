//! Black-box tests: the built program, real components, a real store, real processes, loopback
//! servers. One module a topic.

mod audit;
mod bombs;
mod chat;
mod claude_cli;
mod compare;
#[path = "../../host/policy/tests/policies/component.rs"]
mod component;
mod console;
mod crash;
mod desk;
mod directives;
mod dispatch;
mod doors;
mod experiments;
mod explain;
mod homes;
mod hostile;
mod incidents;
mod knowledge;
mod ladder;
mod losing;
mod made_up;
mod marathon;
mod model;
mod moments;
mod moving;
mod mra;
mod mutated;
mod opening;
mod operator;
mod plan;
mod policies;
mod queue;
mod recall;
mod replies;
mod sessions;
mod sizes;
mod slack;
mod starting;
mod support;
mod swapping;
mod toolless;
mod tools;
mod trust;
mod workspace;
