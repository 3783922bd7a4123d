//! The part of gateway.json that a running gateway follows, as one for all hosts of a database: who is who, and which experiment is
//! on. An admin changes it where they happen to be heard, and somebody who is blocked is so everywhere.
//!
//! The file stays what people edit and commands change. A home remembers what its file said last; what differs from that was
//! changed here, and is [merged](merge) with what the store has. A home that has met the database never before takes what is
//! there, and keeps its own file beside.

mod merge;

#[cfg(test)]
mod tests;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use pmk_core::text::hex;
use pmk_system::{clock::Clock, files, home, home::HomeLock, stamp::Stamp};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::shared::{Shared, SharingError};
use crate::{
    config::{EXPERIMENT, EditError, NotWritten, followed, write_followed},
    store::Store,
};
use merge::{Merged, merge};

/// The file's name in `<home>/gateway`.
const FILE_NAME: &str = "common-config.json";
/// So much of a digest tells one kept file from another.
const SHOWN_OF_DIGEST: usize = 12;

type Part = Map<String, Value>;

/// What gateway.json of one home says, the store, and what the file said when they were last compared.
pub struct SharedConfig {
    home: PathBuf,
    store: Store,
    clock: Clock,
    /// What the file said when both were last compared; none where they never were.
    base: Option<Part>,
    /// The file and the version that are known to be the same.
    settled: Option<(Option<Stamp>, i64)>,
    /// Whether the gateway runs by what the file said.
    has_begun: bool,
}

impl SharedConfig {
    /// That of the home that is locked.
    pub fn open(lock: &HomeLock, store: Store, clock: Clock) -> SharedConfig {
        let home = lock.home().to_owned();
        let path = memory(&home);
        home::forget_staged(&path);
        let base = match files::read_text(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            read => read.and_then(|text| Ok(serde_json::from_str(&text)?)).unwrap_or_else(|error| {
                tracing::warn!(%error, file = %path.display(), "it is not known any more what of gateway.json was changed here");
                None
            }),
        };
        SharedConfig { home, store, clock, base, settled: None, has_begun: false }
    }

    /// What the store has, and its version.
    fn theirs(&self) -> Result<Option<(Part, i64)>, SharingError> {
        let Some(there) = self.store.common_config()? else { return Ok(None) };
        let part = serde_json::from_str(&there.text).map_err(|error| SharingError::Unusable(error.to_string()))?;
        Ok(Some((part, there.version)))
    }

    /// Has the file say what all go by; what it says then.
    fn take(&self, ours: Part, merged: Part) -> Result<Part, SharingError> {
        match write_followed(&self.home, &merged, &ours) {
            Ok(()) => {
                tracing::info!(
                    keys = changed(&ours, &merged).join(", "),
                    "gateway.json says what other hosts have changed"
                );
                Ok(merged)
            }
            // The next pass finds what it says by now.
            Err(NotWritten::Changed) => Ok(ours),
            Err(NotWritten::Unusable(why)) => Err(SharingError::Unusable(why)),
            Err(NotWritten::Failed(error)) => Err(error.into()),
        }
    }

    /// Keeps the file of a home beside that comes to a database where others have said who is who.
    fn keep(&self) -> Result<PathBuf, SharingError> {
        let path = home::config_file(&self.home);
        let failed = |action, source| EditError::Io { action, path: path.clone(), source };
        let text = fs::read(&path).map_err(|source| failed("read", source))?;
        let kept =
            path.with_file_name(format!("gateway.json.kept-{}", &hex(&Sha256::digest(&text))[..SHOWN_OF_DIGEST]));
        home::replace_private_file(&kept, &text).map_err(|source| failed("keep", source))?;
        Ok(kept)
    }

    fn remember(&mut self, says: Part) -> Result<(), SharingError> {
        if self.base.as_ref() == Some(&says) {
            return Ok(());
        }
        let path = memory(&self.home);
        let written = serde_json::to_vec(&says).map_err(io::Error::from);
        written
            .and_then(|written| home::replace_private_file(&path, &written))
            .map_err(|source| SharingError::Memory { path, source })?;
        self.base = Some(says);
        Ok(())
    }
}

impl Shared for SharedConfig {
    fn tell(why: &str) {
        tracing::warn!("people and experiments are not shared with other hosts for the moment: {why}");
    }

    fn pass(&mut self) -> Result<(), SharingError> {
        let stamp = Stamp::of(&home::config_file(&self.home));
        if let Some(version) = self.store.common_config_version()?
            && self.settled == Some((stamp, version))
        {
            return Ok(());
        }
        let ours = match followed(&self.home)? {
            Some(ours) => ours,
            // It is just being replaced, or will be missed: a running gateway goes by what it said.
            None if self.has_begun => return Ok(()),
            None => {
                self.base = None;
                Part::new()
            }
        };
        self.has_begun = true;
        let theirs = self.theirs()?;
        let merged = match (&self.base, &theirs) {
            (_, None) => ours.clone(),
            (None, Some((theirs, _))) => theirs.clone(),
            (Some(base), Some((theirs, _))) => {
                let Merged { value, contested } = merge(base, &ours, theirs, &[EXPERIMENT]);
                if !contested.is_empty() {
                    let keys = contested.join(", ");
                    tracing::warn!(
                        keys,
                        "changed in gateway.json here and on another host: what the other says counts"
                    );
                }
                value
            }
        };
        if self.base.is_none() && theirs.is_some() && !ours.is_empty() && ours != merged {
            let (kept, keys) = (self.keep()?, changed(&ours, &merged).join(", "));
            let kept = kept.display();
            tracing::warn!(keys, %kept, "gateway.json says what the other hosts of the database say; as it was it is kept beside");
        }
        let version = match theirs {
            Some((theirs, version)) if theirs == merged => version,
            theirs => {
                let (text, before) = (Value::Object(merged.clone()).to_string(), theirs.map(|(_, version)| version));
                match self.store.offer_common_config(text, before, self.clock.now_ms())? {
                    Some(version) => version,
                    // Somebody was faster, which the next pass sees.
                    None => return Ok(()),
                }
            }
        };
        let is_same = ours == merged;
        let says = if is_same { ours } else { self.take(ours, merged)? };
        self.remember(says)?;
        // What was written is read once more: somebody may have been at it since.
        self.settled = is_same.then_some((stamp, version));
        Ok(())
    }
}

/// The keys that two do not say the same of.
fn changed<'a>(one: &'a Part, other: &'a Part) -> Vec<&'a str> {
    let added = other.keys().filter(|key| !one.contains_key(*key));
    one.keys().chain(added).filter(|key| one.get(*key) != other.get(*key)).map(String::as_str).collect()
}

fn memory(home: &Path) -> PathBuf {
    home::gateway_dir(home).join(FILE_NAME)
}
