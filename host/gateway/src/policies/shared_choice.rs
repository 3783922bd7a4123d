//! The outcome of a choice of policies on the hosts of a database.

use std::{cmp::Ordering, path::Path};

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
    /// The host has not reported, and will not if it knows of a later choice, which has `overtaken` this one.
    Unknown {
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        overtaken: bool,
    },
}

impl OnHost {
    /// Derives the outcome from what the host has reported.
    pub(super) fn of(host: Host, version: i64) -> OnHost {
        let HostPolicies { choice, refused, .. } = host.decides.unwrap_or_default();
        let outcome = match (choice.map(|knows| knows.cmp(&version)), refused) {
            (Some(Ordering::Equal), Some(reason)) => Outcome::Refused { reason },
            (Some(Ordering::Equal), None) => Outcome::Decide,
            // What it says is about the later one.
            (Some(Ordering::Greater), _) => Outcome::Unknown { overtaken: true },
            (Some(Ordering::Less) | None, _) => Outcome::Unknown { overtaken: false },
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::HostState;

    /// Regression: also one that had refused them, if others were chosen before it was asked.
    #[test]
    fn a_host_that_knew_of_a_later_choice_was_said_to_use_the_earlier_one() {
        let outcome = |choice, refused: Option<&str>| {
            let refused = refused.map(str::to_owned);
            let decides = HostPolicies { choice: Some(choice), refused, ..HostPolicies::default() };
            let host = Host {
                state: HostState::Works,
                machine: "two".to_owned(),
                home: "/pmk".to_owned(),
                version: String::new(),
                since_ms: 0,
                silent_ms: 0,
                turns: 0,
                decides: Some(decides),
            };
            OnHost::of(host, 7)
        };
        assert_eq!(outcome(7, None).outcome, Outcome::Decide);
        assert_eq!(outcome(7, Some("no")).outcome, Outcome::Refused { reason: "no".to_owned() });
        for refused in [None, Some("no")] {
            assert_eq!(outcome(6, refused).outcome, Outcome::Unknown { overtaken: false });
            assert_eq!(outcome(8, refused).outcome, Outcome::Unknown { overtaken: true });
        }
        // An older command takes it for a host that has not reported.
        let sent = json!({"machine": "two", "home": "/pmk", "state": "unknown", "overtaken": true});
        assert_eq!(json!(outcome(8, None)), sent);
        let older = json!({"machine": "two", "home": "/pmk", "state": "unknown"});
        assert_eq!(json!(outcome(6, None)), older);
        assert_eq!(serde_json::from_value::<OnHost>(older).expect("readable"), outcome(6, None));
    }
}
