//! What is to be done.

use pmk_knowledge::reaction::ReactionVerdict;

use crate::operator::admin::Change;

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
    ListAtoms(AtomFilter),
    /// Show the one atom whose id begins so.
    ShowAtom(String),
    /// Say yes or no to it.
    JudgeAtom(ReactionVerdict, String),
    /// Show the last so many changes.
    ShowLog(usize),
    Change(Change),
    /// Something about the cases of the channel that it is said in.
    Case(CaseAction),
}

/// What is wanted of a channel's cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseAction {
    /// Open one of this title.
    Open(String),
    Show,
    Close,
    List,
}

/// Which atoms are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomFilter {
    Pending,
    Approved,
    All,
}

impl AtomFilter {
    /// The one of that name.
    pub fn from_name(name: &str) -> Option<AtomFilter> {
        match name {
            "pending" => Some(AtomFilter::Pending),
            "approved" => Some(AtomFilter::Approved),
            "all" => Some(AtomFilter::All),
            _ => None,
        }
    }
}
