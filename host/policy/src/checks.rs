//! Checks of a file before it runs: whether it is a component, and of which contract.

use std::{io, path::Path};

use pmk_system::files::{self, FileReadError};
use wasmtime::{Engine, component::types};

use crate::{contract, error::LoadError, failure::foreign_name, wasi};

/// The maximum size of a component; those that include an interpreter have about 20 MB.
const MAX_FILE_BYTES: u64 = 64 << 20;

const MAGIC: &[u8] = b"\0asm";
const CORE_MODULE: &[u8] = &[1, 0, 0, 0];

/// Reads a file that should contain a component.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    let file = || path.display().to_string();
    files::read(path, MAX_FILE_BYTES).map_err(|problem| match problem {
        FileReadError::Folder => LoadError::Directory { file: file() },
        link @ FileReadError::Dangling(_) => LoadError::Unreadable { file: file(), source: link.into() },
        FileReadError::Special(what) => LoadError::Special { file: file(), what },
        FileReadError::TooLarge { bytes, limit } => LoadError::TooLarge { file: file(), bytes, limit },
        FileReadError::Io(source) => match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => LoadError::Missing { file: file() },
            _ => LoadError::Unreadable { file: file(), source },
        },
    })
}

/// Checks the first eight bytes.
pub(crate) fn header(label: &str, bytes: &[u8]) -> Result<(), LoadError> {
    let file = || label.to_owned();
    if bytes.is_empty() {
        return Err(LoadError::Empty { file: file() });
    }
    let Some(version) = bytes.strip_prefix(MAGIC) else {
        return Err(if MAGIC.starts_with(bytes) {
            LoadError::Invalid { file: file(), reason: "it ends within the header".to_owned() }
        } else {
            LoadError::NotWasm { file: file() }
        });
    };
    if version.starts_with(CORE_MODULE) {
        return Err(LoadError::core_module(label, bytes));
    }
    Ok(())
}

/// What a component imports, and the contract version it was built against.
pub(crate) struct Interfaces {
    pub imports: Vec<String>,
    pub wants: String,
}

/// Checks the names that a component imports and exports.
pub(crate) fn interfaces(label: &str, engine: &Engine, component: &types::Component) -> Result<Interfaces, LoadError> {
    let file = || label.to_owned();
    let imports: Vec<String> = component.imports(engine).map(|(name, _)| name.to_owned()).collect();
    let exports: Vec<String> = component.exports(engine).map(|(name, _)| name.to_owned()).collect();
    for name in imports.iter().chain(&exports) {
        if contract::is_of(name) && !fits(name, contract::VERSION) {
            return Err(LoadError::OtherVersion { file: file(), wants: foreign_name(name) });
        }
    }
    if let Some(import) = imports.iter().find(|name| !contract::is_of(name) && !of_wasi(name)) {
        return Err(LoadError::ForeignImport { file: file(), import: foreign_name(import) });
    }
    match contract::wanted(exports.iter().map(String::as_str)) {
        Some(exported) => {
            let names = imports.iter().chain(&exports).map(String::as_str);
            let wants = contract::wanted(names).unwrap_or(exported);
            Ok(Interfaces { imports, wants })
        }
        None => Err(LoadError::NothingExported { file: file(), exports }),
    }
}

fn of_wasi(name: &str) -> bool {
    wasi::PACKAGES.iter().any(|package| name.starts_with(package)) && fits(name, "0.2.0")
}

/// Whether the version after the `@` is compatible with ours, by the rule of the engine's linker: the same major, or
/// below 1.0.0 the same minor; no pre-release.
fn fits(name: &str, ours: &str) -> bool {
    match (name.split_once('@').and_then(|(_, version)| track(version)), track(ours)) {
        (Some(theirs), Some(ours)) => theirs == ours,
        _ => false,
    }
}

/// If an engine's error is about an import of a later contract version than ours: that import, and what this host lacks
/// of it.
pub(crate) fn later(imports: &[String], error: &wasmtime::Error) -> Option<(String, Option<String>)> {
    let mut words = error.chain().map(ToString::to_string);
    let import = quoted(&words.next()?)?;
    let version =
        import.split_once('@').filter(|_| contract::is_of(&import)).and_then(|(_, version)| numbers(version))?;
    let is_later = imports.contains(&import) && Some(version) > numbers(contract::VERSION);
    let lacking = words.next().and_then(|words| quoted(&words));
    is_later.then_some((import, lacking))
}

/// The name in quotes in an engine's error.
fn quoted(words: &str) -> Option<String> {
    words.split('`').nth(1).map(foreign_name)
}

fn track(version: &str) -> Option<(u64, u64)> {
    match numbers(version)? {
        [0, minor, _] => Some((0, minor)),
        [major, _, _] => Some((major, 0)),
    }
}

fn numbers(version: &str) -> Option<[u64; 3]> {
    let numbers: Vec<u64> = version.split('.').map(|number| number.parse().ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_fit_as_the_linker_sees_them() {
        for (name, fitting) in [
            ("pmk:policy/host@1.0.0", true),
            ("pmk:policy/host@1.7.3", true),
            ("pmk:policy/host@2.0.0", false),
            ("pmk:policy/host@0.9.0", false),
            ("pmk:policy/host@1.1.0-rc.1", false),
            ("pmk:policy/host", false),
        ] {
            assert_eq!(fits(name, "1.0.0"), fitting, "{name}");
        }
        assert!(of_wasi("wasi:cli/stdout@0.2.9"));
        assert!(!of_wasi("wasi:cli/stdout@0.3.0"));
        assert!(!of_wasi("wasi:http/types@0.2.3"));
    }
}
