//! Changes by name, as the command line and the commands in Slack share them.

use std::path::Path;

use super::{admins, audience as audiences, contacts, error::ChangeError};

/// A change of gateway.json. The values are unchecked until the change is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Sets the audience of everybody without their own.
    DefaultAudience {
        audience: String,
    },
    /// Sets the audience of a person or a channel.
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
    /// Returns its name in the [log](super::AdminLog), the same as in pmk.
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

    /// Returns its arguments as the log has them.
    pub fn arguments(&self) -> String {
        match self {
            Change::DefaultAudience { audience } => audience.clone(),
            Change::SetAudience { id, audience } => format!("{id} {audience}"),
            Change::UnsetAudience { id } => id.clone(),
            Change::AddContact { pool, user } | Change::RemoveContact { pool, user } => format!("{pool} {user}"),
            Change::AddAdmin { user } | Change::RemoveAdmin { user } => user.clone(),
        }
    }

    /// Makes the change.
    ///
    /// # Errors
    /// A value is invalid, the change has already been made, or gateway.json cannot be changed.
    pub fn make(&self, home: &Path) -> Result<(), ChangeError> {
        match self {
            Change::DefaultAudience { audience } => audiences::set_default_audience(home, audience),
            Change::SetAudience { id, audience } => audiences::set_audience(home, id, audience),
            Change::UnsetAudience { id } => audiences::unset_audience(home, id),
            Change::AddContact { pool, user } => contacts::add_contact(home, pool, user),
            Change::RemoveContact { pool, user } => contacts::remove_contact(home, pool, user),
            Change::AddAdmin { user } => admins::add_admin(home, user),
            Change::RemoveAdmin { user } => admins::remove_admin(home, user),
        }
    }
}
