//! Whose decisions an event is about.

use std::sync::Arc;

use pmk_policy::{Identity, Record};
use serde::Serialize;

/// One arm of an experiment that is on.
#[derive(Clone, Debug, Serialize)]
pub struct LoadedArm {
    pub arm: String,
    /// The policy on top.
    pub policy: String,
    pub sha256: String,
}

/// Whose decisions a turn went by. Every event of the turn carries it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tags {
    /// The digest of the policy on top.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_sha256: Option<Arc<str>>,
    #[serde(flatten)]
    pub place: Option<InExperiment>,
}

/// The experiment that a turn is part of, and the arm that acts in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InExperiment {
    pub experiment: Arc<str>,
    pub arm: Arc<str>,
}

/// Which policy, and for which decision it was asked.
#[derive(Clone, Debug, Serialize)]
pub struct PolicyAsked {
    pub policy: String,
    pub version: String,
    pub sha256: String,
    pub decision: &'static str,
}

impl PolicyAsked {
    /// Who was asked for what, by the record of it.
    pub fn of(record: &Record) -> PolicyAsked {
        let Identity { name, version, sha256 } = record.policy.clone();
        PolicyAsked { policy: name, version, sha256, decision: record.decision.name() }
    }
}
