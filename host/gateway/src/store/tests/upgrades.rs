//! A store of an older program: backed up, migrated, and restored for the older program.

use std::{
    fs,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use pmk_system::error::Failure;
use rusqlite::types::Value;

use super::*;
use crate::store::{
    connection::{MIGRATIONS, open_writer},
    upgrade::{self, Step},
};

/// The schema of this program, and the previous one.
const NOW_IS: u32 = MIGRATIONS.len() as u32;
const BEFORE: u32 = NOW_IS - 1;

/// As the previous program would open it.
fn open_as_before(path: &Path) -> rusqlite::Connection {
    drop(open_writer(path, Migrate::Yes, &MIGRATIONS[..BEFORE as usize]).map_err(|fault| fault.at(path)).unwrap());
    rusqlite::Connection::open(path).unwrap()
}

/// A home whose store was created by the previous program.
fn home_of_before() -> TempDir {
    let home = home();
    let path = Store::path(home.path());
    connection::create(&path).unwrap();
    let conn = open_as_before(&path);
    for key in ["slack:dm:U1", "slack:dm:U2"] {
        conn.execute("INSERT INTO session (key, created_at, active_at) VALUES (?1, 1, 2)", [key]).unwrap();
    }
    conn.execute("INSERT INTO outage VALUES (1, 5, 6, 'crash-recovery')", []).unwrap();
    home
}

fn backup_of(home: &TempDir, schema: u32) -> PathBuf {
    Store::path(home.path()).with_file_name(format!("pmk-host.db.schema-{schema}"))
}

/// Every table with its content.
fn content(path: &Path) -> Vec<(String, Vec<Vec<Value>>)> {
    let conn = rusqlite::Connection::open(path).unwrap();
    let tables =
        "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name";
    let mut statement = conn.prepare(tables).unwrap();
    let tables = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))).unwrap();
    let rows_of = |name: &str| {
        let mut statement = conn.prepare(&format!("SELECT * FROM \"{name}\"")).unwrap();
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| (0..columns).map(|at| row.get(at)).collect()).unwrap();
        rows.collect::<Result<Vec<Vec<Value>>, _>>().unwrap()
    };
    tables
        .map(|table| {
            let (name, sql) = table.unwrap();
            (sql, rows_of(&name))
        })
        .collect()
}

#[tokio::test]
async fn a_store_of_before_is_backed_up_upgraded_and_can_be_given_back_as_it_was() {
    let home = home_of_before();
    let path = Store::path(home.path());
    let before = content(&path);
    assert!(before.iter().any(|(sql, rows)| sql.contains("session") && rows.len() == 2), "{before:?}");

    let store = open(&home);
    turn(&store, "slack:dm:U3", "Ev1").await;
    drop(store);
    assert_eq!(number(&home, "PRAGMA user_version"), i64::from(NOW_IS));
    let backup = backup_of(&home, BEFORE);
    assert_eq!(content(&backup), before);

    let lock = HomeLock::take(home.path()).unwrap();
    Store::put_back(&lock, &backup, || None, Timestamp::now()).unwrap();
    assert_eq!(content(&path), before);
    drop(open_as_before(&path));

    // And once more, with changes made in between.
    open_as_before(&path).execute("DELETE FROM outage", []).unwrap();
    let store = open(&home);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    assert_eq!(number(&home, "SELECT count(*) FROM session"), 2);
    let outages = rusqlite::Connection::open(&backup).unwrap();
    assert_eq!(outages.query_row("SELECT count(*) FROM outage", [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

#[tokio::test]
async fn a_new_store_and_one_that_is_up_to_date_have_no_backup() {
    let home = home();
    drop(open(&home));
    drop(open(&home));
    let files = fs::read_dir(home.path().join("gateway")).unwrap().map(|file| file.unwrap().file_name());
    let backups: Vec<_> = files.filter(|name| name.to_string_lossy().contains("schema")).collect();
    assert!(backups.is_empty(), "{backups:?}");
}

#[tokio::test]
async fn a_newer_store_is_refused_with_the_backup_that_this_program_can_go_back_to() {
    let home = home_of_before();
    drop(open(&home));
    sql(home.path()).pragma_update(None, "user_version", 99).unwrap();
    let refused = || Failure::from(Store::open(home.path()).err().expect("newer")).to_string();
    let backup = backup_of(&home, BEFORE);
    assert!(refused().contains(&format!(" store restore {}`", backup.display())), "{}", refused());
    // A backup that this program cannot read either is not suggested.
    fs::rename(&backup, backup_of(&home, 98)).unwrap();
    assert!(!refused().contains("store restore"), "{}", refused());
}

#[tokio::test]
async fn without_room_for_the_backup_nothing_is_begun() {
    let home = home_of_before();
    let path = Store::path(home.path());
    let step = Step { found: BEFORE, known: NOW_IS };
    let error = upgrade::back_up(&path, step, |_| 4_096).unwrap_err();
    assert!(matches!(error, StoreError::NoRoom { free: 4_096, .. }), "{error}");
    assert!(error.to_string().contains("pmk-host.db") && error.to_string().contains("MiB"), "{error}");
    assert!(!backup_of(&home, BEFORE).exists());
    // And where the disk has space, but the backup cannot be written.
    fs::create_dir(backup_of(&home, BEFORE)).unwrap();
    let error = Store::open(home.path()).err().expect("no backup, no upgrade");
    assert!(matches!(error, StoreError::NotUpgraded { backup: None, .. }), "{error}");
    assert_eq!(number(&home, "PRAGMA user_version"), i64::from(BEFORE));
    fs::remove_dir(backup_of(&home, BEFORE)).unwrap();
    drop(open(&home));
}
