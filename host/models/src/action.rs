//! The gateway's action after a failed model call.

use serde::Serialize;

use super::{ErrorClass, ModelError};

/// The gateway's action after a failure.
///
/// | class | action |
/// |---|---|
/// | `context_overflow` | `recover` |
/// | `malformed_history` | `repair` |
/// | `overloaded`, `transport`, `timeout` | `retry` |
/// | `rate_limited` | `wait` |
/// | `no_tools` | `fence` |
/// | `refused`, `auth`, `billing`, `unknown_model` | `tell` |
/// | `unexplained` | `probe` |
/// | `other` | `fail` |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Shorten the prompt by the rungs of recovery, and ask again.
    Recover,
    /// [Repair](super::repair) tool calls and results, and ask again once.
    Repair,
    /// Send the same request without tools: the model writes fenced directives instead.
    Fence,
    /// Send the same request again, a little later.
    Retry,
    /// Send the same request again when the wait that the provider asks for is over.
    Wait,
    /// Asking again never helps, but a person can: by asking something else, or with a key or money.
    Tell,
    /// The cause is unknown: only another request can reveal it.
    Probe,
    /// Nothing helps, as far as is known.
    Fail,
}

impl Action {
    /// The name in `model explain`.
    pub const fn name(self) -> &'static str {
        match self {
            Action::Recover => "recover",
            Action::Repair => "repair",
            Action::Fence => "fence",
            Action::Retry => "retry",
            Action::Wait => "wait",
            Action::Tell => "tell",
            Action::Probe => "probe",
            Action::Fail => "fail",
        }
    }

    /// A description for people.
    pub const fn about(self) -> &'static str {
        match self {
            Action::Recover => "make the prompt smaller and ask again",
            Action::Repair => "repair tool calls and results, ask again once",
            Action::Fence => "ask without tools, by fenced directives, from now on",
            Action::Retry => "ask again, a little later",
            Action::Wait => "ask again when the wait is over",
            Action::Tell => "report it: only a person can help",
            Action::Probe => "no reason is given: find out by asking for less",
            Action::Fail => "give up: there is no known remedy",
        }
    }

    /// Whether the same request may succeed later.
    pub(crate) const fn asks_the_same_again(self) -> bool {
        matches!(self, Action::Retry | Action::Wait)
    }
}

impl ModelError {
    /// Whether every question fails in the same way until an operator does something.
    pub const fn is_for_operators(&self) -> bool {
        matches!(self.class, ErrorClass::Auth | ErrorClass::Billing | ErrorClass::UnknownModel)
    }

    /// The action for this error.
    pub const fn action(&self) -> Action {
        match self.class {
            ErrorClass::Overflow { .. } => Action::Recover,
            ErrorClass::MalformedHistory => Action::Repair,
            ErrorClass::NoTools => Action::Fence,
            ErrorClass::Overloaded { .. } | ErrorClass::Transport | ErrorClass::Timeout => Action::Retry,
            ErrorClass::RateLimited { .. } => Action::Wait,
            ErrorClass::Refused | ErrorClass::Auth | ErrorClass::Billing | ErrorClass::UnknownModel => Action::Tell,
            ErrorClass::Unexplained => Action::Probe,
            ErrorClass::Other => Action::Fail,
        }
    }
}
