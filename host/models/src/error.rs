//! Why there is no answer.

use std::{
    fmt,
    time::{Duration, Instant},
};

use thiserror::Error;

/// The maximum size of what is kept of an answer, in bytes: far above that of any model, and no more than can be
/// searched for directives and shown without harm.
pub(crate) const MAX_ANSWER_BYTES: usize = 1 << 20;
/// The longest wait that a provider may ask for; if it asks for more, there is no retry.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(60);

/// Why there is no answer. It is shown with the class in words before the message.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub struct ModelError {
    /// What kind of failure it was.
    pub class: ErrorClass,
    /// The provider's words or ours, on one line.
    pub message: String,
}

/// What kind of failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The prompt is too long. The numbers are the provider's; where it adds the room for the answer to the prompt,
    /// `observed_tokens` includes it.
    Overflow {
        /// The size of the prompt, if stated.
        observed_tokens: Option<u64>,
        /// The maximum size, if stated.
        allowed_tokens: Option<u64>,
        /// Whether the provider says that the request is too large, without mentioning the prompt; images may be the
        /// cause.
        is_of_request: bool,
    },
    /// Too many requests or tokens per time: waiting helps.
    RateLimited {
        /// The wait that the provider asks for.
        retry_after: Option<Duration>,
    },
    /// The provider cannot answer now: an internal error, or overload.
    Overloaded {
        /// The wait that the provider asks for.
        retry_after: Option<Duration>,
    },
    /// The key or the login is wrong, missing or lacks permission.
    Auth,
    /// No money is left, or a spending limit is reached: waiting does not help.
    Billing,
    /// The request's tool calls and results do not match.
    MalformedHistory,
    /// The server does not support tools, or is not configured for them.
    NoTools,
    /// The server does not know the model, or there is nothing at its address.
    UnknownModel,
    /// The model declined to answer.
    Refused,
    /// The connection failed, or it broke or delivered invalid data before the answer was complete.
    Transport,
    /// The gateway's time limit was reached, or the provider reports a timeout.
    Timeout,
    /// The request was refused for an unknown reason: the provider's message is not recognised, or there is none.
    Unexplained,
    /// The request was refused for a known reason other than these, or the model could not be asked.
    Other,
}

impl ErrorClass {
    /// The name in the ledger and in `model explain`.
    pub const fn name(self) -> &'static str {
        match self {
            ErrorClass::Overflow { .. } => "context_overflow",
            ErrorClass::RateLimited { .. } => "rate_limited",
            ErrorClass::Overloaded { .. } => "overloaded",
            ErrorClass::Auth => "auth",
            ErrorClass::Billing => "billing",
            ErrorClass::MalformedHistory => "malformed_history",
            ErrorClass::NoTools => "no_tools",
            ErrorClass::UnknownModel => "unknown_model",
            ErrorClass::Refused => "refused",
            ErrorClass::Transport => "transport",
            ErrorClass::Timeout => "timeout",
            ErrorClass::Unexplained => "unexplained",
            ErrorClass::Other => "other",
        }
    }
}

impl ModelError {
    /// An error with the provider's words or ours, on one line.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        ModelError { class, message: message.into() }
    }

    /// The gateway's time limit for a whole call was reached, whatever had arrived of the answer.
    pub fn not_done_within(limit: Duration) -> Self {
        let limit = limit.as_secs_f64();
        ModelError::new(ErrorClass::Timeout, format!("the answer was not complete within {limit:.1} s"))
    }

    /// The gateway's time limit for silence was reached.
    pub fn silent_for(limit: Duration) -> Self {
        ModelError::new(ErrorClass::Timeout, format!("nothing arrived within {:.1} s", limit.as_secs_f64()))
    }

    /// The error for an answer of which more than [`MAX_ANSWER_BYTES`] would have to be kept.
    pub(crate) fn too_large() -> ModelError {
        ModelError::new(ErrorClass::Transport, format!("the answer is larger than {MAX_ANSWER_BYTES} bytes"))
    }

    /// The wait that the provider asks for.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.class {
            ErrorClass::RateLimited { retry_after } | ErrorClass::Overloaded { retry_after } => retry_after,
            _ => None,
        }
    }

    /// How long to wait before the same request is sent again: as the backoff says, or longer if the provider asks for
    /// that. `None` if it asks for more than `max_wait`, or if the time of the call would be over by then.
    pub(crate) fn wait(&self, backoff: Option<Duration>, max_wait: Duration, deadline: Instant) -> Option<Duration> {
        let asked = self.retry_after();
        let wait = backoff?.max(asked.unwrap_or_default());
        let too_long = asked > Some(max_wait) || Instant::now() + wait >= deadline;
        (!too_long).then_some(wait)
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = &self.message;
        match self.class {
            ErrorClass::Overflow { .. } => write!(f, "the prompt is too long: {message}"),
            ErrorClass::RateLimited { .. } => write!(f, "rate limited: {message}"),
            ErrorClass::Overloaded { .. } => write!(f, "the provider is overloaded: {message}"),
            ErrorClass::Auth => write!(f, "the provider does not accept the credentials: {message}"),
            ErrorClass::Billing => write!(f, "the provider refuses for billing reasons: {message}"),
            ErrorClass::MalformedHistory => write!(f, "the provider does not accept the history: {message}"),
            ErrorClass::NoTools => write!(f, "the server does not accept tools: {message}"),
            ErrorClass::UnknownModel => write!(f, "the server does not know the model: {message}"),
            ErrorClass::Refused => write!(f, "the model refused to answer: {message}"),
            ErrorClass::Transport => write!(f, "the connection failed: {message}"),
            ErrorClass::Timeout => write!(f, "no answer in time: {message}"),
            ErrorClass::Unexplained => write!(f, "the provider refuses the request: {message}"),
            ErrorClass::Other => f.write_str(message),
        }
    }
}
