//! The pure core of pmk-host: what a conversation is, what a policy may do to it, and the guard that enforces this.
//!
//! No I/O, no async, no clock: the same input gives the same result on every machine.
//!
//! Read in this order: [`message`] and [`session_key`] (the basic types), [`tokens`] (estimates), [`structure`] (turns,
//! cuts, tool groups), [`transcript`] (what a policy sees), [`plan`] (what it answers), [`archive`], [`lookup`] and
//! [`recall`] (how dropped messages come back), [`guard`] (how a plan is checked and applied), [`floor`] (what the host
//! decides where no policy does).

#![deny(missing_docs)]

mod applied;
pub mod archive;
pub mod cap;
pub mod floor;
pub mod guard;
pub mod history;
mod image;
pub mod language;
pub mod lookup;
pub mod marker;
pub mod message;
pub mod plan;
pub mod quoting;
pub mod recall;
pub mod replace;
pub mod request;
pub mod session_key;
pub mod structure;
#[cfg(feature = "testing")]
pub mod testing;
pub mod text;
pub mod tokens;
pub mod transcript;
mod verdict;
mod words;

pub use archive::{Archive, Archived, Found, Matches};
pub use cap::{CapVerdict, Capped};
pub use guard::{Applied, Guard};
pub use history::{History, HistoryBuilder};
pub use image::{Image, ImageId, ImageType};
pub use language::Language;
pub use lookup::Lookup;
pub use marker::Marker;
pub use message::{Block, Message, Origin, Role};
pub use plan::{Edit, Plan};
pub use recall::{Quote, Recall};
pub use session_key::{FrontName, Place, SessionKey};
pub use transcript::{Entry, Transcript};
pub use verdict::{Breach, Rule, Verdict};
pub use words::Words;
