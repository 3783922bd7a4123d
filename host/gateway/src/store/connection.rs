//! Opening the file: who may read it, how it is written, which schema it has.

use std::{io, path::Path, time::Duration};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::error::{Fault, StoreError};
use crate::home;

/// How long a statement waits for another process to let go of the file.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// What `file` and SQLite's own tools show of whose database this is: `pmkh`.
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"pmkh");

/// Each takes the schema one version further. Only ever add to the end.
const MIGRATIONS: &[&str] = &[include_str!("migrations/0001_store.sql"), include_str!("migrations/0002_knowledge.sql")];

/// Room for every statement we have, so that none is compiled twice.
const CACHED_STATEMENTS: usize = 64;

/// The write-ahead log shrinks back to this after a burst.
const LOG_BYTES: i64 = 64 << 20;

/// Whether the schema may be brought up to date.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Migrate {
    Yes,
    /// A running gateway relies on the schema as it is.
    No,
}

/// Makes the file and its folder, for nobody but their owner, where they are missing.
pub(super) fn create(path: &Path) -> Result<(), StoreError> {
    let failed = |error: io::Error| StoreError::Io { path: path.to_owned(), message: error.to_string() };
    if let Some(folder) = path.parent() {
        home::create_private_dir(folder).map_err(failed)?;
    }
    // SQLite gives the log and the index of the log the permissions that the database has.
    home::open_private_file(path).map_err(failed)?;
    Ok(())
}

/// The connection that writes, to a file that exists.
pub(super) fn writer(path: &Path, migrate: Migrate) -> Result<Connection, StoreError> {
    open_writer(path, migrate, MIGRATIONS).map_err(|fault| fault.at(path))
}

fn open_writer(path: &Path, migrate: Migrate, migrations: &[&str]) -> Result<Connection, Fault> {
    let mut conn =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    common(&conn)?;
    check_owner(&conn, path)?;
    let mode: String = conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" {
        let message = format!("the file system does not support a write-ahead log (journal mode is `{mode}`)");
        return Err(StoreError::Io { path: path.to_owned(), message }.into());
    }
    conn.pragma_update(None, "synchronous", "full")?;
    conn.pragma_update(None, "foreign_keys", true)?;
    // What is kept to undo one operation of a group stays off the disk.
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
    migrate_schema(&mut conn, path, migrate, migrations)?;
    Ok(conn)
}

/// A connection that reads. It sees what was committed before each of its statements.
pub(super) fn reader(path: &Path) -> Result<Connection, StoreError> {
    let open = || -> Result<Connection, Fault> {
        let conn =
            Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        common(&conn)?;
        Ok(conn)
    };
    open().map_err(|fault| fault.at(path))
}

fn common(conn: &Connection) -> Result<(), Fault> {
    conn.busy_timeout(BUSY_TIMEOUT)?;
    conn.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    conn.pragma_update(None, "trusted_schema", false)?;
    Ok(())
}

/// A file with tables in it must carry our mark.
fn check_owner(conn: &Connection, path: &Path) -> Result<(), Fault> {
    let id: i32 = conn.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if id != APPLICATION_ID && (id != 0 || tables > 0) {
        return Err(StoreError::Foreign { path: path.to_owned() }.into());
    }
    Ok(())
}

fn migrate_schema(conn: &mut Connection, path: &Path, migrate: Migrate, migrations: &[&str]) -> Result<(), Fault> {
    let known = migrations.len() as u32;
    if version(conn)? == known {
        return Ok(());
    }
    // Another process may be migrating as well: only inside the transaction is the version certain.
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&tx)?;
    if found > known {
        return Err(StoreError::Newer { path: path.to_owned(), found, known }.into());
    }
    if found < known && migrate == Migrate::No {
        return Err(StoreError::Outdated { path: path.to_owned(), found, known }.into());
    }
    for migration in &migrations[found as usize..] {
        tx.execute_batch(migration)?;
    }
    tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    tx.pragma_update(None, "user_version", known)?;
    tx.commit()?;
    Ok(())
}

fn version(conn: &Connection) -> Result<u32, Fault> {
    Ok(conn.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (1);";
    const SECOND: &str = "CREATE TABLE b (x INTEGER) STRICT; INSERT INTO b SELECT x + 1 FROM a;";
    const BROKEN: &str = "CREATE TABLE c (x INTEGER) STRICT; INSERT INTO nowhere VALUES (1);";

    fn fresh() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        create(&path).unwrap();
        (folder, path)
    }

    #[test]
    fn a_migration_goes_on_from_the_version_that_is_there() {
        let (_folder, path) = fresh();
        drop(open_writer(&path, Migrate::Yes, &[FIRST]).unwrap());
        let outdated = open_writer(&path, Migrate::No, &[FIRST, SECOND]).unwrap_err().at(&path);
        assert_eq!(outdated, StoreError::Outdated { path: path.clone(), found: 1, known: 2 });
        let conn = open_writer(&path, Migrate::Yes, &[FIRST, SECOND]).unwrap();
        let carried: i64 = conn.query_row("SELECT x FROM b", [], |row| row.get(0)).unwrap();
        assert_eq!((carried, version(&conn).unwrap()), (2, 2));
    }

    #[test]
    fn a_migration_that_fails_changes_nothing() {
        let (_folder, path) = fresh();
        drop(open_writer(&path, Migrate::Yes, &[FIRST]).unwrap());
        open_writer(&path, Migrate::Yes, &[FIRST, SECOND, BROKEN]).unwrap_err();
        let conn = open_writer(&path, Migrate::No, &[FIRST]).unwrap();
        let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
        assert_eq!((tables, version(&conn).unwrap()), (1, 1));
    }
}
