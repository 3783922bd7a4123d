//! The decisions of standard, run natively.

mod caps;
mod prune;
mod recovery;
mod summary;
