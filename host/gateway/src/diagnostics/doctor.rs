//! What a gateway needs, looked at before or while it runs: one [`Finding`] a check, in a fixed order, with what mends
//! it. The checks that wait for others run at the same time, none for longer than [`PATIENCE`], `claude` aside ([`CLAUDE_PATIENCE`]); nothing is changed, of
//! the home it is only tried whether files can be made there, and no token is ever in what is found. Findings are in the language of the [`Messages`] that say them, but for errors,
//! which are English everywhere.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use pmk_policy::Stack;
use pmk_system::{error::Failure, threads::offload};
use serde::Serialize;
use tokio::time::timeout;

use crate::{
    config::{Config, Problem},
    messages::{DoctorRemark, Messages},
    mra,
    store::Place,
};

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
pub use slack::Access;

/// How long one check may take.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub check: &'static str,
    pub state: State,
    pub what: String,
    /// What mends it, or where it is explained.
    pub hint: Option<String>,
}

/// How well something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Well,
    /// It goes, and somebody should know.
    Odd,
    /// It does not go.
    Bad,
    /// Nobody looked.
    LeftOut,
}

/// Gets something, and may wait for a command or a compiler.
pub type Getting<T> = Box<dyn FnOnce() -> Result<T, Failure> + Send>;

/// What has to be got before it can be looked at.
pub enum Part<T> {
    Get(Getting<T>),
    /// Nobody can get it before these variables are set, and nobody says that they should be already.
    Awaits(Vec<String>),
}

/// What is looked at.
pub struct Subject {
    pub home: PathBuf,
    /// Where the store is.
    pub place: Result<Place, Failure>,
    /// gateway.json as it was read, with all that is odd in it.
    pub config: Result<(Option<Config>, Vec<Problem>), Failure>,
    /// What the rest goes by; nothing where gateway.json cannot be gone by.
    pub parts: Option<Parts>,
    /// Nothing goes over the network.
    pub offline: bool,
}

/// What a gateway is made of.
pub struct Parts {
    pub slack: Part<Access>,
    pub model: Part<Answering>,
    pub policies: Getting<(Stack, Vec<String>)>,
    pub mra: mra::Config,
}

/// Looks at everything.
pub async fn examine(subject: Subject, messages: Arc<Messages>) -> Vec<Finding> {
    let Subject { home, place, config, parts, offline } = subject;
    let about_home = offload({
        let (home, messages) = (home.clone(), Arc::clone(&messages));
        move || look_in(&home, &place, &messages)
    });
    let about_running = offload({
        let (home, messages) = (home.clone(), Arc::clone(&messages));
        move || running::look(&home, &messages)
    });
    let about_tls = offload({
        let messages = Arc::clone(&messages);
        move || tls::look(&messages)
    });
    let (about_parts, about_home, about_running, about_tls) =
        tokio::join!(look_at(parts, offline, &messages), about_home, about_running, about_tls);
    let OfHome { home: mut findings, prompts, store } = about_home;
    // What is wrong with the home keeps the file in it from being read.
    let is_read = config.is_ok() || !is_bad(&findings);
    findings.extend(if is_read { config::look(&home, &config, &messages) } else { config::left_out(&messages) });
    findings.extend(prompts);
    findings.push(store);
    findings.push(about_tls);
    findings.extend(about_parts);
    findings.push(about_running);
    findings
}

/// What is found of the home, and of what is in it.
struct OfHome {
    home: Vec<Finding>,
    prompts: Vec<Finding>,
    store: Finding,
}

fn look_in(home: &Path, place: &Result<Place, Failure>, messages: &Messages) -> OfHome {
    let about_home = home::look(home, messages);
    let home_is_bad = is_bad(&about_home);
    let prompts = if home_is_bad { vec![] } else { prompts::look(home, messages) };
    OfHome { home: about_home, prompts, store: store::look(place, home_is_bad, messages) }
}

fn is_bad(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.state == State::Bad)
}

async fn look_at(parts: Option<Parts>, offline: bool, messages: &Messages) -> Vec<Finding> {
    let Some(Parts { slack, model, policies, mra }) = parts else {
        let names = [slack::NAME, clock::NAME, model::NAME, policies::NAME, workspace::NAME];
        return names.map(|name| Finding::left_out(name, messages.doctor(DoctorRemark::BecauseOfConfig))).into();
    };
    let ((slack, slack_clock), (model, model_clock), policies) = tokio::join!(
        slack::look(slack, offline, messages),
        model::look(model, offline, messages),
        policies::look(policies, messages)
    );
    let mut findings = slack;
    findings.push(clock::look(slack_clock, model_clock, messages));
    findings.extend([model, policies, workspace::look(&mra, messages)]);
    findings
}

/// Gets something within the time that a check has. What takes longer is left to itself, and ends with the program.
///
/// # Errors
/// It cannot be got, or not yet: what is found then.
async fn get<T: Send + 'static>(
    check: &'static str,
    part: Part<T>,
    page: &str,
    messages: &Messages,
) -> Result<T, Finding> {
    let getting = match part {
        Part::Get(getting) => getting,
        Part::Awaits(variables) => return Err(Finding::left_out(check, messages.doctor_until_set(&variables))),
    };
    match timeout(PATIENCE, offload(getting)).await {
        Ok(got) => got.map_err(|failure| Finding::failed(check, failure, page, messages)),
        Err(_) => {
            Err(Finding::bad(check, messages.doctor_late(PATIENCE.as_secs()), messages.doctor(DoctorRemark::LateHint)))
        }
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

    /// What does not go; where nothing better is known, this page helps.
    fn failed(check: &'static str, failure: Failure, page: &str, messages: &Messages) -> Finding {
        let (what, hint) = failure.into_parts();
        Finding::bad(check, what, hint.unwrap_or_else(|| messages.doctor_see(page)))
    }
}
