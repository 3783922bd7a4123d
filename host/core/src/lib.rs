//! The pure heart of pmk-host: what a conversation is, what a policy may do to it, and the guard that
//! makes sure nothing else happens.
//!
//! No I/O, no async, no clock. The same input gives the same result on every machine.
//!
//! Read in this order: [`message`] and [`session_key`] (the words), [`tokens`] (what things cost),
//! [`structure`] (turns, cuts, tool groups), [`transcript`] (what a policy sees), [`plan`] (what it
//! answers), [`archive`], [`lookup`] and [`recall`] (how what was dropped comes back), [`guard`] (what becomes of
//! a plan), [`floor`] (what happens when nobody answers well).

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
