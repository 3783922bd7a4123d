//! Files of the repository that are embedded in the program.

/// The files, by their path in the repository.
static FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The files that a Rust project includes: their path in the repository, and in the project.
pub(super) const RUST: [(&str, &str); 6] = [
    ("plugins/sdk/src/", "vendor/rust/sdk/src/"),
    ("plugins/sdk/wit/", "vendor/rust/sdk/wit/"),
    ("host/core/src/", "vendor/rust/core/src/"),
    ("host/search/src/", "vendor/rust/search/src/"),
    ("wit/", "vendor/wit/"),
    ("LICENSE-", "vendor/LICENSE-"),
];

/// The files that the other languages include. Their policies decide the same, so they start with the same case.
pub(super) const OTHERS: [(&str, &str); 2] = [("wit/", "vendor/wit/"), ("plugins/templates/rust/cases/", "cases/")];

/// Returns the files whose paths begin with one of these prefixes, with the prefix replaced.
pub(super) fn copies(moves: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
    FILES.iter().filter_map(|(path, content)| {
        let (from, to) = moves.iter().find(|(from, _)| path.starts_with(from))?;
        Some((format!("{to}{}", &path[from.len()..]), (*content).to_owned()))
    })
}
