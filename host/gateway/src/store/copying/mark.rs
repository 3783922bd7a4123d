//! The mark of a store to which a copy is not finished: a file beside it, or a comment on a table.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use pmk_system::{files, home};

use crate::store::{
    StoreError,
    error::Fault,
    sql::{Connection, OptionalExtension},
};

const FILE_NAME: &str = "store.copying";
const WORD: &str = "a copy is under way, of ";
const READ: &str = "SELECT obj_description('pmk_schema'::regclass, 'pg_class')";

/// Where the mark is.
pub(in crate::store) enum Mark {
    /// In a file beside this database.
    File(PathBuf),
    Comment,
}

impl Mark {
    /// Refuses a store to which a copy is not finished.
    ///
    /// # Errors
    /// [`StoreError::Unfinished`]; or the mark cannot be read.
    pub(in crate::store) fn refuse(&self, conn: &Connection, path: &Path) -> Result<(), Fault> {
        match self.read(conn)? {
            Some(_) => Err(StoreError::Unfinished { path: path.to_owned() }.into()),
            None => Ok(()),
        }
    }

    /// Returns the store from which an unfinished copy to this one is made.
    pub(super) fn read(&self, conn: &Connection) -> Result<Option<String>, Fault> {
        let text = match self {
            Mark::File(path) => match files::read_text(&file(path)) {
                Ok(text) => Some(text),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(failed(path, &error)),
            },
            Mark::Comment => conn.query_row(READ, [], |row| row.get(0)).optional()?.flatten(),
        };
        Ok(text.and_then(|text| Some(text.strip_prefix(WORD)?.trim_end().to_owned())))
    }

    pub(super) fn set(&self, conn: &Connection, of: &str) -> Result<(), Fault> {
        match self {
            Mark::File(path) => home::replace_private_file(&file(path), format!("{WORD}{of}\n").as_bytes())
                .map_err(|error| failed(path, &error)),
            Mark::Comment => {
                let word = format!("{WORD}{of}").replace('\'', "''");
                Ok(conn.execute_batch(&format!("COMMENT ON TABLE pmk_schema IS '{word}'"))?)
            }
        }
    }

    pub(super) fn clear(&self, conn: &Connection) -> Result<(), Fault> {
        match self {
            Mark::File(path) => Mark::forget(path).map_err(|error| failed(path, &error)),
            Mark::Comment => Ok(conn.execute_batch("COMMENT ON TABLE pmk_schema IS NULL")?),
        }
    }

    /// Removes the mark of a file, if there is one.
    pub(in crate::store) fn forget(database: &Path) -> io::Result<()> {
        match fs::remove_file(file(database)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

fn file(database: &Path) -> PathBuf {
    database.with_file_name(FILE_NAME)
}

fn failed(path: &Path, error: &io::Error) -> Fault {
    StoreError::Io { path: file(path), message: error.to_string() }.into()
}
