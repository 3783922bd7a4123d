//! What is to be done.

use pmk_knowledge::reaction::ReactionVerdict;

use crate::admin::Change;

/// An order, read and of the right shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Say which commands there are.
    Help,
    /// The same of those for admins.
    AdminHelp,
    /// Say what the model gets to see of the conversation that it is said in.
    Context,
    /// Say which policies decide that.
    Policies,
    /// Say how the gateway is set up.
    Status,
    ListAudiences,
    ListContacts,
    ListAdmins,
    ListAtoms(Which),
    /// Show the one atom whose id begins so.
    ShowAtom(String),
    /// Say yes or no to it.
    JudgeAtom(ReactionVerdict, String),
    /// Show the last so many changes.
    ShowLog(usize),
    Change(Change),
    /// Something about the cases of the channel that it is said in.
    Case(OnCase),
}

/// What is wanted of a channel's cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnCase {
    /// Open one of this title.
    Open(String),
    Show,
    Close,
    List,
}

/// Which atoms are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Pending,
    Approved,
    All,
}

impl Which {
    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Which> {
        match name {
            "pending" => Some(Which::Pending),
            "approved" => Some(Which::Approved),
            "all" => Some(Which::All),
            _ => None,
        }
    }
}
