//! The local `claude` program as a model, with the operator's own login.
//!
//! See specification 000 §cause-2: `claude` adds the host's configuration to every request: memory files, skills,
//! hooks, tools. The flags here exclude all of it. The child gets an empty working directory, an environment of a few
//! variables, and the conversation on standard input. One call is one child.

use std::{
    ffi::OsString,
    fs, io,
    path::PathBuf,
    pin::pin,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use backon::{ExponentialBuilder, Retryable};
use pmk_system::child::{self, End, Limits, SpawnError, Spec};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use self::events::Transcript;
use super::{
    Answer, ErrorClass, Meter, Model, ModelError, Request, classify,
    error::MAX_WAIT,
    families::{self, Family},
};

mod events;
mod prompt;

/// The provider's name.
pub(crate) const PROVIDER: &str = "claude-cli";
/// The program, looked up in `PATH`.
pub(crate) const PROGRAM: &str = "claude";
/// The default model: an alias that `claude` resolves to its newest.
pub(crate) const DEFAULT_MODEL: &str = "sonnet";
/// The longest time in which nothing is printed.
const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// The time limit of a call, including waits and retries.
const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(300);
/// The maximum number of attempts per call. Each time, `claude` itself tries twice.
const DEFAULT_ATTEMPTS: usize = 2;
/// The wait before the second attempt.
const DEFAULT_FIRST_WAIT: Duration = Duration::from_secs(2);

/// The variables that `claude` inherits from the gateway's environment: paths, its login, and access to its API.
pub const INHERITED: [&str; 16] = [
    "PATH",
    "HOME",
    "USER",
    "TMPDIR",
    "LANG",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// The maximum length of the system prompt, in bytes: it is an argument, for which Linux allows 128 KiB.
const MAX_SYSTEM_BYTES: usize = 120 << 10;
/// The maximum length of a line: an event that contains a whole answer.
const MAX_EVENT_BYTES: usize = 16 << 20;
/// How long `claude` may take to exit after its result.
const EXIT_TIME: Duration = Duration::from_secs(5);
/// How much of standard error an error message contains, in characters.
const MAX_SHOWN_CHARS: usize = 300;

/// How `claude` is called.
#[derive(Clone, Debug)]
pub struct Config {
    /// The program.
    pub program: OsString,
    /// Arguments before ours.
    pub arguments: Vec<OsString>,
    /// An empty working directory; created if it does not exist.
    pub directory: PathBuf,
    /// The complete environment of the child, apart from the switches set here.
    pub environment: Vec<(OsString, OsString)>,
    /// The model's name or alias.
    pub(crate) model: String,
    /// The context window in tokens; with `None`, that of the model's family.
    pub window: Option<u64>,
    /// The longest time in which nothing is printed: `claude` prints each piece of an answer, and that it retries, but not
    /// what its server sends while the model thinks.
    pub idle_timeout: Duration,
    /// The time limit of a call, including waits and retries.
    pub call_timeout: Duration,
    /// The maximum number of attempts per call.
    pub attempts: usize,
    /// The wait before the second attempt.
    pub first_wait: Duration,
}

impl Config {
    /// The `claude` in `PATH`, with the default limits.
    pub fn new(directory: impl Into<PathBuf>, model: impl Into<String>) -> Self {
        Config {
            program: PROGRAM.into(),
            arguments: Vec::new(),
            directory: directory.into(),
            environment: child::inherit(INHERITED),
            model: model.into(),
            window: None,
            idle_timeout: DEFAULT_IDLE_TIMEOUT,
            call_timeout: DEFAULT_CALL_TIMEOUT,
            attempts: DEFAULT_ATTEMPTS,
            first_wait: DEFAULT_FIRST_WAIT,
        }
    }
}

/// `claude` as a model.
#[derive(Debug)]
pub struct ClaudeCli {
    config: Config,
    family: Family,
}

impl ClaudeCli {
    /// Creates the model. Nothing is started yet; a missing login shows at the first call.
    pub fn new(config: Config) -> Self {
        let family = families::anthropic::of_claude(&config.model);
        ClaudeCli { config, family }
    }

    fn spec(&self, request: &Request, deadline: Instant) -> Spec {
        let mut arguments = self.config.arguments.clone();
        arguments.extend(FLAGS.iter().chain(&["--model", &self.config.model]).map(OsString::from));
        arguments.extend(["--system-prompt", &request.system].map(OsString::from));
        let mut environment = self.config.environment.clone();
        let room = self.family.room(request, self.window()).to_string();
        let switches = SWITCHES.iter().copied().chain([("CLAUDE_CODE_MAX_OUTPUT_TOKENS", room.as_str())]);
        environment.extend(switches.map(|(name, value)| (name.into(), value.into())));
        Spec {
            environment,
            directory: Some(self.config.directory.clone()),
            input: prompt::flatten(&request.messages).into_bytes(),
            limits: Limits {
                wall_clock: deadline.saturating_duration_since(Instant::now()),
                max_line_bytes: MAX_EVENT_BYTES,
                // The lines are read while the program runs.
                max_stdout_bytes: 0,
                ..Limits::default()
            },
            ..Spec::new(&self.config.program, arguments)
        }
    }

    async fn attempt(&self, request: &Request, meter: &Meter, deadline: Instant) -> Result<Answer, ModelError> {
        let spec = self.spec(request, deadline);
        let mut metered = Metered { transcript: Transcript::default(), meter };
        let (cancel, heard, is_done) = (CancellationToken::new(), Notify::new(), Notify::new());
        let mut is_silent = false;
        let finished = {
            let mut run = pin!(child::run(&spec, &cancel, |line| {
                heard.notify_one();
                metered.transcript.push(line);
                if metered.transcript.has_result() {
                    is_done.notify_one();
                }
            }));
            tokio::select! {
                biased;
                finished = &mut run => finished,
                // The result is the last line; a `claude` that does not exit after it has nothing more to say.
                () = async { is_done.notified().await; sleep(EXIT_TIME).await } => {
                    cancel.cancel();
                    run.await
                }
                () = async { while timeout(self.config.idle_timeout, heard.notified()).await.is_ok() {} } => {
                    is_silent = true;
                    cancel.cancel();
                    run.await
                }
            }
        };
        let finished = finished.map_err(|error| self.not_started(&error))?;
        let answered = metered.transcript.finish().unwrap_or_else(|| {
            if is_silent {
                return Err(self.silence());
            }
            if finished.end == End::TimedOut {
                return Err(ModelError::not_done_within(self.config.call_timeout));
            }
            let stderr = finished.stderr.text();
            let said = pmk_core::text::collapse_whitespace(&stderr);
            let how = match finished.end {
                End::Exited(code) => format!("exit code {code}"),
                End::Signalled(signal) => format!("signal {signal}"),
                End::TimedOut | End::Cancelled => "killed".to_owned(),
            };
            let said = pmk_core::text::head(&said, MAX_SHOWN_CHARS);
            let program = self.config.program.to_string_lossy();
            Err(ModelError::new(ErrorClass::Other, format!("`{program}` ended without a result ({how}): {said}")))
        });
        answered.and_then(|answer| classify::accept(answer, self.window()))
    }

    /// The error of a `claude` that stalls. As over HTTP, it is not asked again.
    fn silence(&self) -> ModelError {
        ModelError::silent_for(self.config.idle_timeout)
    }

    fn not_started(&self, error: &SpawnError) -> ModelError {
        let hint = match error {
            SpawnError::NotFound { .. } => {
                "; install it with `npm install -g @anthropic-ai/claude-code`, or use `--model anthropic-api`"
            }
            _ => "",
        };
        ModelError::new(ErrorClass::Other, format!("{error}{hint}"))
    }

    /// `claude` would read a file in its working directory.
    fn prepare_directory(&self) -> Result<(), ModelError> {
        use std::os::unix::fs::DirBuilderExt;
        let directory = &self.config.directory;
        let is_empty = || -> io::Result<bool> {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
            Ok(fs::read_dir(directory)?.next().is_none())
        };
        let why = match is_empty() {
            Ok(true) => return Ok(()),
            Ok(false) => format!("`{}` must be empty for `claude` to run in; empty it", directory.display()),
            Err(error) => format!("`{}` cannot be used: {error}", directory.display()),
        };
        Err(ModelError::new(ErrorClass::Other, why))
    }
}

/// What `claude` prints in one attempt. Its cost is metered however the attempt ends, also if nobody waits for it any
/// longer.
struct Metered<'m> {
    transcript: Transcript,
    meter: &'m Meter,
}

impl Drop for Metered<'_> {
    fn drop(&mut self) {
        self.meter.add(self.transcript.spent());
    }
}

/// Exclude the host's configuration and make the output machine-readable.
const FLAGS: &[&str] = &[
    "-p",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--tools",
    "",
    "--setting-sources",
    "",
    "--strict-mcp-config",
    "--disable-slash-commands",
    "--no-session-persistence",
];

/// No file that a message mentions, no other traffic, no self-update, one retry, and no thinking by models that can do
/// without, as it would use tokens of the answer.
const SWITCHES: &[(&str, &str)] = &[
    ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("CLAUDE_CODE_MAX_RETRIES", "1"),
    ("MAX_THINKING_TOKENS", "0"),
];

#[async_trait]
impl Model for ClaudeCli {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn name(&self) -> &str {
        &self.config.model
    }

    fn window(&self) -> u64 {
        self.config.window.unwrap_or(self.family.window)
    }

    async fn ask(&self, request: &Request, meter: &Meter) -> Result<Answer, ModelError> {
        if request.system.len() > MAX_SYSTEM_BYTES {
            let message = format!(
                "the system prompt has {} bytes; `claude` accepts at most {MAX_SYSTEM_BYTES}",
                request.system.len()
            );
            return Err(ModelError::new(ErrorClass::Other, message));
        }
        self.prepare_directory()?;
        let deadline = Instant::now() + self.config.call_timeout;
        let backoff = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(self.config.first_wait)
            .with_max_times(self.config.attempts.saturating_sub(1));
        (|| self.attempt(request, meter, deadline))
            .retry(backoff)
            .when(|error| {
                // Neither a stalled one nor a whole answer is worth the same again.
                error.action().asks_the_same_again() && ![self.silence(), ModelError::too_large()].contains(error)
            })
            .adjust(|error, wait| error.wait(wait, MAX_WAIT, deadline))
            .notify(|error, wait| {
                tracing::warn!(
                    model = self.config.model,
                    class = error.class.name(),
                    wait_ms = wait.as_millis() as u64,
                    "the model call failed, retrying: {error}"
                );
            })
            .await
    }
}
