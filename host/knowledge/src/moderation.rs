//! Verdicts on atoms: promotion by time, approval, rejection, editing (specification 003 §10).
//!
//! These work on the files alone, so that the command line can use them while the gateway runs. Each takes the folder's
//! lock and reads the file again before it changes anything: if two do the same concurrently, the second finds it done.

use pmk_system::error::Failure;
use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use thiserror::Error;

use super::{
    atom::{Atom, AtomError, Notice, PENDING_MS, Status},
    files::{AtomFiles, FileError, read_text},
};

/// An atom and its file.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredAtom {
    /// The path of its file.
    pub path: PathBuf,
    /// Its content.
    pub atom: Atom,
}

/// Whether atoms that are due are promoted while loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promote {
    /// Their files are rewritten.
    Yes,
    /// Nothing is written; for read-only use.
    No,
}

/// All atoms.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Sorted by path.
    pub atoms: Vec<StoredAtom>,
    /// Files that are not atoms, and atoms that could not be promoted.
    pub problems: Vec<FileError>,
}

impl Loaded {
    /// As [`find`]; of a file with such a name that is not an atom, it says what is wrong.
    ///
    /// # Errors
    /// Those of [`find`], or the [problem](FileError::broken) of that file.
    pub fn find(mut self, prefix: &str) -> Result<StoredAtom, ModerationError> {
        let is_meant = |problem: &FileError| {
            let id = problem.broken().and_then(Path::file_stem).and_then(OsStr::to_str);
            !prefix.is_empty() && id.is_some_and(|id| id.starts_with(prefix))
        };
        match find(&self.atoms, prefix) {
            Err(ModerationError::NotFound(prefix)) => match self.problems.iter().position(is_meant) {
                Some(at) => Err(self.problems.swap_remove(at).into()),
                None => Err(ModerationError::NotFound(prefix)),
            },
            found => found.cloned(),
        }
    }
}

/// Why a verdict could not be applied.
#[derive(Debug, Error)]
pub enum ModerationError {
    /// A file or the folder cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// No id has this prefix.
    #[error("no atom's id begins with `{0}`")]
    NotFound(String),
    /// Several ids have this prefix.
    #[error("`{prefix}` is ambiguous: {} ids begin with it: {}", ids.len(), list_of(ids))]
    Ambiguous {
        /// The prefix.
        prefix: String,
        /// All matching ids.
        ids: Vec<String>,
    },
    /// Several files have the same id: somebody has copied one.
    #[error("several files have the id `{id}`: {}", list_of(files))]
    Copied {
        /// The id.
        id: String,
        /// The files.
        files: Vec<String>,
    },
    /// The edited text is not an atom.
    #[error("the edited text is not an atom: {0}")]
    Invalid(#[from] AtomError),
    /// The edited text is another atom.
    #[error("the edited text has a different `{key}`: `{edited}` instead of `{original}`")]
    Identity {
        /// What must not be edited: `id` or `scope`.
        key: &'static str,
        /// Its value before.
        original: String,
        /// Its value now.
        edited: String,
    },
}

/// As many ids as fit on a line.
pub(super) fn list_of(ids: &[String]) -> String {
    const SHOWN: usize = 10;
    let shown = ids.iter().take(SHOWN).map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
    if ids.len() > SHOWN { format!("{shown}, …") } else { shown }
}

/// Reads all atoms. A file that is not an atom is reported as a problem.
///
/// # Errors
/// If the folder cannot be listed.
pub fn load(files: &AtomFiles, now_ms: i64, promote: Promote) -> Result<Loaded, FileError> {
    let mut loaded = Loaded::default();
    for path in files.paths()? {
        let read = match files.read(&path) {
            Ok(atom) if promote == Promote::Yes && atom.is_due(now_ms) => promote_file(files, &path, now_ms),
            read => read.map(Some),
        };
        match read {
            Ok(Some(atom)) => loaded.atoms.push(StoredAtom { path, atom }),
            Ok(None) => {}
            Err(problem) if problem.is_missing() => {}
            Err(problem) => loaded.problems.push(problem),
        }
    }
    Ok(loaded)
}

/// Approves an atom that is due and returns its current state; `None` if it no longer exists.
///
/// # Errors
/// If the file cannot be read or written.
pub(crate) fn promote_file(files: &AtomFiles, path: &Path, now_ms: i64) -> Result<Option<Atom>, FileError> {
    change(files, path, |atom| atom.is_due(now_ms).then(|| atom.approve()).is_some())
}

/// Approves an atom at once and returns its current state; `None` if it no longer exists.
///
/// # Errors
/// If the file cannot be read or written.
pub fn approve_file(files: &AtomFiles, path: &Path) -> Result<Option<Atom>, FileError> {
    change(files, path, |atom| (atom.meta.status == Status::Pending).then(|| atom.approve()).is_some())
}

/// Stores the notice that asks for a verdict; `None` if the atom no longer exists.
///
/// # Errors
/// If the file cannot be read or written.
pub fn note_notice(files: &AtomFiles, path: &Path, notice: &Notice) -> Result<Option<Atom>, FileError> {
    change(files, path, |atom| atom.meta.approval.replace(notice.clone()).as_ref() != Some(notice))
}

/// Deletes an atom.
///
/// # Errors
/// If the file cannot be deleted.
pub fn reject_file(files: &AtomFiles, path: &Path) -> Result<(), FileError> {
    files.delete(&files.lock()?, path)
}

/// Finds the one atom whose id has this prefix; a complete id is never ambiguous.
///
/// # Errors
/// [`ModerationError::NotFound`], or [`ModerationError::Ambiguous`] with every candidate, or [`ModerationError::Copied`].
pub fn find<'a>(atoms: &'a [StoredAtom], prefix: &str) -> Result<&'a StoredAtom, ModerationError> {
    let matching = |test: &dyn Fn(&str) -> bool| atoms.iter().filter(|it| test(&it.atom.meta.id)).collect::<Vec<_>>();
    let mut found = matching(&|id| id == prefix);
    if found.is_empty() && !prefix.is_empty() {
        found = matching(&|id| id.starts_with(prefix));
    }
    match found.as_slice() {
        [] => Err(ModerationError::NotFound(prefix.to_owned())),
        [one] => Ok(one),
        [first, others @ ..] if others.iter().all(|it| it.atom.meta.id == first.atom.meta.id) => {
            let files = found.iter().map(|it| it.path.display().to_string()).collect();
            Err(ModerationError::Copied { id: first.atom.meta.id.clone(), files })
        }
        many => Err(ModerationError::Ambiguous {
            prefix: prefix.to_owned(),
            ids: many.iter().map(|it| it.atom.meta.id.clone()).collect(),
        }),
    }
}

/// The minute and four digits: short enough to type, and nearly always unique.
const SHORT_ID_CHARS: usize = "2026-04-28T0213-5388".len();

/// A prefix of an id that is enough to [`find`] its atom among these.
pub fn short_id<'a>(atoms: &[StoredAtom], id: &'a str) -> &'a str {
    let others = || atoms.iter().map(|it| it.atom.meta.id.as_str()).filter(|other| *other != id);
    let ends = id.char_indices().map(|(at, _)| at).chain([id.len()]).skip(SHORT_ID_CHARS);
    ends.map(|end| &id[..end]).find(|short| !others().any(|other| other.starts_with(short))).unwrap_or(id)
}

/// Checks an edited text: it must be an atom, and the same one.
///
/// # Errors
/// What is wrong with it.
fn check_edit(original: &Atom, edited: &str) -> Result<Atom, ModerationError> {
    let atom = Atom::parse(edited)?;
    for (key, original, edited) in
        [("id", &original.meta.id, &atom.meta.id), ("scope", &original.meta.scope, &atom.meta.scope)]
    {
        if original != edited {
            return Err(ModerationError::Identity { key, original: original.clone(), edited: edited.clone() });
        }
    }
    Ok(atom)
}

/// Checks an edited text and saves it verbatim. `original` is the text that the editor was opened with.
///
/// # Errors
/// What is wrong with it; the old version is then still there.
pub fn save_edit(files: &AtomFiles, path: &Path, original: &str, edited: &str) -> Result<Atom, ModerationError> {
    let atom = check_edit(&Atom::parse(original)?, edited)?;
    let lock = files.lock()?;
    if read_text(path)? != original {
        return Err(FileError::Changed { path: path.to_owned() }.into());
    }
    files.replace_text(&lock, path, original, edited)?;
    Ok(atom)
}

/// Whether a text is what approval alone has made of an earlier one, which `is_earlier` recognises. A pending text in
/// other words than the gateway's, as people may have edited it, is not recognised.
pub fn is_approval_of(text: &str, is_earlier: impl Fn(&str) -> bool) -> bool {
    let Ok(mut atom) = Atom::parse(text) else { return false };
    if atom.meta.status != Status::Approved {
        return false;
    }
    atom.meta.status = Status::Pending;
    let due = atom.meta.created_at.saturating_add(PENDING_MS);
    // Approval has removed the time, which some have not.
    [Some(due), None].into_iter().any(|expires_at| {
        atom.meta.expires_at = expires_at;
        atom.render().is_ok_and(|earlier| is_earlier(&earlier))
    })
}

/// Reads a file under the lock, and writes it if `edit` changed something. What somebody else makes of the file in the
/// meantime stays, and is an error.
fn change(files: &AtomFiles, path: &Path, edit: impl FnOnce(&mut Atom) -> bool) -> Result<Option<Atom>, FileError> {
    let lock = files.lock()?;
    let (mut atom, before) = match files.read_with_text(path) {
        Err(error) if error.is_missing() => return Ok(None),
        read => read?,
    };
    if !edit(&mut atom) {
        return Ok(Some(atom));
    }
    match files.replace(&lock, path, &before, &atom) {
        Err(error) if error.is_missing() => Ok(None),
        replaced => replaced.map(|()| Some(atom)),
    }
}

impl From<ModerationError> for Failure {
    fn from(error: ModerationError) -> Self {
        match error {
            ModerationError::File(error) => error.into(),
            ModerationError::NotFound(_) => Failure::new(error).hint("list all atoms with `pmk-host atoms list`"),
            ModerationError::Ambiguous { .. } => Failure::new(error).hint("give more characters of it"),
            ModerationError::Copied { .. } => Failure::new(error).hint("delete the copy, or give it another `id`"),
            error => Failure::new(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing::{CREATED_MS, atom};

    const DUE_MS: i64 = CREATED_MS + PENDING_MS;

    fn home_with(atoms: &[Atom]) -> (tempfile::TempDir, AtomFiles, Vec<PathBuf>) {
        let home = tempfile::tempdir().unwrap();
        let files = AtomFiles::open(home.path()).unwrap();
        let paths = atoms.iter().map(|atom| files.save_new(atom).unwrap()).collect();
        (home, files, paths)
    }

    fn statuses(loaded: &Loaded) -> Vec<Status> {
        loaded.atoms.iter().map(|it| it.atom.meta.status).collect()
    }

    #[test]
    fn what_somebody_deletes_while_it_is_changed_stays_deleted() {
        let (_home, files, paths) = home_with(&[atom("erp", "q", "a")]);
        let changed = change(&files, &paths[0], |_| {
            fs::remove_file(&paths[0]).unwrap();
            true
        });
        assert_eq!(changed.unwrap(), None);
        assert_eq!(files.paths().unwrap(), Vec::<PathBuf>::new());
    }

    /// Regression: a verdict that came while somebody saved an edit wrote the text of before.
    #[test]
    fn an_edit_that_was_saved_while_the_atom_was_changed_was_lost() {
        let (_home, files, paths) = home_with(&[atom("erp", "q", "a")]);
        let edited = fs::read_to_string(&paths[0]).unwrap().replace("question: q", "question: better");
        let changed = change(&files, &paths[0], |atom| {
            fs::write(&paths[0], &edited).unwrap();
            atom.approve();
            true
        });
        assert!(matches!(changed, Err(FileError::Changed { .. })), "{changed:?}");
        assert_eq!(fs::read_to_string(&paths[0]).unwrap(), edited);
        let names = fs::read_dir(paths[0].parent().unwrap()).unwrap().count();
        assert_eq!(names, 1, "nothing is left beside it");
        let approved = approve_file(&files, &paths[0]).unwrap().unwrap();
        assert_eq!((approved.meta.status, approved.meta.question.as_str()), (Status::Approved, "better"));
    }

    /// Regression: the id of a copied atom was reported as an ambiguous prefix, and a longer one was asked for.
    #[test]
    fn an_atom_that_somebody_has_copied_is_named_with_its_files() {
        let (_home, files, paths) = home_with(&[atom("erp", "q", "a")]);
        fs::copy(&paths[0], paths[0].with_file_name("copy.md")).unwrap();
        let atoms = load(&files, DUE_MS - 1, Promote::No).unwrap().atoms;
        let id = atoms[0].atom.meta.id.clone();
        for prefix in [&id[..], &id[..id.len() - 1]] {
            let error = find(&atoms, prefix).unwrap_err().to_string();
            assert!(error.starts_with(&format!("several files have the id `{id}`: `")), "{error}");
            assert!(error.contains("copy.md"), "{error}");
        }
    }

    #[test]
    fn an_atom_is_promoted_after_a_day_and_only_once() {
        let (_home, files, paths) = home_with(&[atom("erp", "q", "a")]);
        assert_eq!(statuses(&load(&files, DUE_MS - 1, Promote::Yes).unwrap()), [Status::Pending]);
        let untouched = fs::read_to_string(&paths[0]).unwrap();
        assert_eq!(statuses(&load(&files, DUE_MS, Promote::No).unwrap()), [Status::Pending]);
        assert_eq!(fs::read_to_string(&paths[0]).unwrap(), untouched);

        assert_eq!(statuses(&load(&files, DUE_MS, Promote::Yes).unwrap()), [Status::Approved]);
        let promoted = fs::read_to_string(&paths[0]).unwrap();
        assert!(promoted.contains("status: approved") && !promoted.contains("expiresAt"));
        let modified = fs::metadata(&paths[0]).unwrap().modified().unwrap();
        load(&files, DUE_MS + 1, Promote::Yes).unwrap();
        assert_eq!(fs::metadata(&paths[0]).unwrap().modified().unwrap(), modified, "it was written again");
    }

    #[test]
    fn many_that_promote_one_atom_do_no_harm() {
        let (_home, files, paths) = home_with(&[atom("erp", "q", "a")]);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let loaded = load(&files, DUE_MS, Promote::Yes).unwrap();
                    assert_eq!(statuses(&loaded), [Status::Approved]);
                    assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
                });
            }
        });
        assert_eq!(files.read(&paths[0]).unwrap().answer(), "a");
    }

    #[test]
    fn a_promotion_never_brings_back_what_was_rejected() {
        let (_home, files, paths) = home_with(&[atom("erp", "q", "a")]);
        reject_file(&files, &paths[0]).unwrap();
        reject_file(&files, &paths[0]).unwrap();
        assert_eq!(promote_file(&files, &paths[0], DUE_MS).unwrap(), None);
        assert_eq!(approve_file(&files, &paths[0]).unwrap(), None);
        assert!(!paths[0].exists());
    }

    #[test]
    fn a_malformed_file_is_a_problem_and_the_rest_is_loaded() {
        let (_home, files, paths) = home_with(&[atom("erp", "q", "a")]);
        fs::write(paths[0].with_file_name("broken.md"), "---\nid: [\n---\n").unwrap();
        let loaded = load(&files, DUE_MS, Promote::No).unwrap();
        assert_eq!((loaded.atoms.len(), loaded.problems.len()), (1, 1));
        assert!(loaded.problems[0].to_string().contains("broken.md"));
    }

    /// Regression: whoever judged it by its id was told that there is none.
    #[test]
    fn an_atom_whose_file_was_broken_was_not_found() {
        let (_home, files, paths) = home_with(&[atom("erp", "q", "a")]);
        let id = files.read(&paths[0]).unwrap().meta.id;
        fs::write(&paths[0], "---\nid: [\n---\n").unwrap();
        let find = |prefix: &str| load(&files, DUE_MS, Promote::Yes).unwrap().find(prefix).unwrap_err();
        let error = find(&id[..id.len() - 1]);
        assert!(matches!(&error, ModerationError::File(problem) if problem.broken() == Some(&*paths[0])), "{error}");
        for missing in ["2027", ""] {
            assert!(matches!(find(missing), ModerationError::NotFound(_)), "{missing}");
        }
    }

    #[test]
    fn an_approval_is_told_from_any_other_change() {
        let flagged = |mut atom: Atom| {
            (atom.meta.flagged, atom.meta.expires_at) = (true, None);
            atom
        };
        let (_home, files, paths) = home_with(&[atom("erp", "q", "a"), flagged(atom("crm", "q", "a"))]);
        for path in paths {
            let before = fs::read_to_string(&path).unwrap();
            let is_before = |text: &str| text == before;
            assert!(!is_approval_of(&before, is_before), "nobody has approved it");
            approve_file(&files, &path).unwrap();
            let approved = fs::read_to_string(&path).unwrap();
            assert!(is_approval_of(&approved, is_before), "{approved}");
            assert!(!is_approval_of(&approved.replace("question: q", "question: better"), is_before));
            assert!(!is_approval_of("no atom", |_| true));
        }
    }

    #[test]
    fn an_id_is_found_by_a_prefix_that_only_it_has() {
        let mut atoms = Vec::new();
        for id in ["2026-04-28T0213-5388-a", "2026-04-28T0213-53ff-b", "2026-04-28T0213"] {
            let mut atom = atom("erp", "q", "a");
            atom.meta.id = id.into();
            atoms.push(StoredAtom { path: PathBuf::from(id), atom });
        }
        assert_eq!(find(&atoms, "2026-04-28T0213-5388").unwrap().atom.meta.id, "2026-04-28T0213-5388-a");
        assert_eq!(find(&atoms, "2026-04-28T0213").unwrap().atom.meta.id, "2026-04-28T0213");
        let error = find(&atoms, "2026-04-28T0213-53").unwrap_err().to_string();
        assert!(error.contains("5388-a") && error.contains("53ff-b"), "{error}");
        for missing in ["2027", ""] {
            assert!(matches!(find(&atoms, missing), Err(ModerationError::NotFound(_))), "{missing}");
        }
    }

    #[test]
    fn an_edit_is_saved_word_for_word_or_not_at_all() {
        let (_home, files, paths) = home_with(&[atom("erp", "q", "a")]);
        let original = fs::read_to_string(&paths[0]).unwrap();
        let edited = original.replace("question: q", "question: better  # by hand");
        assert_eq!(save_edit(&files, &paths[0], &original, &edited).unwrap().meta.question, "better");
        assert_eq!(fs::read_to_string(&paths[0]).unwrap(), edited);

        let again = save_edit(&files, &paths[0], &original, &edited);
        assert!(matches!(again, Err(ModerationError::File(FileError::Changed { .. }))), "{again:?}");
        for (broken, expected) in [
            (edited.replace("question:", "question: ["), "not an atom"),
            (edited.replace("scope: erp", "scope: crm"), "a different `scope`"),
            (edited.replace("id: 2026", "id: 2027"), "a different `id`"),
            (String::new(), "no front matter"),
        ] {
            let error = save_edit(&files, &paths[0], &edited, &broken).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert_eq!(fs::read_to_string(&paths[0]).unwrap(), edited);
        }
    }
}
