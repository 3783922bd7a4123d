//! The state in which a home and the store last agreed, file by file. Kept in a file of the home that is replaced
//! as a whole: without it no text is lost, but it is unknown who has changed what.

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

/// The agreed state of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Agreed {
    /// The store's version.
    pub version: i64,
    /// The digest of the text; `None` where it was deleted.
    pub sha256: Option<TextDigest>,
}

/// The content of the manifest file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    /// The identity of the folder, which another folder in its place does not have.
    #[serde(default)]
    identity: Option<TextDigest>,
    files: BTreeMap<AtomPath, Agreed>,
}

/// The manifest file and its content.
#[derive(Debug)]
pub(super) struct Manifest {
    path: PathBuf,
    kept: Kept,
    is_saved: bool,
}

impl Manifest {
    /// Opens the manifest of a home; it is empty where no readable file exists.
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

    /// Returns the identity of the folder, where it was looked at before.
    pub fn folder(&self) -> Option<&TextDigest> {
        self.kept.identity.as_ref()
    }

    /// Sets the identity of the folder.
    pub fn is_of(&mut self, folder: TextDigest) {
        (self.kept.identity, self.is_saved) = (Some(folder), false);
    }

    /// Returns the agreed state of a file.
    pub fn get(&self, path: &AtomPath) -> Option<&Agreed> {
        self.kept.files.get(path)
    }

    /// Returns the files that have an agreed state.
    pub fn paths(&self) -> impl Iterator<Item = &AtomPath> {
        self.kept.files.keys()
    }

    /// Sets the agreed state of a file.
    pub fn set(&mut self, path: AtomPath, agreed: Agreed) {
        self.is_saved = false;
        self.kept.files.insert(path, agreed);
    }

    /// Drops the agreed state of all other files.
    pub fn retain(&mut self, keeps: impl Fn(&AtomPath, &Agreed) -> bool) {
        let before = self.kept.files.len();
        self.kept.files.retain(|path, agreed| keeps(path, agreed));
        self.is_saved &= self.kept.files.len() == before;
    }

    /// Saves the manifest if it has changed.
    ///
    /// # Errors
    /// It cannot be written; the previous file is unchanged.
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
