//! What a turn of a recording was begun from, beside the conversation.

use std::sync::Arc;

use pmk_core::Message;

use crate::preambles::Preamble;

/// As its receipt has it.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub preamble: Arc<Preamble>,
    pub window: u64,
    /// The hard limit.
    pub limit: u64,
    /// What was shown with the new message.
    pub shown: Vec<Message>,
    /// Whether it is the turn's own receipt, not the one of the turn before.
    pub is_own: bool,
}
