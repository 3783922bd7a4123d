//! The operations that commands request.

use pmk_knowledge::reaction::ReactionVerdict;

use crate::operator::admin::Change;

/// A parsed order with valid arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// List the commands.
    Help,
    /// List the commands for admins.
    AdminHelp,
    /// Show what the model sees of the current conversation.
    Context,
    /// Show the policies that decide that.
    Policies,
    /// Show the setup of the gateway.
    Status,
    ListAudiences,
    ListContacts,
    ListAdmins,
    ListAtoms(AtomFilter),
    /// Show the one atom whose id begins with this prefix.
    ShowAtom(String),
    /// Approve or reject the one atom whose id begins with this prefix.
    JudgeAtom(ReactionVerdict, String),
    /// Show this many of the last changes.
    ShowLog(usize),
    Change(Change),
    /// Do something with the cases of the current channel.
    Case(CaseAction),
}

/// An operation on a channel's cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseAction {
    /// Open a case with this title.
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
    /// Returns the filter of that name.
    pub fn from_name(name: &str) -> Option<AtomFilter> {
        match name {
            "pending" => Some(AtomFilter::Pending),
            "approved" => Some(AtomFilter::Approved),
            "all" => Some(AtomFilter::All),
            _ => None,
        }
    }
}
