//! A store of an older program: backed up, migrated, and restored for the older program.

use std::{
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use pmk_system::{
    atomic_file::{AtomicFile, Overwrite},
    error::Failure,
};
use rusqlite::types::Value;

use super::*;
use crate::store::{
    connection::{MIGRATIONS, open_writer},
    paths,
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
    make_as_before(home.path());
    home
}

fn make_as_before(home: &Path) {
    let path = Store::path(home);
    connection::create(&path).unwrap();
    let conn = open_as_before(&path);
    for key in ["slack:dm:U1", "slack:dm:U2"] {
        conn.execute("INSERT INTO session (key, created_at, active_at) VALUES (?1, 1, 2)", [key]).unwrap();
    }
    conn.execute("INSERT INTO outage VALUES (1, 5, 6, 'crash-recovery')", []).unwrap();
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

/// Where its name has a space, the shell took the command of the hint for another.
#[tokio::test]
async fn the_way_back_was_no_command_in_a_home_whose_name_has_a_space() {
    let folder = home();
    let home = folder.path().join("two words");
    make_as_before(&home);
    drop(Store::open(home.as_path()).unwrap());
    sql(&home).pragma_update(None, "user_version", 99).unwrap();
    let refused = Failure::from(Store::open(home.as_path()).err().expect("newer"));
    let command = refused.advice().and_then(|hint| hint.split('`').nth(1)).expect("a command");
    let backup = paths::of_schema(&Store::path(&home), BEFORE);
    let [home, backup] = [home, backup].map(|path| path.display().to_string());
    assert_eq!(shlex::split(command).unwrap(), ["pmk-host", "--home", &*home, "store", "restore", &*backup]);
}

/// Half a backup took the room that the next attempt wanted, and so did a whole one that was about to be replaced, and
/// the log of a change.
#[tokio::test]
async fn what_a_killed_upgrade_had_left_kept_the_next_from_being_begun() {
    let ways: [fn(&Path) -> PathBuf; 3] = [
        |backup| AtomicFile::begin(backup, Overwrite::Another).unwrap().path().to_owned(),
        |backup| backup.to_owned(),
        |backup| paths::log(&backup.with_extension("")),
    ];
    for left in ways {
        let home = home_of_before();
        let path = Store::path(home.path());
        let bytes = fs::metadata(&path).unwrap().len();
        let left = left(&backup_of(&home, BEFORE));
        fs::write(&left, vec![0_u8; bytes as usize]).unwrap();
        let free = |_: &Path| 2 * bytes + bytes / 2 - fs::metadata(&left).unwrap().len();
        let less = |folder: &Path| free(folder) - bytes;
        let refused = upgrade::check_room(&path, BEFORE, bytes, less);
        assert!(matches!(refused, Err(StoreError::NoRoom { free, .. }) if free == less(&path)), "{refused:?}");
        upgrade::check_room(&path, BEFORE, bytes, free).unwrap();
        upgrade::back_up(&path, Step { found: BEFORE, known: NOW_IS }, free).unwrap();
        assert_eq!(content(&backup_of(&home, BEFORE)), content(&path));
    }
}

/// Room for both was looked for beside the link.
#[test]
fn a_linked_store_was_upgraded_without_room_on_its_own_disk() {
    let home = home();
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else { return };
    let [here, there] = [home.path(), other.path()].map(|folder| fs::canonicalize(folder).unwrap());
    if fs::metadata(&here).unwrap().dev() == fs::metadata(&there).unwrap().dev() {
        return;
    }
    let (path, file) = (here.join("pmk-host.db"), there.join("pmk-host.db"));
    fs::write(&file, "").unwrap();
    symlink(&file, &path).unwrap();
    let lacks = |free_here: u64, free_there: u64| {
        let free = |folder: &Path| if folder == there { free_there } else { free_here };
        match upgrade::check_room(&path, BEFORE, 100, free) {
            Err(StoreError::NoRoom { path, needed: 100, .. }) => Some(path),
            other => other.map(|()| None).unwrap(),
        }
    };
    assert_eq!(lacks(100, 100), None);
    assert_eq!(lacks(1_000, 99), Some(file.clone()));
    assert_eq!(lacks(99, 1_000), Some(path.clone()));
}

/// Whose disk was full was asked to report it.
#[test]
fn an_upgrade_that_met_a_full_disk_was_taken_for_a_bug() {
    let path = PathBuf::from("/h/gateway/pmk-host.db");
    let (backup, step) = (paths::of_schema(&path, BEFORE), Step { found: BEFORE, known: NOW_IS });
    let told = |why: StoreError| Failure::from(step.failed(&path, why, backup.clone())).to_string();
    let full = told(StoreError::Full { path: path.clone() });
    assert!(full.contains("the disk is full") && full.ends_with("`; free disk space"), "{full}");
    let limited = told(StoreError::Limited { path: path.clone(), bytes: 1 });
    assert!(limited.contains("; raise the limit") && !limited.contains("report"), "{limited}");
    let bug = told(StoreError::Sql { path: path.clone(), message: "no such table".into() });
    assert!(bug.ends_with("; please report this"), "{bug}");
}

/// Although nothing was running.
#[tokio::test]
async fn an_old_store_that_can_only_be_read_was_said_to_be_in_use() {
    let home = home_of_before();
    // For any user: a folder in its place lets nobody write, and reading a store at rest does not need it.
    fs::create_dir(paths::with_suffix(&Store::path(home.path()), "-shm")).unwrap();
    let error = Store::open_existing(home.path()).err().expect("it cannot be upgraded");
    assert!(matches!(error, StoreError::OldAndReadOnly { found: BEFORE, known: NOW_IS, .. }), "{error:?}");
    let told = Failure::from(error).to_string();
    assert!(!told.contains("in use") && told.contains("copy the home to where it can be written"), "{told}");
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
    assert!(matches!(error, StoreError::NotMigrated { .. }), "{error}");
    assert_eq!(number(&home, "PRAGMA user_version"), i64::from(BEFORE));
    fs::remove_dir(backup_of(&home, BEFORE)).unwrap();
    drop(open(&home));
}
