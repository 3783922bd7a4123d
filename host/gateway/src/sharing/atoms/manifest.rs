//! What a home and the store were when they were last the same, file by file. In a file of the home, which is replaced as a whole:
//! without it nothing is lost, but nobody knows any more who has changed what.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use pmk_knowledge::mirror::{AtomPath, TextDigest};
use pmk_system::{files, home};
use serde::{Deserialize, Serialize};

use crate::sharing::shared::SharingError;

/// The file's name in `<home>/gateway`.
const FILE_NAME: &str = "atoms.json";

/// What both had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Agreed {
    /// The store's.
    pub version: i64,
    /// Of the text; nothing where it was deleted.
    pub sha256: Option<TextDigest>,
}

/// What is in the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    /// What tells the folder from another in its place.
    folder: Option<u64>,
    files: BTreeMap<AtomPath, Agreed>,
}

/// The file, and what is in it.
#[derive(Debug)]
pub(super) struct Manifest {
    path: PathBuf,
    kept: Kept,
    is_saved: bool,
}

impl Manifest {
    /// That of a home; an empty one where there is none that can be read.
    pub fn open(home: &Path) -> Manifest {
        let path = home::gateway_dir(home).join(FILE_NAME);
        let kept = match files::read_text(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Kept::default(),
            read => read.and_then(|text| Ok(serde_json::from_str(&text)?)).unwrap_or_else(|error| {
                tracing::warn!(%error, file = %path.display(), "it is no longer known which atoms were changed here: comparing all");
                Kept::default()
            }),
        };
        home::forget_staged(&path);
        Manifest { path, kept, is_saved: true }
    }

    /// What tells the folder from another in its place, where it was looked at before.
    pub fn folder(&self) -> Option<u64> {
        self.kept.folder
    }

    /// The folder is that one now.
    pub fn is_of(&mut self, folder: u64) {
        (self.kept.folder, self.is_saved) = (Some(folder), false);
    }

    /// What was agreed upon of a file.
    pub fn get(&self, path: &AtomPath) -> Option<&Agreed> {
        self.kept.files.get(path)
    }

    /// The files of which something was.
    pub fn paths(&self) -> impl Iterator<Item = &AtomPath> {
        self.kept.files.keys()
    }

    /// Both have that now.
    pub fn set(&mut self, path: AtomPath, agreed: Agreed) {
        self.is_saved = false;
        self.kept.files.insert(path, agreed);
    }

    /// Nothing was agreed upon but of these.
    pub fn retain(&mut self, keeps: impl Fn(&AtomPath, &Agreed) -> bool) {
        let before = self.kept.files.len();
        self.kept.files.retain(|path, agreed| keeps(path, agreed));
        self.is_saved &= self.kept.files.len() == before;
    }

    /// Writes what has changed.
    ///
    /// # Errors
    /// It cannot be written; the old one is still there then.
    pub fn save(&mut self) -> Result<(), SharingError> {
        if self.is_saved {
            return Ok(());
        }
        let written = serde_json::to_vec(&self.kept).map_err(io::Error::from);
        written
            .and_then(|written| home::replace_private_file(&self.path, &written))
            .map_err(|source| SharingError::Memory { path: self.path.clone(), source })?;
        self.is_saved = true;
        Ok(())
    }
}
