//! Names for the codes of the contract, as `docs/policies.md` lists them. The sets are open: expect codes that are not
//! listed.

/// Who speaks, as the model is told.
pub mod role {
    /// A person, a tool result, or something the host put in.
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
    /// What a code search found.
    pub const MRA_RESULT: u8 = 5;
    /// What a tool returned.
    pub const TOOL_RESULT: u8 = 6;
    /// The text of an attached file.
    pub const ATTACHMENT: u8 = 7;
    /// Carried over from an older session.
    pub const SUMMARY: u8 = 8;
    /// Stands for turns that were removed.
    pub const MARKER: u8 = 9;
    /// Found in the knowledge base for the new message; never stored.
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
    /// The message calls a tool.
    pub const TOOL_USE: u8 = 4;
    /// The message carries the result of a tool.
    pub const TOOL_RESULT: u8 = 8;
    /// The message stands shortened or digested already.
    pub const REPLACED: u8 = 16;
    /// The message belongs to the current turn and stays.
    pub const STAYS: u8 = 32;
}

/// Which model call a decision is for.
pub mod phase {
    /// The first of the turn.
    pub const FIRST_CALL: u8 = 1;
    /// One that works up a result.
    pub const SYNTHESISE: u8 = 2;
}

/// The rungs of recovery, mildest first.
pub mod rung {
    /// The seed pair and the most recent turn stay.
    pub const TRIM: u8 = 1;
    /// The model summarises the middle.
    pub const COMPACT: u8 = 2;
    /// A fresh session opens with a local summary.
    pub const ROTATE: u8 = 3;
    /// An honest message.
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
    /// In full detail.
    pub const TRACE: u8 = 5;
}
