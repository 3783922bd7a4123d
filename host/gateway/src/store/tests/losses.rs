//! A store that is lost, at the start and while it is open.

use std::fs;

use super::*;

fn refused(home: &TempDir) -> StoreError {
    Store::open(home.path()).err().expect("it must be refused")
}

fn gone(home: &TempDir, how: Loss) -> StoreError {
    StoreError::Gone { path: Store::path(home.path()), how }
}

fn beside(home: &TempDir, suffix: &str) -> std::path::PathBuf {
    paths::with_suffix(&Store::path(home.path()), suffix)
}

fn mark_of(home: &TempDir) -> std::path::PathBuf {
    Store::path(home.path()).with_file_name("store.mark")
}

/// A store at rest that contains an answered question.
async fn used() -> TempDir {
    let home = home();
    turn(&open(&home), "slack:dm:U1", "Ev1").await;
    home
}

#[tokio::test]
async fn an_emptied_or_deleted_database_is_not_begun_anew_without_a_word() {
    let home = used().await;
    fs::write(Store::path(home.path()), "").unwrap();
    let emptied = gone(&home, Loss::Emptied);
    assert_eq!((refused(&home), Store::open_existing(home.path()).err().unwrap()), (emptied.clone(), emptied.clone()));
    assert!(emptied.is_lost() && emptied.hint().unwrap().contains("store renew"), "{emptied}");
    fs::remove_file(Store::path(home.path())).unwrap();
    let missing = gone(&home, Loss::Missing);
    assert_eq!((refused(&home), Store::open_existing(home.path()).err().unwrap()), (missing.clone(), missing));
}

#[tokio::test]
async fn an_emptied_database_of_before_there_were_marks_is_known_by_its_log() {
    let home = used().await;
    let store = open(&home);
    accept(&store, "slack:dm:U1", "Ev2").await;
    let log = fs::read(beside(&home, "-wal")).unwrap();
    drop(store);
    fs::remove_file(mark_of(&home)).unwrap();
    fs::write(Store::path(home.path()), "").unwrap();
    fs::write(beside(&home, "-wal"), &log).unwrap();
    assert_eq!(refused(&home), gone(&home, Loss::Emptied));
    assert_eq!(fs::read(beside(&home, "-wal")).unwrap(), log, "what is left is left alone");
}

#[tokio::test]
async fn a_start_that_was_killed_before_it_made_a_table_is_no_loss() {
    let home = home();
    connection::create(&Store::path(home.path())).unwrap();
    turn(&open(&home), "slack:dm:U1", "Ev1").await;
    // A home from before marks existed gets one.
    fs::remove_file(mark_of(&home)).unwrap();
    drop(open(&home));
    assert!(mark_of(&home).exists());
}

#[tokio::test]
async fn whoever_deletes_all_that_is_named_as_the_database_leaves_the_mark() {
    let home = used().await;
    for file in fs::read_dir(home::gateway_dir(home.path())).unwrap().flatten() {
        // `rm gateway/pmk-host.db*`
        if file.file_name().to_string_lossy().starts_with("pmk-host.db") {
            fs::remove_file(file.path()).unwrap();
        }
    }
    assert_eq!(refused(&home), gone(&home, Loss::Missing));
}

/// Damages the files of an open store: what it accepts from then on is not acknowledged.
async fn lost_by(harm: impl Fn(&TempDir)) -> StoreError {
    let home = used().await;
    let store = open(&home);
    accept(&store, "slack:dm:U1", "Ev2").await;
    harm(&home);
    let error = store.accept(&inbound("slack:dm:U1", "Ev3"), NOW).await.expect_err("nobody will find it");
    assert!(error.is_lost(), "{error}");
    assert_eq!(store.lost().await, error, "whoever runs the gateway is told");
    error
}

#[tokio::test]
async fn what_a_deleted_database_takes_is_not_acknowledged() {
    let error = lost_by(|home| fs::remove_file(Store::path(home.path())).unwrap()).await;
    assert!(matches!(error, StoreError::Gone { how: Loss::Missing, .. }), "{error}");
    let error = lost_by(|home| fs::remove_dir_all(home.path()).unwrap()).await;
    assert!(matches!(error, StoreError::Gone { how: Loss::Missing, .. }), "{error}");
}

#[tokio::test]
async fn what_a_replaced_database_takes_is_not_acknowledged() {
    let error = lost_by(|home| {
        let other = home.path().join("other.db");
        fs::copy(Store::path(home.path()), &other).unwrap();
        fs::rename(&other, Store::path(home.path())).unwrap();
    })
    .await;
    assert!(matches!(error, StoreError::Gone { how: Loss::Replaced, .. }), "{error}");
}

#[tokio::test]
async fn what_a_database_takes_that_was_emptied_while_open_is_not_acknowledged() {
    let error = lost_by(|home| drop(fs::File::create(Store::path(home.path())).unwrap())).await;
    assert!(matches!(error, StoreError::Gone { how: Loss::Emptied, .. }), "{error}");
}

#[tokio::test]
async fn what_a_database_takes_that_was_cut_short_while_open_is_not_acknowledged() {
    let error = lost_by(|home| {
        let file = fs::File::options().write(true).open(Store::path(home.path())).unwrap();
        let whole = file.metadata().unwrap().len();
        file.set_len(whole / 2).unwrap();
    })
    .await;
    assert!(matches!(error, StoreError::Gone { how: Loss::Shrunk, .. }), "{error}");
    assert!(error.hint().unwrap().contains("store check"), "{error}");
}

#[tokio::test]
async fn a_database_that_grows_and_is_tidied_is_not_taken_for_cut_short() {
    let home = used().await;
    let store = open(&home);
    let before = fs::metadata(Store::path(home.path())).unwrap().len();
    for n in 0..4 {
        let grown = store.write(|conn| {
            conn.execute_batch(
                "CREATE TABLE noise (x BLOB); INSERT INTO noise VALUES (zeroblob(6000000)); DROP TABLE noise",
            )?;
            Ok(())
        });
        grown.await.unwrap_or_else(|error| panic!("round {n}: {error}"));
    }
    accept(&store, "slack:dm:U1", "Ev2").await;
    assert!(fs::metadata(Store::path(home.path())).unwrap().len() > before + 6_000_000, "it was not folded in");
}

#[tokio::test]
async fn what_goes_into_a_deleted_log_is_not_acknowledged() {
    for suffix in ["-wal", "-shm"] {
        let error = lost_by(|home| fs::remove_file(beside(home, suffix)).unwrap()).await;
        assert!(matches!(&error, StoreError::Gone { path, .. } if path.to_string_lossy().ends_with(suffix)), "{error}");
        // The database is intact: the hint must not suggest giving it up.
        let hint = error.hint().unwrap();
        assert!(hint.contains(" store check`") && !hint.contains("renew"), "{hint}");
    }
}

#[tokio::test]
async fn a_file_that_is_lost_between_two_looks_takes_the_whole_group_with_it() {
    let home = used().await;
    let store = open(&home);
    let path = Store::path(home.path());
    // In the middle of the transaction: it commits, into a file that nobody will find.
    let error = store
        .write(move |_| {
            fs::remove_file(&path).unwrap();
            Ok(())
        })
        .await
        .unwrap_err();
    assert_eq!(error, gone(&home, Loss::Missing));
}
