//! What a fresh session starts from.

use std::cell::RefCell;

/// Text built from the transcript with no model call.
#[derive(Debug, Default)]
pub struct Summary {
    pub(crate) max_tokens: u32,
    pub(crate) text: RefCell<String>,
}

impl Summary {
    /// How much of it the host keeps, in tokens.
    pub fn max_tokens(&self) -> u32 {
        self.max_tokens
    }

    /// Adds text at the end.
    pub fn append(&self, text: &str) {
        self.text.borrow_mut().push_str(text);
    }
}
