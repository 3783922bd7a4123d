//! Keeps the part of gateway.json that a running gateway follows the same on all hosts of a database: who is who,
//! and which experiment is on. An admin can change it on any host, and somebody who is blocked is blocked
//! everywhere.
//!
//! The file stays what people edit and commands change. The database stores what each home's file said when it was
//! last compared; what differs from that was changed in the file, and is [merged](merge) with the common
//! configuration. Both are stored in one transaction, and what is to be written to the file is stored before it is
//! written: so an interruption never restores a person whom somebody has removed. A key that is missing in a file
//! means no opinion: only an empty value, or `null`, removes what was there. An experiment that is invalid in a file is
//! left out on both sides, and the people are shared all the same.
//!
//! A home that is new to the database takes the common configuration, and its previous file is kept beside; but
//! whoever is blocked by either stays blocked. A home is recognised by a token in a file; without that it counts as
//! new.

mod merge;

#[cfg(test)]
mod tests;

use std::{
    fs,
    hash::{BuildHasher, RandomState},
    io,
    path::PathBuf,
};

use pmk_core::text::hex;
use pmk_system::{clock::Clock, files, home, home::HomeLock, stamp::Stamp};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::shared::{SharingError, Synced};
use crate::{
    access::people::People,
    config::{EXPERIMENT, EditError, NotWritten, SharedKeys, followed, note_read, was_read, write_followed},
    store::{CommonConfig, HomeConfig, Store},
};
use merge::{Merged, merge};

/// The file's name in `<home>/gateway`.
const FILE_NAME: &str = "common-config";
/// The key of the admins: no two hosts together remove all of them from it.
const ADMINS: &str = "admins";
/// The key of the blocked people: nobody is unblocked because a home is new.
const BLOCKLIST: &str = "blocklist";
/// How many digits of its digest a kept file has in its name.
const SHOWN_OF_DIGEST: usize = 12;

type Part = Map<String, Value>;

/// gateway.json of one home, and the store.
pub struct SharedConfig {
    home: PathBuf,
    store: Store,
    clock: Clock,
    /// Identifies the home in the database; `None` until it was read or created.
    token: Option<String>,
    /// The file and the version that are known to agree.
    settled: Option<(Option<Stamp>, i64)>,
    /// What was last written to the file, and may not be stored in the database yet.
    taken: Option<Part>,
    /// Why the experiment of the file is not shared, as it was last logged.
    told: Option<String>,
}

impl SharedConfig {
    /// Opens the configuration of the locked home.
    pub fn open(lock: &HomeLock, store: Store, clock: Clock) -> SharedConfig {
        let home = lock.home().to_owned();
        SharedConfig { home, store, clock, token: None, settled: None, taken: None, told: None }
    }

    /// Returns the home's token, and creates it where there is none.
    fn token(&mut self) -> Result<String, SharingError> {
        if let Some(token) = &self.token {
            return Ok(token.clone());
        }
        let path = home::gateway_dir(&self.home).join(FILE_NAME);
        home::forget_staged(&path);
        let failed = |source| SharingError::Memory { path: path.clone(), source };
        let token = match files::read_text(&path) {
            Ok(token) => token,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let token = format!("{:016x}", RandomState::new().hash_one(()));
                home::replace_private_file(&path, token.as_bytes()).map_err(failed)?;
                token
            }
            Err(error) => return Err(failed(error)),
        };
        self.token = Some(token.clone());
        Ok(token)
    }

    /// Writes the common configuration to the file; `aside` is the experiment that it is to have said.
    fn take(&mut self, file: &Part, merged: Part, aside: Option<Value>) -> Result<(), SharingError> {
        match write_followed(&self.home, &merged, file) {
            Ok(()) => {
                let keys = changed(file, &merged).join(", ");
                tracing::info!(keys, "gateway.json was updated with changes of other hosts");
                self.taken = Some(with_experiment(merged, aside));
                Ok(())
            }
            // The next pass reads what it says by then.
            Err(NotWritten::Changed) => Ok(()),
            Err(NotWritten::Unusable(why)) => Err(SharingError::Unusable(why)),
            Err(NotWritten::Failed(error)) => Err(error.into()),
        }
    }

    /// Keeps a copy of the file of a home that is new to a database which already has a common configuration.
    fn keep(&self) -> Result<PathBuf, SharingError> {
        let path = home::config_file(&self.home);
        let failed = |action, source| EditError::Io { action, path: path.clone(), source };
        let text = fs::read(&path).map_err(|source| failed("read", source))?;
        let kept =
            path.with_file_name(format!("gateway.json.kept-{}", &hex(&Sha256::digest(&text))[..SHOWN_OF_DIGEST]));
        home::replace_private_file(&kept, &text).map_err(|source| failed("keep", source))?;
        Ok(kept)
    }

    /// Returns what the file of a home said when it was last compared, with the experiment apart if it is left out.
    fn base(&self, known: &HomeConfig, ours: &Part, is_left_out: bool) -> Result<(Part, Option<Value>), SharingError> {
        if let Some(taken) = &self.taken {
            return Ok(apart(taken.clone(), is_left_out));
        }
        match known.next.as_deref().map(read).transpose()?.map(|next| apart(next, is_left_out)) {
            Some(next) if next.0 == *ours => Ok(next),
            _ => Ok(apart(read(&known.says)?, is_left_out)),
        }
    }

    /// Logs why the experiment of the file is not shared, once for each reason.
    fn tell_of_experiment(&mut self, why: Option<String>) {
        if let Some(why) = why.as_ref().filter(|_| why != self.told) {
            tracing::warn!(
                "the experiment in gateway.json is invalid and not shared with other hosts; people still are: {why}"
            );
        }
        self.told = why;
    }
}

impl Synced for SharedConfig {
    fn tell(why: &str) {
        tracing::warn!("people and experiments are currently not shared with other hosts: {why}");
    }

    fn pass(&mut self) -> Result<(), SharingError> {
        let stamp = Stamp::of(&home::config_file(&self.home));
        if let Some(version) = self.store.common_config_version()?
            && self.settled == Some((stamp, version))
        {
            return Ok(());
        }
        let SharedKeys { keys: file, without_experiment } = match followed(&self.home)? {
            Some(file) => {
                note_read(&self.home)?;
                file
            }
            // The file is just being replaced, or is missing: a running gateway keeps its previous content.
            None if was_read(&self.home)? => return Ok(()),
            None => SharedKeys::default(),
        };
        let is_left_out = without_experiment.is_some();
        self.tell_of_experiment(without_experiment);
        let token = self.token()?;
        let CommonConfig { version, text, home } = self.store.common_config(token.clone())?;
        let (theirs, of_theirs) = apart(text.as_deref().map(read).transpose()?.unwrap_or_default(), is_left_out);
        let ours = without_nothing(&file);
        let (base, of_ours) = match &home {
            Some(known) => {
                let (base, aside) = self.base(known, &ours, is_left_out)?;
                (Some(base), aside)
            }
            None => (None, None),
        };
        let opinion = opinion(&file, base.as_ref());
        let merged = match &base {
            // Nobody has said anything, or it was taken away: that is nothing that anybody has changed.
            _ if version.is_none() => opinion.clone(),
            Some(base) => {
                let Merged { value, contested } = merge(base, &opinion, &theirs, &[EXPERIMENT]);
                if !contested.is_empty() {
                    let keys = contested.join(", ");
                    tracing::warn!(
                        keys,
                        "changed in gateway.json here and on another host: the value of the other host is used"
                    );
                }
                with_an_admin(value, &opinion, &theirs)
            }
            None => first_met(&ours, &theirs),
        };
        let is_same = merged == ours;
        if home.is_none() && changed(&merged, &ours).iter().any(|key| ours.contains_key(*key)) {
            let (kept, keys) = (self.keep()?, changed(&ours, &merged).join(", "));
            let kept = kept.display();
            tracing::warn!(keys, %kept, "gateway.json was changed to what the other hosts of the database use; the previous file is kept beside it");
        }
        let next = (!is_same).then(|| written(with_experiment(merged.clone(), of_ours.clone())));
        let says = HomeConfig { says: written(with_experiment(opinion, of_ours.clone())), next };
        let is_news = merged != theirs || version.is_none();
        let offer = is_news.then(|| (written(with_experiment(merged.clone(), of_theirs)), version));
        let is_known = home.as_ref() == Some(&says) && offer.is_none();
        if !is_known {
            // Where somebody was faster, the next pass sees it.
            if !self.store.agree_on_config(token, says, offer, self.clock.now_ms())? {
                return Ok(());
            }
            self.taken = None;
        }
        if !is_same {
            return self.take(&file, merged, of_ours);
        }
        self.settled = version.filter(|_| is_known).map(|version| (stamp, version));
        Ok(())
    }
}

/// What a home comes to that was never compared before. Whoever is blocked by either stays so.
fn first_met(ours: &Part, theirs: &Part) -> Part {
    let mut merged = theirs.clone();
    for (key, value) in ours {
        merged.entry(key.clone()).or_insert_with(|| value.clone());
    }
    let of_either = |part: &Part| Part::from_iter(part.get(BLOCKLIST).map(|list| (BLOCKLIST.to_owned(), list.clone())));
    merged.extend(merge(&Part::new(), &of_either(ours), &of_either(theirs), &[]).value);
    merged
}

/// Two changes that each leave an admin may together leave none, as when two admins remove each other: then the list of
/// one side is used. A side that has left nobody is meant so, and nobody is unblocked for it.
fn with_an_admin(merged: Part, ours: &Part, theirs: &Part) -> Part {
    let has_admin = |part: &Part| people(part).has_admin();
    if has_admin(&merged) || !has_admin(ours) || !has_admin(theirs) {
        return merged;
    }
    let with_list_of = |side: &Part| {
        let mut merged = merged.clone();
        merged.extend(side.get(ADMINS).map(|admins| (ADMINS.to_owned(), admins.clone())));
        merged
    };
    let Some(kept) = [theirs, ours].map(with_list_of).into_iter().find(has_admin) else {
        tracing::warn!(
            "changes here and on another host have together left no admin who is not blocked\n  \
             hint: remove an admin from `blocklist` in gateway.json, or add one with `pmk-host admin add`"
        );
        return merged;
    };
    tracing::warn!(
        "changes here and on another host would have left no admin: `admins` is as one of the two hosts has it\n  \
         hint: list all admins with `pmk-host admin list`"
    );
    kept
}

/// The admins and the blocked people of a part.
fn people(part: &Part) -> People {
    let texts = |key: &str| -> Vec<String> {
        let list = part.get(key).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    People { admins: texts(ADMINS), blocklist: texts(BLOCKLIST), ..People::default() }
}

/// What a file says of each key: one that is not there says nothing, and is as it was.
fn opinion(file: &Part, base: Option<&Part>) -> Part {
    let mut opinion = base.cloned().unwrap_or_default();
    opinion.extend(file.clone());
    without_nothing(&opinion)
}

fn without_nothing(file: &Part) -> Part {
    file.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Takes the experiment out of a part if it is left out.
fn apart(mut part: Part, is_left_out: bool) -> (Part, Option<Value>) {
    let aside = if is_left_out { part.remove(EXPERIMENT) } else { None };
    (part, aside)
}

/// Puts it back.
fn with_experiment(mut part: Part, aside: Option<Value>) -> Part {
    part.extend(aside.map(|experiment| (EXPERIMENT.to_owned(), experiment)));
    part
}

fn read(text: &str) -> Result<Part, SharingError> {
    serde_json::from_str(text).map_err(|error| SharingError::Unusable(error.to_string()))
}

fn written(part: Part) -> String {
    Value::Object(part).to_string()
}

/// The keys that two do not say the same of.
fn changed<'a>(one: &'a Part, other: &'a Part) -> Vec<&'a str> {
    let added = other.keys().filter(|key| !one.contains_key(*key));
    one.keys().chain(added).filter(|key| one.get(*key) != other.get(*key)).map(String::as_str).collect()
}
