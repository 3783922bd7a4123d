//! Checks that the components under `plugins/` match their sources.

use std::{fs, path::PathBuf};

use build_plugins::{Component, Error, Workspace};

fn workspace() -> Workspace {
    Workspace::find().expect("cargo metadata")
}

fn checked_in(policy: &str) -> Component {
    let path = workspace().folder.join(format!("{policy}.wasm"));
    let bytes = fs::read(&path)
        .unwrap_or_else(|error| panic!("`{}`: {error}\nhint: `cargo run -p build-plugins`", path.display()));
    Component::read(policy, bytes).expect("a policy component")
}

/// The decisions listed in the `export!` of a policy's `lib.rs`, including the self-description.
fn exported_by_source(policy: &str) -> Vec<String> {
    let path: PathBuf = workspace().folder.join(policy).join("src/lib.rs");
    let source = fs::read_to_string(&path).expect("the policy's source");
    let (_, rest) = source.split_once("\nexport!(").expect("an export! in lib.rs");
    let (inside, _) = rest.split_once(')').expect("the end of export!");
    let listed = inside.split_once(':').map_or("", |(_, decisions)| decisions);
    let mut names: Vec<String> = listed.split(',').map(|name| name.trim().to_owned()).collect();
    names.push("describe".to_owned());
    names.sort();
    names
}

#[test]
fn every_policy_is_found() {
    assert_eq!(
        workspace().policies,
        ["caps", "facts-summary", "recall", "rolling-summary", "standard", "strict", "tool-lean"]
    );
}

#[test]
fn every_policy_is_checked_in_and_exports_what_its_source_lists() {
    for policy in workspace().policies {
        assert_eq!(checked_in(&policy).exports, exported_by_source(&policy), "{policy}");
    }
}

#[test]
fn a_component_imports_nothing_but_the_contract() {
    for policy in workspace().policies {
        let imports = checked_in(&policy).imports;
        assert_eq!(imports, ["pmk:policy/context@1.2.0", "pmk:policy/host@1.2.0"], "{policy}");
    }
}

#[test]
fn no_path_of_a_machine_is_in_a_component() {
    for policy in workspace().policies {
        let bytes = checked_in(&policy).bytes;
        for path in ["/home/", "/root/", "/Users/", "/usr/lib/", ".cargo/registry"] {
            let found = bytes.windows(path.len()).any(|window| window == path.as_bytes());
            assert!(!found, "`{path}` is in {policy}.wasm");
        }
    }
}

#[test]
fn an_unknown_policy_is_named_with_those_there_are() {
    let error = workspace().select(&["strikt".to_owned()]).expect_err("no such policy");
    assert!(matches!(error, Error::NoSuchPolicy { .. }));
    assert_eq!(
        error.to_string(),
        "there is no policy `strikt` under `plugins/`\nhint: there is caps, facts-summary, recall, rolling-summary, standard, strict, tool-lean"
    );
}

#[test]
fn what_is_no_component_is_refused() {
    let module = b"\0asm\x01\0\0\0";
    for bytes in [&b""[..], b"hello", module] {
        let error = Component::read("odd", bytes.to_vec()).expect_err("no component").to_string();
        assert!(error.starts_with("odd: it is not a component"), "{error}");
    }
    let error = Component::of_module("odd", module).expect_err("no policy").to_string();
    assert!(error.contains("does not export `pmk:policy/describe`"), "{error}");
}

#[test]
fn a_project_of_its_own_is_one_policy() {
    let folder = tempfile::tempdir().expect("a folder");
    let manifest = "[package]\nname = \"newest\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\"]\n[workspace]\n";
    fs::write(folder.path().join("Cargo.toml"), manifest).expect("a manifest");
    fs::create_dir(folder.path().join("src")).expect("a folder");
    fs::write(folder.path().join("src/lib.rs"), "").expect("a source");
    let project = Workspace::of_project(folder.path()).expect("cargo metadata");
    assert_eq!((project.policies, project.is_own), (vec!["newest".to_owned()], false));
    assert_eq!(project.folder, folder.path().canonicalize().expect("a path"));
}
