//! A look at the store of a home, for somebody who wants to know whether a gateway could start with it. Nothing of it is
//! changed, and no older schema brought up to date.

use std::{fs::OpenOptions, path::Path};

use pmk_system::threads::Threads;

use super::{
    Place, Store, StoreError, backup,
    connection::{self, IsWritten, MIGRATIONS},
    database, mark, run_is_alive, upgrade,
};

/// A file no larger than this, in bytes, is read as a whole.
const SMALL: u64 = 64 << 20;

/// What a store is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examined {
    pub schema: u32,
    /// The one that this program needs, to which the next start takes it.
    pub known: u32,
    pub kept: Kept,
}

/// What it is kept in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    File {
        bytes: u64,
        /// Whether all of it was looked at, and not only whether it can be opened.
        is_read: bool,
    },
    Database {
        /// Its address, without the password.
        name: String,
        /// Who works on it.
        host: Option<String>,
    },
}

impl Store {
    /// Looks at the store of a home; nothing where none was made yet.
    ///
    /// # Errors
    /// What keeps a gateway from starting with it, as [`Store::open`] would say; or it is damaged somewhere, and small
    /// enough to be looked at as a whole.
    pub fn examine(place: &Place) -> Result<Option<Examined>, StoreError> {
        match place.link(Threads::Own)? {
            Some(link) => Ok(database::examine(&link)?.map(|(schema, host)| {
                let kept = Kept::Database { name: link.name().to_owned(), host };
                Examined { schema, known: MIGRATIONS.len() as u32, kept }
            })),
            None => examine_file(&place.home),
        }
    }
}

fn examine_file(home: &Path) -> Result<Option<Examined>, StoreError> {
    let path = Store::path(home);
    mark::refuse_loss(&path)?;
    let failed = |error: std::io::Error| StoreError::Io { path: path.clone(), message: error.to_string() };
    if !path.try_exists().map_err(failed)? {
        return Ok(None);
    }
    OpenOptions::new().append(true).open(&path).map_err(failed)?;
    let is_written = if run_is_alive(home) { IsWritten::Yes } else { IsWritten::No };
    let (conn, schema) = connection::of_any_schema(&path, is_written)?;
    let (bytes, known) = (connection::length(&conn).map_err(|fault| fault.at(&path))?, MIGRATIONS.len() as u32);
    if schema != 0 && schema < known {
        upgrade::check_room(&path, bytes, upgrade::free)?;
    }
    let is_read = bytes <= SMALL;
    let found = if is_read { backup::problems(&conn).map_err(|fault| fault.at(&path))? } else { vec![] };
    match found.into_iter().next() {
        Some(message) => Err(StoreError::Damaged { path, message }),
        None => Ok(Some(Examined { schema, known, kept: Kept::File { bytes, is_read } })),
    }
}
