//! The policies that come with the program. Each goes by its name wherever a component is named; whatever is not one of
//! these names is a file, `./strict` for one.

use std::path::{Path, PathBuf};

/// Components by name.
const ALL: [(&str, &[u8]); 7] = [
    ("caps", include_bytes!("../../../plugins/caps.wasm")),
    ("facts-summary", include_bytes!("../../../plugins/facts-summary.wasm")),
    ("recall", include_bytes!("../../../plugins/recall.wasm")),
    ("rolling-summary", include_bytes!("../../../plugins/rolling-summary.wasm")),
    ("standard", STANDARD),
    ("strict", include_bytes!("../../../plugins/strict.wasm")),
    ("tool-lean", include_bytes!("../../../plugins/tool-lean.wasm")),
];

/// The policy under all others.
pub const STANDARD: &[u8] = include_bytes!("../../../plugins/standard.wasm");

/// The component of this name.
pub fn component(named: &Path) -> Option<&'static [u8]> {
    ALL.iter().find(|(name, _)| named.as_os_str() == *name).map(|(_, bytes)| *bytes)
}

/// Those that make layers of their own, over the one that is under all others.
pub fn layers(named: &[PathBuf]) -> impl DoubleEndedIterator<Item = &PathBuf> {
    named.iter().filter(|named| component(named) != Some(STANDARD))
}

/// Their names, for somebody who has named another.
pub fn names() -> String {
    ALL.map(|(name, _)| format!("`{name}`")).join(", ")
}

/// Where a component is that was named in a folder.
pub fn within(folder: &Path, named: &Path) -> PathBuf {
    if component(named).is_some() { named.to_owned() } else { folder.join(named) }
}

/// What names a component for somebody in whatever folder.
///
/// # Errors
/// It is empty, or nobody knows which folder this is.
pub fn absolute(named: &Path) -> std::io::Result<PathBuf> {
    if component(named).is_some() { Ok(named.to_owned()) } else { std::path::absolute(named) }
}
