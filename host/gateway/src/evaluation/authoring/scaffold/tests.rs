//! Tests the contents of a project. The black-box tests check that it builds.

use super::*;

fn written(language: Language) -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir().expect("a folder");
    let project = Project::new("newest".parse().expect("a name"), language, None).expect("a project");
    let folder = project.write(parent.path()).expect("it is written").folder;
    (parent, folder)
}

#[test]
fn nothing_is_left_to_be_filled_in() {
    for language in [Language::Rust, Language::JavaScript, Language::Python] {
        let project = Project::new("newest".parse().expect("a name"), language, None).expect("a project");
        for (path, content) in project.files() {
            // The contract's marker has one brace.
            assert!(is_vendored(&path) || !content.contains("{{"), "{path}");
        }
    }
}

#[test]
fn nothing_is_written_over() {
    let (parent, folder) = written(Language::Python);
    fs::write(folder.join("newest.py"), "mine").expect("a file");
    let again = Project::new("newest".parse().expect("a name"), Language::Rust, None).expect("a project");
    assert!(matches!(again.write(parent.path()), Err(ScaffoldError::Exists(_))));
    assert_eq!(fs::read_to_string(folder.join("newest.py")).expect("a file"), "mine");
}

#[test]
fn the_sdk_comes_along_unless_there_is_one() {
    let (_parent, folder) = written(Language::Rust);
    for file in
        ["vendor/rust/sdk/src/lib.rs", "vendor/rust/core/src/guard.rs", "vendor/wit/policy.wit", "vendor/LICENSE-MIT"]
    {
        assert!(folder.join(file).is_file(), "{file}");
    }
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/sdk");
    let parent = tempfile::tempdir().expect("a folder");
    let project = Project::new("newest".parse().expect("a name"), Language::Rust, Some(&sdk)).expect("a project");
    let folder = project.write(parent.path()).expect("it is written").folder;
    assert!(!folder.join(VENDORED).exists());
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("the manifest");
    assert!(manifest.contains(&format!("{:?}", sdk.canonicalize().expect("a path"))), "{manifest}");
}

/// In a target folder that projects share, cargo took the SDK of another project, built against another contract.
#[test]
fn the_sdk_of_another_contract_was_the_same_to_cargo() {
    let (_parent, folder) = written(Language::Rust);
    let manifest = fs::read_to_string(folder.join("vendor/rust/sdk/Cargo.toml")).expect("the manifest");
    assert!(manifest.lines().any(|line| line == format!("version = \"{}\"", contract::VERSION)), "{manifest}");
}

#[test]
fn what_is_no_sdk_is_refused() {
    let name = || "newest".parse().expect("a name");
    let elsewhere = Project::new(name(), Language::Rust, Some(Path::new(env!("CARGO_MANIFEST_DIR"))));
    assert!(matches!(elsewhere, Err(ScaffoldError::NoSdk(_))));
    let useless = Project::new(name(), Language::Python, Some(Path::new(".")));
    assert!(matches!(useless, Err(ScaffoldError::SdkIsForRust)));
}

/// Names and version requirements of a manifest's dependencies from a registry.
fn registered(manifest: &str) -> Vec<(&str, &str)> {
    let (_, dependencies) = manifest.split_once("dependencies]").expect("a section of dependencies");
    let entries = dependencies.lines().filter(|line| !line.starts_with('[')).filter_map(|line| line.split_once(" = "));
    entries.filter(|(_, value)| !value.contains("path")).map(|(name, value)| (name, version(value))).collect()
}

/// The first quoted text.
fn version(value: &str) -> &str {
    value.split('"').nth(1).expect("a version")
}

#[test]
fn the_dependencies_that_come_along_are_those_of_the_workspace() {
    let workspace = include_str!("../../../../../../Cargo.toml");
    for (own, brought) in [
        (include_str!("../../../../../core/Cargo.toml"), "plugins/templates/rust/vendor/rust/core/Cargo.toml"),
        (include_str!("../../../../../search/Cargo.toml"), "plugins/templates/rust/vendor/rust/search/Cargo.toml"),
        (include_str!("../../../../../../plugins/sdk/Cargo.toml"), "plugins/templates/rust/vendor/rust/sdk/Cargo.toml"),
    ] {
        let (_, brought) = embedded::copies(&[(brought, "")]).next().expect("the manifest");
        let registered = registered(&brought);
        for (name, requirement) in &registered {
            let line = workspace.lines().find(|line| line.starts_with(&format!("{name} = "))).expect("a dependency");
            assert_eq!(version(line), *requirement, "{name}");
        }
        let (before_dev, _) = own.split_once("[dev-dependencies]").unwrap_or((own, ""));
        let (_, section) = before_dev.split_once("dependencies]").expect("a section of dependencies");
        // The crates of the repository are included as sources.
        let wanted = section.lines().filter(|line| line.contains(".workspace = true") && !line.starts_with("pmk-"));
        assert_eq!(registered.len(), wanted.count(), "each dependency is brought along, and no other");
    }
}

/// A second `npm install` took away a package that the build's tool needs and does not name.
#[test]
fn installing_a_javascript_project_once_more_broke_its_build() {
    let wanted = |manifest: &str| {
        let manifest: Value = serde_json::from_str(manifest).expect("a manifest");
        manifest["devDependencies"].clone()
    };
    let example = include_str!("../../../../../../plugins/examples/channels-js/package.json");
    let (_, template) = embedded::copies(&[("plugins/templates/js/package.json", "")]).next().expect("the manifest");
    assert_eq!(wanted(&template), wanted(example), "the example is built with what a project is built with");
}
