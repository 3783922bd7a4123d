//! The planted bugs and what the documentation says of them. Whether each is found takes long, and is asked of `planted/check`.

use std::path::{Path, PathBuf};

/// Each planted bug: the name of its file, and what is in it.
fn planted() -> Vec<(String, String)> {
    let files = std::fs::read_dir(here().join("planted")).expect("the folder of planted bugs");
    let paths = files.map(|file| file.expect("a file").path());
    let mut patches: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|is| is == "patch"))
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).expect("a patch"))
        })
        .collect();
    patches.sort();
    patches
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

#[test]
fn each_planted_bug_has_its_row_and_each_row_a_seed() {
    let page = std::fs::read_to_string(here().join("../../docs/simulation.md")).expect("the page");
    let table = page.lines().skip_while(|line| !line.starts_with("| planted |")).skip(2);
    let rows: Vec<Vec<&str>> = table
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').splitn(3, '|').map(str::trim).collect())
        .collect();
    let said: Vec<String> = rows.iter().map(|row| row[0].to_owned()).collect();
    let bugs: Vec<String> = planted()
        .iter()
        .map(|(_, patch)| patch.lines().next().unwrap_or_default().trim_end_matches('.').to_owned())
        .collect();
    assert_eq!(said, bugs);
    for row in &rows {
        assert!(row[1].parse::<u64>().is_ok() && !row[2].is_empty(), "{row:?}");
    }
}

#[test]
fn each_planted_bug_fits_what_the_source_is_now() {
    for (name, patch) in planted() {
        let mut hunks = 0;
        for file in patch.split("\ndiff --git ").skip(1) {
            let path = file.lines().find_map(|line| line.strip_prefix("--- a/")).expect("a file that is changed");
            let source = std::fs::read_to_string(here().join("../..").join(path));
            let source = source.unwrap_or_else(|error| panic!("{name}: {path}: {error}"));
            for hunk in file.split("\n@@ ").skip(1) {
                let old: Vec<&str> = hunk.lines().skip(1).filter_map(|line| line.strip_prefix([' ', '-'])).collect();
                let old = old.join("\n");
                assert!(source.contains(&old), "{name} does not fit {path} any more:\n{old}");
                hunks += 1;
            }
        }
        assert!(hunks > 0, "{name} changes nothing");
    }
}
