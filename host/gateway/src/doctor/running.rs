//! Whether a gateway runs in this home, and how it does.

use std::path::Path;

use super::Finding;
use crate::{control, presence::health::Level};

const NAME: &str = "gateway";

pub(super) fn look(home: &Path) -> Finding {
    let look = match control::look(home) {
        Ok(look) => look,
        Err(failure) => return Finding::failed(NAME, failure, "docs/operating.md#is-it-well"),
    };
    let Some(pid) = look.pid else { return Finding::well(NAME, "none runs in this home") };
    let reasons: Vec<String> = look.reasons.iter().map(ToString::to_string).collect();
    let reasons = reasons.join("; ");
    match look.level {
        Level::Healthy => Finding::well(NAME, format!("one runs and is healthy (pid {pid})")),
        Level::Degraded => Finding::odd(NAME, format!("one runs (pid {pid}): {reasons}"), "`pmk-host status`"),
        Level::Down => Finding::bad(
            NAME,
            format!("one runs (pid {pid}): {reasons}"),
            "`pmk-host stop`, and start it again; see docs/operating.md#is-it-well",
        ),
    }
}
