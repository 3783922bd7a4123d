//! Where things are kept. One folder a gateway, `~/.pmk` unless told otherwise, laid out as pmk's.

use std::path::{Path, PathBuf};

use crate::error::Failure;

mod lock;
mod private;
mod trusted;

pub use lock::{Holder, HomeError, HomeLock};
pub use private::{
    append_private_file, create_private_dir, forget_staged, open_private_file, replace_private_file,
    stage_private_file, sync_folder_of,
};
pub use trusted::check as check_trusted;

/// `<home>/gateway`: the store, the lock and the ledger.
pub fn gateway_dir(home: &Path) -> PathBuf {
    home.join("gateway")
}

/// `<home>/gateway/control.sock`: where a running gateway takes commands.
pub fn control_socket(home: &Path) -> PathBuf {
    gateway_dir(home).join("control.sock")
}

/// `<home>/gateway.json`: the configuration.
pub fn config_file(home: &Path) -> PathBuf {
    home.join("gateway.json")
}

/// `<home>/cache/components`: compiled components, which may be deleted at any time.
pub fn compile_cache_dir(home: &Path) -> PathBuf {
    home.join("cache").join("components")
}

/// The variable that names the folder where `--home` does not.
pub const VARIABLE: &str = "PMK_HOME";

/// Whether somebody has said which folder it is.
pub fn is_named(given: Option<&Path>) -> bool {
    given.is_some() || std::env::var_os(VARIABLE).is_some_and(|home| !home.is_empty())
}

/// Refuses what is no folder in the place of a home. That there is nothing yet is fine.
///
/// # Errors
/// It is something else.
pub fn check_folder(home: &Path) -> Result<(), Failure> {
    if home.is_dir() {
        return Ok(());
    }
    let what = match (home.exists(), home.read_link()) {
        (true, _) => format!("`{}` is not a folder, so it cannot be a home", home.display()),
        (false, Ok(to)) => format!("`{}` is a link to `{}`, which does not exist", home.display(), to.display()),
        (false, Err(_)) => return Ok(()),
    };
    Err(Failure::new(what).hint("choose one with `--home DIR`"))
}

/// Refuses a home that does not exist: looked into, it would seem to be one in which nothing ever happened.
///
/// # Errors
/// It does not exist, or nobody can tell.
pub fn check_exists(home: &Path) -> Result<(), Failure> {
    match home.try_exists() {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::new(format!("home `{}` does not exist", home.display()))
            .hint("choose one with `--home DIR`; the first `pmk-host run` creates it")),
        Err(error) => Err(Failure::new(format!("cannot access `{}`: {error}", home.display()))
            .hint("check that you can access its parent folders")),
    }
}

/// Whether it is the one that is taken where none is named.
pub fn is_default(home: &Path) -> bool {
    std::env::home_dir().is_some_and(|folder| folder.join(".pmk") == home)
}

/// The folder given, else the one that the environment names, else `~/.pmk`. Absolute, because the compile
/// cache insists on it.
///
/// # Errors
/// There is no folder to put it in.
pub fn resolve(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let named = std::env::var_os(VARIABLE).filter(|home| !home.is_empty()).map(PathBuf::from);
    let home = match given.map(Path::to_owned).or(named) {
        Some(path) => path,
        None => std::env::home_dir()
            .filter(|home| !home.as_os_str().is_empty())
            .ok_or_else(|| Failure::new("there is no home directory for `.pmk`").hint("use `--home DIR`"))?
            .join(".pmk"),
    };
    std::path::absolute(&home)
        .map_err(|error| Failure::new(format!("cannot use `{}` as home: {error}", home.display())))
        .map_err(|failure| failure.hint("use `--home DIR`"))
}
