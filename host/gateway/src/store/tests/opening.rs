//! Files that are missing, foreign, damaged, too new; disks that are full.

use std::fs;

use super::*;
use pmk_system::error::Failure;

fn refused(home: &TempDir) -> StoreError {
    Store::open(home.path()).err().expect("it must be refused")
}

fn assert_one_clear_line(error: &StoreError, home: &TempDir) {
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    assert!(text.contains(&Store::path(home.path()).display().to_string()), "{text}");
    let shown = Failure::from(error.clone()).to_string();
    assert!(shown.contains("\n  hint: "), "{shown}");
}

#[tokio::test]
async fn a_home_with_no_store_has_none_to_look_at() {
    let home = home();
    let error = Store::open_existing(home.path()).err().unwrap();
    assert_eq!(error, StoreError::Missing { path: Store::path(home.path()) });
    assert_one_clear_line(&error, &home);
    assert!(!home.path().join("gateway").exists(), "looking changes nothing");
}

#[tokio::test]
async fn a_newer_store_is_refused_and_left_alone() {
    let home = home();
    turn(&open(&home), "slack:dm:U1", "Ev1").await;
    sql(home.path()).pragma_update(None, "user_version", 99).unwrap();
    for error in [refused(&home), Store::open_existing(home.path()).err().unwrap()] {
        assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
        assert_one_clear_line(&error, &home);
    }
    assert_eq!(number(&home, "SELECT count(*) FROM message"), 2);
}

#[tokio::test]
async fn another_programs_database_is_refused_and_left_alone() {
    let home = home();
    fs::create_dir(home.path().join("gateway")).unwrap();
    sql(home.path()).execute_batch("CREATE TABLE theirs (x)").unwrap();
    let error = refused(&home);
    assert_eq!(error, StoreError::Foreign { path: Store::path(home.path()) });
    assert_one_clear_line(&error, &home);
    assert_eq!(number(&home, "SELECT count(*) FROM sqlite_schema"), 1);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let home = home();
    fs::create_dir(home.path().join("gateway")).unwrap();
    fs::write(Store::path(home.path()), "not a database at all, but long enough to have a header ".repeat(40)).unwrap();
    let error = refused(&home);
    assert!(matches!(error, StoreError::NoDatabase { .. }), "{error}");
    assert_one_clear_line(&error, &home);
}

#[tokio::test]
async fn a_truncated_file_is_refused() {
    let home = home();
    turn(&open(&home), "slack:dm:U1", "Ev1").await;
    let path = Store::path(home.path());
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2 / 4096 * 4096 + 100]).unwrap();
    let error = match Store::open(home.path()) {
        Err(error) => error,
        Ok(store) => store.accept(&inbound("slack:dm:U1", "Ev2"), NOW).await.unwrap_err(),
    };
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert_one_clear_line(&error, &home);
}

#[tokio::test]
async fn a_damaged_message_is_named_and_others_are_served() {
    let home = home();
    let store = open(&home);
    turn(&store, "slack:dm:U1", "Ev1").await;
    turn(&store, "slack:dm:U2", "Ev2").await;
    let conn = sql(home.path());
    conn.execute_batch("DROP TRIGGER message_is_never_rewritten; UPDATE message SET blocks = '[{' WHERE id = 1")
        .unwrap();
    let inbox = accept(&store, "slack:dm:U1", "Ev3").await;
    let error = store.begin(inbox, None, Hold::Alone, NOW).await.unwrap_err();
    assert!(error.to_string().contains("is damaged: message 1 cannot be read"), "{error}");
    assert_one_clear_line(&error, &home);
    turn(&store, "slack:dm:U2", "Ev4").await;
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let parent = home();
    let home = parent.path().join("new/home");
    let store = Store::open(&home).unwrap();
    accept(&store, "slack:dm:U1", "Ev1").await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let files: Vec<_> = fs::read_dir(home.join("gateway")).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 4, "database, log, its index, and the mark: {files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    for folder in [home.join("gateway"), home.clone(), parent.path().join("new")] {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
    }
    drop(store);
    fs::set_permissions(Store::path(&home), fs::Permissions::from_mode(0o644)).unwrap();
    drop(Store::open(&home).unwrap());
    assert_eq!(mode(&Store::path(&home)), 0o600);
}

#[tokio::test]
async fn a_full_disk_is_said_and_outlived() {
    let home = home();
    let store = open(&home);
    turn(&store, "slack:dm:U1", "Ev1").await;
    let inbox = accept(&store, "slack:dm:U1", "Ev2").await;
    let turn = ask(&store, inbox).await.turn;
    let pages = number(&home, "PRAGMA page_count");
    limit_pages(&store, pages).await;

    let long = "預算 ".repeat(20_000);
    let error = store.record(turn, recorded("q", &long), NOW).await.unwrap_err();
    assert_eq!(error, StoreError::Full { path: Store::path(home.path()) });
    assert_one_clear_line(&error, &home);
    // Whoever asks how the gateway is hears of it, until something was stored again.
    store.commit_nothing().await.unwrap();
    assert_eq!(store.away(), Some(error.to_string()));
    store.commit_something().await.unwrap();
    assert_eq!(store.away(), None);
    // The stored data can be read, and nothing of the failed operation is stored.
    assert_eq!(live_texts(&store, "slack:dm:U1").await.len(), 2);
    assert!(matches!(store.begin(inbox, None, Hold::Alone, NOW).await.unwrap(), BeginOutcome::Ask(_)));

    limit_pages(&store, 1_000_000).await;
    store.record(turn, recorded("q", &long), NOW).await.unwrap();
    store.finish(turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    assert_eq!(live_texts(&store, "slack:dm:U1").await.len(), 4);
}

/// Simulates a full disk for SQLite.
async fn limit_pages(store: &Store, pages: i64) {
    store
        .write(move |conn| {
            conn.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
            Ok(())
        })
        .await
        .unwrap();
}
