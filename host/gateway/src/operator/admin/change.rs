//! A change by its name: what the command line and the commands in Slack have in common.

use std::path::Path;

use super::{admins, audience as audiences, contacts, error::ChangeError};

/// A change of gateway.json. The values are as they were given, and checked when it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Everybody without an audience of their own has this one.
    DefaultAudience {
        audience: String,
    },
    /// A person or a channel has an audience of its own.
    SetAudience {
        id: String,
        audience: String,
    },
    UnsetAudience {
        id: String,
    },
    AddContact {
        pool: String,
        user: String,
    },
    RemoveContact {
        pool: String,
        user: String,
    },
    AddAdmin {
        user: String,
    },
    RemoveAdmin {
        user: String,
    },
}

impl Change {
    /// Its name in the [log](super::AdminLog), as pmk has it.
    pub fn action(&self) -> &'static str {
        match self {
            Change::DefaultAudience { .. } => "audience.default",
            Change::SetAudience { .. } => "audience.set",
            Change::UnsetAudience { .. } => "audience.unset",
            Change::AddContact { .. } => "escalation.add",
            Change::RemoveContact { .. } => "escalation.remove",
            Change::AddAdmin { .. } => "admins.add",
            Change::RemoveAdmin { .. } => "admins.remove",
        }
    }

    /// What it is done to, as the log has it.
    pub fn arguments(&self) -> String {
        match self {
            Change::DefaultAudience { audience } => audience.clone(),
            Change::SetAudience { id, audience } => format!("{id} {audience}"),
            Change::UnsetAudience { id } => id.clone(),
            Change::AddContact { pool, user } | Change::RemoveContact { pool, user } => format!("{pool} {user}"),
            Change::AddAdmin { user } | Change::RemoveAdmin { user } => user.clone(),
        }
    }

    /// Makes it.
    ///
    /// # Errors
    /// It makes no sense, it is so already, or gateway.json cannot be changed.
    pub fn make(&self, home: &Path) -> Result<(), ChangeError> {
        match self {
            Change::DefaultAudience { audience } => audiences::set_default_audience(home, audience).map(drop),
            Change::SetAudience { id, audience } => audiences::set_audience(home, id, audience).map(drop),
            Change::UnsetAudience { id } => audiences::unset_audience(home, id),
            Change::AddContact { pool, user } => contacts::add_contact(home, pool, user),
            Change::RemoveContact { pool, user } => contacts::remove_contact(home, pool, user),
            Change::AddAdmin { user } => admins::add_admin(home, user),
            Change::RemoveAdmin { user } => admins::remove_admin(home, user),
        }
    }
}
