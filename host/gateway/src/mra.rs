//! `mra ask REPO QUESTION`: answers about a code base, from a program that the operator provides (specification
//! 003 §6).
//!
//! An [`MraQuestion`] holds only what can be passed as arguments safely. [`Mra::ask`] runs the program and
//! returns an [`Outcome`], which provides its message to the model and its ledger event.

use std::{ffi::OsString, path::PathBuf, time::Duration, time::Instant};

use anstream::adapter::strip_str;
use pmk_system::child::{self, End, Finished, Limits, SpawnError, Spec};
use tokio_util::sync::CancellationToken;

mod outcome;
mod question;

use outcome::MAX_STDOUT_CHARS;
pub use outcome::{AskEnded, Failure, Outcome};
pub use question::{BadQuestion, MAX_QUESTION_CHARS, MraQuestion, repo_name};

/// The time limit of one call (specification 003 §6).
pub const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(300);
/// The most bytes of a result that are kept; the policy's cap is applied after this.
pub const MAX_RESULT_BYTES: usize = 1 << 20;

/// The environment variables that `mra` inherits from the gateway. The tokens of Slack and of models
/// are not among them; a key that `mra` itself needs is passed by naming it in
/// [`Config::environment`].
pub const INHERITED: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "LANG",
    "LC_ALL",
    "TZ",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
];

/// How `mra` is called.
#[derive(Clone, Debug)]
pub struct Config {
    /// The program.
    pub program: OsString,
    /// Arguments before `ask`.
    pub arguments: Vec<OsString>,
    /// The directory it runs in: the mra workspace.
    pub workspace: Option<PathBuf>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// For one call; the retry has a time limit of its own.
    pub time_limit: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            program: "mra".into(),
            arguments: Vec::new(),
            workspace: None,
            environment: child::inherit(INHERITED),
            time_limit: DEFAULT_TIME_LIMIT,
        }
    }
}

/// Runs `mra`.
#[derive(Clone, Debug)]
pub struct Mra {
    config: Config,
}

impl Mra {
    pub fn new(config: Config) -> Self {
        Mra { config }
    }

    /// Checks whether it can be asked now.
    ///
    /// # Errors
    /// The program or the workspace is missing, or this user may not run it.
    pub fn check(&self) -> Result<(), SpawnError> {
        child::check(&self.spec([]))
    }

    /// Asks a question. `on_progress` gets every non-empty line of standard output, without colours, as it
    /// arrives.
    ///
    /// A call that fails without any output on standard error is retried once: that is typical of a temporary
    /// error (specification 003 §6). A call that took too long, was cancelled or could not be started is not
    /// retried: waiting another five minutes helps nobody.
    pub async fn ask(
        &self,
        question: &MraQuestion,
        cancel: &CancellationToken,
        mut on_progress: impl FnMut(&str) + Send,
    ) -> Outcome {
        let started = Instant::now();
        let mut result = self.call(question, cancel, &mut on_progress).await;
        let retried = result.as_ref().is_err_and(Failure::is_silent) && !cancel.is_cancelled();
        if retried {
            tracing::warn!(repo = question.repo(), "`mra ask` failed with nothing on stderr, retrying once");
            result = self.call(question, cancel, &mut on_progress).await;
        }
        let outcome = Outcome { question: question.clone(), result, retried, duration: started.elapsed() };
        if let Err(failure) = &outcome.result {
            tracing::error!(repo = question.repo(), retried, "`mra ask` failed: {failure}");
        }
        outcome
    }

    async fn call(
        &self,
        question: &MraQuestion,
        cancel: &CancellationToken,
        on_progress: &mut (impl FnMut(&str) + Send),
    ) -> Result<String, Failure> {
        let spec = self.spec(["ask", question.repo(), question.argument()]);
        let finished = child::run(&spec, cancel, |line| {
            let line = strip_str(line).to_string();
            if !line.trim().is_empty() {
                on_progress(line.trim());
            }
        })
        .await?;
        result(&finished, self.config.time_limit)
    }

    fn spec<const N: usize>(&self, more: [&str; N]) -> Spec {
        let mut arguments = self.config.arguments.clone();
        arguments.extend(more.map(OsString::from));
        Spec {
            environment: self.config.environment.clone(),
            directory: self.config.workspace.clone(),
            limits: Limits {
                wall_clock: self.config.time_limit,
                max_stdout_bytes: MAX_RESULT_BYTES,
                ..Limits::default()
            },
            ..Spec::new(&self.config.program, arguments)
        }
    }
}

impl From<SpawnError> for Failure {
    fn from(error: SpawnError) -> Self {
        Failure::NotStarted { message: error.to_string() }
    }
}

fn result(finished: &Finished, time_limit: Duration) -> Result<String, Failure> {
    let stdout = strip_str(&finished.stdout.text()).to_string();
    let stderr = strip_str(&finished.stderr.text()).to_string().trim().to_owned();
    match finished.end {
        End::Exited(0) if stdout.trim().is_empty() => Err(Failure::NoAnswer { stderr }),
        End::Exited(0) if finished.stdout.is_cut() => {
            let cut = pmk_core::text::head_bytes(&stdout, MAX_RESULT_BYTES).trim();
            // The number of bytes, without words, since it is part of what was found.
            Ok(format!("{cut}\n…(mra: {MAX_RESULT_BYTES} / {} bytes)", finished.stdout.total_bytes))
        }
        End::Exited(0) => Ok(stdout.trim().to_owned()),
        End::Exited(code) => Err(Failure::Exited { code, stderr, stdout: printed(&stdout) }),
        End::Signalled(signal) => Err(Failure::Signalled { signal, stderr, stdout: printed(&stdout) }),
        End::TimedOut => Err(Failure::TimedOut { after: time_limit, stderr, stdout: printed(&stdout) }),
        End::Cancelled => Err(Failure::Cancelled),
    }
}

/// Returns the end of what a failed call printed.
fn printed(stdout: &str) -> String {
    let stdout = stdout.trim();
    let end = pmk_core::text::tail(stdout, MAX_STDOUT_CHARS);
    if end.len() < stdout.len() { format!("…{end}") } else { end.to_owned() }
}

#[cfg(test)]
mod tests;
