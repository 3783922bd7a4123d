//! Commands: `/pmk …`, as slash command and as text in Slack, and on the console (specification 003 §11).
//!
//! One [table](TABLE) defines all commands: their words, their arguments, the permission that they need, and the
//! equivalent command on the command line of the host. [`ParsedCommand`] is a text parsed by that table, an [`Order`] the
//! operation it requests. [`CommandExecutor`] carries out what touches files and keeps the log; [`show`] and [`help`]
//! write the replies. Whoever carries a command out checks permission with
//! [`authorization`](crate::access::authorization).

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
