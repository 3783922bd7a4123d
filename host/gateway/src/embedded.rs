//! The policies that are embedded in the program. Wherever a component is named, each is known by its name; anything
//! else is a file, for example `./strict`.

use std::path::{Path, PathBuf};

/// Components by name.
const ALL: [(&str, &[u8]); 7] = [
    ("caps", include_bytes!("../../../plugins/caps.wasm")),
    ("facts-summary", include_bytes!("../../../plugins/facts-summary.wasm")),
    ("recall", include_bytes!("../../../plugins/recall.wasm")),
    ("rolling-summary", include_bytes!("../../../plugins/rolling-summary.wasm")),
    (STANDARD_NAME, STANDARD),
    ("strict", include_bytes!("../../../plugins/strict.wasm")),
    ("tool-lean", include_bytes!("../../../plugins/tool-lean.wasm")),
];

/// The name of the policy that decides if no other is named.
pub const STANDARD_NAME: &str = "standard";

/// The policy under all others.
pub const STANDARD: &[u8] = include_bytes!("../../../plugins/standard.wasm");

/// Returns the embedded component of this name.
pub fn component(named: &Path) -> Option<&'static [u8]> {
    ALL.iter().find(|(name, _)| named.as_os_str() == *name).map(|(_, bytes)| *bytes)
}

/// Those that form layers above the standard policy, which is under all others anyway.
pub fn layers(named: &[PathBuf]) -> impl DoubleEndedIterator<Item = &PathBuf> {
    named.iter().filter(|named| component(named) != Some(STANDARD))
}

/// The names.
pub fn known() -> impl Iterator<Item = &'static str> {
    ALL.into_iter().map(|(name, _)| name)
}

/// The names, for the hint after an unknown one.
pub fn names() -> String {
    ALL.map(|(name, _)| format!("`{name}`")).join(", ")
}

/// Resolves a component that was named relative to a folder.
pub fn within(folder: &Path, named: &Path) -> PathBuf {
    if component(named).is_some() { named.to_owned() } else { folder.join(named) }
}

/// Makes the path of a component absolute; an embedded name stays as it is.
///
/// # Errors
/// It is empty, or the current folder is unknown.
pub fn absolute(named: &Path) -> std::io::Result<PathBuf> {
    if component(named).is_some() { Ok(named.to_owned()) } else { std::path::absolute(named) }
}
