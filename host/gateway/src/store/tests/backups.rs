//! Copies of the whole store: made while it is in use, restored when it is lost.

use std::fs;

use jiff::Timestamp;

use super::*;
use crate::store::paths;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(NOW + ms).unwrap()
}

fn lock(home: &TempDir) -> HomeLock {
    HomeLock::take(home.path()).unwrap()
}

#[tokio::test]
async fn a_backup_made_while_turns_go_on_brings_a_lost_store_back() {
    let home = home();
    let copy = home.path().join("copy.db");
    let store = open(&home);
    turn(&store, "slack:dm:U1", "Ev1").await;
    let inbox = accept(&store, "slack:dm:U1", "Ev2").await;
    ask(&store, inbox).await;
    let bytes = store.back_up(&copy).await.unwrap();
    assert_eq!(fs::metadata(&copy).unwrap().len(), bytes);
    let nowhere = home.path().join("nowhere");
    let told = store.back_up(&nowhere.join("copy.db")).await.unwrap_err().to_string();
    assert_eq!(told, format!("folder `{}` does not exist", nowhere.display()));
    assert!(matches!(store.back_up(&copy).await, Err(BackupError::Exists(_))), "nothing is written over");
    drop(store);

    fs::write(Store::path(home.path()), "").unwrap();
    let moved = Store::put_back(&lock(&home), &copy, || None, at(0)).unwrap();
    assert!(moved[0].to_string_lossy().contains("pmk-host.db.until-2025"), "{moved:?}");
    let store = open(&home);
    assert_eq!(live_texts(&store, "slack:dm:U1").await.len(), 2);
    assert!(
        matches!(store.begin(inbox, None, Hold::Alone, NOW).await.unwrap(), BeginOutcome::Ask(_)),
        "what was unfinished goes on"
    );
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

/// Once, the mark of a copy that was given up stayed beside what took the copy's place: that was refused, and the copy
/// went on into it when the hint was followed.
#[tokio::test]
async fn what_takes_the_place_of_an_unfinished_copy_is_a_store() {
    let home = home();
    let copy = home.path().join("copy.db");
    let store = open(&home);
    turn(&store, "slack:dm:U1", "Ev1").await;
    store.back_up(&copy).await.unwrap();
    drop(store);
    let give_up = || {
        fs::write(Store::path(home.path()).with_file_name("store.copying"), "a copy is under way, of /x\n").unwrap();
        assert!(matches!(Store::open(home.path()).err(), Some(StoreError::Unfinished { .. })));
    };
    give_up();
    Store::put_back(&lock(&home), &copy, || None, at(0)).unwrap();
    assert_eq!(live_texts(&open(&home), "slack:dm:U1").await.len(), 2);
    give_up();
    Store::renew(&lock(&home), at(1)).unwrap();
    assert_eq!(open(&home).sessions().await.unwrap().len(), 0);
}

/// Regression: questions that were asked and answered after the backup were found in Slack and answered once more.
#[tokio::test]
async fn what_was_asked_after_the_backup_is_not_answered_again() {
    const MINUTE: i64 = 60_000;
    let home = home();
    let copy = home.path().join("copy.db");
    let store = open(&home);
    let ts = |ms: i64| format!("{}.000100", (NOW + ms) / 1_000);
    let message = Inbound { ts: ts(0), ..inbound("slack:dm:U1", "Ev1") };
    store.accept(&message, NOW).await.unwrap().expect("a new message");
    store.back_up(&copy).await.unwrap();
    drop(store);
    let outage = |since_ms| crate::store::Outage {
        since_ms: Some(since_ms),
        until_ms: since_ms + 10 * MINUTE,
        announce: None,
        read: true,
    };
    let reads_after = async |alive_ms: i64| {
        let store = open(&home);
        store.came_back(outage(alive_ms)).await.unwrap();
        let unread = store.unread(1_000).await.unwrap().conversations;
        store.read_back(&unread[0].key).await.unwrap();
        assert_eq!(unread.len(), 1);
        unread[0].after.clone()
    };
    let earlier = format!("{}.000000", NOW / 1_000 - 6 * 60);
    // The gateway went on for an hour after the backup.
    let alive_ms = NOW + 60 * MINUTE;
    Store::put_back(&lock(&home), &copy, || Some(alive_ms), at(70 * MINUTE)).unwrap();
    assert_eq!(reads_after(alive_ms).await, format!("{}.000000", alive_ms / 1_000));
    // So it is at every later outage before anybody has written something else.
    assert_eq!(reads_after(alive_ms).await, format!("{}.000000", alive_ms / 1_000));
    // The gateway of this home ended before the backup was made, somewhere else.
    Store::put_back(&lock(&home), &copy, || Some(NOW - 60 * MINUTE), at(80 * MINUTE)).unwrap();
    assert_eq!(reads_after(alive_ms).await, earlier);
    // The clock was ahead when the gateway ended.
    Store::put_back(&lock(&home), &copy, || Some(NOW + 120 * MINUTE), at(90 * MINUTE)).unwrap();
    assert_eq!(reads_after(alive_ms).await, earlier);
}

#[tokio::test]
async fn a_store_that_is_renewed_is_moved_aside_with_its_log() {
    let home = home();
    let store = open(&home);
    turn(&store, "slack:dm:U1", "Ev1").await;
    let log = fs::read(paths::log(&Store::path(home.path()))).unwrap();
    drop(store);
    fs::write(paths::log(&Store::path(home.path())), log).unwrap();
    let moved = Store::renew(&lock(&home), at(0)).unwrap();
    assert_eq!(moved.len(), 2, "{moved:?}");
    let kept = rusqlite::Connection::open(&moved[0]).unwrap();
    assert_eq!(kept.query_row("SELECT count(*) FROM message", [], |row| row.get::<_, i64>(0)).unwrap(), 2);
    assert_eq!(open(&home).sessions().await.unwrap(), []);
    assert_eq!(Store::renew(&lock(&home), at(1)).unwrap().len(), 1);
    assert_eq!(Store::renew(&lock(&home), at(2)).unwrap(), Vec::<std::path::PathBuf>::new());
}

/// Regression: a store that was renewed, and in which nobody had written yet, was taken for another gateway's, so a day of
/// what had been answered was read back after `store restore`.
#[tokio::test]
async fn a_home_whose_store_was_renewed_was_taken_for_one_in_which_nobody_had_ever_written() {
    let home = home();
    drop(open(&home));
    assert!(Store::is_unused(&lock(&home)));
    Store::renew(&lock(&home), at(0)).unwrap();
    drop(open(&home));
    assert!(Store::is_unused(&lock(&home)));
    turn(&open(&home), "slack:dm:U1", "Ev1").await;
    assert!(!Store::is_unused(&lock(&home)));
    Store::renew(&lock(&home), at(1)).unwrap();
    drop(open(&home));
    assert!(!Store::is_unused(&lock(&home)));
}

#[tokio::test]
async fn a_restore_that_ends_half_way_leaves_a_home_that_knows_of_its_loss() {
    let home = home();
    turn(&open(&home), "slack:dm:U1", "Ev1").await;
    let path = Store::path(home.path());
    // As before marks existed; and the staged file is missing.
    fs::remove_file(path.with_file_name("store.mark")).unwrap();
    backup::place(&home.path().join("nowhere"), &path, at(0)).unwrap_err();
    let refused = Store::open(home.path()).err().expect("nothing is begun anew");
    assert_eq!(refused, StoreError::Gone { path, how: Loss::Missing });
}

#[tokio::test]
async fn what_is_no_sound_backup_is_not_put_in_the_place_of_a_store() {
    let home = home();
    let store = open(&home);
    turn(&store, "slack:dm:U1", "Ev1").await;
    let good = home.path().join("good.db");
    store.back_up(&good).await.unwrap();
    drop(store);
    let before = fs::read(Store::path(home.path())).unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = home.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let bytes = fs::read(&good).unwrap();
    let mut scrambled = bytes.clone();
    // Every page after the header and the schema.
    scrambled[3 * 4096..].iter_mut().step_by(7).for_each(|byte| *byte ^= 0x5a);
    let theirs = home.path().join("theirs.db");
    rusqlite::Connection::open(&theirs).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    for path in [
        home.path().join("nowhere.db"),
        home.path().to_owned(),
        Store::path(home.path()),
        file("empty.db", b""),
        file("text.db", "not a database ".repeat(500).as_bytes()),
        file("half.db", &bytes[..bytes.len() / 2]),
        file("scrambled.db", &scrambled),
        file("plain", b"").join("inside.db"),
        theirs,
    ] {
        let error = Store::put_back(&lock(&home), &path, || None, at(0)).unwrap_err();
        let told = pmk_system::error::Failure::from(error).to_string();
        // The error names the given file, and does not mention the store.
        assert!(told.contains(&*path.to_string_lossy()), "{told}");
        for wrong in ["the store `", "store check", "store restore", "--home", "disk I/O"] {
            assert!(!told.contains(wrong), "{wrong}: {told}");
        }
        assert!(told.contains("\n  hint: "), "{}: {told}", path.display());
        assert_eq!(told.contains("there is no `"), path.ends_with("nowhere.db"), "{told}");
        assert_eq!(fs::read(Store::path(home.path())).unwrap(), before, "{}: {told}", path.display());
    }
    let left: Vec<_> =
        fs::read_dir(home.path().join("gateway")).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("restoring")), "{left:?}");
    Store::put_back(&lock(&home), &good, || None, at(0)).unwrap();
    assert_eq!(open(&home).sessions().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_backup_that_was_killed_leaves_its_name_free_and_nothing_behind_the_next_one() {
    let home = home();
    let copy = home.path().join("copy.db");
    let store = open(&home);
    turn(&store, "slack:dm:U1", "Ev1").await;
    // What a killed process leaves: half of a copy, and SQLite's journal of it.
    fs::write(home.path().join("copy.db.unfinished"), [0; 5_000]).unwrap();
    fs::write(home.path().join("copy.db.unfinished-journal"), [1; 700]).unwrap();
    let bytes = store.back_up(&copy).await.unwrap();
    assert_eq!(fs::metadata(&copy).unwrap().len(), bytes);
    let files = fs::read_dir(home.path()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = files.filter(|name| name.starts_with("copy.db") && name != "copy.db").collect();
    assert_eq!(left, Vec::<String>::new());
    assert_eq!(Store::put_back(&lock(&self::home()), &copy, || None, at(0)).unwrap(), Vec::<std::path::PathBuf>::new());
}

#[tokio::test]
async fn two_backups_of_one_name_do_not_write_into_each_other() {
    let home = home();
    let copy = home.path().join("copy.db");
    let store = open(&home);
    turn(&store, "slack:dm:U1", "Ev1").await;
    let other = fs::File::create(home.path().join("copy.db.unfinished")).unwrap();
    other.lock().unwrap();
    assert!(matches!(store.back_up(&copy).await, Err(BackupError::Busy(_))));
    drop(other);
    store.back_up(&copy).await.unwrap();
}

#[test]
fn what_is_no_file_is_refused_as_a_backup_at_once() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    let home = home();
    let pipe = home.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let refused = Store::put_back(&lock(&home), &pipe, || None, at(0)).unwrap_err().to_string();
    assert_eq!(refused, format!("`{}` is not a backup of a store: a pipe", pipe.display()));
}

#[tokio::test]
async fn a_restore_that_was_cut_short_says_where_the_store_of_before_is() {
    let home = home();
    drop(open(&home));
    let path = Store::path(home.path());
    let hint = || Store::open(home.path()).map(drop).unwrap_err().hint().unwrap().into_owned();
    // The staged file is missing, so it ends where a kill would end it; the next attempt, too.
    backup::place(&home.path().join("nowhere"), &path, at(0)).unwrap_err();
    let first = hint();
    assert!(first.contains("was interrupted after it had moved the store aside to `"), "{first}");
    // What was killed before it had moved the log, too.
    fs::write(paths::log(&path), "what is not in the database yet").unwrap();
    backup::place(&home.path().join("nowhere"), &path, at(1)).unwrap_err();
    assert_eq!(hint(), first);
    let aside = first.split('`').find(|part| part.contains(".until-")).unwrap();
    let log = paths::log(Path::new(aside));
    assert_eq!(fs::read_to_string(&log).unwrap(), "what is not in the database yet");
    fs::remove_file(log).unwrap();
    fs::rename(aside, &path).unwrap();
    drop(open(&home));
    fs::remove_file(&path).unwrap();
    assert!(hint().starts_with("if it was moved, move it back"), "{}", hint());
}

/// Regression: whatever a restore had moved aside, however long ago, was recommended to whoever lost the store later.
#[tokio::test]
async fn the_rejected_store_of_a_finished_restore_was_recommended_when_the_store_was_lost() {
    let home = home();
    let copy = home.path().join("copy.db");
    open(&home).back_up(&copy).await.unwrap();
    let path = Store::path(home.path());
    let lose = || {
        fs::remove_file(&path).unwrap();
        Store::open(home.path()).map(drop).unwrap_err().hint().unwrap().into_owned()
    };
    assert_eq!(Store::put_back(&lock(&home), &copy, || None, at(0)).unwrap().len(), 1);
    let restored = lose();
    assert!(restored.starts_with("if it was moved, move it back"), "{restored}");
    assert_eq!(Store::put_back(&lock(&home), &copy, || None, at(1)).unwrap().len(), 0);
    Store::renew(&lock(&home), at(2)).unwrap();
    drop(open(&home));
    let renewed = lose();
    assert!(renewed.starts_with("if it was moved, move it back"), "{renewed}");
}

/// Once, the log of a store on another disk was looked for beside the link, so that what was in it was missing in copies.
#[tokio::test]
async fn the_log_of_a_store_that_is_a_link_was_not_seen() {
    let [home, disk] = [home(), home()];
    let path = Store::path(home.path());
    let store = open(&home);
    accept(&store, "slack:dm:U1", "Ev1").await;
    drop(store);
    let elsewhere = disk.path().join("moved.db");
    std::fs::rename(&path, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    let store = open(&home);
    accept(&store, "slack:dm:U1", "Ev2").await;
    assert!(paths::log(&path).starts_with(disk.path().canonicalize().unwrap()));
    assert!(std::fs::metadata(paths::log(&path)).is_ok_and(|log| log.len() > 0));
    let copy = home.path().join("copy.db");
    store.back_up(&copy).await.unwrap();
    drop(store);
    let refused = Store::put_back(&lock(&home), &copy, || None, at(0)).unwrap_err();
    assert!(matches!(refused, BackupError::Linked { .. }), "{refused}");
    assert_eq!(std::fs::read_link(&path).unwrap(), elsewhere, "nothing was moved");
}
