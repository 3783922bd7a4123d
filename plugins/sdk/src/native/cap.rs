//! A large message, and how much of it to keep.

use std::cell::Cell;

use pmk_core::text;

/// A large message that is about to be stored.
#[derive(Clone, Debug)]
pub struct Incoming {
    pub(crate) kind: u8,
    pub(crate) name: String,
    pub(crate) content: String,
    pub(crate) chars: u32,
    pub(crate) tokens: u32,
    pub(crate) limit: u64,
}

impl Incoming {
    /// What it is: one of the [origins](crate::origin) seed, mra-result, tool-result, attachment.
    pub fn kind(&self) -> u8 {
        self.kind
    }

    /// Repository, tool or file name; may be empty.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// Its length in characters.
    pub fn chars(&self) -> u32 {
        self.chars
    }

    /// Its estimate in tokens.
    pub fn tokens(&self) -> u32 {
        self.tokens
    }

    /// The hard limit in tokens.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Up to `max` characters of it from character `start` on.
    pub fn text(&self, start: u32, max: u32) -> String {
        text::slice(&self.content, start as usize, max as usize).to_owned()
    }
}

/// How much of an incoming message to keep. The last call counts; without a call all of it is kept.
#[derive(Debug, Default)]
pub struct CapVerdict {
    pub(crate) verdict: Cell<pmk_core::CapVerdict>,
}

impl CapVerdict {
    /// Keeps all of it.
    pub fn keep(&self) {
        self.verdict.set(pmk_core::CapVerdict::Keep);
    }

    /// Keeps the first `head` and last `tail` characters, with the host's notice after or between them.
    pub fn shorten(&self, head: u32, tail: u32) {
        self.verdict.set(pmk_core::CapVerdict::Shorten { head, tail });
    }

    /// Keeps only a digest (size, SHA-256, first and last line).
    pub fn digest(&self) {
        self.verdict.set(pmk_core::CapVerdict::Digest);
    }
}
