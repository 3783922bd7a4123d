//! Finds a toolchain that can compile for wasm.
//!
//! Either rustup has installed the target, or a toolchain includes the standard library's source and builds it when
//! needed. The latter is for machines that reach only package registries, with Debian's `rustc-web` and `rust-web-src`;
//! the linker may then come from another toolchain.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use crate::Error;

/// The location of the standard library's source, relative to a toolchain's sysroot.
const LIBRARY_SOURCE: &str = "lib/rustlib/src/rust";

/// A compilation target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// `wasm32-unknown-unknown`: a component that imports nothing but the contract.
    Unknown,
    /// `wasm32-wasip1`: what cargo-component builds for.
    Wasip1,
}

impl Target {
    /// The target's triple.
    pub const fn triple(self) -> &'static str {
        match self {
            Target::Unknown => "wasm32-unknown-unknown",
            Target::Wasip1 => "wasm32-wasip1",
        }
    }
}

/// A Rust toolchain that can build for a wasm target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// The folder that holds `bin/cargo` and `lib/rustlib`.
    pub sysroot: PathBuf,
    /// The linker, if the target's standard library has to be built first.
    pub build_std: Option<PathBuf>,
}

impl Toolchain {
    /// Finds the first suitable toolchain: one with the target installed, otherwise one with the library's source.
    ///
    /// # Errors
    /// [`Error::NoToolchain`], or [`Error::NoLinker`] where only the linker is missing.
    pub fn find(target: Target) -> Result<Toolchain, Error> {
        Toolchain::among(&sysroots(), target)
    }

    fn among(sysroots: &[PathBuf], target: Target) -> Result<Toolchain, Error> {
        if let Some(sysroot) = sysroots.iter().find(|sysroot| has_target(sysroot, target)) {
            return Ok(Toolchain { sysroot: sysroot.clone(), build_std: None });
        }
        let has_source = |sysroot: &&PathBuf| sysroot.join(LIBRARY_SOURCE).join("library/std/Cargo.toml").exists();
        match sysroots.iter().find(has_source) {
            Some(sysroot) => {
                let linker = linker(sysroots).ok_or(Error::NoLinker)?;
                Ok(Toolchain { sysroot: sysroot.clone(), build_std: Some(linker) })
            }
            None => Err(Error::NoToolchain { target: target.triple() }),
        }
    }

    /// The path of a program of the toolchain.
    pub fn program(&self, name: &str) -> PathBuf {
        self.sysroot.join("bin").join(name)
    }

    /// Where the standard library's source is, if it is installed.
    pub fn library_source(&self) -> PathBuf {
        self.sysroot.join(LIBRARY_SOURCE)
    }

    /// Describes the toolchain in one line.
    pub fn describe(&self, target: Target) -> String {
        let how = if self.build_std.is_some() { ", building its standard library" } else { "" };
        format!("compiling for {} with `{}`{how}", target.triple(), self.program("cargo").display())
    }
}

/// Whether the target's compiled standard library is installed.
fn has_target(sysroot: &Path, target: Target) -> bool {
    let folder = sysroot.join("lib/rustlib").join(target.triple()).join("lib");
    folder.read_dir().is_ok_and(|mut files| {
        files.any(|file| file.is_ok_and(|file| file.file_name().to_string_lossy().starts_with("libstd-")))
    })
}

/// The active toolchain, then that of the operating system, if they have a cargo.
fn sysroots() -> Vec<PathBuf> {
    let active =
        Command::new("rustc").args(["--print", "sysroot"]).output().ok().filter(|output| output.status.success());
    let active = active.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    let mut found: Vec<PathBuf> = active.into_iter().chain([PathBuf::from("/usr")]).collect();
    found.retain(|sysroot| sysroot.join("bin/cargo").exists() && sysroot.join("bin/rustc").exists());
    found.dedup();
    found
}

/// Finds Rust's own linker in one of the toolchains, or LLVM's in `PATH`.
fn linker(sysroots: &[PathBuf]) -> Option<PathBuf> {
    let hosts = sysroots.iter().filter_map(|sysroot| sysroot.join("lib/rustlib").read_dir().ok());
    let own = hosts.flatten().flatten().map(|host| host.path().join("bin/rust-lld")).find(|linker| linker.exists());
    own.or_else(|| {
        let path = env::var_os("PATH")?;
        env::split_paths(&path)
            .flat_map(|folder| ["rust-lld", "wasm-ld"].map(|name| folder.join(name)))
            .find(|linker| linker.exists())
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Creates a sysroot with these files.
    fn sysroot(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for file in files {
            let path = folder.path().join("lib/rustlib").join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            fs::write(path, "").expect("a file");
        }
        folder
    }

    const SOURCE: &str = "src/rust/library/std/Cargo.toml";
    const LINKER: &str = "x86_64-unknown-linux-gnu/bin/rust-lld";
    const INSTALLED: &str = "wasm32-unknown-unknown/lib/libstd-0123.rlib";

    #[test]
    fn an_installed_target_goes_before_building_the_library() {
        let (building, installed) = (sysroot(&[SOURCE, LINKER]), sysroot(&[INSTALLED]));
        let sysroots = [building.path().to_owned(), installed.path().to_owned()];
        let found = Toolchain::among(&sysroots, Target::Unknown).expect("a toolchain");
        assert_eq!(found, Toolchain { sysroot: sysroots[1].clone(), build_std: None });
    }

    #[test]
    fn the_linker_may_come_from_another_toolchain() {
        let (rustup, debian) = (sysroot(&[LINKER]), sysroot(&[SOURCE, "wasm32-wasip1/empty"]));
        let sysroots = [rustup.path().to_owned(), debian.path().to_owned()];
        for target in [Target::Unknown, Target::Wasip1] {
            let found = Toolchain::among(&sysroots, target).expect("a toolchain");
            let linker = rustup.path().join("lib/rustlib").join(LINKER);
            assert_eq!(found, Toolchain { sysroot: sysroots[1].clone(), build_std: Some(linker) });
        }
    }

    #[test]
    fn with_neither_the_error_says_what_to_install() {
        let bare = sysroot(&[LINKER]);
        let error = Toolchain::among(&[bare.path().to_owned()], Target::Unknown).expect_err("nothing fits").to_string();
        assert!(error.starts_with("no Rust toolchain here can build for wasm32-unknown-unknown\nhint: "), "{error}");
        assert!(
            error.contains("rustup target add wasm32-unknown-unknown") && error.contains("rust-web-src"),
            "{error}"
        );
    }
}
