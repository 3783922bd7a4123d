//! Checks gateway.json, as `config check` does.

use std::path::Path;

use pmk_system::{error::Failure, home};

use super::{Finding, State};
use crate::{
    config::{Config, Problem},
    messages::{DoctorRemark, Messages},
};

const NAME: &str = "gateway.json";
const PAGE: &str = "docs/settings.md";

/// The finding if the home cannot be used.
pub(super) fn left_out(messages: &Messages) -> Vec<Finding> {
    vec![Finding::left_out(NAME, messages.doctor(DoctorRemark::BecauseOfHome))]
}

pub(super) fn look(
    home: &Path,
    config: &Result<(Option<Config>, Vec<Problem>), Failure>,
    messages: &Messages,
) -> Vec<Finding> {
    let (config, problems) = match config {
        Ok(read) => read,
        Err(failure) => return vec![Finding::failed(NAME, failure.clone(), PAGE, messages)],
    };
    if problems.is_empty() {
        let there_is_none = config.as_ref().is_some_and(|config| !config.exists);
        let what = if there_is_none { DoctorRemark::ConfigNone } else { DoctorRemark::ConfigWell };
        return vec![Finding::well(NAME, messages.doctor(what))];
    }
    let hint = messages.doctor_config_hint(&home::config_file(home));
    problems
        .iter()
        .map(|Problem { what, is_grave }| {
            let state = if *is_grave { State::Bad } else { State::Odd };
            Finding::new(NAME, state, what.clone(), Some(hint.clone()))
        })
        .collect()
}
