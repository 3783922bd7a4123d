//! What a gateway needs, looked at before or while it runs: one [`Finding`] a check, in a fixed order, with what mends
//! it. The checks that wait for others run at the same time, none for longer than [`PATIENCE`]; nothing is changed, and
//! no token is ever in what is found.

use std::{path::PathBuf, time::Duration};

use pmk_policy::Stack;
use pmk_system::{error::Failure, threads::offload};
use serde::Serialize;
use tokio::time::timeout;

use crate::{
    config::{Config, Problem},
    mra,
};

mod clock;
mod config;
mod home;
mod model;
mod policies;
mod running;
mod slack;
mod tls;
mod workspace;

pub use model::Answering;
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

/// What is looked at.
pub struct Subject {
    pub home: PathBuf,
    /// gateway.json as it was read, with all that is odd in it.
    pub config: Result<(Option<Config>, Vec<Problem>), Failure>,
    /// What the rest goes by; nothing where gateway.json cannot be gone by.
    pub parts: Option<Parts>,
    /// Nothing goes over the network.
    pub offline: bool,
}

/// What a gateway is made of.
pub struct Parts {
    pub slack: Getting<Access>,
    pub model: Getting<Answering>,
    pub policies: Getting<(Stack, Vec<String>)>,
    pub mra: mra::Config,
}

/// Looks at everything.
pub async fn examine(subject: Subject) -> Vec<Finding> {
    let Subject { home, config, parts, offline } = subject;
    let about_home = offload({
        let home = home.clone();
        move || home::look(&home)
    });
    let about_running = offload({
        let home = home.clone();
        move || running::look(&home)
    });
    let about_tls = offload(tls::look);
    let (about_parts, about_home, about_running, about_tls) =
        tokio::join!(look_at(parts, offline), about_home, about_running, about_tls);
    let mut findings = about_home;
    // What is wrong with the home keeps the file in it from being read.
    let is_read = config.is_ok() || findings.iter().all(|finding| finding.state != State::Bad);
    findings.extend(if is_read { config::look(&home, &config) } else { config::left_out() });
    findings.push(about_tls);
    findings.extend(about_parts);
    findings.push(about_running);
    findings
}

async fn look_at(parts: Option<Parts>, offline: bool) -> Vec<Finding> {
    let Some(Parts { slack, model, policies, mra }) = parts else {
        let names = [slack::NAME, clock::NAME, model::NAME, policies::NAME, workspace::NAME];
        return names.map(|name| Finding::left_out(name, "not looked at, because of gateway.json")).into();
    };
    let ((slack, slack_clock), (model, model_clock), policies) =
        tokio::join!(slack::look(slack, offline), model::look(model, offline), policies::look(policies));
    let mut findings = slack;
    findings.push(clock::look([("Slack", slack_clock), ("the model", model_clock)]));
    findings.extend([model, policies, workspace::look(&mra)]);
    findings
}

/// Gets something within the time that a check has. What takes longer is left to itself, and ends with the program.
async fn get<T: Send + 'static>(getting: Getting<T>) -> Result<T, Failure> {
    match timeout(PATIENCE, offload(getting)).await {
        Ok(got) => got,
        Err(_) => Err(Failure::new(format!("what it takes was not there within {} s", PATIENCE.as_secs()))
            .hint("a command that gateway.json names for a secret takes too long: run it by hand")),
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
    fn failed(check: &'static str, failure: Failure, page: &str) -> Finding {
        let (what, hint) = failure.into_parts();
        Finding::bad(check, what, hint.unwrap_or_else(|| format!("see {page}")))
    }
}
