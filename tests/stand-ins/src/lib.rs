//! Strict loopback servers for the tests: Slack and the models.

pub mod anthropic;
pub mod slack;
