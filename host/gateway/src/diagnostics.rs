//! Diagnostics for the operator: the doctor, which checks everything a gateway needs, and the audit of the ledger.

pub mod audit;
pub mod doctor;
