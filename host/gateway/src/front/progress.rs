//! Live progress on a placeholder that never gets in the way of the answer.
//!
//! A message is updated at most every three seconds, or as seldom as the operator wants, with the last line that came
//! (specification 003 §6): [`Throttle`] is that rule without a clock, with times since any fixed moment, and [`Progress`]
//! drives it. How often all messages together may be updated is the front's to know: it says when it has no room for one.

mod driver;
mod throttle;

pub use driver::{MIN_GAP, Progress, Sent, Settings};
pub use throttle::Throttle;
