//! Where several futures are waited for at once, it is said which is looked at first. Otherwise it is drawn by lot, and what
//! the simulation does in one run is not what it does in the next.

use std::path::{Path, PathBuf};

use syn::buffer::{Cursor, TokenBuffer};

use crate::top;

/// What the simulation does not drive: where the gateway meets sockets, terminals, signals and editors.
const OUTSIDE: [&str; 4] = ["cli", "control", "evaluation/authoring", "front/console"];

#[test]
fn every_choice_between_futures_that_the_simulation_drives_says_which_is_looked_at_first() {
    let mut files = vec![];
    for crate_ in std::fs::read_dir(top().join("host")).expect("the crates") {
        find(&crate_.expect("a crate").path().join("src"), &mut files);
    }
    find(&top().join("tests/simulation/src"), &mut files);
    let (mut choices, mut by_lot) = (0, vec![]);
    for file in files {
        let found = choices_of(&file);
        choices += found.len();
        by_lot.extend(found.iter().filter(|is_biased| !**is_biased).map(|_| file.display().to_string()));
    }
    assert!(choices > 10, "only {choices} were found");
    assert!(by_lot.is_empty(), "a `select!` without `biased;` in\n{}", by_lot.join("\n"));
}

/// The sources under a folder, but for the modules outside.
fn find(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.expect("an entry").path();
        if OUTSIDE.iter().any(|module| path.with_extension("").ends_with(Path::new("gateway/src").join(module))) {
            continue;
        }
        if path.is_dir() {
            find(&path, found);
        } else if path.extension().is_some_and(|is| is == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn a_choice_by_lot_is_found_wherever_it_is() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let text = "fn f() { select! { a = b => { tokio::select! { biased; c = d => {} } } } let select = !x; }";
    std::fs::write(file.path(), text).expect("a file");
    assert_eq!(choices_of(file.path()), [false, true]);
}

/// Whether each `select!` of a file is biased.
fn choices_of(path: &Path) -> Vec<bool> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let tokens = syn::parse_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut found = vec![];
    look(TokenBuffer::new2(tokens).begin(), &mut found);
    found
}

fn look(mut at: Cursor<'_>, found: &mut Vec<bool>) {
    while !at.eof() {
        if let Some(inside) = choice(at) {
            found.push(inside.ident().is_some_and(|(first, _)| first == "biased"));
        }
        at = match at.any_group() {
            Some((inside, _, _, next)) => {
                look(inside, found);
                next
            }
            None => at.token_tree().map_or(Cursor::empty(), |(_, next)| next),
        };
    }
}

/// What stands in a `select! { … }` that begins here.
fn choice(at: Cursor<'_>) -> Option<Cursor<'_>> {
    let (_, at) = at.ident().filter(|(name, _)| name == "select")?;
    let (_, at) = at.punct().filter(|(mark, _)| mark.as_char() == '!')?;
    at.any_group().map(|(inside, ..)| inside)
}
