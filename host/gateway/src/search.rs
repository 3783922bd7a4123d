//! Search over text that mixes Chinese, English and identifiers; atoms and the archive share it.
//!
//! [`terms`] turns a text into the words it can be found by, [`query`] turns a question into units that
//! each count once, [`index`] keeps and ranks (SQLite FTS5, BM25), [`relevance`] says whether what was
//! found has anything to do with the question.
//!
//! Index and query differ on purpose. Chinese is indexed by *every* pair of neighbouring characters, so a
//! two-character word is found wherever a segmenter would have divided the text, Traditional and
//! Simplified alike; a question is asked in *words* (ICU's dictionary), so pairs that straddle two words
//! are not asked for.

pub mod index;
pub mod query;
pub mod relevance;
pub mod terms;

mod stop_words;

pub use index::{Column, Filter, Frequencies, Hit, Index, IndexError};
pub use query::{Query, Unit};
pub use relevance::coverage;
pub use terms::terms;
