//! Changes that an operator makes while the gateway runs (specification 003 §11): a [`Change`] of the audiences, of the
//! people who are asked, or of the admins, and that of the [experiment](start_experiment) that is on. Each is a change of
//! gateway.json and, whether made or refused, a line of the [log](AdminLog), which [`last_changes`] reads.

mod actor;
mod admins;
mod audience;
mod change;
mod contacts;
mod error;
mod experiment;
mod history;
mod listed;
mod log;

pub use actor::Actor;
pub use change::Change;
pub use contacts::Pool;
pub use error::ChangeError;
pub use experiment::{parse_experiment, promote_arm, start_experiment, stop_experiment};
pub use history::{LogEntry, SHOWN, last_changes, outcome_since};
pub use log::{AdminLog, AdminLogError};
