//! Keeps the atoms of several homes in step: the store and the folder of each home have the same files.
//!
//! People and the library work with the files. A home remembers the state in which folder and store last agreed
//! ([`manifest`]); what differs from that in the folder was changed here, what is newer in the store was changed
//! elsewhere. A [pass](Synced::pass) writes what is newer to the folder and offers local changes to the store, each
//! with the text it is based on: the store refuses a change to a file that somebody else has changed meanwhile, and
//! that change is newer in the next pass. Where both have changed, the store's text is used, and this home's text
//! is kept beside it: no text is lost that nobody meant to delete. What was rejected in one home and only approved in
//! another is deleted in both.
//!
//! The content of the store is not trusted: a path that the library would not use, or a text that does not match
//! its digest, is not written to the folder. Whatever is lost or interrupted between two steps is repaired by the
//! next pass, which starts from the actual state.

mod manifest;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use pmk_core::text;
use pmk_knowledge::{
    files::FileError,
    mirror::{AtomPath, Local, MAX_TEXT_BYTES, Mirror, Put, TextDigest, tell_kept},
    moderation,
};
use pmk_system::{clock::Clock, home::HomeLock};

use super::shared::{SharingError, Synced};
use crate::store::{AtomOffer, AtomRow, Store};
use manifest::{Agreed, Manifest};

/// How much is offered in one transaction: others wait while it is written.
const MOST_OFFERED: usize = 64;
const MOST_BYTES_OFFERED: usize = 4 << 20;

/// How much of a refused path is logged.
const SHOWN_OF_A_PATH: usize = 120;

/// A version in the store that is newer than the agreed one.
#[derive(Clone, Debug)]
struct Newer {
    version: i64,
    /// The digest of the text, or of the deleted text.
    sha256: TextDigest,
    is_deleted: bool,
    /// Its text does not match its digest or is too long, and it is not written to the folder.
    is_refused: bool,
}

impl Newer {
    fn of(row: &AtomRow) -> Newer {
        Newer {
            version: row.version,
            sha256: TextDigest::written(&row.sha256),
            is_deleted: row.bytes.is_none(),
            is_refused: row.bytes.is_some_and(|bytes| bytes > MAX_TEXT_BYTES),
        }
    }

    /// Returns the digest of the text; `None` where it is deleted.
    fn text(&self) -> Option<&TextDigest> {
        (!self.is_deleted).then_some(&self.sha256)
    }

    fn agreed(&self) -> Agreed {
        Agreed { version: self.version, sha256: self.text().cloned() }
    }
}

/// What to do about a file.
#[derive(Debug)]
enum Step {
    /// Folder and store agree.
    Nothing,
    /// It cannot be decided yet.
    Wait,
    /// Folder and store have the same content, by chance or after a crash.
    Agree(Agreed),
    /// The store's version is used; the flag says whether the local text is kept beside it.
    Take(Newer, bool),
    /// It was changed here, based on that text.
    Offer(Option<TextDigest>),
}

/// The folder of one home, the store, and the state in which both last agreed. For threads that may block.
pub struct SharedAtoms {
    store: Store,
    clock: Clock,
    mirror: Mirror,
    manifest: Manifest,
    /// The last version in the store that was seen.
    seen: i64,
    /// Whether the whole store was compared, so that only newer versions are needed.
    is_compared: bool,
    /// How often its database had come back by then.
    returns: u64,
    newer: BTreeMap<AtomPath, Newer>,
    /// Files to be examined.
    open: BTreeSet<AtomPath>,
    /// What was logged about files that cannot be kept in step.
    said: BTreeMap<AtomPath, String>,
    refused: HashSet<String>,
}

impl Synced for SharedAtoms {
    fn tell(why: &str) {
        tracing::warn!("atoms are currently not shared with other hosts: {why}");
    }

    fn pass(&mut self) -> Result<(), SharingError> {
        self.look()?;
        self.hear()?;
        let (mut taken, mut offered) = (Vec::new(), Vec::new());
        for path in self.open.clone() {
            match self.step(&path) {
                Step::Wait => {}
                Step::Nothing => self.is_settled(&path),
                Step::Agree(agreed) => self.agree(path, agreed),
                Step::Take(newer, keeps) => taken.push((newer, path, keeps)),
                Step::Offer(base) => offered.push((path, base)),
            }
        }
        let done = self.take(taken, &mut offered).and_then(|()| self.offer(&offered));
        self.manifest.save()?;
        done
    }
}

impl SharedAtoms {
    /// Opens the atoms of the locked home. `wake` is called on another thread whenever something changes in its
    /// folder, as far as the operating system reports it.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn open(
        lock: &HomeLock,
        store: Store,
        clock: Clock,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<SharedAtoms, SharingError> {
        Ok(SharedAtoms {
            returns: store.returns(),
            store,
            clock,
            mirror: Mirror::open(lock.home(), wake)?,
            manifest: Manifest::open(lock.home()),
            seen: 0,
            is_compared: false,
            newer: BTreeMap::new(),
            open: BTreeSet::new(),
            said: BTreeMap::new(),
            refused: HashSet::new(),
        })
    }

    /// Finds what has changed in the folder.
    fn look(&mut self) -> Result<(), SharingError> {
        match self.mirror.look() {
            Ok(mut changed) => self.open.append(&mut changed),
            Err(error) => {
                // What the mirror has seen is lost: the next look reports every file that is there, and none that was
                // deleted.
                self.is_compared = false;
                return Err(error.into());
            }
        }
        let identity = self.mirror.identity();
        if self.manifest.folder() != Some(identity) {
            // Another folder is in its place: files that are missing there were not deleted by anybody.
            let mirror = &self.mirror;
            self.manifest.retain(|path, _| mirror.local(path) != Local::Missing);
            self.manifest.is_of(identity.clone());
            self.is_compared = false;
        }
        Ok(())
    }

    /// Finds what has changed in the store.
    fn hear(&mut self) -> Result<(), SharingError> {
        let before = std::mem::replace(&mut self.returns, self.store.returns());
        if before != self.returns {
            // The database may have lost what it had, and gives the versions of that to something else.
            self.is_compared = false;
        }
        if !self.is_compared {
            return self.compare();
        }
        for row in self.store.atoms_since(self.seen)? {
            self.seen = row.version;
            let Some(path) = self.path_of(&row) else { continue };
            if self.manifest.get(&path).is_none_or(|agreed| agreed.version < row.version) {
                self.open.insert(path.clone());
                self.newer.insert(path, Newer::of(&row));
            }
        }
        Ok(())
    }

    /// Compares the whole store with the agreed state. Entries that the store lacks or has in an older version are
    /// dropped from the agreed state: it is another store, or was restored from a backup.
    fn compare(&mut self) -> Result<(), SharingError> {
        let rows = self.store.atoms_since(0)?;
        self.seen = rows.last().map_or(0, |row| row.version);
        self.newer = rows.iter().filter_map(|row| Some((self.path_of(row)?, Newer::of(row)))).collect();
        let newer = &self.newer;
        self.manifest.retain(|path, agreed| {
            newer.get(path).is_some_and(|row| row.version > agreed.version || row.agreed() == *agreed)
        });
        let manifest = &self.manifest;
        self.newer.retain(|path, row| manifest.get(path).is_none_or(|agreed| *agreed != row.agreed()));
        self.open.extend(self.mirror.paths().chain(self.newer.keys().cloned()).chain(self.manifest.paths().cloned()));
        self.is_compared = true;
        Ok(())
    }

    fn path_of(&mut self, row: &AtomRow) -> Option<AtomPath> {
        let path = AtomPath::parse(&row.path);
        if path.is_none() && self.refused.insert(row.path.clone()) {
            let shown = text::shortened(&row.path, SHOWN_OF_A_PATH);
            tracing::warn!(path = ?shown, "skipping an atom of the database: its path is not a valid file path");
        }
        path
    }

    fn step(&self, path: &AtomPath) -> Step {
        let local = match self.mirror.local(path) {
            Local::Unusable(_) => return Step::Wait,
            Local::Missing => None,
            Local::Text(digest) => Some(digest),
        };
        let agreed = self.manifest.get(path).and_then(|agreed| agreed.sha256.clone());
        let is_changed = local != agreed;
        match self.newer.get(path) {
            None if is_changed => Step::Offer(agreed),
            None => Step::Nothing,
            Some(row) if row.is_refused => Step::Wait,
            Some(row) if row.text() == local.as_ref() => Step::Agree(row.agreed()),
            // If the deleted text is the local one, nothing is lost.
            Some(row) => {
                let keeps = is_changed && local.is_some_and(|local| !(row.is_deleted && row.sha256 == local));
                Step::Take(row.clone(), keeps)
            }
        }
    }

    fn agree(&mut self, path: AtomPath, agreed: Agreed) {
        self.is_settled(&path);
        self.newer.remove(&path);
        self.manifest.set(path, agreed);
    }

    fn is_settled(&mut self, path: &AtomPath) {
        self.open.remove(path);
        self.said.remove(path);
    }

    /// Writes what is newer in the store to the folder, except for approvals of what was deleted here: those are
    /// offered the deletion. A file that cannot be written does not prevent the others.
    fn take(
        &mut self,
        mut taken: Vec<(Newer, AtomPath, bool)>,
        offered: &mut Vec<(AtomPath, Option<TextDigest>)>,
    ) -> Result<(), SharingError> {
        taken.sort_by_key(|(newer, ..)| newer.version);
        let mut texts: BTreeMap<i64, String> = BTreeMap::new();
        for (newer, path, keeps) in taken {
            if !newer.is_deleted && texts.last_key_value().is_none_or(|(last, _)| *last < newer.version) {
                texts = self.store.atom_texts(newer.version, MAX_TEXT_BYTES)?.into_iter().collect();
            }
            let text = texts.remove(&newer.version);
            match (&text, newer.text()) {
                (None, None) => {}
                (Some(text), Some(digest)) if TextDigest::of(text) == *digest => {}
                // It has changed since, and is handled by the next pass.
                (None, Some(_)) => continue,
                (Some(_), _) => {
                    tracing::warn!("skipping the atom `{path}` of the database: its text does not match its digest");
                    self.newer.entry(path).and_modify(|row| row.is_refused = true);
                    continue;
                }
            }
            if text.as_ref().is_some_and(|text| self.is_rejected(&path, text)) {
                offered.push((path, Some(newer.sha256)));
                continue;
            }
            match self.put(&path, text.as_deref(), keeps) {
                Ok(Put::Done) => self.agree(path, newer.agreed()),
                Ok(Put::Changed) => {}
                Err(error) => self.say(path, error.to_string()),
            }
        }
        Ok(())
    }

    /// Whether a file was deleted here and the store's text is only its approval: of the two, a rejection counts,
    /// whichever came first.
    fn is_rejected(&self, path: &AtomPath, text: &str) -> bool {
        let Some(agreed) = self.manifest.get(path).and_then(|agreed| agreed.sha256.as_ref()) else { return false };
        self.mirror.local(path) == Local::Missing
            && moderation::is_approval_of(text, |earlier| TextDigest::of(earlier) == *agreed)
    }

    fn put(&mut self, path: &AtomPath, text: Option<&str>, keeps: bool) -> Result<Put, FileError> {
        if !keeps {
            return self.mirror.put(path, text);
        }
        let kept = self.mirror.keep(path)?;
        let put = self.mirror.put(path, text)?;
        if put == Put::Done {
            tell_kept(&self.mirror.file(path), &kept);
        }
        Ok(put)
    }

    /// Offers local changes to the store, each with the text it is based on.
    fn offer(&mut self, offered: &[(AtomPath, Option<TextDigest>)]) -> Result<(), SharingError> {
        let (mut offers, mut bytes) = (Vec::new(), 0);
        for (path, base) in offered {
            let offer = match self.mirror.local(path) {
                Local::Text(_) => match self.mirror.text(path) {
                    // The file may have changed once more, which the next look finds.
                    Ok(text) if !text.contains('\0') => AtomOffer {
                        path: path.to_string(),
                        sha256: written(&TextDigest::of(&text)),
                        text: Some(text),
                        base: base.as_ref().map(written),
                    },
                    _ => continue,
                },
                Local::Missing => match base.as_ref().map(written) {
                    Some(base) => {
                        AtomOffer { path: path.to_string(), sha256: base.clone(), text: None, base: Some(base) }
                    }
                    None => continue,
                },
                Local::Unusable(_) => continue,
            };
            bytes += offer.text.as_ref().map_or(0, String::len);
            offers.push((path, offer));
            if offers.len() == MOST_OFFERED || bytes >= MOST_BYTES_OFFERED {
                self.send(std::mem::take(&mut offers))?;
                bytes = 0;
            }
        }
        self.send(offers)
    }

    fn send(&mut self, offers: Vec<(&AtomPath, AtomOffer)>) -> Result<(), SharingError> {
        if offers.is_empty() {
            return Ok(());
        }
        let (paths, offers): (Vec<&AtomPath>, Vec<AtomOffer>) = offers.into_iter().unzip();
        let sent: Vec<Option<TextDigest>> =
            offers.iter().map(|offer| offer.text.as_ref().map(|_| TextDigest::written(&offer.sha256))).collect();
        let versions = self.store.offer_atoms(offers, self.clock.now_ms())?;
        for ((path, sha256), version) in paths.into_iter().zip(sent).zip(versions) {
            match version {
                Some(version) => self.agree(path.clone(), Agreed { version, sha256 }),
                // The store has another version than expected, mostly a newer one.
                None => self.is_compared = false,
            }
        }
        Ok(())
    }

    /// Logs a problem with a file once.
    fn say(&mut self, path: AtomPath, why: String) {
        if self.said.get(&path) != Some(&why) {
            tracing::warn!("{why}; changes in the database are not fetched yet");
            self.said.insert(path, why);
        }
    }
}

fn written(digest: &TextDigest) -> String {
    digest.as_str().to_owned()
}
