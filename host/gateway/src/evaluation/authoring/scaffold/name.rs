//! A name that is valid for a policy, a crate, an npm package and a file.

use std::{path::Path, str::FromStr};

use pmk_policy::{FLOOR, description::MAX_NAME_CHARS};
use thiserror::Error;

use crate::embedded;

/// Names that cargo does not allow for a package, and those that the project itself uses for something else.
#[rustfmt::skip]
const RESERVED: &[&str] = &[
    "abstract", "alloc", "as", "async", "await", "become", "box", "break", "budget", "build", "const",
    "continue", "conversation", "core", "crate", "deps", "description", "do", "dyn", "else", "enum",
    "examples", "extern", "false", "final", "fn", "for", "gen", "harness", "if", "impl", "in", "incremental",
    "integer-setting", "let", "loop", "macro", "match", "mod", "move", "override", "plan", "pmk-core",
    "pmk-policy-sdk", "pmk-search", "policy", "priv", "proc-macro", "prune", "pub", "ref", "return", "self",
    "static", "std", "struct", "super", "test", "trait", "transcript", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "wit-bindgen", "yield",
];

/// A valid name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

/// Why a name is invalid.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NameError {
    /// It is not made of the allowed characters, which operators can type.
    #[error("`{0}` is not a valid policy name")]
    Malformed(String),
    /// It already has another meaning.
    #[error("the name `{0}` is reserved")]
    Reserved(String),
}

impl NameError {
    /// Returns what to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            NameError::Malformed(_) => {
                "a name is 1 to 64 characters of `a-z 0-9 -`, begins with a letter and ends with a letter or a digit"
            }
            NameError::Reserved(_) => "choose another name",
        }
    }
}

/// Whether a name has another meaning: no host loads a policy that is called like the host's own decisions, and the
/// name of a bundled policy means that one.
fn is_reserved(name: &str) -> bool {
    name == FLOOR || embedded::component(Path::new(name)).is_some() || RESERVED.contains(&name)
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Name, NameError> {
        let is_good = (1..=MAX_NAME_CHARS).contains(&name.len())
            && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
            && name.starts_with(|first: char| first.is_ascii_lowercase())
            && !name.ends_with('-')
            && !name.contains("--");
        match is_good {
            false => Err(NameError::Malformed(name.to_owned())),
            true if is_reserved(name) => Err(NameError::Reserved(name.to_owned())),
            true => Ok(Name(name.to_owned())),
        }
    }
}

impl Name {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of the Rust crate.
    pub fn library(&self) -> String {
        self.0.replace('-', "_")
    }

    /// Returns the name of the Rust type.
    pub fn type_name(&self) -> String {
        let capitalised = |word: &str| {
            let (first, rest) = word.split_at(word.len().min(1));
            first.to_uppercase() + rest
        };
        self.0.split('-').map(capitalised).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_good_everywhere() {
        let name: Name = "newest-2-turns".parse().expect("a name");
        assert_eq!((name.library().as_str(), name.type_name().as_str()), ("newest_2_turns", "Newest2Turns"));
        for bad in ["", "-a", "a-", "a--b", "2nd", "Newest", "a b", "a/b", "..", "預算", &"x".repeat(65)] {
            assert_eq!(bad.parse::<Name>(), Err(NameError::Malformed(bad.to_owned())), "{bad}");
        }
        assert!(RESERVED.is_sorted());
    }

    #[test]
    fn a_name_that_already_means_something_is_refused() {
        for taken in ["match", "floor", "standard", "strict", "recall", "caps", "tool-lean", "facts-summary"] {
            assert_eq!(taken.parse::<Name>(), Err(NameError::Reserved(taken.into())), "{taken}");
        }
    }
}
