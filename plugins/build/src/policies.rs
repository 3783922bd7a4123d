//! Finds the policies: the crates under `plugins/` that are built as a `cdylib`.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::Error;

/// The workspace of the policies.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// Its root folder.
    pub root: PathBuf,
    /// Cargo's target folder.
    pub target: PathBuf,
    /// Names of the policy crates, sorted.
    pub policies: Vec<String>,
    /// The folder of their sources and components.
    pub folder: PathBuf,
    /// Whether it is this repository, whose components are all built in the same way, or somebody's own project.
    pub is_own: bool,
}

impl Workspace {
    /// Finds this repository.
    ///
    /// # Errors
    /// If cargo fails, or prints something unexpected.
    pub fn find() -> Result<Workspace, Error> {
        Workspace::ask_cargo(Path::new(env!("CARGO_MANIFEST_DIR")), Some("plugins"))
    }

    /// Finds a separate project, as `pmk-host policy new` creates it.
    ///
    /// # Errors
    /// If cargo fails, or prints something unexpected.
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
            return Err(Error::NoMetadata(in_one_line(&String::from_utf8_lossy(&output.stderr))));
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

    /// The policies with these names; all of them if none is given.
    ///
    /// # Errors
    /// If there is no policy with one of the names.
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

/// What another program printed of its failure, in one line: its first error, or else its first line, with the place
/// and the first cause that it names.
fn in_one_line(printed: &str) -> String {
    let lines: Vec<&str> = printed.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let error = lines.iter().position(|line| line.starts_with("error: ")).unwrap_or(0);
    let mut lines = lines.into_iter().skip(error).peekable();
    let first = lines.next().unwrap_or("it printed nothing");
    let mut first = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    if let Some(place) = lines.peek().and_then(|line| line.strip_prefix("--> ")) {
        first = format!("{place}: {first}");
    }
    match lines.find(|line| *line == "Caused by:").and_then(|_| lines.next()) {
        Some(cause) => format!("{first}: {cause}"),
        None => first,
    }
}
