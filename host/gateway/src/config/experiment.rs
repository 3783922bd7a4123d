//! The `experiment` section of gateway.json.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use pmk_policy::ConfiguredSettings;
use pmk_system::error::Failure;
use serde::{Deserialize, Deserializer, de::Error};

use super::{PolicyConfig, Problem};
use crate::embedded;

/// The longest name of an experiment or arm, in characters.
pub(super) const LONGEST_NAME: usize = 64;

/// The largest weight; larger ones would not distinguish arms any better.
pub(super) const MAX_WEIGHT: u32 = 1_000_000;

/// Several policies that share the conversations.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExperimentConfig {
    /// The name; an experiment with another name is another experiment.
    pub name: String,
    /// When conversations start to get an arm; without it, the experiment is defined but not on.
    #[serde(default, deserialize_with = "moment")]
    pub start: Option<Timestamp>,
    /// The arm that the others are compared with, and that takes over the conversations of a stopped arm.
    pub control: String,
    pub arms: Vec<ArmConfig>,
}

/// One arm.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArmConfig {
    pub name: String,
    /// Its policies; without them, the arm uses the serving policies.
    pub policy: Option<ArmPolicy>,
    /// Its share of new conversations, relative to the other weights; 1 if absent.
    pub weight: Option<u32>,
    /// It decides and is recorded, but its decisions have no effect.
    #[serde(default)]
    pub shadow: bool,
}

/// The policies of an arm, in the form of the `policy` section.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ArmPolicy {
    pub files: Vec<PathBuf>,
    pub settings: ConfiguredSettings,
}

impl ExperimentConfig {
    /// Whether conversations get an arm at that time.
    pub fn is_on(&self, now_ms: i64) -> bool {
        self.start.is_some_and(|start| start.as_millisecond() <= now_ms)
    }

    /// Returns the arm of that name.
    pub fn arm(&self, name: &str) -> Option<&ArmConfig> {
        self.arms.iter().find(|arm| arm.name == name)
    }

    /// Returns why nothing can be learnt about the arms: they have nothing to be compared with.
    pub fn futile(&self) -> Option<Failure> {
        let control = self.arm(&self.control).filter(|control| control.share() == 0)?;
        let why = format!(
            "its control `{}` has weight 0, so no arm is compared with it, nor stopped for being worse",
            control.name
        );
        Some(Failure::new(why).hint("give the control a weight above 0"))
    }

    /// Returns everything in which its keys contradict each other; the shape of the section tells what each allows.
    pub(super) fn contradictions(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut names = BTreeSet::new();
        for (at, arm) in self.arms.iter().enumerate() {
            if !names.insert(&arm.name) {
                problems.push(format!("`experiment.arms[{at}].name` is `{}`, the same as another arm's", arm.name));
            }
            if arm.shadow && arm.weight.is_some() {
                problems.push(format!(
                    "`experiment.arms[{at}].weight` has no effect: a shadow arm gets no conversations; remove it"
                ));
            }
        }
        match self.arm(&self.control) {
            None => {
                problems.push(format!("`experiment.control` is `{}`, which is not in `experiment.arms`", self.control));
            }
            Some(control) if control.shadow => {
                problems.push(format!("`experiment.control` is `{}`, which is a shadow arm", self.control));
            }
            Some(_) => {}
        }
        if !self.arms.is_empty() && self.arms.iter().all(|arm| arm.share() == 0) {
            problems.push("`experiment.arms`: every weight is 0; give at least one arm a higher weight".to_owned());
        }
        problems.into_iter().map(|what| Problem { what, is_grave: true }).collect()
    }

    /// Resolves relative files against the home.
    #[must_use]
    pub fn within(mut self, home: &Path) -> Self {
        for policy in self.arms.iter_mut().filter_map(|arm| arm.policy.as_mut()) {
            for file in &mut policy.files {
                *file = embedded::within(home, file);
            }
        }
        self
    }
}

impl ArmConfig {
    /// Returns its weight among new conversations.
    pub fn share(&self) -> u32 {
        if self.shadow { 0 } else { self.weight.unwrap_or(1) }
    }
}

impl ArmPolicy {
    /// Returns the policy configuration of the arm: its own files and settings; everything else in `policy` applies to
    /// every arm.
    pub fn over(&self, base: &PolicyConfig) -> PolicyConfig {
        PolicyConfig { files: self.files.clone(), settings: self.settings.clone(), ..base.clone() }
    }
}

/// Whether a text is a valid name: names appear in the ledger, in tables and on command lines.
pub(super) fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && text.chars().count() <= LONGEST_NAME && text.chars().all(is_plain)
}

fn moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    text.parse()
        .map(Some)
        .map_err(|_| D::Error::custom(format!("`start` is `{text}`, not a time such as `2026-05-07T09:00:00Z`")))
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config::experiment_of;

    /// An experiment with these arms, all of weight 1; the first is the control.
    pub(crate) fn experiment(name: &str, arms: &[&str]) -> ExperimentConfig {
        let arms: Vec<Value> = arms.iter().map(|arm| json!({"name": arm})).collect();
        read(json!({"name": name, "start": "2026-05-07T09:00:00Z", "control": arms[0]["name"], "arms": arms}))
            .expect("an experiment")
    }

    fn read(value: Value) -> Result<ExperimentConfig, String> {
        experiment_of(&value)
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let good = json!({"name": "less", "control": "a", "arms": [{"name": "a"}, {"name": "b", "weight": 3}]});
        assert!(read(good.clone()).is_ok());
        for (path, value, wanted) in [
            ("/name", json!("a b"), "`experiment.name` is `a b`"),
            ("/control", json!("c"), "`experiment.control` is `c`, which is not in `experiment.arms`"),
            ("/arms/1/name", json!("a"), "`experiment.arms[1].name` is `a`, the same as another arm's"),
            ("/arms/1/name", json!("x\u{1b}"), "`experiment.arms[1].name`"),
            ("/arms/1/weight", json!(-1), "is -1, not a whole number from 0 to 1000000"),
            ("/arms/1/weight", json!(2_000_000), "is 2000000, not a whole number from 0 to 1000000"),
            ("/arms/1", json!({"name": "b", "shadow": true, "weight": 1}), "`experiment.arms[1].weight` has no effect"),
            ("/arms/0", json!({"name": "a", "shadow": true}), "which is a shadow arm"),
            ("/arms/1", json!({"name": "b", "files": []}), "unknown key `experiment.arms[1].files`"),
            ("/arms", json!([{"name": "a"}]), "`experiment.arms` has 1, which is fewer than 2"),
            ("/arms", json!([{"name": "a", "weight": 0}, {"name": "b", "weight": 0}]), "every weight is 0"),
        ] {
            let mut bad = good.clone();
            *bad.pointer_mut(path).expect("a place") = value;
            let error = read(bad).expect_err(path);
            assert!(error.contains(wanted), "{error}");
        }
        let mut late = good;
        late["start"] = json!("tomorrow");
        assert!(read(late).expect_err("no moment").contains("`experiment.start` is `tomorrow`"));
    }

    #[test]
    fn it_is_on_from_its_start() {
        let config = experiment("less", &["a", "b"]);
        let start = config.start.expect("a start").as_millisecond();
        assert!(!config.is_on(start - 1) && config.is_on(start));
        assert!(!ExperimentConfig { start: None, ..config }.is_on(i64::MAX));
    }
}
