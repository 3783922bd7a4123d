//! Embeds the files that `policy new` writes, so that the program alone is enough to start a policy: the templates, the
//! SDK with the types it uses, the contract and the licences.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// Files and folders of the repository.
const EMBEDDED: [&str; 8] = [
    "plugins/templates",
    "plugins/sdk/src",
    "plugins/sdk/wit",
    "host/core/src",
    "host/search/src",
    "wit",
    "LICENSE-MIT",
    "LICENSE-APACHE",
];

fn main() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for embedded in EMBEDDED {
        println!("cargo::rerun-if-changed={}", repository.join(embedded).display());
        collect(&repository, Path::new(embedded), &mut files);
    }
    files.sort();
    let entries: String = files
        .iter()
        .map(|file| {
            let (name, path) = (file.display().to_string(), repository.join(file).display().to_string());
            format!("    ({name:?}, include_str!({path:?})),\n")
        })
        .collect();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names a folder")).join("embedded.rs");
    fs::write(&out, format!("&[\n{entries}]\n")).expect("the list of embedded files can be written");
}

/// Collects the files at `path`, relative to the repository, without what tools leave behind.
fn collect(repository: &Path, path: &Path, files: &mut Vec<PathBuf>) {
    let full = repository.join(path);
    if !full.is_dir() {
        files.push(path.to_owned());
        return;
    }
    for entry in fs::read_dir(&full).expect("a folder of the repository can be read") {
        let name = entry.expect("its entries too").file_name();
        if !["__pycache__", "node_modules", "target", "proptest-regressions"].iter().any(|left| name == *left) {
            collect(repository, &path.join(name), files);
        }
    }
}
