//! Which components may be loaded.

use std::collections::BTreeSet;

use crate::{contract, error::LoadError};

/// What the operator trusts. Every component runs within its limits; this is for operators who also want to control
/// which components run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// SHA-256 digests of the components that may be loaded, lower-case hexadecimal; `None` for any.
    pub allow: Option<BTreeSet<String>>,
    /// Whether a component may import WASI, which is linked but denies everything. If false, a component that imports
    /// anything beyond the contract is refused.
    pub wasi: bool,
}

impl Default for Trust {
    fn default() -> Self {
        Trust { allow: None, wasi: true }
    }
}

impl Trust {
    /// Checks whether a component with this digest may be loaded; called before it is compiled.
    pub(crate) fn admit(&self, file: &str, sha256: &str) -> Result<(), LoadError> {
        match &self.allow {
            Some(allow) if !allow.contains(sha256) => {
                Err(LoadError::NotAllowed { file: file.to_owned(), sha256: sha256.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Checks whether a component with these imports may be loaded.
    pub(crate) fn admit_imports(&self, file: &str, imports: &[String]) -> Result<(), LoadError> {
        match imports.iter().find(|import| !self.wasi && !contract::is_of(import)) {
            Some(import) => Err(LoadError::NoWasi { file: file.to_owned(), import: import.clone() }),
            None => Ok(()),
        }
    }
}
