//! Adds and removes the contacts who answer escalations.

use std::{fmt, path::Path};

use super::{
    error::ChangeError,
    listed::{is, is_blocked},
};
use crate::slack_id::Id;
use crate::{config, mra};

const DEFAULT: &str = "default";

/// The contacts for one repository, or for all repositories without a pool of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool<'a> {
    Default,
    Repo(&'a str),
}

impl<'a> Pool<'a> {
    /// Parses `default`, or the name of a repository.
    ///
    /// # Errors
    /// It is not a valid repository name.
    pub fn parse(text: &'a str) -> Result<Self, ChangeError> {
        if text == DEFAULT {
            return Ok(Pool::Default);
        }
        Ok(Pool::Repo(mra::repo_name(text)?))
    }

    fn path(self) -> Vec<&'a str> {
        match self {
            Pool::Default => vec!["escalation", DEFAULT],
            Pool::Repo(repo) => vec!["escalation", "repos", repo],
        }
    }
}

impl fmt::Display for Pool<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Pool::Default => DEFAULT,
            Pool::Repo(repo) => repo,
        })
    }
}

/// Adds a person to the end of a pool, which is created if it is missing.
///
/// # Errors
/// The pool or the id is invalid, the person is already in the pool or is blocked, or gateway.json cannot be changed.
pub(super) fn add_contact(home: &Path, pool: &str, user: &str) -> Result<(), ChangeError> {
    let pool = Pool::parse(pool)?;
    let user = Id::user(user)?;
    config::edit(home, |root| {
        if is_blocked(root, user) {
            return Err(ChangeError::Blocked(user.to_owned()));
        }
        let contacts = root.list_at(&pool.path())?;
        if contacts.iter().any(|contact| is(contact, user)) {
            return Err(ChangeError::InPool { user: user.to_owned(), pool: pool.to_string() });
        }
        contacts.push(user.into());
        Ok(())
    })
}

/// Removes a person from a pool. A repository's pool that becomes empty is removed, so that the default pool applies.
///
/// # Errors
/// There is no such pool, the person is not in it, or gateway.json cannot be changed.
pub(super) fn remove_contact(home: &Path, pool: &str, user: &str) -> Result<(), ChangeError> {
    let pool = Pool::parse(pool)?;
    config::edit(home, |root| {
        if let Pool::Repo(repo) = pool
            && !root.object_at(&["escalation", "repos"])?.contains(repo)
        {
            return Err(ChangeError::NoPool(pool.to_string()));
        }
        let contacts = root.list_at(&pool.path())?;
        let before = contacts.len();
        contacts.retain(|contact| !is(contact, user));
        if contacts.len() == before {
            return Err(ChangeError::NotInPool { user: user.to_owned(), pool: pool.to_string() });
        }
        if let Pool::Repo(repo) = pool
            && contacts.is_empty()
        {
            root.object_at(&["escalation", "repos"])?.remove(repo);
        }
        Ok(())
    })
}
