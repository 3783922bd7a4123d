//! Files of the repository that are in the program.

/// Each with its path in the repository.
static FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// What a Rust project brings along: where it is in the repository, and where in the project.
pub(super) const RUST: [(&str, &str); 6] = [
    ("plugins/sdk/src/", "vendor/rust/sdk/src/"),
    ("plugins/sdk/wit/", "vendor/rust/sdk/wit/"),
    ("host/core/src/", "vendor/rust/core/src/"),
    ("host/search/src/", "vendor/rust/search/src/"),
    ("wit/", "vendor/wit/"),
    ("LICENSE-", "vendor/LICENSE-"),
];

/// What the other languages need of it. They decide the same, so the case that they begin with is the same.
pub(super) const OTHERS: [(&str, &str); 2] = [("wit/", "vendor/wit/"), ("plugins/templates/rust/cases/", "cases/")];

/// The files whose paths begin with one of these, with the paths that they get instead.
pub(super) fn copies(moves: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
    FILES.iter().filter_map(|(path, content)| {
        let (from, to) = moves.iter().find(|(from, _)| path.starts_with(from))?;
        Some((format!("{to}{}", &path[from.len()..]), (*content).to_owned()))
    })
}
