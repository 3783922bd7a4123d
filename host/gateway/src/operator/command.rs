//! Commands: `/pmk …`, by slash command and as text in Slack, and on the console (specification 003 §11).
//!
//! One [table](TABLE) says which there are, how they are written, what permission they take, and which of them the
//! command line of the host has, too. [`Asked`] is what a text asks for by it, an [`Order`] what is to be done,
//! [`CommandExecutor`] does what touches files and keeps the log, [`show`] and [`help`] put into words what comes of it. Who may
//! is asked of [`authorization`](crate::access::authorization), by whoever carries a command out.

mod arguments;
mod executor;
pub mod help;
mod order;
pub mod show;
mod table;
pub mod window;
mod words;

pub use executor::{CommandExecutor, Failed, Listed};
pub use order::{AtomFilter, CaseAction, Order};
pub use table::{Entry, TABLE};
pub use words::ParsedCommand;
