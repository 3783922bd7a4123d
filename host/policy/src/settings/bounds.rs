//! The bounds that a failed layer sets for the layers below.

use std::collections::BTreeMap;

use pmk_core::{CapVerdict, Origin};

use super::{ENV_SETTINGS, MRA_RESULT_CAP, SEED_CAP, Settings, Value};

/// The most that the layers below may spend, because a failed layer above allowed no more: the smallest positive value
/// of each of the three common settings in a failed layer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds(BTreeMap<&'static str, i64>);

impl Bounds {
    /// Adds the values of a layer that failed.
    pub(crate) fn add(&mut self, settings: &Settings) {
        for (_, name) in ENV_SETTINGS {
            if let Some(Value::Integer(value @ 1..)) = settings.get(name) {
                self.0.entry(name).and_modify(|bound| *bound = (*bound).min(*value)).or_insert(*value);
            }
        }
    }

    /// The bound on a setting.
    pub(crate) fn get(&self, name: &str) -> Option<i64> {
        self.0.get(name).copied()
    }

    /// Limits a cap verdict to the bound for that kind of message.
    pub(crate) fn cap(&self, kind: Origin, verdict: CapVerdict) -> CapVerdict {
        let bound = match kind {
            Origin::Seed => self.get(SEED_CAP),
            Origin::MraResult => self.get(MRA_RESULT_CAP),
            _ => None,
        };
        match bound {
            Some(limit) => verdict.at_most(u32::try_from(limit).unwrap_or(u32::MAX)),
            None => verdict,
        }
    }

    pub(super) fn each(&self) -> impl Iterator<Item = (&'static str, i64)> + '_ {
        self.0.iter().map(|(name, bound)| (*name, *bound))
    }
}
