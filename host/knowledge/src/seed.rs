//! The knowledge-base seed: the documents of the workspace as the first pair of a session (specification 003 §3).

use std::{
    collections::HashSet,
    fmt, fs,
    path::{Path, PathBuf},
    str::FromStr,
    sync::{Mutex, PoisonError},
};

use pmk_core::{Language, Message, Origin, Role};
use thiserror::Error;

use super::workspace::{FileProblem, Problem, Workspace};

/// The four base documents of a repository, below [`PKB_FOLDER`].
const DOCUMENTS: [&str; 4] = ["sitemap.md", "architecture.md", "conventions.md", "api-surface.md"];

const PKB_FOLDER: &str = ".mra/pkb";

/// How a seed begins; imported histories are recognised by it ([`SEED_PREFIXES`](pmk_core::history::SEED_PREFIXES)).
const fn opening(language: Language) -> &'static str {
    language.pick(
        "Here are the team's documents (take them as ground truth: where they differ from what you remember, they hold):",
        "我先把 workspace 的 PKB context 給你（請當作 ground truth，與你的印象不同時以此為準）：",
    )
}

/// The second message of the seed pair.
const fn acknowledgement(language: Language) -> &'static str {
    language.pick("I have read the documents. Please go on.", "了解，已載入 workspace PKB context。請繼續。")
}

/// How much of one document is read, in bytes. The policy's cap on the seed is far below.
const MAX_DOCUMENT_BYTES: u64 = 256 * 1024;

/// How much is packed in total, in bytes.
const MAX_SEED_BYTES: usize = 2 * 1024 * 1024;

/// How many documents of a folder are packed, and from how many levels.
const MAX_FILES: usize = 500;
const MAX_DEPTH: usize = 12;

/// The source of the documents: the setting `defaultIngest`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ingest {
    /// `mra:--all`: the base documents of every repository in the workspace.
    AllRepositories,
    /// `dir:PATH`: every Markdown file of a folder.
    Folder(PathBuf),
}

/// An invalid value of `defaultIngest`.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`defaultIngest` cannot be `{0}`; use `mra:--all` or `dir:PATH`")]
pub struct UnknownIngest(String);

impl FromStr for Ingest {
    type Err = UnknownIngest;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim().split_once(':') {
            Some(("mra", "--all")) => Ok(Ingest::AllRepositories),
            Some(("dir", path)) if !path.is_empty() => Ok(Ingest::Folder(path.into())),
            _ => Err(UnknownIngest(text.to_owned())),
        }
    }
}

impl fmt::Display for Ingest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ingest::AllRepositories => f.write_str("mra:--all"),
            Ingest::Folder(path) => write!(f, "dir:{}", path.display()),
        }
    }
}

/// The result of packing.
#[derive(Clone, Debug, PartialEq)]
pub struct Packed {
    /// The seed and its acknowledgement, before any cap; `None` if there are no documents.
    pub pair: Option<[Message; 2]>,
    /// Problems that were not reported before.
    pub problems: Vec<FileProblem>,
}

/// Packs seeds, and remembers which problems it has reported.
#[derive(Debug)]
pub struct Seeder {
    ingest: Ingest,
    workspace: PathBuf,
    language: Language,
    reported: Mutex<HashSet<FileProblem>>,
}

impl Seeder {
    /// `workspace` is the mra workspace, which is not needed for `dir:`. The pair's own texts are in that language.
    pub fn new(ingest: Ingest, workspace: impl Into<PathBuf>, language: Language) -> Self {
        Seeder { ingest, workspace: workspace.into(), language, reported: Mutex::default() }
    }

    /// Packs the current documents. Never fails: what cannot be read is left out and reported once.
    pub fn pack(&self) -> Packed {
        let mut packing = Packing::default();
        let packed = match &self.ingest {
            Ingest::AllRepositories => packing.repositories(&self.workspace),
            Ingest::Folder(path) => packing.folder(path),
        };
        packing.problems.extend(packed.err());
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        packing.problems.retain(|problem| reported.insert(problem.clone()));
        Packed { pair: packing.pair(self.language), problems: packing.problems }
    }
}

#[derive(Default)]
struct Packing {
    text: String,
    problems: Vec<FileProblem>,
}

impl Packing {
    /// Ordered by document rather than by repository, so that when the cap cuts, at least every repository's sitemap is
    /// kept.
    fn repositories(&mut self, workspace: &Path) -> Result<(), FileProblem> {
        let workspace = Workspace::open(workspace)?;
        let (repositories, problems) = workspace.repositories()?;
        self.problems.extend(problems);
        let with_pkb: Vec<_> = repositories.iter().filter(|it| it.path.join(PKB_FOLDER).is_dir()).collect();
        for document in DOCUMENTS {
            for repository in &with_pkb {
                let path = repository.path.join(PKB_FOLDER).join(document);
                self.document(&workspace, &path, &format!("{}: {document}", repository.name));
            }
        }
        Ok(())
    }

    fn folder(&mut self, path: &Path) -> Result<(), FileProblem> {
        let workspace = Workspace::open(path)?;
        let mut found = Vec::new();
        self.walk(workspace.root(), 0, &mut found);
        for path in found {
            let title = path.strip_prefix(workspace.root()).unwrap_or(&path).to_string_lossy().into_owned();
            self.document(&workspace, &path, &title);
        }
        Ok(())
    }

    /// Finds Markdown files, those of a folder before those of its subfolders, sorted by name. Hidden files are
    /// ignored.
    fn walk(&mut self, folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
        let entries = match fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
            Ok(entries) => entries,
            Err(error) => {
                self.problems.push(FileProblem::new(folder, Problem::Unreadable(error.to_string())));
                return;
            }
        };
        let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
        paths.retain(|path| !path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")));
        paths.sort();
        let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = paths.into_iter().partition(|path| path.is_dir());
        for path in files.into_iter().filter(|path| is_markdown(path)) {
            if found.len() == MAX_FILES {
                self.problems.push(FileProblem::new(&path, Problem::TooMany));
                return;
            }
            found.push(path);
        }
        for path in folders {
            if path.is_symlink() {
                self.problems.push(FileProblem::new(&path, Problem::FolderLink));
            } else if depth == MAX_DEPTH || found.len() == MAX_FILES {
                self.problems.push(FileProblem::new(&path, Problem::TooMany));
                return;
            } else {
                self.walk(&path, depth + 1, found);
            }
        }
    }

    fn document(&mut self, workspace: &Workspace, path: &Path, title: &str) {
        let read = match workspace.read(path, MAX_DOCUMENT_BYTES) {
            Ok(read) => read,
            Err(problem) => return self.problems.push(problem),
        };
        if self.text.len() + read.text.len() > MAX_SEED_BYTES {
            return self.problems.push(FileProblem::new(path, Problem::TooMany));
        }
        self.problems.extend(read.cut.map(|cut| FileProblem::new(path, cut)));
        let text = read.text.trim();
        if !text.is_empty() {
            self.text.push_str(&format!("\n\n=== {title} ===\n\n{text}"));
        }
    }

    fn pair(&self, language: Language) -> Option<[Message; 2]> {
        (!self.text.is_empty()).then(|| {
            [
                Message::text(Role::User, Origin::Seed, format!("{}{}", opening(language), self.text)),
                Message::text(Role::Assistant, Origin::SeedAck, acknowledgement(language)),
            ]
        })
    }
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|it| it.eq_ignore_ascii_case("md") || it.eq_ignore_ascii_case("markdown"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn write(root: &Path, path: &str, text: impl AsRef<[u8]>) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn seed_of(packed: &Packed) -> String {
        packed.pair.as_ref().unwrap()[0].plain_text()
    }

    fn problems(packed: &Packed) -> Vec<String> {
        packed.problems.iter().map(|it| it.problem.to_string()).collect()
    }

    #[test]
    fn the_setting_is_understood_or_refused() {
        assert_eq!("mra:--all".parse(), Ok(Ingest::AllRepositories));
        assert_eq!("dir:/docs:old".parse(), Ok(Ingest::Folder("/docs:old".into())));
        for wrong in ["", "mra", "mra:erp", "dir:", "http://x"] {
            let error = wrong.parse::<Ingest>().unwrap_err().to_string();
            assert!(error.contains(wrong) && error.contains("dir:PATH"), "{error}");
        }
    }

    #[test]
    fn every_repository_with_a_pkb_is_packed() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), ".collab/repos.json", r#"["erp", "web", "bare"]"#);
        fs::create_dir(dir.path().join("bare")).unwrap();
        for repository in ["erp", "web"] {
            for document in DOCUMENTS {
                write(dir.path(), &format!("{repository}/.mra/pkb/{document}"), format!("{repository} {document}"));
            }
        }
        let packed = Seeder::new(Ingest::AllRepositories, dir.path(), Language::TraditionalChinese).pack();
        assert_eq!(packed.problems, []);
        let [seed, ack] = packed.pair.as_ref().unwrap();
        assert_eq!((seed.origin, ack.origin), (Origin::Seed, Origin::SeedAck));
        assert_eq!(ack.plain_text(), acknowledgement(Language::TraditionalChinese));
        let text = seed.plain_text();
        assert!(text.starts_with("我先把 workspace 的 PKB context 給你"), "{text}");
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is not in {text}"));
        assert!(at("erp: sitemap.md") < at("web: sitemap.md") && at("web: sitemap.md") < at("erp: architecture.md"));
        assert!(at("=== erp: api-surface.md ===\n\nerp api-surface.md") < at("web: api-surface.md"));
    }

    #[test]
    fn histories_recognise_a_seed_in_either_language() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "a.md", "first");
        for language in Language::ALL {
            let packed = Seeder::new(Ingest::Folder(dir.path().to_owned()), "", language).pack();
            let [seed, ack] = packed.pair.unwrap().map(|message| message.plain_text());
            let file = serde_json::json!({"messages": [{"role": "user", "content": seed}, {"role": "assistant", "content": ack}]});
            let history = pmk_core::History::parse(&file.to_string()).unwrap();
            assert_eq!(
                history.messages.iter().map(|message| message.origin).collect::<Vec<_>>(),
                [Origin::Seed, Origin::SeedAck]
            );
        }
    }

    #[test]
    fn a_bad_document_is_reported_once_and_never_fatal() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), ".collab/repos.json", r#"["erp"]"#);
        write(dir.path(), "erp/.mra/pkb/sitemap.md", "x".repeat(300 * 1024));
        write(dir.path(), "erp/.mra/pkb/architecture.md", [0, 159, 146, 150]);
        symlink("/etc/passwd", dir.path().join("erp/.mra/pkb/conventions.md")).unwrap();
        let seeder = Seeder::new(Ingest::AllRepositories, dir.path(), Language::TraditionalChinese);
        let packed = seeder.pack();
        assert!(seed_of(&packed).len() < 270 * 1024);
        let found = problems(&packed);
        let expected = ["only the first 262144", "not text", "out of the workspace", "missing"];
        assert!(found.len() == 4 && found.iter().zip(expected).all(|(it, part)| it.contains(part)), "{found:?}");
        let again = seeder.pack();
        assert_eq!((again.problems, again.pair), (vec![], packed.pair));
    }

    #[test]
    fn a_workspace_that_is_not_there_is_one_problem() {
        let dir = tempfile::tempdir().unwrap();
        let packed = Seeder::new(Ingest::AllRepositories, dir.path().join("gone"), Language::English).pack();
        assert_eq!((packed.pair.is_none(), problems(&packed)), (true, vec!["is missing".to_owned()]));
        let packed = Seeder::new(Ingest::AllRepositories, dir.path(), Language::TraditionalChinese).pack();
        assert!(packed.pair.is_none() && packed.problems[0].path.ends_with(".collab/repos.json"));
    }

    #[test]
    fn a_folder_is_packed_in_order_and_within_itself() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "b.md", "second");
        write(dir.path(), "a.MD", "first");
        write(dir.path(), "sub/c.markdown", "third");
        write(dir.path(), "notes.txt", "not this");
        write(dir.path(), ".git/d.md", "nor this");
        symlink("/etc", dir.path().join("etc")).unwrap();
        symlink("/etc/passwd", dir.path().join("passwd.md")).unwrap();
        symlink(dir.path().join("b.md"), dir.path().join("z.md")).unwrap();
        let packed = Seeder::new(Ingest::Folder(dir.path().to_owned()), "", Language::English).pack();
        let text = seed_of(&packed);
        let body = text.split_once("\n\n").unwrap().1;
        assert_eq!(
            body,
            "=== a.MD ===\n\nfirst\n\n=== b.md ===\n\nsecond\n\n=== z.md ===\n\nsecond\n\n=== sub/c.markdown ===\n\nthird"
        );
        assert_eq!(problems(&packed), [Problem::FolderLink.to_string(), Problem::Outside.to_string()]);
    }

    #[test]
    fn a_folder_without_end_is_packed_within_bounds() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..MAX_FILES + 20 {
            write(dir.path(), &format!("{n:04}.md"), "x");
        }
        write(dir.path(), "sub/deep.md", "x");
        let packed = Seeder::new(Ingest::Folder(dir.path().to_owned()), "", Language::English).pack();
        assert_eq!(seed_of(&packed).matches("=== ").count(), MAX_FILES);
        assert!(!packed.problems.is_empty() && packed.problems.iter().all(|it| it.problem == Problem::TooMany));
    }

    #[test]
    fn an_unreadable_document_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "a.md", "fine");
        fs::create_dir(dir.path().join("b.md.d")).unwrap();
        write(dir.path(), "locked/c.md", "x");
        fs::set_permissions(dir.path().join("locked"), fs::Permissions::from_mode(0o000)).unwrap();
        let packed = Seeder::new(Ingest::Folder(dir.path().to_owned()), "", Language::English).pack();
        let readable = fs::read_dir(dir.path().join("locked")).is_ok();
        fs::set_permissions(dir.path().join("locked"), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(seed_of(&packed).contains("fine"));
        // As root, every file is readable.
        assert_eq!(packed.problems.len(), usize::from(!readable), "{:?}", packed.problems);
    }
}
