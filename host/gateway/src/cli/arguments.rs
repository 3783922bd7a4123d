//! Values of arguments and of the environment.

use std::path::PathBuf;

/// Where JSON goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Json {
    /// Nowhere: people read text.
    No,
    /// To standard output, in the place of text.
    Stdout,
    /// To a file, beside the text. A subcommand that takes one says so.
    File(PathBuf),
}

impl Json {
    pub(super) fn of_flag(is_set: bool) -> Json {
        if is_set { Json::Stdout } else { Json::No }
    }
}

/// A number of tokens on the command line.
pub(super) fn tokens(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("give a whole number of tokens, 1 or more".to_owned()),
        Ok(tokens) => Ok(tokens),
    }
}

/// A variable of the environment; an empty one counts as not set.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}
