//! What standard decides, run natively.

mod caps;
mod prune;
mod recovery;
mod summary;
