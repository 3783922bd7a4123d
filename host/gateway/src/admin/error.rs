//! Why a change was not made.

use thiserror::Error;

use super::id::BadId;
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
}

impl From<WrongShape> for ChangeError {
    fn from(error: WrongShape) -> Self {
        ChangeError::Config(error.into())
    }
}

impl ChangeError {
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
            ChangeError::Audience(_) | ChangeError::InPool { .. } => None,
        }
    }
}
