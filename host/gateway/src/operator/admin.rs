//! Changes that an operator makes while the gateway runs (specification 003 §11): [audiences](set_audience), the people
//! who are [asked](add_contact), the [admins](add_admin), and the [experiment](start_experiment) that is on. Each
//! change is a change of gateway.json and, whether made or refused, a line of the [log](AdminLog), which
//! [`last_changes`] reads.

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
