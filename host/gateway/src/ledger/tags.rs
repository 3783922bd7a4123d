//! Which policies' decisions an event is about.

use std::{collections::BTreeMap, sync::Arc};

use pmk_policy::{ConfiguredSettings, Identity, Record};
use serde::Serialize;

/// An arm of a running experiment.
#[derive(Clone, Debug, Serialize)]
pub struct LoadedArm {
    pub arm: String,
    /// The policy of the top layer.
    pub policy: String,
    pub sha256: String,
    /// Its share of new conversations, relative to the other weights.
    pub weight: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shadow: bool,
    /// What gateway.json sets for it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: ConfiguredSettings,
}

/// Which policies decided for a turn. Every event of the turn has these tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tags {
    /// The digest of the top layer's policy.
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

/// A policy, and the decision it was asked for.
#[derive(Clone, Debug, Serialize)]
pub struct PolicyAsked {
    pub policy: String,
    pub version: String,
    pub sha256: String,
    pub decision: &'static str,
}

impl PolicyAsked {
    /// Takes policy and decision from a record.
    pub fn of(record: &Record) -> PolicyAsked {
        let Identity { name, version, sha256 } = record.policy.clone();
        PolicyAsked { policy: name, version, sha256, decision: record.decision.name() }
    }
}
