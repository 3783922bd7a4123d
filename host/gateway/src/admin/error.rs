//! Why a change was not made.

use thiserror::Error;

use crate::slack_id::BadId;
use crate::{
    audience::UnknownAudience,
    config::{EditError, WrongShape},
    mra::BadQuestion,
};

/// Why a change was not made.
#[derive(Debug, Error)]
pub enum ChangeError {
    #[error(transparent)]
    Config(#[from] EditError),
    #[error(transparent)]
    Audience(#[from] UnknownAudience),
    #[error(transparent)]
    Id(#[from] BadId),
    #[error(transparent)]
    Repo(#[from] BadQuestion),
    #[error("`{0}` has no audience of its own")]
    NoAudience(String),
    #[error("there is no pool `{0}`")]
    NoPool(String),
    #[error("`{user}` is in the pool `{pool}` already")]
    InPool { user: String, pool: String },
    #[error("`{user}` is not in the pool `{pool}`")]
    NotInPool { user: String, pool: String },
    #[error("`{0}` is an admin already")]
    IsAdmin(String),
    #[error("`{0}` is no admin")]
    NotAdmin(String),
    #[error("`{0}` is on the blocklist")]
    Blocked(String),
    #[error("cannot remove last admin")]
    LastAdmin,
    #[error("{0}")]
    BadExperiment(String),
    #[error("there is no experiment")]
    NoExperiment,
    #[error("the experiment `{0}` is on")]
    ExperimentOn(String),
    #[error("the experiment `{0}` is not on")]
    ExperimentOff(String),
    #[error("the experiment `{experiment}` has no arm `{arm}`")]
    NoArm { experiment: String, arm: String },
}

impl From<WrongShape> for ChangeError {
    fn from(error: WrongShape) -> Self {
        ChangeError::Config(error.into())
    }
}

impl ChangeError {
    /// What the log says.
    pub fn reason(&self) -> String {
        match self {
            ChangeError::LastAdmin => "last-admin protection".to_owned(),
            other => other.to_string(),
        }
    }

    /// Whether everything is as the change would have made it.
    pub fn is_so_already(&self) -> bool {
        match self {
            ChangeError::NoAudience(_)
            | ChangeError::NoPool(_)
            | ChangeError::InPool { .. }
            | ChangeError::NotInPool { .. }
            | ChangeError::IsAdmin(_)
            | ChangeError::NotAdmin(_) => true,
            ChangeError::Config(_)
            | ChangeError::Audience(_)
            | ChangeError::Id(_)
            | ChangeError::Repo(_)
            | ChangeError::Blocked(_)
            | ChangeError::LastAdmin
            | ChangeError::BadExperiment(_)
            | ChangeError::NoExperiment
            | ChangeError::ExperimentOn(_)
            | ChangeError::ExperimentOff(_)
            | ChangeError::NoArm { .. } => false,
        }
    }

    /// What to do about it, where that is not plain.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ChangeError::Config(error) => Some(error.hint()),
            ChangeError::Id(_) => {
                Some("in Slack, a profile's menu copies the member id, a channel's details end in its id")
            }
            ChangeError::Repo(_) => Some("`default` is the pool of all repositories that have none"),
            ChangeError::NoAudience(_) => Some("`pmk-host audience list` shows who has one"),
            ChangeError::NoPool(_) | ChangeError::NotInPool { .. } => {
                Some("`pmk-host escalation list` shows who is where")
            }
            ChangeError::NotAdmin(_) => Some("`pmk-host admin list` shows them"),
            ChangeError::Blocked(_) => {
                Some("take them off `blocklist` in gateway.json first: it goes before everything else")
            }
            ChangeError::LastAdmin => {
                Some("add another one first, who is not blocked: nobody in Slack could make one any more")
            }
            ChangeError::BadExperiment(_) => Some(
                "an experiment is `name`, `control`, and `arms` of `name`, `policy` (`files`, `settings`) and `weight` or `shadow`",
            ),
            ChangeError::NoExperiment => {
                Some("write one down as `experiment` in gateway.json, or say `experiment start --file FILE`")
            }
            ChangeError::ExperimentOn(_) => Some("end it first, by `experiment stop` or `experiment promote ARM`"),
            ChangeError::ExperimentOff(_) => {
                Some("`experiment start` begins it; `policy use FILE --persist` has policies decide without one")
            }
            ChangeError::NoArm { .. } => Some("`experiment status` shows its arms"),
            ChangeError::Audience(_) => {
                Some("`tech` is told how things work, `biz` and `exec` what they come to; `pm` is between")
            }
            ChangeError::InPool { .. } | ChangeError::IsAdmin(_) => None,
        }
    }
}
