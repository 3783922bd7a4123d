//! Long conversations with questions whose evidence is known: how much of what was said long ago does a policy leave
//! in view when it is asked for?
//!
//! The same seed gives the same corpus. Facts about people and things are said in passing, between small talk about
//! the same people and things; others are like them but for a name. Some are corrected later: then only the correction
//! is evidence. Questions repeat the words of a fact, or put it in others, or go on from the question before.
//!
//! Beside them are [`shapes`]: conversations as they come in a gateway, full of tool results, too.

pub mod chinese;
pub mod english;
mod language;
mod plant;
pub mod shapes;

pub use language::{Family, Language};
pub use plant::{Category, Conversation, Corpus, Question, Said};
