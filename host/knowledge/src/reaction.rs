//! The meaning of a reaction to a notice (specification 003 §10).

use super::atom::{Atom, Status};

/// A verdict on an atom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReactionVerdict {
    /// It may be shown to others.
    Approve,
    /// It is to be deleted.
    Reject,
}

impl ReactionVerdict {
    /// The verdict of a reaction, by Slack's name of the emoji or the emoji itself; `None` for all others.
    pub fn of_reaction(reaction: &str) -> Option<ReactionVerdict> {
        match reaction.trim_matches(':') {
            "white_check_mark" | "✅" => Some(ReactionVerdict::Approve),
            "x" | "❌" => Some(ReactionVerdict::Reject),
            _ => None,
        }
    }
}

/// What to do about a reaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Make the atom visible to retrieval.
    Approve,
    /// Delete its file. The contributor may withdraw even an approved answer.
    Reject,
    /// Only the person who gave the answer may judge it; nothing is done.
    NotTheContributor,
    /// It is approved already; nothing is done.
    AlreadyApproved,
    /// It was rejected, or its file deleted; nothing is done.
    Gone,
    /// The emoji is not a verdict.
    NotAVerdict,
}

/// Decides about a reaction to a notice. `atom` is the atom that the notice is about, `None` if it no longer exists.
pub fn decide(atom: Option<&Atom>, reactor: &str, reaction: &str) -> Decision {
    let Some(verdict) = ReactionVerdict::of_reaction(reaction) else { return Decision::NotAVerdict };
    let Some(Atom { meta, .. }) = atom else { return Decision::Gone };
    if reactor.is_empty() || reactor != meta.source.contributor_user_id {
        return Decision::NotTheContributor;
    }
    match (verdict, meta.status) {
        (ReactionVerdict::Approve, Status::Pending) => Decision::Approve,
        (ReactionVerdict::Approve, Status::Approved) => Decision::AlreadyApproved,
        (ReactionVerdict::Reject, _) => Decision::Reject,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::atom;

    #[test]
    fn only_the_contributor_decides_and_only_once() {
        let pending = atom("erp", "q", "a");
        let mut approved = pending.clone();
        approved.approve();
        for (atom, reactor, reaction, expected) in [
            (Some(&pending), "U_IT", "white_check_mark", Decision::Approve),
            (Some(&pending), "U_IT", "✅", Decision::Approve),
            (Some(&pending), "U_IT", "x", Decision::Reject),
            (Some(&pending), "U_OTHER", "white_check_mark", Decision::NotTheContributor),
            (Some(&pending), "U_OTHER", "x", Decision::NotTheContributor),
            (Some(&pending), "", "x", Decision::NotTheContributor),
            (Some(&pending), "U_IT", "eyes", Decision::NotAVerdict),
            (Some(&approved), "U_IT", "white_check_mark", Decision::AlreadyApproved),
            (Some(&approved), "U_IT", ":x:", Decision::Reject),
            (None, "U_IT", "white_check_mark", Decision::Gone),
            (None, "U_IT", "x", Decision::Gone),
        ] {
            assert_eq!(decide(atom, reactor, reaction), expected, "{reactor} {reaction}");
        }
    }

    #[test]
    fn an_atom_without_contributor_cannot_be_judged_by_reaction() {
        let mut anonymous = atom("erp", "q", "a");
        anonymous.meta.source.contributor_user_id.clear();
        assert_eq!(decide(Some(&anonymous), "", "x"), Decision::NotTheContributor);
    }
}
