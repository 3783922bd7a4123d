//! `cargo run -p build-plugins`: rebuilds the policy components that are checked in under `plugins/`.

use std::{fs, path::PathBuf, process::ExitCode};

use build_plugins::{Component, Error, Target, Toolchain, Workspace, guest};
use clap::Parser;

/// Rebuilds every policy under `plugins/` as a component
#[derive(Debug, Parser)]
#[command(name = "build-plugins", bin_name = "cargo run -p build-plugins --")]
struct Options {
    /// Policies to build; all of them when none is named
    names: Vec<String>,
    /// Folder to write NAME.wasm to, instead of `plugins/` or the project's
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Build a project of its own, as `pmk-host policy new` writes it, instead of the policies under `plugins/`
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Build with `cargo component build`, for wasm32-wasip1
    #[arg(long)]
    cargo_component: bool,
    /// Print the names of the policies and build nothing
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Error> {
    let workspace = match &options.project {
        Some(folder) => Workspace::of_project(folder)?,
        None => Workspace::find()?,
    };
    let policies = workspace.select(&options.names)?;
    if options.list {
        policies.iter().for_each(|policy| println!("{policy}"));
        return Ok(());
    }
    let target = if options.cargo_component { Target::Wasip1 } else { Target::Unknown };
    let toolchain = Toolchain::find(target)?;
    eprintln!("{}", toolchain.describe(target));
    let out = options.out.clone().unwrap_or_else(|| workspace.folder.clone());
    fs::create_dir_all(&out).map_err(|source| Error::File { path: out.clone(), source })?;
    for policy in &policies {
        let component = build(&workspace, &toolchain, policy, options.cargo_component)?;
        let path = out.join(format!("{policy}.wasm"));
        fs::write(&path, &component.bytes).map_err(|source| Error::File { path: path.clone(), source })?;
        let exports = component.exports.join(", ");
        println!("{}: {} bytes, exports {exports}", path.display(), component.bytes.len());
    }
    Ok(())
}

fn build(
    workspace: &Workspace,
    toolchain: &Toolchain,
    policy: &str,
    cargo_component: bool,
) -> Result<Component, Error> {
    let read = |path: PathBuf| fs::read(&path).map_err(|source| Error::File { path, source });
    if cargo_component {
        Component::read(policy, read(guest::component(workspace, toolchain, policy)?.run()?)?)
    } else {
        Component::of_module(policy, &read(guest::module(workspace, toolchain, policy).run()?)?)
    }
}
