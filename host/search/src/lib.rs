//! Search over text that mixes Chinese, English and identifiers; atoms and the archive share it.
//!
//! [`terms`] turns a text into the words it can be found by, [`query`] turns a question into units that
//! each count once, [`frequencies`] says which of them tell texts apart. Where the terms are kept is up to who searches:
//! the gateway keeps them in SQLite, [`memory`] holds one conversation; [`ranking`] orders what either finds in an
//! archive. Atoms are asked for more freely, in either script and in other words: [`script`], [`asked`], [`evidence`].
//!
//! Index and query differ on purpose. Chinese is indexed by *every* pair of neighbouring characters, so a
//! two-character word is found wherever a segmenter would have divided the text, Traditional and
//! Simplified alike; a question is asked in *words* (ICU's dictionary), so pairs that straddle two words
//! are not asked for.

#![deny(missing_docs)]

pub mod asked;
pub mod evidence;
pub mod frequencies;
pub mod memory;
pub mod query;
pub mod ranking;
pub mod script;
pub mod terms;

mod everyday;
mod stop_words;

pub use asked::Asked;
pub use evidence::{Floor, Told, evidence, folded_terms};
pub use frequencies::Frequencies;
pub use memory::MemoryArchive;
pub use query::{Query, Unit};
pub use ranking::{Posting, Ranking};
pub use terms::{terms, terms_of_message};
