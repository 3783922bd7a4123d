//! Names for the codes of the contract, as listed in `docs/policies.md`. The sets are open: a policy must expect codes
//! that are not listed.

/// Who speaks, as the model is told.
pub mod role {
    /// A person, a tool result, or text inserted by the host.
    pub const USER: u8 = 1;
    /// The model.
    pub const ASSISTANT: u8 = 2;
}

/// Where a message comes from.
pub mod origin {
    /// A person wrote it.
    pub const USER: u8 = 1;
    /// The model wrote it.
    pub const ASSISTANT: u8 = 2;
    /// The knowledge-base seed that opens a session.
    pub const SEED: u8 = 3;
    /// The acknowledgement that makes the seed a pair.
    pub const SEED_ACK: u8 = 4;
    /// The result of a code search.
    pub const MRA_RESULT: u8 = 5;
    /// The result of a tool.
    pub const TOOL_RESULT: u8 = 6;
    /// The text of an attached file.
    pub const ATTACHMENT: u8 = 7;
    /// A summary carried over from an older session.
    pub const SUMMARY: u8 = 8;
    /// A marker for turns that were removed.
    pub const MARKER: u8 = 9;
    /// Atoms found in the knowledge base for the new message; never stored.
    pub const RETRIEVAL: u8 = 10;
    /// Archived turns shown again; never stored.
    pub const RECALL: u8 = 11;
}

/// The bits of [`Transcript::flags`](crate::Transcript::flags).
pub mod flag {
    /// The message starts a turn.
    pub const STARTS_TURN: u8 = 1;
    /// The history may be divided before this message.
    pub const CUT: u8 = 2;
    /// The message contains a tool call.
    pub const TOOL_USE: u8 = 4;
    /// The message contains a tool result.
    pub const TOOL_RESULT: u8 = 8;
    /// The message has been shortened or digested already.
    pub const REPLACED: u8 = 16;
    /// The message belongs to the current turn and stays. Only if that turn exceeds the hard limit together with a seed
    /// that must stay can whole tool groups of it be removed, but never the new message.
    pub const STAYS: u8 = 32;
}

/// Which model call a decision is for.
pub mod phase {
    /// The first of the turn.
    pub const FIRST_CALL: u8 = 1;
    /// A call that processes a result.
    pub const SYNTHESISE: u8 = 2;
}

/// The rungs of recovery, mildest first.
pub mod rung {
    /// Keeps the seed pair and the most recent turn.
    pub const TRIM: u8 = 1;
    /// The model summarizes the middle.
    pub const COMPACT: u8 = 2;
    /// A fresh session starts with a local summary.
    pub const ROTATE: u8 = 3;
    /// Gives up: no further rung. The host still tries up to three smaller requests, for the first of which the same
    /// policies plan again, before it tells the user.
    pub const GIVE_UP: u8 = 4;
}

/// Log levels.
pub mod level {
    /// Something failed.
    pub const ERROR: u8 = 1;
    /// Something the operator should look at.
    pub const WARN: u8 = 2;
    /// Something worth knowing.
    pub const INFO: u8 = 3;
    /// For the author of the policy.
    pub const DEBUG: u8 = 4;
    /// Full detail.
    pub const TRACE: u8 = 5;
}
