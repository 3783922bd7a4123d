//! What an operator changes while the gateway runs (specification 003 §11): who is which [`audience`](set_audience),
//! who is [asked](add_contact), who the [admins](add_admin) are, and which [experiment](start_experiment) is on. Each change is one of gateway.json's and, refused or not, a line of the
//! [log](AdminLog), which [`last_changes`] reads.

mod actor;
mod admins;
mod audience;
mod blocklist;
mod change;
mod contacts;
mod error;
mod experiment;
mod history;
mod log;

pub use actor::Actor;
pub use admins::{add_admin, remove_admin};
pub use audience::{set_audience, set_default_audience, unset_audience};
pub use change::Change;
pub use contacts::{Pool, add_contact, remove_contact};
pub use error::ChangeError;
pub use experiment::{parse_experiment, promote_arm, start_experiment, stop_experiment};
pub use history::{LogEntry, SHOWN, last_changes, outcome_since};
pub use log::{AdminLog, AdminLogError};
