//! Errors for the operator: one line that names the problem, one that says what to do about it.

use std::fmt;

use serde_json::{Value, json};

/// An error message, and what to do about it. Typed errors become one of these where they leave the program.
#[derive(Clone, Debug)]
pub struct Failure {
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// Creates a failure without a hint.
    pub fn new(message: impl fmt::Display) -> Self {
        Failure { message: message.to_string(), hint: None }
    }

    /// The message, without the hint.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The hint, if any.
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The message and the hint.
    pub fn into_parts(self) -> (String, Option<String>) {
        (self.message, self.hint)
    }

    /// The failure as JSON, in the format of the console's `error` lines.
    pub fn document(&self) -> Value {
        json!({"type": "error", "message": self.message, "hint": self.hint})
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

/// Converts any error into a [`Failure`] with a hint.
pub trait OrHint<T> {
    /// Turns the error into a [`Failure`] with this hint.
    ///
    /// # Errors
    /// The same error, for the operator.
    fn or_hint(self, hint: impl Into<String>) -> Result<T, Failure>;
}

impl<T, E: fmt::Display> OrHint<T> for Result<T, E> {
    fn or_hint(self, hint: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(error).hint(hint))
    }
}
