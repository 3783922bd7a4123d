//! Why a model cannot be opened.

use pmk_system::error::Failure;
use thiserror::Error;

use super::claude_cli;

/// Why a model cannot be opened.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OpenError {
    /// The part before the colon is not a provider.
    #[error("unknown model provider `{0}`; use `claude-cli[:NAME]`, `anthropic-api[:NAME]`, `openai[:NAME]` or `sim`")]
    UnknownProvider(String),
    /// Nothing follows the colon.
    #[error("the model's name is missing after `{0}:`")]
    EmptyName(&'static str),
    /// The settings after `sim:` are invalid; says why.
    #[error("invalid settings after `sim:`: {0}")]
    BadSim(String),
    /// `--window 0`.
    #[error("a context window of 0 tokens leaves no room for a prompt")]
    EmptyWindow,
    /// The environment has no key for it.
    #[error("`{provider}` needs a key, but {variable} is not set")]
    MissingKey {
        /// The provider's name on the command line.
        provider: &'static str,
        /// The variable for its key.
        variable: &'static str,
    },
    /// `claude` is not installed.
    #[error("`{}` needs the program `{}`, which is not on the PATH", claude_cli::PROVIDER, claude_cli::PROGRAM)]
    NoProgram,
    /// The key cannot be sent in a header.
    #[error("the key of the model provider contains invalid characters")]
    BadKey,
    /// An address that may not be used.
    #[error("`{variable}` {why}")]
    BadBaseUrl {
        /// The variable or option with the address.
        variable: &'static str,
        /// What is wrong with it, as the rest of a sentence.
        why: &'static str,
    },
    /// The HTTP client cannot be created; says why.
    #[error("cannot prepare a connection to a model: {0}")]
    Client(String),
}

impl OpenError {
    /// What the user can do about it.
    const fn hint(&self) -> &'static str {
        match self {
            OpenError::UnknownProvider(_) => "use `--model anthropic-api`, or `--model sim`, which needs no key",
            OpenError::EmptyName(_) => "omit the colon for the default model, or name one: `anthropic-api:NAME`",
            OpenError::BadSim(_) => {
                "use `--model sim`, or `sim:factor=2.5,overhead=20000,delay=50` to count 2.5 tokens for one of ours \
                 plus 20,000, and take 50 ms; `--window N` sets its window"
            }
            OpenError::EmptyWindow => "set `--window` to the model's context window in tokens, for example 200000",
            OpenError::MissingKey { .. } => {
                "set it, or `apiKey` in gateway.json, or use `--model claude-cli`, which uses the login of `claude`, or `--model sim`, which needs none"
            }
            OpenError::NoProgram => {
                "install Claude Code and log in, or use `--model anthropic-api`, or `--model sim`, which needs nothing"
            }
            OpenError::BadKey => "copy the key again, without quotes or line breaks",
            OpenError::BadBaseUrl { .. } => {
                "use an address like `https://api.anthropic.com`, or `https://api.openai.com/v1` for OPENAI_BASE_URL; \
                 with a key, `http://` is only for 127.0.0.1, [::1] and localhost"
            }
            OpenError::Client(_) => "check the machine's TLS certificates, such as the package `ca-certificates`",
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Failure::new(&error).hint(error.hint())
    }
}
