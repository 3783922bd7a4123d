//! The summary that a fresh session starts from.

use std::cell::RefCell;

/// Text built from the transcript without a model call.
#[derive(Debug, Default)]
pub struct Summary {
    pub(crate) max_tokens: u32,
    pub(crate) text: RefCell<String>,
}

impl Summary {
    /// The maximum number of tokens that the host keeps.
    pub fn max_tokens(&self) -> u32 {
        self.max_tokens
    }

    /// Appends text.
    pub fn append(&self, text: &str) {
        self.text.borrow_mut().push_str(text);
    }
}
