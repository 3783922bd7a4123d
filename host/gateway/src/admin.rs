//! What an operator changes while the gateway runs (seed 003 §11): who is which [`audience`](set_audience),
//! who is [asked](add_contact), and which [experiment](start_experiment) is on. Each change is one of gateway.json's and, refused or not, a line of the
//! [log](AdminLog).

mod actor;
mod audience;
mod contacts;
mod error;
mod experiment;
mod id;
mod log;

pub use actor::Actor;
pub use audience::{set_audience, set_default_audience, unset_audience};
pub use contacts::{Pool, add_contact, remove_contact};
pub use error::ChangeError;
pub use experiment::{parse_experiment, promote_arm, start_experiment, stop_experiment};
pub use id::{BadId, Id};
pub use log::{AdminLog, AdminLogError};
