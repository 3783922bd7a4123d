//! Values of arguments and of the environment.

use std::{path::PathBuf, str::FromStr};

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
        Ok(0) | Err(_) => Err("expected a whole number of tokens, 1 or more".to_owned()),
        Ok(tokens) => Ok(tokens),
    }
}

/// How many of something on the command line, at least one.
pub(super) fn count<N: FromStr + Default + PartialEq>(text: &str) -> Result<N, String> {
    match text.parse() {
        Ok(count) if count != N::default() => Ok(count),
        _ => Err("expected a whole number, 1 or more".to_owned()),
    }
}

/// A number on the command line, which may be none.
pub(super) fn number<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| "expected a whole number".to_owned())
}

/// A number on the command line that has bounds.
pub(super) fn between<N: TryFrom<u64>>(least: u64, most: u64) -> impl Fn(&str) -> Result<N, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        let number = number.and_then(|number| N::try_from(number).ok());
        number.ok_or_else(|| format!("expected a whole number from {least} to {most}"))
    }
}

/// A variable of the environment; an empty one counts as not set.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}
