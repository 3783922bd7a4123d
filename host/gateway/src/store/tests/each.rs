//! Tests that hold for either database, one topic per module: this file is included once for each.

mod apps;
pub(super) mod archives;
pub(super) mod asking;
mod atom_files;
mod calibrations;
mod cases;
pub(super) mod changes;
mod early;
mod escalated;
mod escalations;
pub(super) mod events;
mod experiments;
mod following;
pub(super) mod group_commit;
mod in_person;
mod leases;
mod moves;
mod parking;
mod person;
mod presence;
mod presses;
mod reattached;
mod receipts;
mod repeats;
mod retention;
mod seeds;
mod uses;
mod windows;

use std::sync::Arc;

use pmk_stand_ins::postgres;

use super::*;
use crate::{
    database::Database,
    store::{Place, database, sql::Link},
};

/// A home, and the database of its store.
pub(super) struct Home {
    pub(super) folder: TempDir,
    pub(super) database: Option<Database>,
}

impl Home {
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn link(&self) -> Option<Arc<Link>> {
        Place::from(self).link(Threads::Own).unwrap()
    }
}

impl From<&Home> for Place {
    fn from(home: &Home) -> Place {
        Place { home: home.folder.path().to_owned(), database: home.database.clone() }
    }
}

pub(super) fn home() -> Home {
    let wants_postgres = module_path!().ends_with("on_postgres");
    let server = if wants_postgres { postgres::server() } else { None };
    let database = server.map(|server| Database::parse(&server.schema()).unwrap());
    Home { folder: tempfile::tempdir().unwrap(), database }
}

pub(super) fn open(home: &Home) -> Store {
    Store::open(home).unwrap()
}

/// A `run` that has taken the store over.
async fn run(home: &Home, lock: &pmk_system::home::HomeLock) -> Store {
    let store = open(home);
    store.take_over(lock).await.unwrap();
    store
}

/// The database as another program would see it.
fn sql(home: &Home) -> Connection {
    match home.link() {
        Some(link) => database::reader(&link).unwrap(),
        None => Connection::Sqlite(rusqlite::Connection::open(Store::path(home.path())).unwrap()),
    }
}

/// Runs a query as another program.
pub(super) fn asked<T>(home: &Home, ask: impl FnOnce(&Connection) -> T) -> T {
    ask(&sql(home))
}

/// Sets the clock of a database that has one.
pub(super) fn it_is(home: &Home, now_ms: i64) {
    if home.database.is_some() {
        let clock = format!(
            "CREATE OR REPLACE FUNCTION pmk_now() RETURNS BIGINT LANGUAGE sql VOLATILE AS $$ SELECT {now_ms}::BIGINT $$"
        );
        asked(home, |conn| conn.execute_batch(&clock).unwrap());
    }
}

pub(super) fn number(home: &Home, query: &str) -> i64 {
    asked(home, |conn| conn.query_row(query, [], |row| row.get(0)).unwrap())
}
