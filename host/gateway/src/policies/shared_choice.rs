//! The outcome of a choice of policies on the hosts of a database.

use std::path::Path;

use pmk_system::{home, stamp::Stamp};
use serde::{Deserialize, Serialize};

use crate::store::{Host, HostPolicies};

/// The outcome of a choice on another host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnHost {
    pub machine: String,
    pub home: String,
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The outcome of a choice on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum Outcome {
    /// The chosen policies decide there.
    Decide,
    /// The host refused them.
    Refused { reason: String },
    /// The host has not reported yet.
    Unknown,
}

impl OnHost {
    /// Derives the outcome from what the host has reported.
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

/// What a host knows of the choice for all hosts.
#[derive(Debug, Default)]
pub(super) struct SharedChoice {
    /// The last version that this host has applied, refused or made.
    pub version: Option<i64>,
    /// Whether it was made here.
    pub is_ours: bool,
    /// Why the choice does not decide here, and what else it may have been refused for.
    pub refused: Option<(String, ConfigSeen)>,
}

/// What a choice can be refused for besides itself, as it was at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConfigSeen {
    /// The stamp of gateway.json.
    stamp: Option<Stamp>,
    /// Whether the home can be trusted: if not, gateway.json is not read.
    is_trusted: bool,
}

impl ConfigSeen {
    pub fn now(home: &Path) -> ConfigSeen {
        ConfigSeen { stamp: Stamp::of(&home::config_file(home)), is_trusted: home::check_trusted(home).is_ok() }
    }
}

impl SharedChoice {
    /// Whether there is nothing to do about this version. A refused one is tried again once `config` differs.
    pub fn knows(&self, version: i64, config: ConfigSeen) -> bool {
        let may_do = self.refused.as_ref().is_some_and(|(_, then)| *then != config);
        self.version.is_some_and(|known| known >= version) && !may_do
    }

    /// Records a choice that was made here; `version` is set if it is for all hosts.
    pub fn made(&mut self, version: Option<i64>) {
        *self = SharedChoice { version, is_ours: version.is_some(), refused: None };
    }

    /// Records a choice that was made on another host.
    pub fn taken(&mut self, version: i64, refused: Option<(String, ConfigSeen)>) {
        *self = SharedChoice { version: Some(version), is_ours: false, refused };
    }
}
