//! Changes by an operator: whatever came of one is in the admin log.

use super::Context;
use crate::{
    admin::{Actor, AdminLog, ChangeError},
    error::Failure,
};

/// Notes what came of a change, and passes it on.
pub(super) fn record<T>(
    context: &Context,
    action: &str,
    args: &[&str],
    outcome: Result<T, Failure>,
) -> Result<T, Failure> {
    let log = AdminLog::new(&context.home, Actor::of_process());
    let noted = log.note(action, &args.join(" "), outcome.as_ref().map(|_| ()).map_err(Failure::message));
    match (outcome, noted) {
        (outcome, Ok(())) => outcome,
        (Ok(_), Err(error)) => Err(Failure::new(format!("the change is made, but nothing tells of it: {error}"))
            .hint("make room or correct the permissions, then look at what the change did")),
        (Err(failure), Err(error)) => {
            context.warn(&error.to_string());
            Err(failure)
        }
    }
}

impl From<ChangeError> for Failure {
    fn from(error: ChangeError) -> Self {
        let failure = Failure::new(&error);
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
