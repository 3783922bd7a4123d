//! Where a store is: in a home, or in a PostgreSQL that a home leads to.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use pmk_system::{error::Failure, threads::Threads};

use super::{Store, StoreError, hosts, sql::Link};
use crate::database::Database;

/// Where a store is.
#[derive(Clone, Debug)]
pub struct Place {
    /// What else the store goes with: the ledger, atoms, the lock.
    pub home: PathBuf,
    /// `None`: it is a file in the home.
    pub database: Option<Database>,
}

impl<P: AsRef<Path> + ?Sized> From<&P> for Place {
    fn from(home: &P) -> Place {
        Place { home: home.as_ref().to_owned(), database: None }
    }
}

impl Place {
    /// How it is called where people read it: without a password.
    pub fn name(&self) -> String {
        match &self.database {
            Some(database) => database.name().to_owned(),
            None => Store::path(&self.home).display().to_string(),
        }
    }

    /// The way to its database, where it is in one.
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
