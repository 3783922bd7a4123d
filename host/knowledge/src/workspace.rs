//! The workspace that knowledge is taken from: its repositories, and reading its files without leaving it.

use std::{
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

use pmk_system::files::{self, FileReadError};
use serde_json::Value;
use thiserror::Error;

/// The list of repositories, relative to the workspace.
const LIST: &str = ".collab/repos.json";

/// The maximum size of the list.
const MAX_LIST_BYTES: u64 = 1024 * 1024;

/// Keys of the list, if the file is an object.
const LIST_KEYS: [&str; 3] = ["repos", "repositories", "projects"];

/// Keys of a repository's path, in order of precedence; if there is none, its name is used.
const PATH_KEYS: [&str; 3] = ["path", "dir", "localPath"];

/// Keys of a repository's name; an id may be nested (`group/order`).
const NAME_KEYS: [&str; 3] = ["name", "repo", "id"];

/// Entries that mark the root of a workspace.
const MARKS: [&str; 3] = [".collab", ".mra-config", "mra-workspace.json"];

/// A problem with one file of a workspace.
#[derive(Clone, Debug, Error, PartialEq, Eq, Hash)]
#[error("`{}` {problem}", path.display())]
pub struct FileProblem {
    /// The file or folder, as far as it could be resolved.
    pub path: PathBuf,
    /// The problem.
    pub problem: Problem,
}

/// The kinds of problems.
#[derive(Clone, Debug, Error, PartialEq, Eq, Hash)]
pub enum Problem {
    /// It does not exist.
    #[error("is missing")]
    Missing,
    /// The system's error.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// It contains a `..`, or is a link that leaves the workspace.
    #[error("is rejected: it leads out of the workspace")]
    Outside,
    /// It is a folder, a pipe or a device.
    #[error("is not a file")]
    NotAFile,
    /// It is not UTF-8, or contains a NUL byte.
    #[error("is not text")]
    Binary,
    /// Only its beginning is read.
    #[error("has {bytes} bytes: only the first {read} are read")]
    Huge {
        /// Its size.
        bytes: u64,
        /// How much of it is read.
        read: u64,
    },
    /// Following it might never end.
    #[error("is a link to a folder and not followed")]
    FolderLink,
    /// Too many levels or files.
    #[error("is nested too deeply, or there are too many files: it is left out")]
    TooMany,
    /// The list of repositories is not a list, or an entry names nothing; says which.
    #[error("is not a list of repositories: {0}")]
    NotAList(String),
}

impl FileProblem {
    pub(super) fn new(path: &Path, problem: Problem) -> Self {
        FileProblem { path: path.to_owned(), problem }
    }

    fn io(path: &Path, error: &io::Error) -> Self {
        let problem = match error.kind() {
            io::ErrorKind::NotFound => Problem::Missing,
            _ => Problem::Unreadable(error.to_string()),
        };
        FileProblem::new(path, problem)
    }
}

/// The beginning of a text file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// At most as many bytes as requested, without an incomplete character at the end.
    pub text: String,
    /// Set if the file is longer.
    pub(crate) cut: Option<Problem>,
}

/// A folder within which all paths are resolved.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
}

/// A repository of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// Its name in the list, otherwise that of its folder.
    pub name: String,
    /// Absolute, inside the workspace, without links.
    pub path: PathBuf,
}

impl Workspace {
    /// # Errors
    /// If the folder does not exist or is not a folder.
    pub fn open(path: &Path) -> Result<Self, FileProblem> {
        let root = path.canonicalize().map_err(|error| FileProblem::io(path, &error))?;
        if !root.is_dir() {
            return Err(FileProblem::new(path, Problem::Unreadable("it is not a folder".into())));
        }
        Ok(Workspace { root })
    }

    /// The folder, without links.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Resolves a path.
    ///
    /// # Errors
    /// If it does not exist, contains a `..`, or leads out of the workspace, including by a link.
    pub(crate) fn resolve(&self, path: &Path) -> Result<PathBuf, FileProblem> {
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(FileProblem::new(path, Problem::Outside));
        }
        let full = self.root.join(path);
        let real = full.canonicalize().map_err(|error| FileProblem::io(&full, &error))?;
        if !real.starts_with(&self.root) {
            return Err(FileProblem::new(&full, Problem::Outside));
        }
        Ok(real)
    }

    /// The beginning of a text file, at most `max_bytes`.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(crate) fn read(&self, path: &Path, max_bytes: u64) -> Result<Text, FileProblem> {
        let real = self.resolve(path)?;
        let failed = |error: io::Error| FileProblem::io(&real, &error);
        let (file, meta) = files::open(&real).map_err(|problem| match problem {
            FileReadError::Folder | FileReadError::Special(_) => FileProblem::new(&real, Problem::NotAFile),
            problem => failed(problem.into()),
        })?;
        let mut bytes = Vec::new();
        file.take(max_bytes).read_to_end(&mut bytes).map_err(failed)?;
        let cut = (meta.len() > max_bytes).then_some(Problem::Huge { bytes: meta.len(), read: max_bytes });
        let text = text_of(bytes, cut.is_some()).ok_or_else(|| FileProblem::new(&real, Problem::Binary))?;
        Ok(Text { text, cut })
    }

    /// The repositories of `.collab/repos.json`, in its order, and the problems with those left out. Archived ones are
    /// left out silently.
    ///
    /// The file may be a list, an object with a list under `repos`, `repositories` or `projects`, or an object by name.
    /// An entry is a name, a path, or an object with `path`, `dir`, `localPath`, `name`, `repo` or `id`.
    ///
    /// # Errors
    /// If the file cannot be read or has none of these formats.
    pub fn repositories(&self) -> Result<(Vec<Repository>, Vec<FileProblem>), FileProblem> {
        let not_a_list = |why: &str| FileProblem::new(&self.root.join(LIST), Problem::NotAList(why.into()));
        let text = self.read(Path::new(LIST), MAX_LIST_BYTES)?;
        let list: Value =
            serde_json::from_str(text.text.trim_start_matches('\u{feff}')).map_err(|e| not_a_list(&e.to_string()))?;
        let list = LIST_KEYS.iter().find_map(|key| list.get(key)).unwrap_or(&list);
        let entries: Vec<Option<Entry<'_>>> = match list {
            Value::Array(entries) => entries.iter().filter(is_live).map(|entry| Entry::of(entry, None)).collect(),
            Value::Object(by_name) => {
                let live = by_name.iter().filter(|(_, entry)| is_live(entry));
                live.map(|(name, entry)| Entry::of(entry, Some(name))).collect()
            }
            _ => return Err(not_a_list("it is neither a list nor an object")),
        };
        let mut repositories: Vec<Repository> = Vec::new();
        let mut problems = Vec::new();
        for entry in entries {
            let Some(entry) = entry else {
                problems.push(not_a_list("an entry has neither path nor name"));
                continue;
            };
            match self.locate(&entry) {
                Ok(path) if repositories.iter().any(|known| known.path == path) => {}
                Ok(path) => repositories.push(Repository { name: entry.called(&path), path }),
                Err(problem) => problems.push(problem),
            }
        }
        Ok((repositories, problems))
    }

    /// The repository of an entry: the first of its possible paths that exists.
    fn locate(&self, entry: &Entry<'_>) -> Result<PathBuf, FileProblem> {
        let mut located = self.resolve(Path::new(entry.places[0]));
        for place in &entry.places[1..] {
            located = located.or_else(|first| self.resolve(Path::new(place)).map_err(|_| first));
        }
        located
    }
}

/// An entry of the list.
struct Entry<'a> {
    /// The repository's name, independent of its path; without it, that of its folder is used.
    name: Option<&'a str>,
    /// Possible paths; at least one.
    places: Vec<&'a str>,
}

impl<'a> Entry<'a> {
    fn of(entry: &'a Value, key: Option<&'a str>) -> Option<Self> {
        let text = |name: &&str| entry.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        let names: Vec<&str> = NAME_KEYS.iter().filter_map(text).chain(key).collect();
        let places: Vec<&str> = match entry {
            Value::String(place) => [place.as_str()].into_iter().filter(|place| !place.trim().is_empty()).collect(),
            Value::Object(_) => match PATH_KEYS.iter().find_map(text) {
                Some(place) => vec![place],
                None => names.clone(),
            },
            _ => key.into_iter().collect(),
        };
        (!places.is_empty()).then(|| Entry { name: names.first().copied(), places })
    }

    fn called(&self, path: &Path) -> String {
        let folder = || path.file_name().map_or_else(|| self.places[0].into(), |name| name.to_string_lossy());
        self.name.map_or_else(|| folder().into_owned(), |name| name.trim().to_owned())
    }
}

/// Whether an entry is not archived.
fn is_live(entry: &&Value) -> bool {
    entry.get("archived") != Some(&Value::Bool(true))
}

/// The workspace to use: the configured one if it exists, otherwise the first one found going up from the working
/// directory. Only folders of the user or root count there: in `/tmp` anybody may create a mark.
pub fn find(configured: Option<PathBuf>, standing: &Path) -> Option<PathBuf> {
    if configured.as_ref().is_some_and(|path| path.is_dir()) {
        return configured;
    }
    let is_marked = |folder: &&Path| MARKS.iter().any(|mark| is_own(&folder.join(mark)));
    let found = standing.ancestors().find(is_marked).map(Path::to_owned);
    if let (Some(gone), Some(found)) = (&configured, &found) {
        tracing::warn!("the workspace `{}` does not exist: using `{}`", gone.display(), found.display());
    }
    found.or(configured)
}

/// Whether it belongs to this user or root.
fn is_own(path: &Path) -> bool {
    let owner = path.metadata().map(|meta| std::os::unix::fs::MetadataExt::uid(&meta));
    owner.is_ok_and(|uid| uid == rustix::process::geteuid().as_raw() || uid == 0)
}

/// The bytes as text, without a character that was cut in half.
fn text_of(bytes: Vec<u8>, cut: bool) -> Option<String> {
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if cut && error.utf8_error().error_len().is_none() => {
            let whole = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            bytes.truncate(whole);
            String::from_utf8(bytes).ok()?
        }
        Err(_) => return None,
    };
    (!text.contains('\0')).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn workspace(list: &str) -> (tempfile::TempDir, Workspace) {
        let dir = tempfile::tempdir().unwrap();
        for folder in [".collab", "erp", "apps/web"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        fs::write(dir.path().join(LIST), list).unwrap();
        let workspace = Workspace::open(dir.path()).unwrap();
        (dir, workspace)
    }

    #[test]
    fn the_list_may_have_any_reasonable_shape() {
        for list in [
            r#"["erp", "apps/web", "erp"]"#,
            r#"{"repos": [{"name": "erp"}, {"name": "web", "path": "./apps/web"}]}"#,
            r#"{"repositories": {"erp": {}, "web": {"dir": "apps/web"}}}"#,
            r#"{"erp": "erp", "web": "apps/web"}"#,
            "\u{feff}[\"erp\", {\"path\": \"apps/web\", \"branch\": \"main\"}]",
        ] {
            let (_dir, workspace) = workspace(list);
            let (repositories, problems) = workspace.repositories().unwrap();
            let names: Vec<&str> = repositories.iter().map(|it| it.name.as_str()).collect();
            assert_eq!((names, problems), (vec!["erp", "web"], vec![]), "{list}");
        }
    }

    /// Regression: a repository was named after its folder, so that nobody could ask about `erp-api`.
    #[test]
    fn a_repository_is_called_by_its_name_wherever_it_lies() {
        let list = r#"[{"name": "erp-api", "path": "erp"}, {"id": "group/order", "name": "", "dir": "apps/web"}]"#;
        let (_dir, workspace) = workspace(list);
        let called = |workspace: &Workspace| -> Vec<String> {
            workspace.repositories().unwrap().0.into_iter().map(|it| it.name).collect()
        };
        assert_eq!(called(&workspace), ["erp-api", "group/order"]);
        let list = r#"{"erp-api": {"path": "erp"}, "old": {"path": "apps/web", "archived": true}}"#;
        fs::write(workspace.root().join(LIST), list).unwrap();
        assert_eq!(called(&workspace), ["erp-api"]);
        fs::write(workspace.root().join(LIST), r#"[{"id": "apps/web", "name": "Shop", "archived": false}]"#).unwrap();
        assert_eq!(called(&workspace), ["Shop"]);
    }

    #[test]
    fn a_workspace_is_found_on_the_way_up_also_when_the_configured_one_has_gone() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("team/services/erp");
        fs::create_dir_all(&below).unwrap();
        let gone = dir.path().join("gone");
        assert_eq!(find(Some(gone.clone()), &below), Some(gone.clone()));
        for mark in MARKS {
            let top = dir.path().join("team");
            fs::write(top.join(mark), "").unwrap();
            assert_eq!(find(None, &below), Some(top.clone()), "{mark}");
            assert_eq!(find(Some(gone.clone()), &below), Some(top.clone()), "{mark}");
            assert_eq!(find(Some(dir.path().to_owned()), &below), Some(dir.path().to_owned()), "{mark}");
            fs::remove_file(top.join(mark)).unwrap();
        }
    }

    #[test]
    fn an_absolute_path_is_fine_inside_the_workspace() {
        let (_dir, workspace) = workspace("[]");
        let list = serde_json::json!([workspace.root().join("erp"), "/etc"]).to_string();
        fs::write(workspace.root().join(LIST), list).unwrap();
        let (repositories, problems) = workspace.repositories().unwrap();
        assert_eq!(repositories.len(), 1);
        assert_eq!(problems, [FileProblem::new(Path::new("/etc"), Problem::Outside)]);
    }

    #[test]
    fn what_leads_out_is_refused_and_the_rest_is_used() {
        let (dir, workspace) = workspace(r#"["../../etc", "erp/../..", "link", "gone", 7, "", "erp"]"#);
        std::os::unix::fs::symlink("/etc", dir.path().join("link")).unwrap();
        let (repositories, problems) = workspace.repositories().unwrap();
        assert_eq!(repositories.len(), 1);
        let kinds: Vec<String> = problems.iter().map(|it| it.problem.to_string()).collect();
        let outside = Problem::Outside.to_string();
        assert_eq!(kinds[..4], [outside.clone(), outside.clone(), outside, Problem::Missing.to_string()]);
        assert_eq!(kinds.len(), 6);
    }

    #[test]
    fn a_list_that_is_none_is_an_error_that_names_the_file() {
        for list in ["", "7", "{\"repos\": 7}", "[\"erp\""] {
            let (_dir, workspace) = workspace(list);
            let error = workspace.repositories().unwrap_err().to_string();
            assert!(error.contains("repos.json") && error.contains("not a list"), "{list}: {error}");
        }
        let (_dir, workspace) = workspace("[]");
        fs::remove_file(workspace.root().join(LIST)).unwrap();
        assert_eq!(workspace.repositories().unwrap_err().problem, Problem::Missing);
    }

    #[test]
    fn a_file_is_read_within_bounds() {
        let (_dir, workspace) = workspace("[]");
        let at = |name: &str, bytes: &[u8]| {
            fs::write(workspace.root().join(name), bytes).unwrap();
            workspace.read(Path::new(name), 10)
        };
        assert_eq!(at("small.md", "預算".as_bytes()).unwrap(), Text { text: "預算".into(), cut: None });
        let huge = at("huge.md", "預算分配比例".as_bytes()).unwrap();
        assert_eq!(huge, Text { text: "預算分".into(), cut: Some(Problem::Huge { bytes: 18, read: 10 }) });
        assert_eq!(at("latin.md", &[b'a', 0xe9, b'b']).unwrap_err().problem, Problem::Binary);
        assert_eq!(at("nul.md", b"a\0b").unwrap_err().problem, Problem::Binary);
        assert_eq!(workspace.read(Path::new("erp"), 10).unwrap_err().problem, Problem::NotAFile);
    }
}
