//! Search over text, kept in SQLite: [`index`]. What a text is found by, and what a question asks for, says
//! [`pmk_search`].

pub mod index;

pub use index::{Column, Filter, Hit, Index, IndexError};
pub use pmk_search::{Asked, Floor, Frequencies, Query, Told, evidence, folded_terms, terms};
