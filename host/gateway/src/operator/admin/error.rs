//! The reasons why a change was not made.

use thiserror::Error;

use crate::slack_id::BadId;
use crate::{
    access::audience::UnknownAudience,
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
    #[error("`{0}` does not have its own audience")]
    NoAudience(String),
    #[error("there is no pool `{0}`")]
    NoPool(String),
    #[error("`{user}` is already in the pool `{pool}`")]
    InPool { user: String, pool: String },
    #[error("`{user}` is not in the pool `{pool}`")]
    NotInPool { user: String, pool: String },
    #[error("`{0}` is already an admin")]
    IsAdmin(String),
    #[error("`{0}` is not an admin")]
    NotAdmin(String),
    #[error("`{0}` is on the blocklist")]
    Blocked(String),
    #[error("cannot remove the last admin")]
    LastAdmin,
    #[error("{0}")]
    BadExperiment(String),
    #[error("there is no experiment")]
    NoExperiment,
    #[error("experiment `{0}` is running")]
    ExperimentOn(String),
    #[error("experiment `{0}` is not running")]
    ExperimentOff(String),
    #[error("experiment `{experiment}` has no arm `{arm}`")]
    NoArm { experiment: String, arm: String },
}

impl From<WrongShape> for ChangeError {
    fn from(error: WrongShape) -> Self {
        ChangeError::Config(error.into())
    }
}

impl ChangeError {
    /// Returns the reason as the log has it.
    pub fn reason(&self) -> String {
        match self {
            ChangeError::LastAdmin => "last-admin protection".to_owned(),
            other => other.to_string(),
        }
    }

    /// Whether the state is already what the change would have made it.
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

    /// Returns what to do about it, where that is not obvious.
    pub fn hint(&self) -> Option<&str> {
        match self {
            ChangeError::Config(error) => Some(error.hint()),
            ChangeError::Id(_) => Some(
                "in Slack, copy a member id from the menu of the profile; a channel id is at the end of the channel's details",
            ),
            ChangeError::Repo(_) => Some("`default` is the pool of all repositories without their own"),
            ChangeError::NoAudience(_) => Some("see who has one with `pmk-host audience list`"),
            ChangeError::NoPool(_) | ChangeError::NotInPool { .. } => {
                Some("see all pools with `pmk-host escalation list`")
            }
            ChangeError::NotAdmin(_) => Some("list all admins with `pmk-host admin list`"),
            ChangeError::Blocked(_) => {
                Some("remove them from `blocklist` in gateway.json first: it takes precedence over everything else")
            }
            ChangeError::LastAdmin => {
                Some("first add another admin who is not blocked: otherwise nobody in Slack could add admins")
            }
            ChangeError::BadExperiment(_) => Some(
                "an experiment has `name`, `control` and `arms`, each with `name`, `policy` (`files`, `settings`) and `weight` or `shadow`",
            ),
            ChangeError::NoExperiment => {
                Some("define one as `experiment` in gateway.json, or use `experiment start --file FILE`")
            }
            ChangeError::ExperimentOn(_) => Some(
                "to change its weights or arms, edit `experiment` in gateway.json while it runs; to start another one, \
                 end it first with `experiment stop` or `experiment promote ARM`",
            ),
            ChangeError::ExperimentOff(_) => Some(
                "start it with `experiment start`, under a new `name` if conversations have taken part in it, or use policies without \
                 an experiment: `policy use FILE --persist`",
            ),
            ChangeError::NoArm { .. } => Some("see its arms with `experiment status`"),
            ChangeError::Audience(_) => Some(
                "`tech` gets technical details, `biz` and `exec` conclusions and impact, `pm` something in between",
            ),
            ChangeError::InPool { .. } | ChangeError::IsAdmin(_) => None,
        }
    }
}
