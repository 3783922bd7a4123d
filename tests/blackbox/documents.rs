//! The documents name tests, which are there.

use std::{collections::HashSet, path::Path};

use crate::support::repository;

/// Every function of the Rust files below a folder.
fn functions(folder: &Path, found: &mut HashSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with("node_modules") {
            functions(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("UTF-8");
            let names = text.lines().filter_map(|line| line.trim_start().split_once("fn ")?.1.split_once(['(', '<']));
            found.extend(names.map(|(name, _)| name.to_owned()));
        }
    }
}

/// What stands in marks of code in the last column of each row, where that column is about tests.
fn tests_named(page: &str) -> Vec<&str> {
    let rows = page.lines().filter_map(|line| line.strip_suffix(" |")?.rsplit_once(" | "));
    let marked = rows.flat_map(|(_, last)| last.split('`').skip(1).step_by(2));
    marked.filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(&byte))).collect()
}

#[test]
fn every_test_that_the_specification_names_is_there() {
    let mut found = HashSet::new();
    for folder in ["host", "plugins", "tests"] {
        functions(&repository(folder), &mut found);
    }
    let page = std::fs::read_to_string(repository("docs/specification.md")).expect("the page");
    let named = tests_named(&page);
    assert!(named.len() > 80, "{named:?}");
    let missing: Vec<_> =
        named.into_iter().filter(|name| !found.contains(name.rsplit("::").next().unwrap_or(name))).collect();
    assert!(missing.is_empty(), "no such test: {missing:#?}");
}
