//! Live progress on a placeholder that never gets in the way of the answer.
//!
//! Two limits (specification 003 §6, Slack's rate limits): a message is updated at most every three seconds, or as
//! seldom as the operator wants, with the last line that came ([`Throttle`]), and all messages together take at most forty updates a
//! minute, less those that answers needed ([`Bucket`]). Both are state machines without a clock; [`Progress`]
//! drives them. Times are durations since any fixed moment.

mod bucket;
mod driver;
mod throttle;

pub use bucket::Bucket;
pub use driver::{MIN_GAP, Progress, Sent, Settings, Updates};
pub use throttle::Throttle;
