//! Search over text that mixes Chinese, English and identifiers; atoms and the archive share it.
//!
//! [`terms()`] turns a text into the words it can be found by, a [`Query`] turns a question into units that
//! each count once, [`Frequencies`] say which of them tell texts apart. Where the terms are kept is up to who searches:
//! the gateway keeps them in SQLite, a [`MemoryArchive`] holds one conversation; a [`Ranking`] orders what either finds in
//! an archive. Atoms are asked for more freely, in either script and in other words: [`Asked`], [`evidence()`].
//!
//! Index and query differ on purpose. Chinese is indexed by *every* pair of neighbouring characters, so a
//! two-character word is found wherever a segmenter would have divided the text, Traditional and
//! Simplified alike; a question is asked in *words* (ICU's dictionary), so pairs that straddle two words
//! are not asked for.

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
