//! What answers questions about code.

use pmk_system::child;

use super::Finding;
use crate::mra::Config;

pub(super) const NAME: &str = "mra";
const PAGE: &str = "docs/knowledge.md";

/// It serves where there is a workspace, or a command of the operator's.
pub(super) fn look(config: &Config) -> Finding {
    let program = config.program.to_string_lossy();
    let is_there = child::is_installed(&config.program, &config.environment);
    let missing = || {
        let what = format!("the program `{program}` is not there");
        Finding::bad(NAME, what, format!("install it, or name it by `mra.command` in gateway.json, see {PAGE}"))
    };
    match &config.workspace {
        Some(workspace) if !workspace.is_dir() => Finding::bad(
            NAME,
            format!("the workspace `{}` is no folder", workspace.display()),
            "correct `mraWorkspace` in gateway.json, or PMK_MRA_WORKSPACE",
        ),
        Some(workspace) if is_there => Finding::well(NAME, format!("`{program}` in `{}`", workspace.display())),
        None if config.program == Config::default().program => {
            Finding::left_out(NAME, "no workspace is named, so nobody is asked about code")
        }
        None if is_there => Finding::well(NAME, format!("`{program}`, without a workspace")),
        Some(_) | None => missing(),
    }
}
