//! The parts of the other topics that only a file database has.

use super::{
    on_sqlite::{
        archives::{KEY, found, say},
        changes,
        events::{event, waiting},
        group_commit::{hold, settle, spawn_accept},
    },
    *,
};
use crate::{ledger::LedgerQueue, store::calibrations::ModelCalibration};

#[tokio::test]
async fn a_store_of_before_is_searched_after_its_migration() {
    let home = home();
    let store = open(&home);
    let session = say(&store, KEY, "Ev1", "the budget is 40,000", "noted").await;
    let other = say(&store, "slack:dm:U2", "Ev2", "預算會議", "好").await;
    drop(store);
    let conn = sql(home.path());
    conn.execute_batch(include_str!("../../../../../tests/stores/back-to-schema-12.sql")).unwrap();
    conn.execute_batch(
        "DROP TABLE atom_shown; DROP TABLE atom_doubt;
         DROP TABLE case_note; DROP TABLE case_message; ALTER TABLE turn DROP COLUMN case_id; DROP TABLE case_file;
         DROP TABLE asked_apart; DROP INDEX escalation_closed; ALTER TABLE escalation DROP COLUMN closed_at;
         ALTER TABLE turn DROP COLUMN reading;
         DROP INDEX inbox_by_place; DROP INDEX session_unread; DROP INDEX session_by_activity;
         ALTER TABLE session DROP COLUMN channel; ALTER TABLE session DROP COLUMN read_from;
         DROP TABLE outage; DROP TABLE told;
         DROP TABLE asked; DROP TABLE proposal; ALTER TABLE turn DROP COLUMN asked_by;
         DROP TABLE bound; ALTER TABLE calibration ADD COLUMN window INTEGER;
         DROP TABLE model_tools;
         DROP INDEX inbox_parked;
         ALTER TABLE inbox DROP COLUMN parked_at;
         ALTER TABLE inbox DROP COLUMN parked_why;
         ALTER TABLE inbox DROP COLUMN parked_told;
         DROP TABLE said; DROP TABLE archive; PRAGMA user_version = 4",
    )
    .unwrap();
    drop(conn);
    let store = open(&home);
    assert_eq!(found(&store, session, "budget").await, [0]);
    assert_eq!(found(&store, other, "預算").await, [0]);
    say(&store, KEY, "Ev3", "the budget was raised", "noted").await;
    assert_eq!(found(&store, session, "who raised it?").await, [2]);
}

#[tokio::test]
async fn a_backup_takes_what_waits_along() {
    let home = home();
    let store = open(&home);
    store.note(event("noted"));
    waiting(&store, |store| store.note_again().unwrap()).await;
    let copy = home.path().join("copy.db");
    store.back_up(&copy).await.unwrap();
    let lines: i64 = rusqlite::Connection::open(copy)
        .unwrap()
        .query_row("SELECT count(*) FROM event", [], |row| row.get(0))
        .unwrap();
    assert_eq!(lines, 1);
}

#[tokio::test]
async fn a_commit_that_fails_is_nobodys_success() {
    let home = home();
    let store = open(&home);
    let (release, holding) = hold(&store).await;
    let neighbour = spawn_accept(&store, 1);
    settle().await;
    let poison = {
        let store = store.clone();
        tokio::spawn(async move {
            // Only the commit finds out that no such session and message exist.
            store
                .write(|conn| {
                    conn.execute_batch(
                        "PRAGMA defer_foreign_keys = ON; INSERT INTO live VALUES (9, 9, 9, NULL, 0, 0)",
                    )?;
                    Ok(())
                })
                .await
        })
    };
    settle().await;
    release.send(()).unwrap();
    for outcome in [holding.await.unwrap(), neighbour.await.unwrap().map(|_| ()), poison.await.unwrap()] {
        let error = outcome.unwrap_err();
        assert!(matches!(&error, StoreError::Sql { message, .. } if message.contains("FOREIGN KEY")), "{error}");
    }
    assert_eq!(number(&home, "SELECT count(*) FROM inbox"), 0);
    // The store works on, and what was refused can come again.
    assert!(spawn_accept(&store, 1).await.unwrap().unwrap().is_some());
}

#[tokio::test]
async fn what_was_sent_is_committed_though_nobody_waits_and_the_store_is_dropped() {
    let home = home();
    let store = open(&home);
    let (release, holding) = hold(&store).await;
    let abandoned = spawn_accept(&store, 1);
    settle().await;
    abandoned.abort();
    release.send(()).unwrap();
    holding.await.unwrap().unwrap();
    let _ = abandoned.await;
    drop(store);
    assert_eq!(number(&home, "SELECT count(*) FROM inbox"), 1);
    assert!(!Store::path(home.path()).with_extension("db-wal").exists(), "the log is folded into the file");
}

/// Returns the number of segments of the full-text index, and so how often it was written out.
fn pieces_of_the_index(home: &TempDir) -> i64 {
    // The segment number starts at bit 37 of a page's id.
    number(home, "SELECT count(DISTINCT id >> 37) FROM said_data WHERE id >> 37 > 0")
}

#[tokio::test]
async fn the_turns_of_one_commit_write_the_index_of_words_out_once() {
    let home = home();
    let store = open(&home);
    let mut turns = vec![];
    for n in 0..4 {
        let inbox = accept(&store, &format!("slack:dm:U{n}"), &format!("Ev{n}")).await;
        turns
            .push((ask(&store, inbox).await.turn, accept(&store, &format!("slack:dm:V{n}"), &format!("EvV{n}")).await));
    }
    assert_eq!(pieces_of_the_index(&home), 0);
    let (release, holding) = hold(&store).await;
    let mut waiting = vec![];
    for (n, (turn, next)) in turns.into_iter().enumerate() {
        // A new person, a known one, and every step of a turn, beside one that is recorded.
        waiting.push(spawn_accept(&store, 10 + n));
        let (asking, recording) = (store.clone(), store.clone());
        waiting.push(tokio::spawn(async move { asking.begin(next, None, Hold::Alone, NOW).await.map(|_| None) }));
        waiting.push(tokio::spawn(async move {
            recording.placed(turn, "1.1").await?;
            Ok(None)
        }));
        settle().await;
        let recording = store.clone();
        waiting.push(tokio::spawn(async move {
            let learnt =
                ModelCalibration { provider: "sim".into(), model: "sim".into(), ..ModelCalibration::default() };
            let recorded = Recorded {
                calibration: Some(learnt),
                ..recorded("which budget has erp?", "forty percent of the margin")
            };
            recording.record(turn, recorded, NOW).await?;
            Ok(None)
        }));
        settle().await;
        let finishing = store.clone();
        waiting.push(tokio::spawn(async move {
            finishing.finish(turn, vec![sent(0, Some("1.1"))], vec![], NOW).await?;
            Ok(None)
        }));
        settle().await;
    }
    release.send(()).unwrap();
    holding.await.unwrap().unwrap();
    for task in waiting {
        task.await.unwrap().unwrap();
    }
    assert_eq!(number(&home, "SELECT count(*) FROM turn WHERE delivered_at IS NOT NULL"), 4);
    assert_eq!(pieces_of_the_index(&home), 1);
}

#[tokio::test]
async fn a_run_that_starts_voids_every_lease() {
    let (home, key) = (home(), "slack:dm:U1".parse::<pmk_core::SessionKey>().unwrap());
    let before = open(&home);
    let inbox = accept(&before, "slack:dm:U1", "Ev1").await;
    let lost = before.lease(&key, "test", std::time::Duration::ZERO, NOW).await.unwrap();
    let lock = HomeLock::take(home.path()).unwrap();
    let run = open(&home);
    assert!(matches!(run.begin(inbox, None, Hold::Alone, NOW).await.unwrap(), BeginOutcome::Busy));
    run.take_over(&lock).await.unwrap();
    ask(&run, inbox).await;
    assert_eq!(before.release(lost).await, Err(StoreError::LeaseLost { key: key.clone() }));
}

/// The index kept the words of a removed message until it had grown by a tenth, and each backup had them.
#[tokio::test]
async fn what_was_deleted_is_in_no_backup_that_is_made_afterwards() {
    let home = home();
    let store = open(&home);
    changes::answered(&store, 1, "the margin of xylophones", "It fell.", 0).await;
    changes::answered(&store, 2, "the margin of violins", "It rose.", 0).await;
    changes::deleted(&store, &changes::at(1)).await;
    let copy = home.path().join("copy.db");
    store.back_up(&copy).await.unwrap();
    let bytes = std::fs::read(copy).unwrap();
    let has = |word: &str| bytes.windows(word.len()).any(|part| part == word.as_bytes());
    assert!(has("violins") && !has("ylophone"), "what was deleted is still in the file");
}
