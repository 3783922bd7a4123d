//! Operations that share a commit: together on disk, apart when they fail, answered when it is done.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

use super::*;

/// Keeps the writer busy, so that what is sent meanwhile ends up in one group with it.
async fn hold(store: &Store) -> (mpsc::Sender<()>, tokio::task::JoinHandle<Result<(), StoreError>>) {
    let (release, held) = mpsc::channel::<()>();
    let (started, is_started) = tokio::sync::oneshot::channel();
    let store = store.clone();
    // Run again, it holds nobody.
    let first = Cell::new(Some((started, held)));
    let holding = tokio::spawn(async move {
        store
            .write(move |_| {
                if let Some((started, held)) = first.take() {
                    started.send(()).unwrap();
                    held.recv().unwrap();
                }
                Ok(())
            })
            .await
    });
    is_started.await.unwrap();
    (release, holding)
}

fn spawn_accept(store: &Store, n: usize) -> tokio::task::JoinHandle<Result<Option<InboxId>, StoreError>> {
    let store = store.clone();
    tokio::spawn(async move { store.accept(&inbound("slack:dm:U1", &format!("Ev{n}")), NOW).await })
}

/// Lets every task that was spawned on this thread's runtime send what it has.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn nobody_is_answered_before_the_commit_and_all_share_one() {
    let home = home();
    let store = open(&home);
    let (release, holding) = hold(&store).await;
    let waiting: Vec<_> = (0..100).map(|n| spawn_accept(&store, n)).collect();
    settle().await;
    // The last of the group looks from outside: nothing is committed, though a hundred were before it.
    let path = home.path().to_owned();
    let look = {
        let store = store.clone();
        tokio::spawn(async move {
            let look = move |conn: &Connection| {
                let inside: i64 = conn.query_row("SELECT count(*) FROM inbox", [], |row| row.get(0))?;
                let outside: i64 = sql(&path).query_row("SELECT count(*) FROM inbox", [], |row| row.get(0))?;
                Ok((inside, outside))
            };
            store.write(look).await
        })
    };
    settle().await;
    assert!(waiting.iter().all(|task| !task.is_finished()));
    release.send(()).unwrap();
    for task in waiting {
        let inbox = task.await.unwrap().unwrap().expect("a new message");
        assert_eq!(number(&home, &format!("SELECT count(*) FROM inbox WHERE id = {inbox}")), 1);
    }
    holding.await.unwrap().unwrap();
    assert_eq!(look.await.unwrap().unwrap(), (100, 0));
}

#[tokio::test]
async fn one_that_fails_is_undone_alone() {
    let home = home();
    let store = open(&home);
    let (release, holding) = hold(&store).await;
    let before = spawn_accept(&store, 1);
    settle().await;
    let failing = {
        let store = store.clone();
        tokio::spawn(async move {
            let half = |conn: &Connection| -> Result<(), Fault> {
                conn.execute("UPDATE session SET turns = 77", [])?;
                conn.execute("INSERT INTO live VALUES (1, 1, 'no number', NULL, 0, 0)", [])?;
                Ok(())
            };
            store.write(half).await
        })
    };
    settle().await;
    let after = spawn_accept(&store, 2);
    settle().await;
    release.send(()).unwrap();
    holding.await.unwrap().unwrap();
    assert!(before.await.unwrap().unwrap().is_some());
    assert!(matches!(failing.await.unwrap(), Err(StoreError::Sqlite { .. })));
    assert!(after.await.unwrap().unwrap().is_some());
    assert_eq!(number(&home, "SELECT count(*) FROM inbox"), 2);
    assert_eq!(number(&home, "SELECT turns FROM session"), 0);
}

/// How often operations are run that share their commit with one that fails: one before it, and one after it.
async fn runs_beside(failing: impl Fn(&Connection) -> Result<(), Fault> + Send + 'static) -> (usize, usize) {
    let home = home();
    let store = open(&home);
    let (release, holding) = hold(&store).await;
    let spawn_counting = || {
        let (store, runs) = (store.clone(), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&runs);
        let counting = move |conn: &Connection| {
            counted.fetch_add(1, Ordering::Relaxed);
            conn.execute("INSERT INTO told (listener, at) VALUES (hex(randomblob(8)), 0)", [])?;
            Ok(())
        };
        (runs, tokio::spawn(async move { store.write(counting).await }))
    };
    let before = spawn_counting();
    settle().await;
    let failing = tokio::spawn({
        let store = store.clone();
        async move { store.write(failing).await }
    });
    settle().await;
    let after = spawn_counting();
    settle().await;
    release.send(()).unwrap();
    holding.await.unwrap().unwrap();
    assert!(failing.await.unwrap().is_err());
    for task in [before.1, after.1] {
        task.await.unwrap().unwrap();
    }
    assert_eq!(number(&home, "SELECT count(*) FROM told"), 2, "each once, however often it was run");
    (before.0.load(Ordering::Relaxed), after.0.load(Ordering::Relaxed))
}

#[tokio::test]
async fn only_what_leaves_something_behind_when_it_fails_has_the_others_run_again() {
    let leaves_nothing = |_: &Connection| Err(StoreError::NoSuchPosition(0).into());
    assert_eq!(runs_beside(leaves_nothing).await, (1, 1));
    let leaves_a_row = |conn: &Connection| {
        conn.execute("INSERT INTO told (listener, at) VALUES ('U1', 0)", [])?;
        Err(StoreError::NoSuchPosition(0).into())
    };
    assert_eq!(runs_beside(leaves_a_row).await, (2, 1));
    let panics_amid = |conn: &Connection| {
        conn.execute("INSERT INTO told (listener, at) VALUES ('U1', 0)", [])?;
        panic!("amid its work")
    };
    assert_eq!(runs_beside(panics_amid).await, (2, 1));
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
            // Only the commit finds out that there is no such session and message.
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
        assert!(matches!(&error, StoreError::Sqlite { message, .. } if message.contains("FOREIGN KEY")), "{error}");
    }
    assert_eq!(number(&home, "SELECT count(*) FROM inbox"), 0);
    // The store goes on, and what was refused can come again.
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

/// How many pieces the index of words is in, and so how often it was written out since it had one.
fn pieces_of_the_index(home: &TempDir) -> i64 {
    // The number of a piece begins at the 37th bit of a page's.
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
        // Somebody new, somebody known, and every step of a turn, beside one that is recorded.
        waiting.push(spawn_accept(&store, 10 + n));
        let (asking, recording) = (store.clone(), store.clone());
        waiting.push(tokio::spawn(async move { asking.begin(next, NOW).await.map(|_| None) }));
        waiting.push(tokio::spawn(async move {
            recording.placed(turn, "1.1").await?;
            Ok(None)
        }));
        settle().await;
        let recording = store.clone();
        waiting.push(tokio::spawn(async move {
            let learnt = Learnt { provider: "sim".into(), model: "sim".into(), ..Learnt::default() };
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
            finishing.finish(turn, vec![(0, Some("1.1".into()))], vec![], NOW).await?;
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
