//! How a project becomes a component: as its author says, else as what lies in its folder tells.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use build_plugins::{Component, Target, Toolchain, Workspace, guest};
use pmk_system::{
    child::{self, End, Limits, SpawnError, Spec},
    files,
};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

/// The first build of a project makes the standard library, too, where it has to.
const WALL_CLOCK: Duration = Duration::from_secs(3_600);

/// How much of what a compiler says is kept, from its end and from its start.
const SAID_BYTES: usize = 256 << 10;

/// No component is larger than this, and no module that one is made of.
const MOST_BYTES: u64 = 64 << 20;

/// How a core module begins; a component has another version.
const CORE_MODULE: &[u8] = b"\0asm\x01\0\0\0";

/// Why a project cannot be built at all.
#[derive(Debug, Error)]
pub enum BuilderError {
    /// There is no such folder.
    #[error("folder `{}` does not exist", .0.display())]
    NoFolder(PathBuf),
    /// Nothing in it is known.
    #[error("cannot tell how to build `{}`", .0.display())]
    Unknown(PathBuf),
    /// One component is made of one crate.
    #[error("`{}` has {count} crates that are built as a component", folder.display())]
    NotOne { folder: PathBuf, count: usize },
    /// No toolchain for wasm, for one.
    #[error(transparent)]
    Tools(#[from] build_plugins::Error),
}

impl BuilderError {
    /// What to do about it, where the error does not say it itself.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            BuilderError::NoFolder(_) => Some("specify the folder of a project, such as `pmk-host policy new` creates"),
            BuilderError::Unknown(_) => {
                Some("add a `Cargo.toml`, `package.json` or `build.py`, or use `--build COMMAND --component FILE`")
            }
            BuilderError::NotOne { .. } => {
                Some("specify the folder of one crate with `crate-type = [\"cdylib\", \"rlib\"]`")
            }
            BuilderError::Tools(_) => None,
        }
    }
}

/// Why there is no component this time.
#[derive(Debug, Error)]
pub enum BuildError {
    /// It was called off.
    #[error("the build was cancelled")]
    Stopped,
    /// It cannot be run.
    #[error(transparent)]
    Start(#[from] SpawnError),
    /// It ran, and failed.
    #[error("`{what}` failed")]
    Failed {
        /// What was run.
        what: String,
        /// What it said, as it said it.
        said: String,
    },
    /// It is done, and nothing is there.
    #[error("`{what}` produced no component: `{}`: {source}", file.display())]
    Nothing { what: String, file: PathBuf, source: io::Error },
    /// What is there is no component, and cannot be made one.
    #[error(transparent)]
    NoComponent(#[from] build_plugins::Error),
    /// It cannot be put where it belongs.
    #[error("cannot write `{}`: {source}", file.display())]
    Unwritable { file: PathBuf, source: io::Error },
}

/// Builds one project.
#[derive(Debug)]
pub struct Builder {
    /// What is run, as people know it.
    what: String,
    command: Command,
    /// What the build leaves.
    artifact: PathBuf,
    /// Where the last good component is, for whoever runs it.
    component: PathBuf,
    /// Where a core module is made a component.
    scratch: tempfile::TempDir,
}

impl Builder {
    /// A command for the shell, and the component that it leaves; both in the project's folder.
    ///
    /// # Errors
    /// There is no such folder.
    pub fn given(folder: &Path, build: &str, component: &Path) -> Result<Builder, BuilderError> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", build]).current_dir(existing(folder)?);
        Builder::of(build, command, folder.join(component), None)
    }

    /// As the project looks: Rust with cargo-component where it can be used, else with plain cargo; JavaScript and Python
    /// as `policy new` sets them up.
    ///
    /// # Errors
    /// Nothing in the folder says how, or what is needed for it is missing.
    pub fn find(folder: &Path) -> Result<Builder, BuilderError> {
        existing(folder)?;
        if folder.join("Cargo.toml").exists() {
            return Builder::cargo(folder);
        }
        let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let name = absolute.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let component = folder.join(format!("{name}.wasm"));
        let (what, mut command) = if folder.join("package.json").exists() {
            let mut npm = Command::new("npm");
            npm.args(["run", "--silent", "build"]);
            ("npm run build", npm)
        } else if folder.join("build.py").exists() {
            let own = absolute.join(".venv/bin/python");
            let mut python = Command::new(if own.exists() { own } else { "python3".into() });
            python.arg("build.py");
            ("build.py", python)
        } else {
            return Err(BuilderError::Unknown(folder.to_owned()));
        };
        command.current_dir(folder);
        Builder::of(what, command, component, None)
    }

    fn cargo(folder: &Path) -> Result<Builder, BuilderError> {
        let workspace = Workspace::of_project(folder)?;
        let [policy] = &workspace.policies[..] else {
            return Err(BuilderError::NotOne { folder: folder.to_owned(), count: workspace.policies.len() });
        };
        let by_component = Toolchain::find(Target::Wasip1).and_then(|toolchain| {
            guest::component(&workspace, &toolchain, policy).map(|build| ("cargo component", build))
        });
        let plainly = || {
            let toolchain = Toolchain::find(Target::Unknown)?;
            Ok::<_, build_plugins::Error>(("cargo", guest::module(&workspace, &toolchain, policy)))
        };
        let (what, build) = by_component.or_else(|_| plainly())?;
        let kept = workspace.target.join(format!("{policy}.wasm"));
        Builder::of(what, build.command, build.artifact, Some(kept))
    }

    fn of(what: &str, command: Command, artifact: PathBuf, kept: Option<PathBuf>) -> Result<Builder, BuilderError> {
        let scratch =
            tempfile::tempdir().map_err(|source| build_plugins::Error::File { path: std::env::temp_dir(), source })?;
        let component = kept.unwrap_or_else(|| artifact.clone());
        Ok(Builder { what: what.to_owned(), command, artifact, component, scratch })
    }

    /// What is run.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Where the last good component is.
    pub fn component(&self) -> &Path {
        &self.component
    }

    /// Builds, and says which file to load. Dropping the future, or the token, ends it with all that it started.
    ///
    /// # Errors
    /// [`BuildError`] says what the compiler said.
    pub async fn build(&self, stop: &CancellationToken) -> Result<PathBuf, BuildError> {
        let finished = child::run(&self.spec(), stop, |_| ()).await?;
        match finished.end {
            End::Exited(0) => {}
            End::Cancelled => return Err(BuildError::Stopped),
            End::Exited(_) | End::Signalled(_) | End::TimedOut => {
                let said = [finished.stdout, finished.stderr].map(|said| said.text().trim_end().to_owned());
                let said: Vec<String> = said.into_iter().filter(|said| !said.is_empty()).collect();
                return Err(BuildError::Failed { what: self.what.clone(), said: said.join("\n") });
            }
        }
        let nothing = |why: files::FileReadError| BuildError::Nothing {
            what: self.what.clone(),
            file: self.artifact.clone(),
            source: why.into(),
        };
        let bytes = files::read(&self.artifact, MOST_BYTES).map_err(nothing)?;
        if !bytes.starts_with(CORE_MODULE) {
            return Ok(self.artifact.clone());
        }
        let file = self.scratch.path().join("component.wasm");
        let component = Component::of_module(&self.what, &bytes)?;
        fs::write(&file, component.bytes).map_err(|source| BuildError::Unwritable { file: file.clone(), source })?;
        Ok(file)
    }

    /// Puts a component that is good where the last good one is: whole, or not at all.
    ///
    /// # Errors
    /// It cannot be written there.
    pub fn keep(&self, built: &Path) -> Result<(), BuildError> {
        if built == self.component {
            return Ok(());
        }
        let unwritable = |source| BuildError::Unwritable { file: self.component.clone(), source };
        let folder = self.component.parent().unwrap_or(Path::new("."));
        // As any file of this user: the gateway that runs it may be somebody else's.
        let readable = fs::Permissions::from_mode(0o666);
        let mut beside = tempfile::Builder::new().permissions(readable).tempfile_in(folder).map_err(unwritable)?;
        let (mut built, _) = files::open(built).map_err(|why| unwritable(why.into()))?;
        io::copy(&mut built, &mut beside).map_err(unwritable)?;
        beside.persist(&self.component).map_err(|error| unwritable(error.error))?;
        Ok(())
    }

    /// The command, with this environment and what it adds to it.
    fn spec(&self) -> Spec {
        let changed: Vec<(OsString, Option<OsString>)> =
            self.command.get_envs().map(|(name, value)| (name.to_owned(), value.map(OsString::from))).collect();
        let inherited = std::env::vars_os().filter(|(name, _)| !changed.iter().any(|(other, _)| other == name));
        let added = changed.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
        Spec {
            environment: inherited.chain(added).collect(),
            directory: self.command.get_current_dir().map(Path::to_owned),
            limits: Limits {
                wall_clock: WALL_CLOCK,
                max_stdout_bytes: SAID_BYTES,
                max_stderr_bytes: SAID_BYTES,
                ..Limits::default()
            },
            ..Spec::new(self.command.get_program(), self.command.get_args())
        }
    }
}

fn existing(folder: &Path) -> Result<&Path, BuilderError> {
    if folder.is_dir() { Ok(folder) } else { Err(BuilderError::NoFolder(folder.to_owned())) }
}
