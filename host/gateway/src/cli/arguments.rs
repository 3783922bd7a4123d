//! Parses values of arguments and of the environment.

use std::{path::PathBuf, str::FromStr};

/// Where JSON is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Json {
    /// Nowhere: the output is text.
    No,
    /// To standard output, instead of text.
    Stdout,
    /// To a file, beside the text. A subcommand that accepts a file declares its own option.
    File(PathBuf),
}

impl Json {
    pub(super) fn of_flag(is_set: bool) -> Json {
        if is_set { Json::Stdout } else { Json::No }
    }
}

/// Parses the path of what is written: `-` would become a file of that name, and is meant as standard output.
pub(super) fn output_path(text: &str) -> Result<PathBuf, String> {
    match text {
        "-" => Err("specify a path: this cannot be written to standard output".to_owned()),
        path => Ok(path.into()),
    }
}

/// Parses a number of tokens, at least one.
pub(super) fn tokens(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected a whole number of tokens, 1 or more".to_owned()),
        Ok(tokens) => Ok(tokens),
    }
}

/// Parses a count, at least one.
pub(super) fn count<N: FromStr + Default + PartialEq>(text: &str) -> Result<N, String> {
    match text.parse() {
        Ok(count) if count != N::default() => Ok(count),
        _ => Err("expected a whole number, 1 or more".to_owned()),
    }
}

/// Parses a number, which may be 0.
pub(super) fn number<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| "expected a whole number".to_owned())
}

/// Parses a number with limits.
pub(super) fn between<N: TryFrom<u64>>(least: u64, most: u64) -> impl Fn(&str) -> Result<N, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        let number = number.and_then(|number| N::try_from(number).ok());
        number.ok_or_else(|| format!("expected a whole number from {least} to {most}"))
    }
}

/// Returns an environment variable; an empty one counts as not set.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}
