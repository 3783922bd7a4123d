//! Strict stand-ins for the tests: loopback servers for Slack and the models, and programs that the gateway starts.
//! Also helpers to wait for what they and the gateway do.

pub mod anthropic;
pub mod images;
pub mod namespace;
pub mod not_run;
pub mod openai;
pub mod patience;
pub mod postgres;
pub mod program;
pub mod relay;
mod served;
pub mod slack;
pub mod surroundings;
pub mod usage;
