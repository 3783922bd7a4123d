//! Runs cargo for wasm. All configuration of a guest build is in its environment, so that the host's configuration is
//! neither used nor changed. A [`Build`] is run by its caller: to its end, or by an interactive tool that may abandon
//! it.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Error, Target, Toolchain, Workspace};

/// The release profile of components: one codegen unit, link-time optimisation, no symbols. `cargo build` of the
/// workspace has its own.
const PROFILE: [(&str, &str); 6] = [
    ("LTO", "fat"),
    ("CODEGEN_UNITS", "1"),
    ("OPT_LEVEL", "3"),
    ("PANIC", "abort"),
    ("STRIP", "symbols"),
    ("DEBUG", "false"),
];

/// Stack of a component in bytes. Policies hardly recurse, and the stack of every instance must be zeroed.
const STACK_BYTES: u32 = 128 * 1024;

/// Debian's `wasi-libc`, which a standard library built for WASI is linked with.
const WASI_LIBC: &str = "/usr/lib/wasm32-wasi";

/// A build that has not been run yet.
#[derive(Debug)]
pub struct Build {
    /// The command; it reports errors on standard error.
    pub command: Command,
    /// The path of its result.
    pub artifact: PathBuf,
}

impl Build {
    /// Runs the build to its end.
    ///
    /// # Errors
    /// If it cannot be started, or fails.
    pub fn run(mut self) -> Result<PathBuf, Error> {
        run(&mut self.command)?;
        Ok(self.artifact)
    }
}

/// Compiles a policy to a core module with plain cargo.
pub fn module(workspace: &Workspace, toolchain: &Toolchain, policy: &str) -> Build {
    let mut cargo = command(workspace, toolchain, Target::Unknown);
    // The crate is also an `rlib`, for native tests; built as one, it would prevent optimisation across crates.
    cargo.args(["rustc", "--crate-type", "cdylib", "--release", "--target", Target::Unknown.triple()]);
    cargo.args(["--package", policy]).args(locked(workspace));
    Build { command: cargo, artifact: artifact(workspace, Target::Unknown, policy) }
}

/// Compiles a policy to a component with cargo-component.
///
/// # Errors
/// If cargo-component, or the folder that it requires, is missing.
pub fn component(workspace: &Workspace, toolchain: &Toolchain, policy: &str) -> Result<Build, Error> {
    let found = Command::new("cargo-component").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        return Err(Error::NoCargoComponent);
    }
    let folder = toolchain.sysroot.join("lib/rustlib").join(Target::Wasip1.triple());
    if !folder.exists() {
        return Err(Error::NoTargetFolder(folder));
    }
    let mut cargo = command(workspace, toolchain, Target::Wasip1);
    cargo.args(["component", "build", "--release", "--package", policy]).args(locked(workspace));
    Ok(Build { command: cargo, artifact: artifact(workspace, Target::Wasip1, policy) })
}

/// `--locked`, unless the project was never built and has no lock file yet.
fn locked(workspace: &Workspace) -> Option<&'static str> {
    workspace.root.join("Cargo.lock").exists().then_some("--locked")
}

fn artifact(workspace: &Workspace, target: Target, policy: &str) -> PathBuf {
    target_folder(workspace).join(target.triple()).join("release").join(format!("{}.wasm", policy.replace('-', "_")))
}

/// Guests have a separate target folder, so that guest and host builds do not invalidate each other's results.
fn target_folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("guest")
}

/// The toolchain's cargo, with the environment for a guest build.
fn command(workspace: &Workspace, toolchain: &Toolchain, target: Target) -> Command {
    let mut command = Command::new(toolchain.program("cargo"));
    command
        .current_dir(&workspace.root)
        .env("PATH", path_with(&toolchain.sysroot.join("bin")))
        .env("CARGO", toolchain.program("cargo"))
        .env("RUSTC", toolchain.program("rustc"))
        .env("CARGO_TARGET_DIR", target_folder(workspace))
        .env("CARGO_ENCODED_RUSTFLAGS", rustflags(workspace, toolchain, target).join("\u{1f}"))
        .env_remove("CARGO_BUILD_TARGET")
        .env_remove("RUSTC_WORKSPACE_WRAPPER");
    if workspace.is_own {
        command.envs(PROFILE.map(|(key, value)| (format!("CARGO_PROFILE_RELEASE_{key}"), value)));
    }
    if let Some(linker) = &toolchain.build_std {
        let linker_key = format!("CARGO_TARGET_{}_LINKER", target.triple().to_uppercase().replace('-', "_"));
        command.env("RUSTC_BOOTSTRAP", "1").env("CARGO_UNSTABLE_BUILD_STD", "std,panic_abort").env(linker_key, linker);
    }
    command
}

/// Compiler flags of every guest crate. Paths of this machine are replaced, so that two machines build the same bytes.
fn rustflags(workspace: &Workspace, toolchain: &Toolchain, target: Target) -> Vec<String> {
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let mut flags = vec![
        remap(&workspace.root, "."),
        remap(&cargo_home(), "/cargo"),
        remap(&toolchain.library_source(), "/rust"),
        format!("-Clink-arg=-zstack-size={STACK_BYTES}"),
    ];
    if toolchain.build_std.is_some() && target == Target::Wasip1 {
        flags.extend([
            "-Clink-self-contained=no".to_owned(),
            format!("-Lnative={WASI_LIBC}"),
            "-Clinker-flavor=wasm-ld".to_owned(),
        ]);
    }
    flags
}

fn cargo_home() -> PathBuf {
    env::var_os("CARGO_HOME").map(PathBuf::from).unwrap_or_else(|| env::home_dir().unwrap_or_default().join(".cargo"))
}

fn path_with(first: &Path) -> OsString {
    let rest = env::var_os("PATH").unwrap_or_default();
    // Joining fails only for a path that contains a separator; then the rest is used.
    env::join_paths([first.to_owned()].into_iter().chain(env::split_paths(&rest))).unwrap_or(rest)
}

fn run(command: &mut Command) -> Result<(), Error> {
    let name = || {
        let words = [command.get_program()].into_iter().chain(command.get_args());
        words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    };
    let name = name();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Error::Failed { command: name }),
        Err(source) => Err(Error::Start { command: name, source }),
    }
}
