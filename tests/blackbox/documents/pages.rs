//! Pages of Markdown, and what stands in them.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use crate::support::repository;

/// What a page of the repository's own begins with, where it names a path.
const FOLDERS: [&str; 7] = ["host/", "plugins/", "tests/", "wit/", "docs/", ".ci/", ".cargo/"];

/// One page.
pub(super) struct Page {
    /// Its path in the repository.
    pub name: String,
    pub path: PathBuf,
    text: String,
}

/// Every page of the repository: those at the top and those in `docs`.
pub(super) fn pages() -> Vec<Page> {
    let mut names = vec![];
    for folder in ["", "docs/"] {
        for entry in std::fs::read_dir(repository(folder)).expect("a folder") {
            let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
            if name.ends_with(".md") {
                names.push(format!("{folder}{name}"));
            }
        }
    }
    names.sort();
    names.iter().map(|name| Page::read(name)).collect()
}

impl Page {
    pub fn read(name: &str) -> Page {
        let path = repository(name);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        Page { name: name.to_owned(), path, text }
    }

    pub fn folder(&self) -> &Path {
        self.path.parent().expect("a folder")
    }

    /// The lines outside of fences.
    fn prose(&self) -> impl Iterator<Item = &str> {
        let mut is_fenced = false;
        self.text.lines().filter(move |line| {
            let is_fence = line.trim_start().starts_with("```");
            is_fenced ^= is_fence;
            !is_fenced && !is_fence
        })
    }

    /// The lines of fences that a shell is to run.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        self.text.split("```sh\n").skip(1).filter_map(|rest| rest.split_once("```")).flat_map(|(code, _)| code.lines())
    }

    /// The variables that its commands take secrets from.
    pub fn variables(&self) -> BTreeSet<&str> {
        let commands = self.commands().chain(self.text.lines().filter_map(|line| line.strip_prefix("$ ")));
        commands.flat_map(|line| line.split(" env:").skip(1)).filter_map(|rest| rest.split(' ').next()).collect()
    }

    pub fn says(&self, text: &str) -> bool {
        self.text.contains(text)
    }

    /// The first code in this language.
    pub fn fence(&self, language: &str) -> Option<&str> {
        let (_, rest) = self.text.split_once(&format!("```{language}\n"))?;
        Some(rest.split_once("```")?.0)
    }

    /// What stands in marks of code.
    fn code(&self) -> impl Iterator<Item = &str> {
        self.prose().flat_map(|line| line.split('`').skip(1).step_by(2))
    }

    /// Where links lead.
    pub fn links(&self) -> Vec<&str> {
        let ends = self.prose().flat_map(|line| line.split("](").skip(1));
        ends.filter_map(|end| end.split_once(')')).map(|(link, _)| link).collect()
    }

    /// What a link to this page may end with: its headings, as GitHub names them, and what it marks itself.
    pub fn anchors(&self) -> BTreeSet<String> {
        let headings = self.prose().filter(|line| line.starts_with('#'));
        let slugs = headings.map(|line| slug(line.trim_start_matches('#').trim()));
        let marked = self.prose().flat_map(|line| line.split("<a id=\"").skip(1));
        slugs.chain(marked.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()))).collect()
    }

    /// The rows of the table with this head.
    pub fn rows<'a>(&'a self, head: &'a str) -> impl Iterator<Item = Vec<&'a str>> {
        let rows = self.text.lines().skip_while(move |line| *line != head).skip(2);
        rows.take_while(|line| line.starts_with('|'))
            .map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect())
    }

    /// What stands in marks of code in the last column of each row of a table about tests.
    pub fn tests_named(&self) -> Vec<&str> {
        self.of_tables_about_tests(|cells| cells.last().copied())
            .filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(&byte)))
            .collect()
    }

    /// What stands in marks of code in the column before it, where that is a place.
    pub fn places(&self) -> Vec<&str> {
        self.of_tables_about_tests(|cells| cells.iter().rev().nth(1).copied())
            .filter(|name| !name.contains([' ', '-']) || FOLDERS.iter().any(|folder| name.starts_with(folder)))
            .filter(|name| name.contains('/') || name.ends_with(".rs"))
            .collect()
    }

    fn of_tables_about_tests<'a>(
        &'a self,
        cell: impl Fn(&[&'a str]) -> Option<&'a str> + 'a,
    ) -> impl Iterator<Item = &'a str> {
        let mut is_about_tests = false;
        let rows = self.text.lines().filter(move |line| {
            is_about_tests = line.ends_with("| shown by |") || is_about_tests && line.starts_with('|');
            is_about_tests
        });
        let cells = rows.filter_map(move |line| cell(&line.trim_matches('|').split(" | ").collect::<Vec<_>>()));
        cells.flat_map(|cell| cell.split('`').skip(1).step_by(2))
    }

    /// Paths of the repository that stand in marks of code; of one with a `NAME` in it what goes before.
    pub fn paths_named(&self) -> Vec<&str> {
        self.code()
            .map(|code| code.split("NAME").next().unwrap_or_default())
            .filter(|code| FOLDERS.iter().any(|folder| code.starts_with(folder)))
            .filter(|code| code.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte)))
            .collect()
    }
}

/// The anchor of a heading: small letters, digits, hyphens for blanks.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter));
    kept.flat_map(char::to_lowercase).map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

/// The requirements that a line cites, as `specification 003 §7, §8`, by their anchors: `003-7`, `003-8`.
pub(super) fn citations(line: &str) -> Vec<String> {
    let Some((_, rest)) = line.split_once("pecification") else { return vec![] };
    let mut document = None;
    let mut found = vec![];
    for word in rest.split([' ', '(', ')', ',', ':', ';', '|']) {
        let word = word.trim_end_matches(['.', '\'', '`']).trim_end_matches("'s");
        if word.len() == 3 && word.starts_with("00") && word.bytes().all(|byte| byte.is_ascii_digit()) {
            document = Some(word);
            found.push(word.to_owned());
        } else if let (Some(document), Some(section)) = (document, word.strip_prefix('§')) {
            found.push(format!("{document}-{section}"));
        }
    }
    found
}
