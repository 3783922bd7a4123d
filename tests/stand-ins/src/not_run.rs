//! What a test says where it cannot do what it is there for.

use std::{fmt::Display, io::Write};

/// Says what was not tried, and why: past what the tests' harness keeps of a test that passes.
pub fn say(why: impl Display) {
    _ = writeln!(std::io::stderr(), "NOT RUN: {why}");
}
