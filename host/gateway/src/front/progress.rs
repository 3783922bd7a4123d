//! Live progress on a placeholder, without ever interfering with the answer.
//!
//! A message is updated at most every three seconds, or less often if the operator wants, with the latest line
//! (specification 003 §6). [`Throttle`] implements that rule without a clock, with times relative to any fixed moment;
//! [`Progress`] drives it. The limit for all messages together is the front's: it reports when it has no room for an
//! update.

mod driver;
mod throttle;

pub use driver::{MIN_GAP, Progress, Sent, Settings};
pub use throttle::Throttle;
