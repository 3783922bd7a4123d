//! What tells an operator how the gateway does: the doctor, which tries everything, and the audit of the ledger.

pub mod audit;
pub mod doctor;
