//! The doctor checks what a gateway needs, before or while it runs, and reports [`Finding`]s in a fixed order, with
//! what to do about each. The checks that wait for others run concurrently, none for longer than [`PATIENCE`], except
//! for `claude` ([`CLAUDE_PATIENCE`]). Nothing is changed; in the home, the doctor only tests whether files can be
//! created and opened. No token ever appears in a finding. Findings are in the language of the [`Messages`] passed in,
//! except for errors, which are always English.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use pmk_system::{error::Failure, threads::offload};
use serde::Serialize;
use tokio::time::timeout;

use crate::{
    config::{Config, Problem},
    messages::{DoctorRemark, Messages},
    mra,
    store::Place,
};

mod admins;
mod clock;
mod config;
mod home;
mod model;
mod policies;
mod prompts;
mod running;
mod slack;
mod store;
mod tls;
mod workspace;

pub use model::{Answering, CLAUDE_PATIENCE};
pub use policies::Loaded;
pub use slack::Access;

/// How long one check may take.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The name of the check.
    pub check: &'static str,
    pub state: State,
    pub what: String,
    /// What to do about it, or where it is explained.
    pub hint: Option<String>,
}

/// The state of what was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Well,
    /// It works, but somebody should know.
    Odd,
    /// It does not work.
    Bad,
    /// It was not checked.
    LeftOut,
}

/// Obtains something to check; may wait for a command or a compiler.
pub type Getting<T> = Box<dyn FnOnce() -> Result<T, Failure> + Send>;

/// Something that must be obtained before it can be checked.
pub enum Part<T> {
    Get(Getting<T>),
    /// It cannot be obtained until these variables are set, and it is not an error that they are not set yet.
    Awaits(Vec<String>),
    /// A service manager passes these credentials to the gateway, and not to this process; the command makes the checks
    /// with them.
    Passed {
        credentials: Vec<String>,
        check: String,
    },
}

/// What is checked.
pub struct Subject {
    pub home: PathBuf,
    /// The location of the store.
    pub place: Part<Place>,
    /// gateway.json as it was read, with all problems in it.
    pub config: Result<(Option<Config>, Vec<Problem>), Failure>,
    /// The parts of the gateway; `None` if gateway.json cannot be used.
    pub parts: Option<Parts>,
    /// Whether nothing may be sent over the network.
    pub offline: bool,
}

/// The parts of a gateway.
pub struct Parts {
    pub slack: Part<Access>,
    pub model: Part<Answering>,
    pub policies: Part<Loaded>,
    pub mra: mra::Config,
}

/// Runs all checks.
pub async fn examine(subject: Subject, messages: Arc<Messages>) -> Vec<Finding> {
    let Subject { home, place, config, parts, offline } = subject;
    let config_is_bad = parts.is_none();
    let about_home = offload({
        let (home, messages) = (home.clone(), Arc::clone(&messages));
        move || look_in(&home, place, config_is_bad, &messages)
    });
    let readable = config.as_ref().ok().and_then(|(config, _)| config.as_ref());
    let listen = readable.and_then(|config| config.health.listen);
    let admins = readable.and_then(|config| admins::look(&home, config, &messages));
    let about_running = offload({
        let (home, messages) = (home.clone(), Arc::clone(&messages));
        move || running::look(&home, listen, &messages)
    });
    let about_tls = offload({
        let messages = Arc::clone(&messages);
        move || tls::look(&messages)
    });
    let (about_parts, about_home, about_running, about_tls) =
        tokio::join!(look_at(parts, admins, offline, &messages), about_home, about_running, about_tls);
    let OfHome { home: home::Looked { mut findings, is_bad }, prompts, store } = about_home;
    // If the file cannot be read because of the home, only the home is reported.
    let is_read = config.is_ok() || !is_bad;
    findings.extend(if is_read { config::look(&home, &config, &messages) } else { config::left_out(&messages) });
    findings.extend(prompts);
    findings.push(store);
    findings.push(about_tls);
    findings.extend(about_parts);
    findings.extend(about_running);
    findings
}

/// The findings about the home and its contents.
struct OfHome {
    home: home::Looked,
    prompts: Vec<Finding>,
    store: Finding,
}

fn look_in(home: &Path, place: Part<Place>, config_is_bad: bool, messages: &Messages) -> OfHome {
    let about_home = home::look(home, messages);
    let home_is_bad = about_home.is_bad;
    let prompts = if home_is_bad { vec![] } else { prompts::look(home, messages) };
    OfHome { home: about_home, prompts, store: store::look(place, home_is_bad, config_is_bad, messages) }
}

async fn look_at(parts: Option<Parts>, admins: Option<Finding>, offline: bool, messages: &Messages) -> Vec<Finding> {
    let Some(Parts { slack, model, policies, mra }) = parts else {
        let names = [slack::NAME, clock::NAME, model::NAME, policies::NAME, workspace::NAME];
        return names.map(|name| Finding::left_out(name, messages.doctor(DoctorRemark::BecauseOfConfig))).into();
    };
    let ((slack, slack_clock), (model, model_clock), policies) = tokio::join!(
        slack::look(slack, admins, offline, messages),
        model::look(model, offline, messages),
        policies::look(policies, messages)
    );
    let mut findings = slack;
    let clock = clock::look(slack_clock, model_clock, findings.iter().chain([&model]), messages);
    findings.push(clock);
    findings.push(model);
    findings.extend(policies);
    findings.push(workspace::look(&mra, messages));
    findings
}

/// Obtains something within the time limit of a check. What takes longer is left running, and ends with the program.
///
/// # Errors
/// The finding, if it cannot be obtained, or not yet.
async fn get<T: Send + 'static>(
    check: &'static str,
    part: Part<T>,
    page: &str,
    messages: &Messages,
) -> Result<T, Finding> {
    let getting = getting(check, part, messages)?;
    match timeout(PATIENCE, offload(getting)).await {
        Ok(got) => got.map_err(|failure| Finding::failed(check, failure, page, messages)),
        Err(_) => {
            Err(Finding::bad(check, messages.doctor_late(PATIENCE.as_secs()), messages.doctor(DoctorRemark::LateHint)))
        }
    }
}

/// Returns how something is obtained.
///
/// # Errors
/// The finding, if it cannot be obtained yet, or not here.
fn getting<T>(check: &'static str, part: Part<T>, messages: &Messages) -> Result<Getting<T>, Finding> {
    match part {
        Part::Get(getting) => Ok(getting),
        Part::Passed { credentials, check: command } => {
            let (what, hint) = (messages.doctor_passed(&credentials), messages.doctor_passed_hint(&command));
            Err(Finding::new(check, State::LeftOut, what, Some(hint)))
        }
        Part::Awaits(variables) => Err(Finding::left_out(check, messages.doctor_until_set(&variables))),
    }
}

impl Finding {
    fn new(check: &'static str, state: State, what: impl Into<String>, hint: Option<String>) -> Finding {
        Finding { check, state, what: what.into(), hint }
    }

    fn well(check: &'static str, what: impl Into<String>) -> Finding {
        Finding::new(check, State::Well, what, None)
    }

    fn odd(check: &'static str, what: impl Into<String>, hint: impl Into<String>) -> Finding {
        Finding::new(check, State::Odd, what, Some(hint.into()))
    }

    fn bad(check: &'static str, what: impl Into<String>, hint: impl Into<String>) -> Finding {
        Finding::new(check, State::Bad, what, Some(hint.into()))
    }

    fn left_out(check: &'static str, why: impl Into<String>) -> Finding {
        Finding::new(check, State::LeftOut, why, None)
    }

    /// The finding for a failure. If the failure has no hint, the hint names this page.
    fn failed(check: &'static str, failure: Failure, page: &str, messages: &Messages) -> Finding {
        let (what, hint) = failure.into_parts();
        Finding::bad(check, what, hint.unwrap_or_else(|| messages.doctor_see(page)))
    }
}
