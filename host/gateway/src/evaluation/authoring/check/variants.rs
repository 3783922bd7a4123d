//! Settings at their extremes: every one at its least and its greatest value, alone and all together.

use pmk_policy::{SetOverride, SettingKind, SettingSpec, Stack, description::MAX_TEXT_CHARS};

use crate::evaluation::authoring::stage::Stage;

/// A policy with unusual settings.
pub(super) struct Variant {
    pub set: Vec<SetOverride>,
    pub stack: Stack,
}

pub(super) fn of(stage: &Stage) -> Vec<Variant> {
    let description = stage.policy().description();
    let mut sets: Vec<Vec<SetOverride>> = Vec::new();
    for spec in &description.settings {
        let now = stage.settings().get(&spec.name).map(ToString::to_string);
        let extremes = extremes(spec).into_iter().filter(|value| Some(value) != now.as_ref());
        sets.extend(extremes.map(|value| vec![set(&description.name, spec, value)]));
    }
    if description.settings.len() > 1 {
        for most in [false, true] {
            let extreme = |spec: &SettingSpec| {
                let [least, greatest] = extremes(spec);
                set(&description.name, spec, if most { greatest } else { least })
            };
            sets.push(description.settings.iter().map(extreme).collect());
        }
    }
    // Every value is in the range that the policy declares, so none is refused.
    sets.into_iter().filter_map(|set| Some(Variant { stack: stage.with_set(set.clone()).ok()?, set })).collect()
}

fn set(policy: &str, spec: &SettingSpec, value: String) -> SetOverride {
    SetOverride { policy: policy.to_owned(), name: spec.name.clone(), value }
}

fn extremes(spec: &SettingSpec) -> [String; 2] {
    match &spec.kind {
        SettingKind::Integer { min, max, .. } => [min.to_string(), max.to_string()],
        SettingKind::Boolean { .. } => ["false".to_owned(), "true".to_owned()],
        SettingKind::Text { .. } => [String::new(), "預".repeat(MAX_TEXT_CHARS)],
    }
}
