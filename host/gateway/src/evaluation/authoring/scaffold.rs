//! Writes a project for a policy that builds, is tested, and keeps the newest turns.
//!
//! The author reads and changes only a few files. Everything else is in one folder, [`VENDORED`]: the contract, and for
//! Rust the SDK, which is on no registry. The SDK is the one embedded in this program, unless the folder of another is
//! given.

mod embedded;
mod name;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use pmk_policy::contract;
use serde_json::Value;
use thiserror::Error;

pub use self::name::{Name, NameError};

/// The folder of a project with the files that need no attention.
pub const VENDORED: &str = "vendor";

/// The language that a policy is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// With the SDK, by cargo-component or plain cargo.
    Rust,
    /// By componentize-js.
    JavaScript,
    /// By componentize-py.
    Python,
}

/// Why no project was written.
#[derive(Debug, Error)]
pub enum ScaffoldError {
    /// Nothing is overwritten.
    #[error("`{}` already exists", .0.display())]
    Exists(PathBuf),
    /// The given folder contains no SDK.
    #[error("`{}` does not contain `pmk-policy-sdk`", .0.display())]
    NoSdk(PathBuf),
    /// The SDK is for Rust.
    #[error("only a Rust policy uses the SDK")]
    SdkIsForRust,
    /// A file could not be written.
    #[error("cannot write `{}`: {source}", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
}

impl ScaffoldError {
    /// Returns what to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            ScaffoldError::Exists(_) => "choose another name, or another parent folder",
            ScaffoldError::NoSdk(_) => "specify the folder `plugins/sdk` of pmk-host's sources, or omit `--sdk`",
            ScaffoldError::SdkIsForRust => "omit `--sdk`, or use `--lang rust`",
            ScaffoldError::Unwritable { .. } => "check that you can write there",
        }
    }
}

/// A written project.
#[derive(Debug)]
pub struct Written {
    /// Its folder.
    pub folder: PathBuf,
    /// The files for the author, sorted.
    pub own: Vec<String>,
    /// The number of files in [`VENDORED`].
    pub vendored: usize,
}

/// A project to be written.
#[derive(Debug)]
pub struct Project {
    name: Name,
    language: Language,
    /// The folder of an existing SDK.
    sdk: Option<PathBuf>,
}

impl Project {
    /// Describes a project; `sdk` is the folder of an SDK to use instead of the embedded one.
    ///
    /// # Errors
    /// There is no SDK in that folder, or the language does not use it.
    pub fn new(name: Name, language: Language, sdk: Option<&Path>) -> Result<Project, ScaffoldError> {
        let sdk = match sdk {
            None => None,
            Some(_) if language != Language::Rust => return Err(ScaffoldError::SdkIsForRust),
            Some(folder) => Some(find_sdk(folder)?),
        };
        Ok(Project { name, language, sdk })
    }

    /// Writes it into a new folder of its name.
    ///
    /// # Errors
    /// The folder already exists, or something cannot be written.
    pub fn write(&self, parent: &Path) -> Result<Written, ScaffoldError> {
        let folder = parent.join(self.name.as_str());
        fs::create_dir(&folder).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => ScaffoldError::Exists(folder.clone()),
            _ => ScaffoldError::Unwritable { path: folder.clone(), source },
        })?;
        let files = self.files();
        for (name, content) in &files {
            let path = folder.join(name);
            let made = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, content));
            made.map_err(|source| ScaffoldError::Unwritable { path, source })?;
        }
        let (vendored, mut own): (Vec<String>, Vec<String>) =
            files.into_iter().map(|(name, _)| name).partition(|name| is_vendored(name));
        own.sort();
        Ok(Written { folder, own, vendored: vendored.len() })
    }

    /// Returns the next commands to run, one per line.
    pub fn next_steps(&self) -> Vec<String> {
        let name = self.name.as_str();
        let steps: Vec<String> = match self.language {
            Language::Rust => vec!["cargo test".into(), "pmk-host policy dev".into()],
            Language::JavaScript => vec!["npm install".into(), "npm test".into(), "pmk-host policy dev".into()],
            Language::Python => vec![
                "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt".into(),
                "python3 -m unittest tests.test_newest".into(),
                "pmk-host policy dev".into(),
            ],
        };
        std::iter::once(format!("cd {name}")).chain(steps).collect()
    }

    /// Returns all files, by their path in the project.
    fn files(&self) -> Vec<(String, String)> {
        match self.language {
            Language::Rust => {
                let own = self.template("rust").into_iter();
                let own = own.filter(|(path, _)| self.sdk.is_none() || !is_vendored(path));
                let brought: &[(&str, &str)] = if self.sdk.is_none() { &embedded::RUST } else { &[] };
                own.chain(embedded::copies(brought)).collect()
            }
            Language::JavaScript => self.with_contract("js"),
            Language::Python => self.with_contract("python"),
        }
    }

    fn with_contract(&self, template: &str) -> Vec<(String, String)> {
        self.template(template).into_iter().chain(embedded::copies(&embedded::OTHERS)).collect()
    }

    /// Returns the files of a template, with the values filled in.
    fn template(&self, language: &str) -> Vec<(String, String)> {
        let (sdk, wit) = match &self.sdk {
            None => (format!("{VENDORED}/rust/sdk"), format!("{VENDORED}/wit/policy.wit")),
            Some(sdk) => (sdk.display().to_string(), sdk.join("../../wit/policy.wit").display().to_string()),
        };
        let values = [
            ("{{name}}", self.name.as_str().to_owned()),
            ("{{crate}}", self.name.library()),
            ("{{Type}}", self.name.type_name()),
            // TOML strings are quoted like JSON strings.
            ("\"{{sdk}}\"", Value::from(sdk).to_string()),
            ("{{wit}}", wit),
            ("{{contract}}", contract::VERSION.to_owned()),
            ("{{version}}", env!("CARGO_PKG_VERSION").to_owned()),
        ];
        let root = format!("plugins/templates/{language}/");
        let filled = |content: String| values.iter().fold(content, |text, (name, value)| text.replace(name, value));
        embedded::copies(&[(&root, "")]).map(|(path, content)| (path, filled(content))).collect()
    }
}

fn is_vendored(path: &str) -> bool {
    Path::new(path).starts_with(VENDORED)
}

/// Returns the absolute path of an SDK.
fn find_sdk(folder: &Path) -> Result<PathBuf, ScaffoldError> {
    let none = || ScaffoldError::NoSdk(folder.to_owned());
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).map_err(|_| none())?;
    if !manifest.lines().any(|line| line.trim() == "name = \"pmk-policy-sdk\"") {
        return Err(none());
    }
    folder.canonicalize().map_err(|_| none())
}

#[cfg(test)]
mod tests;
