//! The layout of the home: one folder per gateway, `~/.pmk` by default, compatible with pmk's.

use std::path::{Path, PathBuf};

use crate::error::Failure;

mod lock;
mod private;
mod trusted;

pub use lock::{Holder, HomeError, HomeLock, Purpose};
pub(crate) use private::open_private_file_nofollow;
pub use private::{
    append_private_file, create_private_dir, forget_staged, open_private_file, replace_private_file,
    stage_private_file, sync_folder_of,
};
pub use trusted::check as check_trusted;

/// `<home>/gateway`: the store, the lock and the ledger.
pub fn gateway_dir(home: &Path) -> PathBuf {
    home.join("gateway")
}

/// `<home>/gateway/control.sock`: where a running gateway accepts commands.
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

/// The variable that names the home if `--home` does not.
pub const VARIABLE: &str = "PMK_HOME";

/// Whether the home was named explicitly.
pub fn is_named(given: Option<&Path>) -> bool {
    given.is_some() || std::env::var_os(VARIABLE).is_some_and(|home| !home.is_empty())
}

/// Rejects a home that is not a folder. It need not exist yet.
///
/// # Errors
/// If it is something else.
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

/// Rejects a home that does not exist: otherwise it would look like one in which nothing has happened yet.
///
/// # Errors
/// If it does not exist, or that cannot be determined.
pub fn check_exists(home: &Path) -> Result<(), Failure> {
    match home.try_exists() {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::new(format!("home `{}` does not exist", home.display()))
            .hint("choose one with `--home DIR`; the first `pmk-host run` creates it")),
        Err(error) => Err(Failure::new(format!("cannot access `{}`: {error}", home.display()))
            .hint("check that you can access its parent folders")),
    }
}

/// Whether it is the default home.
pub fn is_default(home: &Path) -> bool {
    std::env::home_dir().is_some_and(|folder| folder.join(".pmk") == home)
}

/// A command for this home, as a shell takes it. For hints: without the home, what they advise would be done to the
/// default one.
pub fn command(home: &Path, words: &str) -> String {
    if is_default(home) {
        return format!("pmk-host {words}");
    }
    let home = home.display().to_string();
    let home = shlex::try_quote(&home).unwrap_or_else(|_| home.as_str().into());
    format!("pmk-host --home {home} {words}")
}

/// The folder given, otherwise that of the environment, otherwise `~/.pmk`. Absolute, because the compile cache
/// requires it.
///
/// # Errors
/// If there is no home directory.
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
