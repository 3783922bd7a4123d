//! The documentation pages that a hint names. In a clone of the repository the paths are right as they are; a package
//! has the pages beside the program.

use std::{borrow::Cow, path::Path, sync::LazyLock};

use regex::{Captures, Regex};

/// Where a package has the pages, relative to the folder above the program's.
const IN_A_PACKAGE: &str = "share/doc/pmk-host/docs";

static FOLDER: LazyLock<Option<String>> = LazyLock::new(|| beside(&std::env::current_exe().ok()?));
static PAGE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(^|[^A-Za-z0-9./_-])docs/([a-z-]+\.md)").ok());

/// Returns the folder of the pages that were installed with this program.
fn beside(program: &Path) -> Option<String> {
    let folder = program.parent()?.parent()?.join(IN_A_PACKAGE);
    folder.is_dir().then(|| folder.display().to_string())
}

/// Replaces the pages in a hint with paths that can be opened.
pub(super) fn found(hint: &str) -> Cow<'_, str> {
    match (&*FOLDER, &*PAGE) {
        (Some(folder), Some(page)) => placed(hint, folder, page),
        _ => Cow::Borrowed(hint),
    }
}

fn placed<'a>(hint: &'a str, folder: &str, page: &Regex) -> Cow<'a, str> {
    page.replace_all(hint, |found: &Captures<'_>| format!("{}{folder}/{}", &found[1], &found[2]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_pages_are_placed() {
        let page = PAGE.as_ref().expect("a pattern");
        let placed = |hint| placed(hint, "/usr/share/doc", page).into_owned();
        assert_eq!(placed("a `docs/slack.md#the-app`"), "a `/usr/share/doc/slack.md#the-app`");
        assert_eq!(placed("見docs/models.md"), "見/usr/share/doc/models.md");
        for hint in ["/home/docs/slack.md", "mydocs/slack.md", "docs/Notes.md", "docs/"] {
            assert_eq!(placed(hint), hint);
        }
    }
}
