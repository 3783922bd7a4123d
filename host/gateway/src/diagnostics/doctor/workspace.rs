//! Checks `mra`, which answers questions about code.

use pmk_system::child;

use super::Finding;
use crate::{
    messages::{DoctorRemark, Messages, MraFound},
    mra::Config,
};

pub(super) const NAME: &str = "mra";

/// `mra` is used if there is a workspace, or if the operator has configured a command.
pub(super) fn look(config: &Config, messages: &Messages) -> Finding {
    let program = config.program.to_string_lossy();
    let is_there = child::is_installed(&config.program, &config.environment);
    let found = match &config.workspace {
        Some(workspace) if !workspace.is_dir() => MraFound::NoFolder { workspace },
        None if config.program == Config::default().program => {
            return Finding::left_out(NAME, messages.doctor(DoctorRemark::MraNone));
        }
        _ if !is_there => MraFound::Missing,
        Some(workspace) => MraFound::Well { workspace },
        None => MraFound::Alone,
    };
    let what = messages.doctor_mra(&program, found);
    match found {
        MraFound::Well { .. } | MraFound::Alone => Finding::well(NAME, what),
        MraFound::Missing => Finding::bad(NAME, what, messages.doctor(DoctorRemark::MraMissingHint)),
        MraFound::NoFolder { .. } => Finding::bad(NAME, what, messages.doctor(DoctorRemark::MraNoFolderHint)),
    }
}
