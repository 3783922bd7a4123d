//! No circle of files crosses a folder; arrows run one way, from the command line down.
//!
//! A file points to another one when it names something that is defined there: in a `use`, or in a path anywhere in its
//! code. Between crates Cargo sees to it that there is no circle, within a crate nobody does but this. `cargo test
//! --test arrows -- --nocapture` also says how many files are in circles at all. With the same means, [`order`] sees to it
//! that nothing the simulation drives is left to chance.

mod arrows;
mod circles;
mod made_up;
mod order;
mod source;

use std::path::{Path, PathBuf};

use arrows::Arrows;
use source::Source;

#[test]
fn the_modules_of_a_crate_form_no_circle() {
    nothing_found(|_, arrows| arrows.circle_of_modules());
}

#[test]
fn no_circle_of_files_crosses_a_folder() {
    nothing_found(|name, arrows| {
        println!("{name}: {}", arrows.files_in_circles());
        arrows.circles_across_folders()
    });
}

fn nothing_found(look: impl Fn(&str, &Arrows) -> Vec<String>) {
    let mut found = Vec::new();
    for (name, root) in roots() {
        let arrows = Arrows::of(&Source::read(&root));
        found.extend(look(&name, &arrows).into_iter().map(|circle| format!("{name}: {circle}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

/// The library and the program of each crate of the host and of each policy.
fn roots() -> Vec<(String, PathBuf)> {
    let top = top();
    let manifest = std::fs::read_to_string(top.join("Cargo.toml")).expect("the workspace's manifest");
    let manifest: toml::Table = manifest.parse().expect("TOML");
    let members = manifest["workspace"]["members"].as_array().expect("members");
    let members = members.iter().map(|member| member.as_str().expect("a folder"));
    let roots: Vec<_> = members
        .filter(|member| member.starts_with("host/") || member.starts_with("plugins/"))
        .flat_map(|member| ["lib.rs", "main.rs"].map(|root| format!("{member}/src/{root}")))
        .map(|root| (root.clone(), top.join(root)))
        .filter(|(_, root)| root.exists())
        .collect();
    assert!(roots.iter().any(|(name, _)| name == "host/gateway/src/lib.rs"), "{roots:?}");
    roots
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
