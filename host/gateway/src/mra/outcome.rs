//! The outcome of a question to `mra`: for the ledger, for the log, and for the model, which is
//! [told](crate::messages::Messages::mra_outcome) in its language.

use std::{fmt, time::Duration};

use serde::Serialize;

use super::MraQuestion;

/// The outcome of a question.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub question: MraQuestion,
    /// What `mra` printed, or why there is nothing.
    pub result: Result<String, Failure>,
    /// Whether the call was retried.
    pub retried: bool,
    /// Of both calls together.
    pub duration: Duration,
}

/// How many characters of a failed call's output are kept, from its end: they go into the model's next prompt
/// without a cap.
pub(super) const MAX_STDOUT_CHARS: usize = 4_000;

/// Why there is no result. `stderr` is the end of standard error, without colours, at most 16 KiB; `stdout` is the end
/// of standard output, at most 4,000 characters: some programs report errors there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The program could not be started.
    NotStarted {
        message: String,
    },
    /// It ended with an exit code other than 0.
    Exited {
        code: i32,
        stderr: String,
        stdout: String,
    },
    Signalled {
        signal: i32,
        stderr: String,
        stdout: String,
    },
    /// It reported success, and printed nothing.
    NoAnswer {
        stderr: String,
    },
    TimedOut {
        after: Duration,
        stderr: String,
        stdout: String,
    },
    /// The gateway is stopping.
    Cancelled,
}

impl Failure {
    /// Returns whether a retry may help: the call failed by itself and did not say why.
    pub(super) fn is_silent(&self) -> bool {
        match self {
            Failure::Exited { stderr, .. } | Failure::Signalled { stderr, .. } | Failure::NoAnswer { stderr } => {
                stderr.is_empty()
            }
            Failure::NotStarted { .. } | Failure::TimedOut { .. } | Failure::Cancelled => false,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (stderr, stdout) = match self {
            Failure::NotStarted { message } => return f.write_str(message),
            Failure::Cancelled => return f.write_str("it was cancelled"),
            Failure::Exited { code, stderr, stdout } => {
                write!(f, "exit code {code}")?;
                (stderr, stdout.as_str())
            }
            Failure::Signalled { signal, stderr, stdout } => {
                write!(f, "ended by signal {signal}")?;
                (stderr, stdout.as_str())
            }
            Failure::NoAnswer { stderr } => {
                f.write_str("it printed nothing")?;
                (stderr, "")
            }
            Failure::TimedOut { after, stderr, stdout } => {
                write!(f, "no answer within {} s", after.as_secs_f64())?;
                (stderr, stdout.as_str())
            }
        };
        match stderr.as_str() {
            "" => f.write_str(", nothing on stderr")?,
            stderr => write!(f, "\nstderr:\n{stderr}")?,
        }
        if stdout.is_empty() { Ok(()) } else { write!(f, "\nstdout:\n{stdout}") }
    }
}

impl Outcome {
    /// Returns the data of the ledger's `mra-ask.end`.
    pub fn event(&self) -> AskEnded<'_> {
        AskEnded {
            repo: self.question.repo(),
            ok: self.result.is_ok(),
            retried: self.retried,
            duration_ms: u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// What the ledger stores of a question to `mra`; the actor is added there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AskEnded<'a> {
    pub repo: &'a str,
    pub ok: bool,
    pub retried: bool,
    pub duration_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(result: Result<&str, Failure>) -> Outcome {
        Outcome {
            question: MraQuestion::new("erp", "where is `x`?\nand y?").expect("a good question"),
            result: result.map(str::to_owned),
            retried: true,
            duration: Duration::from_millis(1234),
        }
    }

    #[test]
    fn the_event_has_the_ledgers_names() {
        let event = serde_json::to_value(outcome(Ok("x")).event()).expect("JSON");
        assert_eq!(event, serde_json::json!({"repo": "erp", "ok": true, "retried": true, "durationMs": 1234}));
    }
}
