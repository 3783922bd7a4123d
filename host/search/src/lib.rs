//! Search over text that mixes Chinese, English and identifiers; used for atoms and for the archive.
//!
//! [`terms()`] splits a text into the terms by which it can be found, a [`Query`] splits a question into units that
//! each count once, [`Frequencies`] determine which of them distinguish texts. Terms can be stored anywhere: the
//! gateway stores them in SQLite, a [`MemoryArchive`] holds one conversation; a [`Ranking`] orders the results of
//! either. Atoms are searched more leniently, across both scripts and synonyms: [`Asked`], [`evidence()`].
//!
//! Index and query differ on purpose. Chinese is indexed by *every* pair of neighbouring characters, so that a
//! two-character word is found wherever a segmenter would have split the text, in Traditional and Simplified alike; a
//! question is split into *words* (by ICU's dictionary), so that pairs that straddle two words are not searched for.

#![deny(missing_docs)]

mod asked;
mod evidence;
mod frequencies;
mod memory;
mod query;
mod ranking;
mod script;
mod terms;

mod everyday;
mod stop_words;

pub use asked::Asked;
pub use evidence::{Floor, IndexedText, evidence, folded_terms};
pub use frequencies::Frequencies;
pub use memory::MemoryArchive;
pub use query::{Query, Unit};
pub use ranking::{Posting, Ranking};
pub use terms::{terms, terms_of_message};
