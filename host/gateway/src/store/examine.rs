//! Examines the store of a home, to find out whether a gateway could start with it. Nothing in it is changed, and
//! no older schema is migrated.

use std::{fs::OpenOptions, path::Path};

use pmk_system::threads::Threads;

use super::{
    Place, Store, StoreError, backup,
    connection::{self, IsWritten, MIGRATIONS},
    database, mark, run_is_alive, upgrade,
};

/// A file up to this many bytes is checked completely.
const SMALL: u64 = 64 << 20;

/// The state of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examined {
    pub schema: u32,
    /// The version that this program needs, to which the next start migrates it.
    pub known: u32,
    pub kept: Kept,
}

/// Where it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    File {
        bytes: u64,
        /// Whether the whole file was checked; otherwise only that it can be opened.
        is_read: bool,
    },
    Database {
        /// Its address, without the password.
        name: String,
        /// The host that works on it.
        host: Option<String>,
    },
}

impl Store {
    /// Examines the store of a home; `None` where none was created yet.
    ///
    /// # Errors
    /// What keeps a gateway from starting with it, as for [`Store::open`]; or damage, in a file small enough to be
    /// checked completely.
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
    mark::check(&path)?;
    OpenOptions::new().append(true).open(&path).map_err(failed)?;
    let is_written = if run_is_alive(home) { IsWritten::Yes } else { IsWritten::No };
    let (conn, schema) = connection::of_any_schema(&path, is_written)?;
    let (bytes, known) = (connection::length(&conn).map_err(|fault| fault.at(&path))?, MIGRATIONS.len() as u32);
    if schema != 0 && schema < known {
        upgrade::check_room(&path, schema, bytes, upgrade::free)?;
    }
    let is_read = bytes <= SMALL;
    let found = if is_read { backup::problems(&conn).map_err(|fault| fault.at(&path))? } else { vec![] };
    match found.into_iter().next() {
        Some(message) => Err(StoreError::Damaged { path, message }),
        None => Ok(Some(Examined { schema, known, kept: Kept::File { bytes, is_read } })),
    }
}
