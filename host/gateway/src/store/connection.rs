//! Opens the SQLite file: permissions, settings and schema.

use std::{
    cmp::Ordering,
    ffi::{OsStr, OsString},
    io,
    os::unix::ffi::OsStrExt,
    path::Path,
};

use pmk_system::home;
use rusqlite::{OpenFlags, config::DbConfig};

use super::{
    archive,
    error::{BUSY_TIMEOUT, Fault, StoreError},
    paths,
    sql::Connection,
    upgrade::{self, Step},
};

/// The application id that `file` and SQLite's own tools show: `pmkh`.
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"pmkh");

/// Each migration takes the schema to the next version. Only ever append.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_store.sql"),
    include_str!("migrations/0002_knowledge.sql"),
    include_str!("migrations/0003_safety.sql"),
    include_str!("migrations/0004_experiments.sql"),
    include_str!("migrations/0005_archive.sql"),
    include_str!("migrations/0006_parking.sql"),
    include_str!("migrations/0007_tools.sql"),
    include_str!("migrations/0008_bounds.sql"),
    include_str!("migrations/0009_asking.sql"),
    include_str!("migrations/0010_cases.sql"),
    include_str!("migrations/0011_contacts.sql"),
    include_str!("migrations/0012_presence.sql"),
    include_str!("migrations/0013_events.sql"),
    include_str!("migrations/0014_following.sql"),
    include_str!("migrations/0015_changes.sql"),
    include_str!("migrations/0016_presses.sql"),
    include_str!("migrations/0017_attached.sql"),
    include_str!("migrations/0018_images.sql"),
    include_str!("migrations/0019_shown.sql"),
    include_str!("migrations/0020_words.sql"),
    include_str!("migrations/0021_waiting.sql"),
    include_str!("migrations/0022_hosts.sql"),
    include_str!("migrations/0023_atoms.sql"),
    include_str!("migrations/0024_common.sql"),
    include_str!("migrations/0025_leases.sql"),
    include_str!("migrations/0026_arms.sql"),
    include_str!("migrations/0027_experiments.sql"),
    include_str!("migrations/0028_sizes.sql"),
    include_str!("migrations/0029_in_person.sql"),
    include_str!("migrations/0030_promoted.sql"),
    include_str!("migrations/0031_erasing.sql"),
    include_str!("migrations/0032_apps.sql"),
    include_str!("migrations/0033_groups.sql"),
    include_str!("migrations/0034_skipped.sql"),
    include_str!("migrations/0035_streamed.sql"),
];

/// The migration that gives conversations a searchable archive; messages stored before it have to be added to the
/// archive.
const ARCHIVE: u32 = 5;

/// Enough for every statement of the program, so that none is compiled twice.
pub(super) const CACHED_STATEMENTS: usize = 256;

/// How many pages of 4 KiB the write-ahead log holds before they are written to the database: the more, the more
/// changes of one page are combined into one write.
const LOG_PAGES: i64 = 4_000;
/// The write-ahead log shrinks back to this after a burst.
const LOG_BYTES: i64 = 64 << 20;

const READ_ONLY: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// Whether the schema may be migrated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Migrate {
    Yes,
    /// A running gateway relies on the schema as it is.
    No,
}

/// Creates the file and its folder where they are missing, accessible only to their owner.
pub(super) fn create(path: &Path) -> Result<(), StoreError> {
    let failed = |error: io::Error| StoreError::Io { path: path.to_owned(), message: error.to_string() };
    if let Some(folder) = path.parent() {
        home::create_private_dir(folder).map_err(failed)?;
    }
    // SQLite gives the log and its index the permissions of the database.
    home::open_private_file(path).map_err(failed)?;
    Ok(())
}

/// Opens the connection that writes, to a file that exists.
pub(super) fn writer(path: &Path, migrate: Migrate) -> Result<Connection, StoreError> {
    let open = || {
        let conn = open_writer(path, migrate, MIGRATIONS)?;
        archive::prepare(&conn)?;
        Ok(conn)
    };
    open().map_err(|fault: Fault| fault.at(path))
}

pub(super) fn open_writer(path: &Path, migrate: Migrate, migrations: &[&str]) -> Result<Connection, Fault> {
    let conn = rusqlite::Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    common(&conn)?;
    check_owner(&conn, path)?;
    let mode: String = conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" {
        let message = format!("the file system does not support a write-ahead log (journal mode is `{mode}`)");
        return Err(StoreError::Io { path: path.to_owned(), message }.into());
    }
    conn.pragma_update(None, "synchronous", "full")?;
    conn.pragma_update(None, "foreign_keys", true)?;
    // The savepoint journal stays in memory.
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    conn.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
    let conn = Connection::Sqlite(conn);
    migrate_schema(&conn, path, migrate, migrations)?;
    Ok(conn)
}

/// Opens a store that may only be read, on a read-only disk or of another user: it must exist, have the current
/// schema, and be at rest or held open by its owner.
pub(super) fn read_only(path: &Path) -> Result<Connection, StoreError> {
    let open = || -> Result<Connection, Fault> {
        let conn = rusqlite::Connection::open_with_flags(uri(path), READ_ONLY | OpenFlags::SQLITE_OPEN_URI)?;
        common(&conn)?;
        check_owner(&conn, path)?;
        let (found, known) = (version(&conn)?, MIGRATIONS.len() as u32);
        match found.cmp(&known) {
            Ordering::Equal => {
                let conn = Connection::Sqlite(conn);
                archive::prepare(&conn)?;
                Ok(conn)
            }
            Ordering::Greater => Err(StoreError::Newer { path: path.to_owned(), found, known }.into()),
            Ordering::Less => Err(StoreError::Outdated { path: path.to_owned(), found, known }.into()),
        }
    };
    open().map_err(|fault| fault.at(path))
}

/// Opens a backup for reading. It may have an older schema.
pub(super) fn backup(path: &Path) -> Result<rusqlite::Connection, StoreError> {
    match of_any_schema(path, IsWritten::No)? {
        // An empty database is no backup.
        (_, 0) => Err(StoreError::Foreign { path: path.to_owned() }),
        (conn, _) => Ok(conn),
    }
}

/// Whether another process may write to the file while it is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IsWritten {
    Yes,
    No,
}

/// Opens a file of the current or an older schema for reading, and returns its schema version.
pub(super) fn of_any_schema(path: &Path, is_written: IsWritten) -> Result<(rusqlite::Connection, u32), StoreError> {
    let open = || -> Result<(rusqlite::Connection, u32), Fault> {
        let conn = match is_written {
            IsWritten::Yes => rusqlite::Connection::open_with_flags(path, READ_ONLY)?,
            IsWritten::No => rusqlite::Connection::open_with_flags(uri(path), READ_ONLY | OpenFlags::SQLITE_OPEN_URI)?,
        };
        common(&conn)?;
        check_owner(&conn, path)?;
        match (version(&conn)?, MIGRATIONS.len() as u32) {
            (found, known) if found > known => Err(StoreError::Newer { path: path.to_owned(), found, known }.into()),
            (found, _) => Ok((conn, found)),
        }
    };
    open().map_err(|fault| fault.at(path))
}

/// Returns the URI of the file. SQLite creates an index of the log even for reading, unless it is told that the
/// file does not change, which is so where there is no log.
fn uri(path: &Path) -> OsString {
    let at_rest = std::fs::metadata(paths::log(path)).map_or(true, |log| log.len() == 0);
    let mut uri = OsString::from("file:");
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'%' | b'?' | b'#' => uri.push(format!("%{byte:02x}")),
            _ => uri.push(OsStr::from_bytes(&[byte])),
        }
    }
    uri.push(if at_rest { "?immutable=1" } else { "" });
    uri
}

/// Opens a connection that reads. Each of its statements sees what was committed before.
pub(super) fn reader(path: &Path) -> Result<Connection, StoreError> {
    let open = || -> Result<Connection, Fault> {
        let conn = rusqlite::Connection::open_with_flags(path, READ_ONLY)?;
        common(&conn)?;
        let conn = Connection::Sqlite(conn);
        archive::prepare(&conn)?;
        Ok(conn)
    };
    open().map_err(|fault| fault.at(path))
}

/// Opens a connection to the committed state, to copy it while another connection is about to change it.
pub(super) fn as_committed(path: &Path) -> Result<rusqlite::Connection, StoreError> {
    let open = || -> Result<rusqlite::Connection, Fault> {
        let conn = rusqlite::Connection::open_with_flags(path, READ_ONLY)?;
        common(&conn)?;
        Ok(conn)
    };
    open().map_err(|fault| fault.at(path))
}

/// Opens a copy that is not finished yet, so that what is removed from it is overwritten at once. No change is undone:
/// where one fails, the copy is given up.
pub(super) fn unfinished_copy(path: &Path) -> Result<rusqlite::Connection, Fault> {
    let conn = rusqlite::Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    common(&conn)?;
    conn.pragma_update_and_check(None, "journal_mode", "off", |_| Ok(()))?;
    conn.pragma_update(None, "synchronous", "off")?;
    conn.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
    Ok(conn)
}

/// Has a transaction write to the disk, and change nothing: SQLite writes the page of the application id whenever it is set.
/// A database has a host's sign of life written with every transaction.
pub(super) fn touch(conn: &Connection) -> Result<(), Fault> {
    match conn {
        Connection::Sqlite(conn) => Ok(conn.pragma_update(None, "application_id", APPLICATION_ID)?),
        Connection::Postgres(_) => Ok(()),
    }
}

/// Returns the size of the database in bytes, including pages that are only in its log.
pub(super) fn length(conn: &rusqlite::Connection) -> Result<u64, Fault> {
    let pages: i64 = conn.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let bytes: i64 = conn.pragma_query_value(None, "page_size", |row| row.get(0))?;
    Ok(u64::try_from(pages.saturating_mul(bytes)).unwrap_or(u64::MAX))
}

fn common(conn: &rusqlite::Connection) -> Result<(), Fault> {
    conn.busy_timeout(BUSY_TIMEOUT)?;
    conn.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    // One plan for each statement, whatever its values: without this, every set of values is planned anew.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.pragma_update(None, "trusted_schema", false)?;
    // A corrupted page is detected when it is read, rather than by its consequences.
    conn.pragma_update(None, "cell_size_check", true)?;
    Ok(())
}

/// Checks that a file with tables has our application id.
fn check_owner(conn: &rusqlite::Connection, path: &Path) -> Result<(), Fault> {
    let id: i32 = conn.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if id != APPLICATION_ID && (id != 0 || tables > 0) {
        return Err(StoreError::Foreign { path: path.to_owned() }.into());
    }
    Ok(())
}

fn migrate_schema(conn: &Connection, path: &Path, migrate: Migrate, migrations: &[&str]) -> Result<(), Fault> {
    let known = migrations.len() as u32;
    if schema(conn)? == known {
        return Ok(());
    }
    // Another process may be migrating as well: the version is certain only inside the transaction.
    conn.begin()?;
    let migrated = bring_up_to_date(conn, path, migrate, migrations);
    if !conn.is_autocommit() {
        conn.roll_back()?;
    }
    migrated
}

/// Migrates the schema inside a transaction, which is committed where the schema was changed.
fn bring_up_to_date(conn: &Connection, path: &Path, migrate: Migrate, migrations: &[&str]) -> Result<(), Fault> {
    let known = migrations.len() as u32;
    let found = schema(conn)?;
    if found > known {
        return Err(StoreError::Newer { path: path.to_owned(), found, known }.into());
    }
    if found < known && migrate == Migrate::No {
        return Err(StoreError::Outdated { path: path.to_owned(), found, known }.into());
    }
    let step = Step { found, known };
    let backup = match found {
        // Another process has migrated it meanwhile.
        _ if found == known => return Ok(()),
        // The file is still empty.
        0 => return apply(conn, migrations, step),
        // Nobody else writes while the transaction is open, so the backup is of the state that will be changed.
        _ => upgrade::back_up(path, step, upgrade::free)?,
    };
    match apply(conn, migrations, step) {
        Ok(()) => {
            upgrade::done(path, step, &backup);
            Ok(())
        }
        Err(fault) => Err(step.failed(path, fault.at(path), backup).into()),
    }
}

/// Migrates the schema, or changes nothing.
fn apply(conn: &Connection, migrations: &[&str], Step { found, known }: Step) -> Result<(), Fault> {
    for migration in &migrations[found as usize..] {
        conn.execute_batch(migration)?;
    }
    if (found + 1..=known).contains(&ARCHIVE) {
        tracing::debug!("moving earlier messages to the archive");
        archive::backfill(conn)?;
    }
    conn.execute_batch(&format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {known}"))?;
    Ok(conn.commit()?)
}

fn schema(conn: &Connection) -> Result<u32, Fault> {
    Ok(conn.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

fn version(conn: &rusqlite::Connection) -> Result<u32, Fault> {
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
        assert_eq!((carried, schema(&conn).unwrap()), (2, 2));
    }

    #[test]
    fn the_backup_of_a_migration_is_kept_until_the_next() {
        let (folder, path) = fresh();
        let backups = || {
            let files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
            let mut names: Vec<_> = files.filter(|name| name.to_string_lossy().contains("schema")).collect();
            names.sort();
            names
        };
        drop(open_writer(&path, Migrate::Yes, &[FIRST]).unwrap());
        assert!(backups().is_empty());
        drop(open_writer(&path, Migrate::Yes, &[FIRST, SECOND]).unwrap());
        assert_eq!(backups(), ["store.db.schema-1"]);
        // A failed migration removes no backup.
        open_writer(&path, Migrate::Yes, &[FIRST, SECOND, BROKEN]).unwrap_err();
        assert_eq!(backups(), ["store.db.schema-1", "store.db.schema-2"]);
        drop(open_writer(&path, Migrate::Yes, &[FIRST, SECOND, "CREATE TABLE c (x)"]).unwrap());
        assert_eq!(backups(), ["store.db.schema-2"]);
    }

    #[test]
    fn a_window_that_was_named_for_good_may_be_tried_again() {
        let (_folder, path) = fresh();
        let conn = open_writer(&path, Migrate::Yes, &MIGRATIONS[..5]).unwrap();
        conn.execute("INSERT INTO calibration VALUES ('openai', 'm', 1, 2, 3, 4, 6, 4096)", []).unwrap();
        drop(conn);
        let conn = open_writer(&path, Migrate::Yes, MIGRATIONS).unwrap();
        let select = "SELECT kind, tokens, until = learnt_at FROM bound";
        let bound: (String, i64, bool) =
            conn.query_row(select, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
        assert_eq!(bound, ("named".into(), 4_096, true));
    }

    #[test]
    fn a_backup_kept_in_memory_what_its_purge_changes() {
        let (_folder, path) = fresh();
        let copy = unfinished_copy(&path).unwrap();
        let mode: String = copy.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(mode, "off");
    }

    #[test]
    fn a_store_at_rest_is_read_without_a_trace() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("100%? #1.db");
        create(&path).unwrap();
        drop(open_writer(&path, Migrate::Yes, MIGRATIONS).unwrap());
        let files = || {
            let mut names: Vec<_> =
                std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = files();
        let conn = read_only(&path).unwrap();
        let sessions: i64 = conn.query_row("SELECT count(*) FROM session", [], |row| row.get(0)).unwrap();
        assert_eq!((sessions, files()), (0, before));
        let refused = Fault::from(conn.execute("DELETE FROM session", []).unwrap_err()).at(&path);
        assert!(matches!(refused, StoreError::Io { .. }), "{refused}");
    }

    #[test]
    fn a_store_in_use_is_read_with_its_log() {
        let (_folder, path) = fresh();
        let writer = open_writer(&path, Migrate::Yes, MIGRATIONS).unwrap();
        writer.execute("INSERT INTO session (key, created_at, active_at) VALUES ('slack:dm:U1', 0, 0)", []).unwrap();
        let sessions: i64 =
            read_only(&path).unwrap().query_row("SELECT count(*) FROM session", [], |row| row.get(0)).unwrap();
        assert_eq!(sessions, 1);
    }

    #[test]
    fn a_migration_that_fails_changes_nothing() {
        let (_folder, path) = fresh();
        drop(open_writer(&path, Migrate::Yes, &[FIRST]).unwrap());
        let failed = open_writer(&path, Migrate::Yes, &[FIRST, SECOND, BROKEN]).unwrap_err().at(&path);
        let backup = path.with_file_name("store.db.schema-1");
        let told = failed.to_string();
        assert!(told.contains("from schema 1 to 3") && told.contains("no such table: nowhere"), "{told}");
        assert!(failed.hint().unwrap().contains(&*backup.to_string_lossy()), "{failed:?}");
        let conn = rusqlite::Connection::open(&backup).unwrap();
        assert_eq!(conn.query_row("SELECT x FROM a", [], |row| row.get::<_, i64>(0)).unwrap(), 1);
        let conn = open_writer(&path, Migrate::No, &[FIRST]).unwrap();
        let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
        assert_eq!((tables, schema(&conn).unwrap()), (1, 1));
    }
}
