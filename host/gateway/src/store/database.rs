//! A store in PostgreSQL: opening it, and migrating its schema.

use std::{path::Path, sync::Arc, thread, time::Duration};

use super::{
    error::{Fault, StoreError},
    hosts,
    schema::{self, FIRST_TOLD, Known, OURS, SchemaState},
    sql::{Connection, Link, NO_OPTIONS, Postgres},
    upgrade::Step,
};

const IS_OURS: &str = "SELECT to_regclass('pmk_schema') IS NOT NULL";
const SET_VERSION: &str = "DELETE FROM pmk_schema; INSERT INTO pmk_schema (version, oldest) VALUES";
const ENCODING: &str = "SELECT current_setting('server_encoding')";
const SCHEMA: &str = "SELECT CAST(current_schema() AS TEXT)";
const HAS_ITS_PATH: &str = "SELECT 1 FROM pg_settings WHERE name = 'search_path' AND source IN ('client', 'session')";
const TABLES: &str = "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p', 'v', 'm')";
/// Hosts that a change of the schema would break.
const ANY_HOST: &str = "SELECT 1 FROM host WHERE until > pmk_now() LIMIT 1";
const ANY_OLDER_HOST: &str = "SELECT 1 FROM host WHERE until > pmk_now() AND schema < ?1 LIMIT 1";

/// Whether the store must exist already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenMode {
    /// It is created where there is none.
    Made,
    There,
}

/// Opens the connection that writes, and creates or migrates the schema.
///
/// # Errors
/// [`StoreError::Missing`], [`StoreError::Foreign`], [`StoreError::Newer`], [`StoreError::Outdated`]; or the database
/// cannot be used.
pub(super) fn writer(link: &Arc<Link>, wanted: OpenMode) -> Result<Connection, StoreError> {
    let name = Path::new(link.name());
    let open = || -> Result<Connection, Fault> {
        let conn = Connection::Postgres(Box::new(Postgres::connect(link)?));
        check(&conn, link)?;
        if standing(&conn, name, &OURS)? != SchemaState::Known {
            bring_up_to_date(&conn, name, wanted, &OURS)?;
        }
        Ok(conn)
    };
    open().map_err(|fault| fault.at(name))
}

/// Opens another connection to the same database.
///
/// # Errors
/// The database cannot be used.
pub(super) fn reader(link: &Arc<Link>) -> Result<Connection, StoreError> {
    let conn = Postgres::connect(link).map_err(|error| Fault::from(error).at(Path::new(link.name())))?;
    Ok(Connection::Postgres(Box::new(conn)))
}

/// Returns the schema version of a database and the host that works on it, for inspection; `None` where it is
/// empty. Changes nothing.
///
/// # Errors
/// As [`writer`], except that an older schema is no error.
pub(super) fn examine(link: &Arc<Link>) -> Result<Option<(u32, Option<String>)>, StoreError> {
    let name = Path::new(link.name());
    let look = || -> Result<Option<(u32, Option<String>)>, Fault> {
        let conn = Connection::Postgres(Box::new(Postgres::connect(link)?));
        check(&conn, link)?;
        let schema = match standing(&conn, name, &OURS)? {
            SchemaState::Empty => return Ok(None),
            SchemaState::Older(found) => found,
            SchemaState::Known => OURS.version(),
        };
        Ok(Some((schema, hosts::living(&conn)?)))
    };
    look().map_err(|fault| fault.at(name))
}

/// Checks that the database can hold a store, and is the intended one.
fn check(conn: &Connection, link: &Link) -> Result<(), Fault> {
    let refused = |message: String| Fault::from(StoreError::Refused { path: link.name().into(), message });
    // A pooler may not have passed the options on, and then this is another schema.
    if link.options().contains("search_path") && !conn.prepare_cached(HAS_ITS_PATH)?.exists([])? {
        return Err(refused(format!("{NO_OPTIONS}: the `options` in the address do not reach the server")));
    }
    let encoding: String = conn.query_row(ENCODING, [], |row| row.get(0))?;
    if encoding != "UTF8" {
        return Err(StoreError::Encoding { path: link.name().into(), encoding }.into());
    }
    let schema: Option<String> = conn.query_row(SCHEMA, [], |row| row.get(0))?;
    schema.map(drop).ok_or_else(|| refused("the search path of the user contains no existing schema".into()))
}

fn standing(conn: &Connection, name: &Path, known: &Known<'_>) -> Result<SchemaState, Fault> {
    let is_ours = || conn.query_row(IS_OURS, [], |row| row.get::<_, bool>(0));
    if !is_ours()? {
        if conn.query_row(TABLES, [], |row| row.get::<_, i64>(0))? == 0 {
            return Ok(SchemaState::Empty);
        }
        // Another host may just have created them.
        if !is_ours()? {
            return Err(StoreError::Foreign { path: name.to_owned() }.into());
        }
    }
    schema::of_ours(conn, name, known)
}

/// A reader of two tables and the schema change may deadlock, and then one of them has to start again: the change
/// is tried so often.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// Migrates the schema completely or not at all: PostgreSQL rolls back schema changes like any others.
pub(super) fn bring_up_to_date(
    conn: &Connection,
    name: &Path,
    wanted: OpenMode,
    known: &Known<'_>,
) -> Result<(), Fault> {
    for _ in 1..TRIES {
        match change_schema(conn, name, wanted, known) {
            Err((_, StoreError::Busy { .. })) => thread::sleep(BETWEEN_TRIES),
            done => return done.map_err(|(found, error)| told(found, error, name, known)),
        }
    }
    change_schema(conn, name, wanted, known).map_err(|(found, error)| told(found, error, name, known))
}

/// Describes a failed migration as such, where there was a store.
fn told(found: u32, error: StoreError, name: &Path, known: &Known<'_>) -> Fault {
    match error {
        StoreError::Missing { .. } | StoreError::Newer { .. } | StoreError::Outdated { .. } => error.into(),
        error if found == 0 => error.into(),
        error => Step { found, known: known.version() }.not_migrated(name, &error).into(),
    }
}

/// Returns the error together with the schema version that was found.
fn change_schema(conn: &Connection, name: &Path, wanted: OpenMode, known: &Known<'_>) -> Result<(), (u32, StoreError)> {
    let at = |found: u32| move |fault: Fault| (found, fault.at(name));
    conn.begin().map_err(|error| at(0)(error.into()))?;
    let change = || -> Result<(), (u32, StoreError)> {
        // Another process may have been faster: only inside the transaction the version is certain.
        let found = match standing(conn, name, known).map_err(at(0))? {
            SchemaState::Known => return Ok(()),
            SchemaState::Empty if wanted == OpenMode::There => {
                return Err((0, StoreError::Missing { path: name.to_owned() }));
            }
            SchemaState::Empty => 0,
            SchemaState::Older(found) if surprises_somebody(conn, found, known).map_err(at(found))? => {
                return Err((found, StoreError::Outdated { path: name.to_owned(), found, known: known.version() }));
            }
            SchemaState::Older(found) => found,
        };
        apply(conn, found, known).map_err(at(found))
    };
    let changed = change();
    if !conn.is_autocommit() {
        conn.roll_back().map_err(|error| at(0)(error.into()))?;
    }
    changed
}

/// Whether a host is working that could not continue with the new schema.
fn surprises_somebody(conn: &Connection, found: u32, known: &Known<'_>) -> Result<bool, Fault> {
    Ok(match found < FIRST_TOLD {
        true => conn.prepare_cached(ANY_HOST)?.exists([])?,
        false => conn.prepare_cached(ANY_OLDER_HOST)?.exists([known.oldest])?,
    })
}

fn apply(conn: &Connection, found: u32, known: &Known<'_>) -> Result<(), Fault> {
    // A host that was silent for too long must not continue in a schema that it does not know.
    match found {
        0 => {}
        1..FIRST_TOLD => conn.execute_batch("DELETE FROM host")?,
        _ => conn.execute_batch(&format!("DELETE FROM host WHERE schema < {}", known.oldest))?,
    }
    for (_, schema) in known.schemas.iter().filter(|(version, _)| *version > found) {
        conn.execute_batch(schema)?;
    }
    conn.execute_batch(&format!("{SET_VERSION} ({}, {})", known.version(), known.oldest))?;
    Ok(conn.commit()?)
}
