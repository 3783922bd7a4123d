//! Conversations as files, in two formats.
//!
//! `pmk` is the JSON tree of an existing pmk ([`tree`] maps files to conversations, [`pmk`] handles their content).
//! It holds only texts, so a conversation of this gateway loses something in it; it is written because people who
//! migrate from pmk must be able to go back. `full` is a lossless file of JSON lines ([`full`]).

mod error;
mod flatten;
pub mod full;
pub mod pmk;
pub mod tree;

#[cfg(test)]
mod tests;

pub use error::TransferError;

/// What some editors and shells put before a text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
