//! Errors as the operator sees them: one line that names the thing, one that says what to do.

use std::fmt;

use serde_json::{Value, json};

/// What went wrong, and what to do about it. Typed errors become one of these where they leave the
/// program.
#[derive(Clone, Debug)]
pub struct Failure {
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// A failure with nothing more to say than what happened.
    pub fn new(message: impl fmt::Display) -> Self {
        Failure { message: message.to_string(), hint: None }
    }

    /// What happened, without the hint.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it, where there is something.
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// What to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What happened, and what to do about it.
    pub fn into_parts(self) -> (String, Option<String>) {
        (self.message, self.hint)
    }

    /// The same for machines: one object, shaped as the console's `error` lines.
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

/// Adds a hint to any error on its way out.
pub trait OrHint<T> {
    /// Turns the error into a [`Failure`] with this hint.
    ///
    /// # Errors
    /// The same error, said to the operator.
    fn or_hint(self, hint: impl Into<String>) -> Result<T, Failure>;
}

impl<T, E: fmt::Display> OrHint<T> for Result<T, E> {
    fn or_hint(self, hint: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(error).hint(hint))
    }
}
