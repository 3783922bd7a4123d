//! Asking the people who know (specification 003 §7, §8).
//!
//! [`Pools`] says whom, and a [`Marker`] remembers that an answer is awaited in a thread and from whom; what
//! they get to read is in [`say`](crate::messages). What somebody then writes is read as what it is: [`reading`]. Storing
//! markers and taking answers in is the turn's business; nothing in here does more than read files of an existing
//! pmk ([`import`]).

mod import;
mod marker;
mod pool;
pub mod reading;

pub use import::{ImportProblem, import};
pub use marker::{BadMarker, EscalationRemark, Marker, PriorAttempts, PrivateConversation};
pub use pool::Pools;
pub use reading::{Reading, Word};
