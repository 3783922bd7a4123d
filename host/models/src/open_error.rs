//! Why a model cannot be opened.

use pmk_system::error::Failure;
use thiserror::Error;

use super::claude_cli;

/// Why a model cannot be opened.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OpenError {
    /// What stands before the colon names none.
    #[error(
        "`{0}` is no model provider; there are `claude-cli[:NAME]`, `anthropic-api[:NAME]`, `openai[:NAME]` and `sim`"
    )]
    UnknownProvider(String),
    /// A colon, and nothing after it.
    #[error("`{0}:` lacks the model's name")]
    EmptyName(&'static str),
    /// What stands after `sim:` is not understood; says why.
    #[error("`sim:` is followed by how the stand-in behaves: {0}")]
    BadSim(String),
    /// `--window 0`.
    #[error("a context window of 0 tokens leaves no room for a prompt")]
    EmptyWindow,
    /// The environment has no key for it.
    #[error("`{provider}` needs a key, and {variable} is not set")]
    MissingKey {
        /// The provider's name on the command line.
        provider: &'static str,
        /// Where its key is looked for.
        variable: &'static str,
    },
    /// `claude` is not installed.
    #[error("`{}` needs the program `{}`, which is not on the PATH", claude_cli::PROVIDER, claude_cli::PROGRAM)]
    NoProgram,
    /// No header can hold the key.
    #[error("the key of the model provider holds characters that no key has")]
    BadKey,
    /// An address that nothing is sent to.
    #[error("{variable} {why}")]
    BadBaseUrl {
        /// The variable that names it.
        variable: &'static str,
        /// What is wrong with it, as the rest of a sentence.
        why: &'static str,
    },
    /// No HTTP client can be built; says why.
    #[error("no connection to a model can be prepared: {0}")]
    Client(String),
}

impl OpenError {
    /// What to do about it.
    const fn hint(&self) -> &'static str {
        match self {
            OpenError::UnknownProvider(_) => "take `--model anthropic-api`, or `--model sim`, which needs no key",
            OpenError::EmptyName(_) => "leave the colon out for the default model, or name one: `anthropic-api:NAME`",
            OpenError::BadSim(_) => {
                "write `--model sim`, or `sim:factor=2.5,overhead=20000,delay=50` for one that counts 2.5 tokens for one of \
                 ours and 20,000 more, and takes 50 ms; `--window N` sets its window"
            }
            OpenError::EmptyWindow => "give `--window` the model's context window in tokens, such as 200000",
            OpenError::MissingKey { .. } => {
                "set it, or `apiKey` in gateway.json, or take `--model claude-cli`, which uses the login of `claude`, or `--model sim`, which needs none"
            }
            OpenError::NoProgram => {
                "install Claude Code and log in, or take `--model anthropic-api`, or `--model sim`, which needs nothing"
            }
            OpenError::BadKey => "copy the key again, without quotes or line breaks",
            OpenError::BadBaseUrl { .. } => {
                "give an address like `https://api.anthropic.com`, or `https://api.openai.com/v1` for OPENAI_BASE_URL; with a key, `http://` is for 127.0.0.1, [::1] and \
                 localhost alone"
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
