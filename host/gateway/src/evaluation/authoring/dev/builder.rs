//! Builds a project into a component: with the author's command, or else as the files in its folder suggest.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use build_plugins::{Component, Target, Toolchain, Workspace, guest};
use pmk_policy::LoadError;
use pmk_system::{
    child::{self, End, Limits, SpawnError, Spec},
    files,
};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

/// The first build of a project may have to compile the standard library as well.
const WALL_CLOCK: Duration = Duration::from_secs(3_600);

/// How much of the compiler output is kept, from its start and from its end.
const SAID_BYTES: usize = 256 << 10;

/// The largest component, and the largest core module.
const MOST_BYTES: u64 = 64 << 20;

/// The first bytes of a core module; a component has another version.
const CORE_MODULE: &[u8] = b"\0asm\x01\0\0\0";

/// Why a project cannot be built at all.
#[derive(Debug, Error)]
pub enum BuilderError {
    /// There is no such folder.
    #[error("folder `{}` does not exist", .0.display())]
    NoFolder(PathBuf),
    /// The folder has no known project file.
    #[error("cannot tell how to build `{}`", .0.display())]
    Unknown(PathBuf),
    /// One component is made of one crate.
    #[error("`{}` has {count} crates that are built as a component", folder.display())]
    NotOne { folder: PathBuf, count: usize },
    /// A tool is missing, such as a toolchain for wasm.
    #[error("{what}")]
    Tools { what: String, hint: Option<String> },
}

impl BuilderError {
    /// Returns what to do about it, where the error itself does not say so.
    pub fn hint(&self) -> Option<&str> {
        Some(match self {
            BuilderError::NoFolder(_) => "specify the folder of a project, such as `pmk-host policy new` creates",
            BuilderError::Unknown(_) => {
                "add a `Cargo.toml`, `package.json` or `build.py`, or use `--build COMMAND --component FILE`"
            }
            BuilderError::NotOne { .. } => "specify the folder of one crate with `crate-type = [\"cdylib\", \"rlib\"]`",
            BuilderError::Tools { hint, .. } => return hint.as_deref(),
        })
    }
}

impl From<build_plugins::Error> for BuilderError {
    fn from(error: build_plugins::Error) -> BuilderError {
        let hint = match &error {
            build_plugins::Error::Start { .. } => Some(
                "install Rust, and choose a toolchain with `rustup default stable`; or use `--build COMMAND --component \
                 FILE`",
            ),
            build_plugins::Error::NoMetadata(_) => Some(
                "correct the project's `Cargo.toml`, or choose a toolchain with `rustup default stable`; or use `--build \
                 COMMAND --component FILE`",
            ),
            _ => None,
        };
        let text = error.to_string();
        let (what, own_hint) = text.split_once("\nhint: ").map_or((&*text, None), |(what, hint)| (what, Some(hint)));
        BuilderError::Tools { what: what.to_owned(), hint: own_hint.or(hint).map(str::to_owned) }
    }
}

/// Why a build produced no component.
#[derive(Debug, Error)]
pub enum BuildError {
    /// It was cancelled.
    #[error("the build was cancelled")]
    Stopped,
    /// The command cannot be started.
    #[error(transparent)]
    Start(#[from] SpawnError),
    /// The command failed.
    #[error("`{what}` failed")]
    Failed {
        /// What was run.
        what: String,
        /// Its output.
        said: String,
    },
    /// The command succeeded, but the file does not exist.
    #[error("`{what}` produced no component: `{}`: {source}", file.display())]
    Nothing { what: String, file: PathBuf, source: io::Error },
    /// The file is not a component, and cannot be made into one.
    #[error("{source}")]
    NoComponent { source: build_plugins::Error, hint: Option<String> },
    /// The component cannot be written to its place.
    #[error("cannot write `{}`: {source}", file.display())]
    Unwritable { file: PathBuf, source: io::Error },
}

/// Builds one project.
#[derive(Debug)]
pub struct Builder {
    /// The name of what is run.
    what: String,
    command: Command,
    /// The output file of the build.
    artifact: PathBuf,
    /// The path of the last good component, for use in a gateway.
    component: PathBuf,
    /// The folder in which a core module is made into a component.
    scratch: tempfile::TempDir,
}

impl Builder {
    /// Uses a shell command, and the component that it produces; both relative to the project's folder.
    ///
    /// # Errors
    /// There is no such folder.
    pub fn given(folder: &Path, build: &str, component: &Path) -> Result<Builder, BuilderError> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", build]).current_dir(existing(folder)?);
        Builder::beside(build, command, folder.join(component))
    }

    /// Detects how to build a project: Rust with cargo-component if it is usable, else with plain cargo; JavaScript and
    /// Python as `policy new` sets them up.
    ///
    /// # Errors
    /// The folder has no known project file, or a required tool is missing.
    pub fn find(folder: &Path) -> Result<Builder, BuilderError> {
        existing(folder)?;
        if folder.join("Cargo.toml").exists() {
            return Builder::cargo(folder);
        }
        let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let (what, script, mut command) = if folder.join("package.json").exists() {
            let mut npm = Command::new("npm");
            npm.args(["run", "--silent", "build"]);
            ("npm run build", "build.mjs", npm)
        } else if folder.join("build.py").exists() {
            let own = absolute.join(".venv/bin/python");
            let mut python = Command::new(if own.exists() { own } else { "python3".into() });
            python.arg("build.py");
            ("build.py", "build.py", python)
        } else {
            return Err(BuilderError::Unknown(folder.to_owned()));
        };
        command.current_dir(folder);
        // The folder may be called otherwise, like that of a clone.
        let component = written_by(&folder.join(script)).unwrap_or_else(|| {
            let name = absolute.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            format!("{name}.wasm")
        });
        Builder::beside(what, command, folder.join(component))
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
        Builder::of(what, build.command, build.artifact, kept)
    }

    /// Keeps good builds beside the output file, which a build that fails its check replaces as well.
    fn beside(what: &str, command: Command, artifact: PathBuf) -> Result<Builder, BuilderError> {
        let kept = artifact.with_extension("good.wasm");
        Builder::of(what, command, artifact, kept)
    }

    fn of(what: &str, command: Command, artifact: PathBuf, component: PathBuf) -> Result<Builder, BuilderError> {
        let scratch =
            tempfile::tempdir().map_err(|source| build_plugins::Error::File { path: std::env::temp_dir(), source })?;
        Ok(Builder { what: what.to_owned(), command, artifact, component, scratch })
    }

    /// Returns the name of what is run.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns the path of the last good component.
    pub fn component(&self) -> &Path {
        &self.component
    }

    /// Returns the files that builds write, which are no sources.
    pub fn written(&self) -> [PathBuf; 2] {
        [self.artifact.clone(), self.component.clone()]
    }

    /// Runs the build and returns the file to load. Dropping the future or cancelling the token ends the build with all
    /// its child processes.
    ///
    /// # Errors
    /// [`BuildError`] contains the compiler output.
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
        let component = Component::of_module(&self.what, &bytes).map_err(|source| self.no_component(source, &bytes))?;
        fs::write(&file, component.bytes).map_err(|source| BuildError::Unwritable { file: file.clone(), source })?;
        Ok(file)
    }

    /// The error for a core module that cannot be made into a component.
    fn no_component(&self, source: build_plugins::Error, module: &[u8]) -> BuildError {
        let refused = LoadError::core_module(&self.artifact.display().to_string(), module);
        // What else may be wrong with a module, its error says.
        let hint = match refused {
            LoadError::CoreModule { needs_adapter: true, .. } => refused.hint(),
            _ => None,
        };
        BuildError::NoComponent { source, hint }
    }

    /// Replaces the last good component, atomically.
    ///
    /// # Errors
    /// It cannot be written there.
    pub fn keep(&self, built: &Path) -> Result<(), BuildError> {
        let unwritable = |source| BuildError::Unwritable { file: self.component.clone(), source };
        let folder = self.component.parent().unwrap_or(Path::new("."));
        // With the usual permissions: the gateway that runs it may belong to another user.
        let readable = fs::Permissions::from_mode(0o666);
        let mut beside = tempfile::Builder::new().permissions(readable).tempfile_in(folder).map_err(unwritable)?;
        let (mut built, _) = files::open(built).map_err(|why| unwritable(why.into()))?;
        io::copy(&mut built, &mut beside).map_err(unwritable)?;
        beside.persist(&self.component).map_err(|error| unwritable(error.error))?;
        Ok(())
    }

    /// The command, in this environment with its additions.
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

/// Returns the component that a build script names, the last one as its result comes last.
fn written_by(script: &Path) -> Option<String> {
    let script = files::read_text(script).ok()?;
    let mut quoted = script.split(['"', '\'']).filter(|text| !text.contains(char::is_whitespace));
    quoted.rfind(|text| text.len() > ".wasm".len() && text.ends_with(".wasm")).map(str::to_owned)
}

fn existing(folder: &Path) -> Result<&Path, BuilderError> {
    if folder.is_dir() { Ok(folder) } else { Err(BuilderError::NoFolder(folder.to_owned())) }
}
