//! What becomes of a choice of policies on the hosts of a database.

use pmk_system::stamp::Stamp;
use serde::{Deserialize, Serialize};

use crate::store::{Host, HostPolicies};

/// What another host makes of a choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnHost {
    pub machine: String,
    pub home: String,
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What came of it there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum Outcome {
    /// They decide there.
    Decide,
    /// It does not take them.
    Refused { reason: String },
    /// It has not said so yet.
    Unknown,
}

impl OnHost {
    /// By what it says.
    pub(super) fn of(host: Host, version: i64) -> OnHost {
        let outcome = match host.decides {
            Some(HostPolicies { choice, refused, .. }) if choice.is_some_and(|knows| knows >= version) => match refused
            {
                Some(reason) => Outcome::Refused { reason },
                None => Outcome::Decide,
            },
            _ => Outcome::Unknown,
        };
        OnHost { machine: host.machine, home: host.home, outcome }
    }
}

/// What a host knows of what was chosen for all.
#[derive(Debug, Default)]
pub(super) struct SharedChoice {
    /// The last version that it has taken, refused or made.
    pub version: Option<i64>,
    /// Whether it was made here.
    pub is_ours: bool,
    /// Why it is not what decides here, and what gateway.json was then.
    pub refused: Option<(String, Option<Stamp>)>,
}

impl SharedChoice {
    /// Whether there is nothing to do about this one: what was refused may do once gateway.json, `config`, is another.
    pub fn knows(&self, version: i64, config: Option<Stamp>) -> bool {
        let may_do = self.refused.as_ref().is_some_and(|(_, then)| *then != config);
        self.version.is_some_and(|known| known >= version) && !may_do
    }

    /// A choice that was made here, where it is for all.
    pub fn made(&mut self, version: Option<i64>) {
        *self = SharedChoice { version, is_ours: version.is_some(), refused: None };
    }

    /// One that was made elsewhere.
    pub fn taken(&mut self, version: i64, refused: Option<(String, Option<Stamp>)>) {
        *self = SharedChoice { version: Some(version), is_ours: false, refused };
    }
}
