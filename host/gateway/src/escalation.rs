//! Escalations: asking the people who know (specification 003 §7, §8).
//!
//! [`Pools`] says whom to ask, and a [`Marker`] records that an answer is awaited in a thread, and from whom; the texts
//! for people are in [`messages`](crate::messages). What somebody then writes is classified: [`reading`]. Storing
//! markers and taking answers in is done by the turn; this module only reads files of an existing pmk ([`import`]).

mod import;
mod marker;
mod pool;
pub mod reading;

pub use import::{ImportProblem, import};
pub use marker::{BadMarker, EarlierQuestion, EscalationRemark, Marker, PriorAttempts, PrivateConversation};
pub use pool::Pools;
pub use reading::{Reading, Word};
