//! The meaning of a reaction to a notice (specification 003 §10).

use super::atom::{Atom, Status};

/// A verdict on an atom, or another yes or no by reaction.
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

/// Whether a verdict counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is to be carried out. The contributor may withdraw even an approved answer.
    Counts,
    /// Only the person who gave the answer may judge it; nothing is done.
    NotTheContributor,
    /// It is approved already; nothing is done.
    AlreadyApproved,
}

/// Decides about a verdict that this person gives on an atom.
pub fn decide(Atom { meta, .. }: &Atom, reactor: &str, verdict: ReactionVerdict) -> Decision {
    match (verdict, meta.status) {
        // Whoever nods at it decides nothing.
        (ReactionVerdict::Approve, Status::Approved) => Decision::AlreadyApproved,
        _ if reactor.is_empty() || reactor != meta.source.contributor_user_id => Decision::NotTheContributor,
        (ReactionVerdict::Approve, Status::Pending) | (ReactionVerdict::Reject, _) => Decision::Counts,
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
        let (yes, no) = (ReactionVerdict::Approve, ReactionVerdict::Reject);
        for (atom, reactor, verdict, expected) in [
            (&pending, "U_IT", yes, Decision::Counts),
            (&pending, "U_IT", no, Decision::Counts),
            (&pending, "U_OTHER", yes, Decision::NotTheContributor),
            (&pending, "U_OTHER", no, Decision::NotTheContributor),
            (&pending, "", no, Decision::NotTheContributor),
            (&approved, "U_IT", yes, Decision::AlreadyApproved),
            (&approved, "U_OTHER", yes, Decision::AlreadyApproved),
            (&approved, "U_OTHER", no, Decision::NotTheContributor),
            (&approved, "U_IT", no, Decision::Counts),
        ] {
            assert_eq!(decide(atom, reactor, verdict), expected, "{reactor} {verdict:?}");
        }
    }

    #[test]
    fn a_verdict_is_said_by_few_reactions() {
        for (reaction, expected) in [
            ("white_check_mark", Some(ReactionVerdict::Approve)),
            ("✅", Some(ReactionVerdict::Approve)),
            ("x", Some(ReactionVerdict::Reject)),
            (":x:", Some(ReactionVerdict::Reject)),
            ("eyes", None),
        ] {
            assert_eq!(ReactionVerdict::of_reaction(reaction), expected, "{reaction}");
        }
    }

    #[test]
    fn an_atom_without_contributor_cannot_be_judged_by_reaction() {
        let mut anonymous = atom("erp", "q", "a");
        anonymous.meta.source.contributor_user_id.clear();
        assert_eq!(decide(&anonymous, "", ReactionVerdict::Reject), Decision::NotTheContributor);
    }
}
