//! How many tokens requests ask for, as far as the server gives them.
//!
//! A server may give less than the makers of a model do, and refuse a request for more. Such a refusal names the most
//! that it gives, in words that are different everywhere. So every number in a refusal that might be that is tried. If the
//! request is accepted with it, and another one later with the same number, no more is asked for from then on: once may be
//! chance.
//!
//! A server may also have a smaller window than the makers of a model say, and refuse prompt and answer together,
//! however short the prompt is. It is asked for a share of the window that it names, in the same way. Where a share is no
//! less, only the room to think beside a long prompt was too much: then it is asked for what is left, which says nothing
//! about other prompts.

use std::sync::atomic::{AtomicU32, Ordering};

use super::{Answer, ModelError, classify};

/// How often a request is sent again for fewer tokens.
const MOST_TRIES: usize = 2;

/// The most tokens of an answer that a server gives.
#[derive(Debug)]
pub(crate) struct MostGiven {
    given: AtomicU32,
    /// What was accepted last in place of more.
    accepted: AtomicU32,
}

impl Default for MostGiven {
    fn default() -> Self {
        MostGiven { given: AtomicU32::new(u32::MAX), accepted: AtomicU32::new(u32::MAX) }
    }
}

impl MostGiven {
    /// Begins to ask for `wanted` tokens, of which the answer itself needs `needed`, or for as many as the server gives.
    pub fn asking(&self, wanted: u32, needed: u32) -> Asking<'_> {
        let tokens = wanted.min(self.given.load(Ordering::Relaxed));
        Asking { most_given: self, tokens, needed, tries: 0, is_limited: false }
    }

    /// What was accepted last in place of more; `None` if that has not been needed.
    pub fn known(&self) -> Option<u32> {
        Some(self.accepted.load(Ordering::Relaxed)).filter(|tokens| *tokens < u32::MAX)
    }
}

/// What one request asks for.
#[derive(Debug)]
pub(crate) struct Asking<'a> {
    most_given: &'a MostGiven,
    pub tokens: u32,
    needed: u32,
    tries: usize,
    /// Whether the server seems to give no more than these tokens, whatever the prompt.
    is_limited: bool,
}

impl Asking<'_> {
    /// Whether to send the request once more, for fewer tokens.
    pub fn goes_on_after(&mut self, answered: &Result<Answer, ModelError>) -> bool {
        match answered {
            Ok(_) if self.is_limited => {
                let MostGiven { given, accepted } = self.most_given;
                if accepted.swap(self.tokens, Ordering::Relaxed) == self.tokens {
                    given.store(self.tokens, Ordering::Relaxed);
                    tracing::info!(tokens = self.tokens, "the server gives answers of at most so many tokens");
                }
                false
            }
            Err(error) if self.tries < MOST_TRIES => {
                let limit = classify::fewer_tokens(error, self.tokens)
                    .or_else(|| classify::share_of_window(error, self.tokens));
                let rest = || classify::rest_of_window(error, self.tokens).filter(|&rest| rest >= self.needed.max(1));
                let fewer = limit.or_else(rest);
                self.is_limited = limit.is_some();
                self.tokens = fewer.unwrap_or(self.tokens);
                self.tries += 1;
                fewer.is_some()
            }
            Ok(_) | Err(_) => false,
        }
    }
}
