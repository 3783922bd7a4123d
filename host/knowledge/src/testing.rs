//! Atoms for tests.

use super::atom::{Atom, NewAtom, Source};

/// The creation time of the tests' atoms.
pub(super) const CREATED_MS: i64 = 1_777_342_416_133;

/// A pending atom that `U_IT` contributed.
pub(super) fn atom(scope: &str, question: &str, answer: &str) -> Atom {
    Atom::pending(NewAtom {
        created_at_ms: CREATED_MS,
        scope,
        question,
        summary: answer,
        tags: Vec::new(),
        asked_as: Vec::new(),
        answer,
        source: Source { thread_key: "D1:1777342320.134509".into(), contributor_user_id: "U_IT".into() },
        suspicion: None,
    })
}
