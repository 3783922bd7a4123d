//! Conversations as files, in two formats.
//!
//! `pmk` is the JSON tree of an existing pmk ([`tree`] says which file is which conversation, [`pmk`] what is in
//! it). It holds texts, so a conversation of ours loses something on the way out; it is written because whoever moves in
//! from pmk is promised the way back. `full` is a file of JSON lines
//! that loses nothing ([`full`]).

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
