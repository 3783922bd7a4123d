//! Changes by an operator: whatever came of one is in the admin log.

use std::path::Path;

use super::context::Context;
use pmk_system::error::Failure;

use crate::operator::admin::{Actor, AdminLog, Change, ChangeError};

/// Makes a change, and notes what came of it.
pub(super) fn make(context: &Context, change: &Change) -> Result<(), Failure> {
    let made = change.make(&context.home);
    let reason = made.as_ref().err().map(ChangeError::reason);
    note(context, &context.home, change.action(), &change.arguments(), reason.as_deref().map_or(Ok(()), Err));
    Ok(made?)
}

/// Notes what came of a change, and passes it on.
pub(super) fn record<T>(
    context: &Context,
    action: &str,
    args: &[&str],
    outcome: Result<T, Failure>,
) -> Result<T, Failure> {
    record_in(context, &context.home, action, args, outcome)
}

/// The same in the log of another home.
pub(super) fn record_in<T>(
    context: &Context,
    home: &Path,
    action: &str,
    args: &[&str],
    outcome: Result<T, Failure>,
) -> Result<T, Failure> {
    note(context, home, action, &args.join(" "), outcome.as_ref().map(|_| ()).map_err(Failure::message));
    outcome
}

/// A log that cannot be written keeps nothing from being done.
fn note(context: &Context, home: &Path, action: &str, args: &str, outcome: Result<(), &str>) {
    let log = AdminLog::new(home, Actor::of_process());
    if let Err(error) = log.note(action, args, outcome) {
        context.warn(&match outcome {
            Ok(()) => format!("the change was made, but could not be recorded: {error}"),
            Err(_) => format!("the refused change could not be recorded: {error}"),
        });
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
