//! Changes made by an operator on the command line; each outcome is written to the admin log.

use std::path::Path;

use super::context::Context;
use pmk_system::error::Failure;

use crate::operator::admin::{Actor, AdminLog, Change, ChangeError};

/// Makes a change and logs the outcome.
pub(super) fn make(context: &Context, change: &Change) -> Result<(), Failure> {
    let made = change.make(&context.home);
    let reason = made.as_ref().err().map(ChangeError::reason);
    note(context, &context.home, change.action(), &change.arguments(), reason.as_deref().map_or(Ok(()), Err));
    Ok(made?)
}

/// Logs the outcome of a change, and returns it.
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

/// Writes the log entry. A log that cannot be written does not make the change fail.
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
