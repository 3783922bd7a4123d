//! Starts, stops and ends experiments in gateway.json.

use std::path::Path;

use serde_json::Value;

use super::error::ChangeError;
use crate::config::{self, EXPERIMENT, ExperimentConfig, Json, Object, WrongShape};

const START: &str = "start";

/// Starts the experiment given as `written`, which is stored in gateway.json, or else the one stored there. It begins
/// at its own `start`, or now if it has none.
///
/// # Errors
/// There is none, or one is already on; its definition is invalid; gateway.json cannot be changed.
pub fn start_experiment(home: &Path, written: Option<Object>, now: &str) -> Result<ExperimentConfig, ChangeError> {
    config::edit(home, |root| {
        if let Some(on) = root.get(EXPERIMENT).map(parse).transpose()?.filter(|there| there.start.is_some()) {
            return Err(ChangeError::ExperimentOn(on.name));
        }
        if let Some(written) = written {
            root.set(EXPERIMENT, Json::Object(written));
        }
        if !root.contains(EXPERIMENT) {
            return Err(ChangeError::NoExperiment);
        }
        let section = root.object_at(&[EXPERIMENT])?;
        if section.get(START).is_none() {
            section.set(START, now);
        }
        root.get(EXPERIMENT).map_or(Err(ChangeError::NoExperiment), parse)
    })
}

/// Stops an experiment: every conversation uses the serving policies again. Its definition stays in gateway.json.
///
/// # Errors
/// None is on, or gateway.json cannot be changed.
pub fn stop_experiment(home: &Path) -> Result<ExperimentConfig, ChangeError> {
    config::edit(home, |root| {
        let there = root.get(EXPERIMENT).map(parse).transpose()?.ok_or(ChangeError::NoExperiment)?;
        match root.object_at(&[EXPERIMENT])?.remove(START) {
            true => Ok(there),
            false => Err(ChangeError::ExperimentOff(there.name)),
        }
    })
}

/// Makes an arm's policies the serving ones, and ends the experiment.
///
/// # Errors
/// None is on, there is no such arm, or gateway.json cannot be changed.
pub fn promote_arm(home: &Path, arm: &str) -> Result<ExperimentConfig, ChangeError> {
    config::edit(home, |root| {
        let there = root.get(EXPERIMENT).map(parse).transpose()?.ok_or(ChangeError::NoExperiment)?;
        if there.arm(arm).is_none() {
            return Err(ChangeError::NoArm { experiment: there.name, arm: arm.to_owned() });
        }
        let section = root.object_at(&[EXPERIMENT])?;
        // Promotion requires an experiment that is on: only then does the gateway still have the arms loaded.
        if !section.remove(START) {
            return Err(ChangeError::ExperimentOff(there.name));
        }
        let policy = section.list_at(&["arms"])?.iter().find_map(|written| match written {
            Json::Object(written) if written.get("name").and_then(Json::as_str) == Some(arm) => {
                written.get("policy").cloned()
            }
            _ => None,
        });
        // An arm without policies of its own already uses the serving ones.
        if let Some(Json::Object(policy)) = policy {
            let serving = root.object_at(&["policy"])?;
            serving.set("files", policy.get("files").cloned().unwrap_or(Json::List(vec![])));
            serving.set("settings", policy.get("settings").cloned().unwrap_or(Json::Object(Object::default())));
        }
        Ok(there)
    })
}

/// Parses the definition of an experiment.
///
/// # Errors
/// What is invalid in it.
pub fn parse_experiment(written: &Object) -> Result<ExperimentConfig, ChangeError> {
    parse(&Json::Object(written.clone()))
}

fn parse(written: &Json) -> Result<ExperimentConfig, ChangeError> {
    let value = serde_json::to_value(written).unwrap_or(Value::Null);
    if !value.is_object() {
        return Err(WrongShape { key: EXPERIMENT.to_owned(), wanted: "an object" }.into());
    }
    config::experiment_of(&value).map_err(ChangeError::BadExperiment)
}
