//! Which crates are policies: those under `plugins/` that are built as a `cdylib`.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::Error;

/// The workspace this program belongs to.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// Its top folder.
    pub root: PathBuf,
    /// Where cargo builds.
    pub target: PathBuf,
    /// Names of the policy crates, sorted.
    pub policies: Vec<String>,
    /// Where their sources are, and their components.
    pub folder: PathBuf,
    /// Whether it is this repository, whose components are all built in the same way; another project has its own.
    pub is_own: bool,
}

impl Workspace {
    /// This repository.
    ///
    /// # Errors
    /// When cargo fails, or answers something unexpected.
    pub fn find() -> Result<Workspace, Error> {
        Workspace::ask_cargo(Path::new(env!("CARGO_MANIFEST_DIR")), Some("plugins"))
    }

    /// A project of its own, as `pmk-host policy new` writes it.
    ///
    /// # Errors
    /// When cargo fails, or answers something unexpected.
    pub fn of_project(folder: &Path) -> Result<Workspace, Error> {
        Workspace::ask_cargo(folder, None)
    }

    fn ask_cargo(folder: &Path, plugins: Option<&str>) -> Result<Workspace, Error> {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command
            .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
            .arg(folder.join("Cargo.toml"));
        let output = command.output().map_err(|source| Error::Start { command: "cargo metadata".into(), source })?;
        if !output.status.success() {
            return Err(Error::Metadata(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        let metadata = serde_json::from_slice(&output.stdout).map_err(|error| Error::Metadata(error.to_string()))?;
        Workspace::of_metadata(&metadata, plugins).ok_or_else(|| Error::Metadata("a field is missing".into()))
    }

    fn of_metadata(metadata: &Value, plugins: Option<&str>) -> Option<Workspace> {
        let root = PathBuf::from(metadata["workspace_root"].as_str()?);
        let folder = plugins.map_or_else(|| root.clone(), |plugins| root.join(plugins));
        let mut policies = Vec::new();
        for package in metadata["packages"].as_array()? {
            let is_here = Path::new(package["manifest_path"].as_str()?).starts_with(&folder);
            let mut crate_types =
                package["targets"].as_array()?.iter().filter_map(|t| t["crate_types"].as_array()).flatten();
            if is_here && crate_types.any(|crate_type| crate_type == "cdylib") {
                policies.push(package["name"].as_str()?.to_owned());
            }
        }
        policies.sort();
        let target = PathBuf::from(metadata["target_directory"].as_str()?);
        Some(Workspace { root, target, policies, folder, is_own: plugins.is_some() })
    }

    /// The policies of these names, or all of them.
    ///
    /// # Errors
    /// A name that no policy has.
    pub fn select(&self, names: &[String]) -> Result<Vec<String>, Error> {
        if names.is_empty() {
            return Ok(self.policies.clone());
        }
        match names.iter().find(|name| !self.policies.contains(name)) {
            Some(name) => Err(Error::NoSuchPolicy { name: name.clone(), known: self.policies.join(", ") }),
            None => Ok(names.to_vec()),
        }
    }
}
