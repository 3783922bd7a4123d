//! The library: the folder of atoms as used by a running gateway.
//!
//! The files are authoritative; people edit them at any time. Before every retrieval the library checks what has
//! changed ([`watch`](super::watch)), reads only that, and stores the result in a cache
//! ([`catalogue`](super::catalogue)), so that a start reads nothing and a search takes hardly longer with 10,000 atoms
//! than with 100.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
};

use pmk_search::{Asked, Floor, IndexedText, evidence};
use thiserror::Error;

use super::{
    atom::{Atom, Notice, Status},
    catalogue::{Catalogue, CatalogueError, Place, Stamp},
    files::{AtomFiles, FileError, names_notice},
    moderation::{self, StoredAtom, list_of},
    watch::Watch,
};
/// The most atoms shown to the model with one message (specification 003 §4).
pub const MAX_RETRIEVED: usize = 3;

/// How many of the best matches are checked for relevance.
const CANDIDATES: usize = 12;

/// The number of atoms whose questions are used to measure the floor, and of phrasings of each.
const SAMPLE: u32 = 48;
const SAMPLE_PHRASINGS: usize = 2;

/// The floor is measured again when the number of atoms has changed by more than a tenth.
const ANOTHER_SIZE: u32 = 10;

/// Why an operation of the library failed.
#[derive(Debug, Error)]
pub enum LibraryError {
    /// A file or the folder cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The cache and index of the atoms cannot be used.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// Several files name the same notice as their own: somebody has copied one.
    #[error("several files belong to this message: {}", list_of(files))]
    Copied {
        /// The files, within any home.
        files: Vec<String>,
    },
}

/// The folder of atoms, its cache and its index. All methods block on the disk.
#[derive(Debug)]
pub struct Library {
    home: PathBuf,
    files: AtomFiles,
    /// Created when first needed, so that a start does not wait for it.
    live: Option<Live>,
    warned: HashSet<(Place, String)>,
}

#[derive(Debug)]
struct Live {
    catalogue: Catalogue,
    watch: Watch,
    /// Scopes with atoms in the catalogue.
    known: Vec<String>,
    /// Atoms that could not be promoted; each is reported once.
    stuck: HashSet<Place>,
}

impl Library {
    /// Opens the library of a home. Reads no atoms yet.
    ///
    /// # Errors
    /// If the folder `knowledge` cannot be created.
    pub fn open(home: &Path) -> Result<Self, LibraryError> {
        Ok(Library { home: home.to_owned(), files: AtomFiles::open(home)?, live: None, warned: HashSet::new() })
    }

    /// The files, for changing them.
    pub fn files(&self) -> &AtomFiles {
        &self.files
    }

    /// The approved atoms most relevant to a message, best first, at most `limit`; empty if none is relevant. Includes
    /// all changes on disk up to now.
    ///
    /// # Errors
    /// If the folder or the cache cannot be used. A file that is not an atom is skipped with one warning.
    pub fn retrieve(&mut self, text: &str, now_ms: i64, limit: usize) -> Result<Vec<StoredAtom>, LibraryError> {
        self.refresh(now_ms)?;
        let asked = Asked::new(text);
        if asked.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let Library { files, live: Some(live), .. } = self else { return Ok(Vec::new()) };
        let floor = live.floor(files)?;
        let mut found = live.candidates(files, &live.catalogue.corrected(asked)?, CANDIDATES.max(limit))?;
        found.retain(|candidate| floor.is_reached(candidate.evidence) || candidate.is_asked_for);
        Ok(found.into_iter().map(|candidate| candidate.stored).take(limit).collect())
    }

    /// The atom that a notice is about.
    ///
    /// # Errors
    /// If the folder or the cache cannot be used, or the file is there, but is [not an atom](FileError::broken) or has
    /// been [copied](LibraryError::Copied).
    pub fn by_notice(&mut self, notice: &Notice, now_ms: i64) -> Result<Option<StoredAtom>, LibraryError> {
        self.refresh(now_ms)?;
        let Library { files, live: Some(live), .. } = self else { return Ok(None) };
        let place = match distinct(files, live.catalogue.by_notice(notice)?).as_slice() {
            [] => live.broken_by_notice(files, notice)?,
            [place] => Some(place.clone()),
            copies => {
                let name = |place: &Place| format!("knowledge/{}/{}", place.scope, place.name);
                return Err(LibraryError::Copied { files: copies.iter().map(name).collect() });
            }
        };
        let Some(place) = place else { return Ok(None) };
        let path = path_of(files, &place);
        match files.read(&path) {
            Err(error) if error.is_missing() => Ok(None),
            read => Ok(Some(StoredAtom { path, atom: read? })),
        }
    }

    /// Whether there is nothing to find, and nothing has been added since that was determined; to be called before
    /// every turn.
    pub fn is_empty_still(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.known.is_empty() && live.watch.is_as_settled())
    }

    /// Processes changes on disk, and promotes atoms that are due. Retrieval does this itself; calling it after a
    /// change keeps the work out of the next turn.
    ///
    /// # Errors
    /// If the folder or the cache cannot be used.
    pub fn refresh(&mut self, now_ms: i64) -> Result<(), LibraryError> {
        if self.live.is_none() {
            let watch = Watch::new(self.files.root(), || ());
            let catalogue = Catalogue::open(&self.home)?;
            self.live = Some(Live { known: catalogue.scopes()?, catalogue, watch, stuck: HashSet::new() });
        }
        let Library { files, live: Some(live), warned, .. } = self else { return Ok(()) };
        let refreshed = live.refresh(files, now_ms);
        if refreshed.is_err() {
            live.watch.forget();
        }
        if refreshed? {
            warn_once(&live.catalogue, warned)?;
        }
        Ok(())
    }
}

/// An atom that shares words with a question.
struct Candidate {
    stored: StoredAtom,
    /// The evidence that it answers the question.
    evidence: f64,
    /// Whether the question covers at least half as much of it as its own question does.
    is_asked_for: bool,
}

impl Live {
    /// The file that is not an atom and that a notice was about before somebody broke it.
    fn broken_by_notice(&self, files: &AtomFiles, notice: &Notice) -> Result<Option<Place>, CatalogueError> {
        let mut broken = self.catalogue.problems()?.into_iter().map(|(place, _)| place);
        Ok(broken.find(|place| names_notice(&path_of(files, place), notice)))
    }

    /// The approved atoms that match a question best, best first.
    fn candidates(&self, files: &AtomFiles, asked: &Asked, limit: usize) -> Result<Vec<Candidate>, LibraryError> {
        let frequencies = self.catalogue.frequencies(asked)?;
        let mut found = Vec::new();
        for place in self.catalogue.search(&frequencies, limit)? {
            let path = path_of(files, &place);
            // Deleted or broken at this very moment: the next refresh handles it.
            let Ok(atom) = files.read(&path) else { continue };
            if atom.meta.status != Status::Approved {
                continue;
            }
            let told = told(&atom);
            let evidence = evidence(asked, &frequencies, &told);
            let is_asked_for = told.is_asked_for(asked);
            found.push(Candidate { stored: StoredAtom { path, atom }, evidence, is_asked_for });
        }
        // Of equals, the first one found stays first.
        found.sort_by(|a, b| b.evidence.total_cmp(&a.evidence));
        Ok(found)
    }

    /// The minimum evidence for an atom, measured as what the atoms' own questions score among other atoms, which they
    /// are not about.
    fn floor(&self, files: &AtomFiles) -> Result<Floor, LibraryError> {
        let atoms = self.catalogue.len()?;
        if let Some((of, floor)) = self.catalogue.floor()?
            && of.abs_diff(atoms).saturating_mul(ANOTHER_SIZE) <= of
        {
            return Ok(floor);
        }
        let mut others = Vec::new();
        for place in self.catalogue.sample(SAMPLE)? {
            let path = path_of(files, &place);
            let Ok(atom) = files.read(&path) else { continue };
            for phrasing in [&atom.meta.question].into_iter().chain(&atom.meta.asked_as).take(SAMPLE_PHRASINGS) {
                let candidates = self.candidates(files, &Asked::new(phrasing), CANDIDATES)?;
                let mut of_others = candidates.iter().filter(|it| it.stored.path != path);
                // An atom that the question is rightly about says nothing about those it is not about.
                match of_others.next() {
                    Some(best) if best.is_asked_for => {}
                    best => others.push(best.map_or(0.0, |best| best.evidence)),
                }
            }
        }
        let floor = Floor::of(others);
        self.catalogue.keep_floor(atoms, floor)?;
        Ok(floor)
    }

    /// Processes changes; returns whether there were any.
    fn refresh(&mut self, files: &AtomFiles, now_ms: i64) -> Result<bool, LibraryError> {
        let scopes = files.scopes()?;
        if self.watch.is_outdated() {
            self.watch = Watch::new(files.root(), || ());
        }
        let folder_error = |source| super::files::io_error(files.root(), "looked at", source);
        let changed = self.watch.changed(&scopes).map_err(folder_error)?;
        let gone: Vec<String> = self.known.iter().filter(|known| !scopes.contains(known)).cloned().collect();
        let due = self.catalogue.due(now_ms)?;
        if changed.is_empty() && gone.is_empty() && due.is_empty() {
            return Ok(false);
        }
        self.catalogue
            .atomically(|catalogue| changed.iter().chain(&gone).try_for_each(|scope| sweep(catalogue, files, scope)))?;
        self.known = scopes;
        for place in self.catalogue.due(now_ms)? {
            self.promote(files, &place, now_ms)?;
        }
        Ok(true)
    }

    fn promote(&mut self, files: &AtomFiles, place: &Place, now_ms: i64) -> Result<(), LibraryError> {
        let path = path_of(files, place);
        match moderation::promote_file(files, &path, now_ms) {
            Ok(Some(atom)) if atom.meta.status == Status::Approved => {
                tracing::info!(file = %path.display(), "an atom was promoted: nobody objected in time");
            }
            Ok(_) => {}
            Err(error) => {
                if self.stuck.insert(place.clone()) {
                    tracing::warn!(%error, "cannot promote an atom");
                }
            }
        }
        // Another process must not see the atom as no longer due but not yet indexed.
        self.catalogue.atomically(|catalogue| look_at(catalogue, files, place))
    }
}

/// Compares a scope's files with the catalogue, and reads those that differ.
fn sweep(catalogue: &Catalogue, files: &AtomFiles, scope: &str) -> Result<(), LibraryError> {
    let names = match files.names(scope) {
        Ok(names) => names,
        Err(error) => {
            tracing::warn!(%error, "the atoms of a scope are unchanged");
            return Ok(());
        }
    };
    let mut known: HashMap<String, Stamp> = catalogue.stamps(scope)?;
    for name in names {
        let place = Place { scope: scope.to_owned(), name };
        let stamp = fs::metadata(path_of(files, &place)).map(|meta| Stamp::of(&meta));
        let before = known.remove(&place.name);
        if stamp.is_err() || before != stamp.ok() {
            look_at(catalogue, files, &place)?;
        }
    }
    known.into_keys().try_for_each(|name| Ok(catalogue.remove(&Place { scope: scope.to_owned(), name })?))
}

/// Reads one file and stores what it contains.
fn look_at(catalogue: &Catalogue, files: &AtomFiles, place: &Place) -> Result<(), LibraryError> {
    let path = path_of(files, place);
    // The stamp is taken first, so that a change while the file is being read is detected next time.
    let stamp = match fs::metadata(&path) {
        Ok(meta) => Stamp::of(&meta),
        Err(_) => return Ok(catalogue.remove(place)?),
    };
    match files.read(&path) {
        Ok(atom) => catalogue.put(place, &stamp, Ok(&atom))?,
        Err(error) if error.is_missing() => catalogue.remove(place)?,
        Err(error) => catalogue.put(place, &stamp, Err(&error.to_string()))?,
    }
    Ok(())
}

fn warn_once(catalogue: &Catalogue, warned: &mut HashSet<(Place, String)>) -> Result<(), LibraryError> {
    let problems: HashSet<(Place, String)> = catalogue.problems()?.into_iter().collect();
    for (_, problem) in problems.difference(warned) {
        tracing::warn!("{problem}; it is skipped until it is fixed");
    }
    *warned = problems;
    Ok(())
}

/// The texts that an atom is matched by.
fn told(atom: &Atom) -> IndexedText {
    let rest = format!("{}\n{}", atom.summary(), atom.answer());
    IndexedText::new(&atom.meta.question, &atom.meta.asked_as, &atom.meta.tags.join(" "), &rest)
}

/// The places without links to the file of another one of them.
fn distinct(files: &AtomFiles, mut places: Vec<Place>) -> Vec<Place> {
    let file = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let is_link = |path: PathBuf| path != file(path.clone());
    places.sort_by_cached_key(|place| is_link(path_of(files, place)));
    let mut seen = HashSet::new();
    places.retain(|place| seen.insert(file(path_of(files, place))));
    places
}

fn path_of(files: &AtomFiles, place: &Place) -> PathBuf {
    files.root().join(&place.scope).join(&place.name)
}
