//! A summary builder and nothing else: a fresh session starts from what was settled, not from what was said last.
//!
//! That is decisions, corrections, figures and dates, names, identifiers and open questions, each in its latest
//! version.

mod facts;
mod sentences;
mod summarize;
mod words;

use pmk_policy_sdk::{Description, LANGUAGE, Policy, export};

/// The policy.
pub struct FactsSummary;

impl Policy for FactsSummary {
    fn describe(description: &Description) {
        description.name("facts-summary");
        description.version(env!("CARGO_PKG_VERSION"));
        description
            .about("carries decisions, corrections, figures, dates, names and open questions into a fresh session");
        summarize::MESSAGES.declare(description);
        LANGUAGE.declare(description);
    }
}

export!(FactsSummary: summarize);
