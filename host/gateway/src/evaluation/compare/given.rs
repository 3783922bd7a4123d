//! The inputs of a recorded turn other than the conversation.

use std::sync::Arc;

use pmk_core::Message;

use crate::preambles::Preamble;

/// The inputs of a turn, from its receipt.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub preamble: Arc<Preamble>,
    pub window: u64,
    /// The hard limit.
    pub limit: u64,
    /// Messages shown together with the new message.
    pub shown: Vec<Message>,
    /// Whether this is the turn's own receipt, not that of another turn.
    pub is_own: bool,
}
