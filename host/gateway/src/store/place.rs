//! The location of a store: a file in a home, or a PostgreSQL database that a home refers to.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use pmk_system::{error::Failure, threads::Threads};

use super::{Store, StoreError, hosts, sql::Link};
use crate::database::Database;

/// The location of a store.
#[derive(Clone, Debug)]
pub struct Place {
    /// The home that the store belongs to, with the ledger, atoms and the lock.
    pub home: PathBuf,
    /// `None`: the store is a file in the home.
    pub database: Option<Database>,
}

impl<P: AsRef<Path> + ?Sized> From<&P> for Place {
    fn from(home: &P) -> Place {
        Place { home: home.as_ref().to_owned(), database: None }
    }
}

impl Place {
    /// Returns the name shown to people: without a password.
    pub fn name(&self) -> String {
        match &self.database {
            Some(database) => database.name().to_owned(),
            None => Store::path(&self.home).display().to_string(),
        }
    }

    /// Creates the link to the store's database, if it is in one.
    pub(super) fn link(&self, threads: Threads) -> Result<Option<Arc<Link>>, StoreError> {
        let Some(database) = &self.database else { return Ok(None) };
        let link = || -> Result<Link, Failure> {
            let names = (database.name().to_owned(), hosts::name(&self.home));
            Link::new(database.config()?, database.checks()?, names, threads.clone())
        };
        let unusable = |failure: Failure| StoreError::Unusable {
            path: database.name().into(),
            message: failure.message().to_owned(),
            hint: failure.advice().map(str::to_owned),
        };
        link().map(Arc::new).map(Some).map_err(unusable)
    }
}
