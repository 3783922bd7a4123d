//! Strict stand-ins for the tests: loopback servers for Slack and the models, and programs that the
//! gateway starts.

pub mod anthropic;
pub mod openai;
pub mod program;
pub mod slack;
