//! Operations that share a commit: together on disk, undone separately when they fail, answered after the commit.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

use super::*;

/// Keeps the writer busy, so that operations sent meanwhile end up in one group.
pub(in crate::store::tests) async fn hold(
    store: &Store,
) -> (mpsc::Sender<()>, tokio::task::JoinHandle<Result<(), StoreError>>) {
    let (release, held) = mpsc::channel::<()>();
    let (started, is_started) = tokio::sync::oneshot::channel();
    let store = store.clone();
    // When it runs again, it does not block.
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

pub(in crate::store::tests) fn spawn_accept(
    store: &Store,
    n: usize,
) -> tokio::task::JoinHandle<Result<Option<InboxId>, StoreError>> {
    let store = store.clone();
    tokio::spawn(async move { store.accept(&inbound("slack:dm:U1", &format!("Ev{n}")), NOW).await })
}

/// Lets every task spawned on this thread's runtime send its operations.
pub(in crate::store::tests) async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn nobody_is_answered_before_the_commit_and_all_share_one() {
    let home = Arc::new(home());
    let store = open(&home);
    let (release, holding) = hold(&store).await;
    let waiting: Vec<_> = (0..100).map(|n| spawn_accept(&store, n)).collect();
    settle().await;
    // The last operation of the group looks from outside: nothing is committed, although a hundred ran before it.
    let look = {
        let (store, home) = (store.clone(), Arc::clone(&home));
        tokio::spawn(async move {
            let look = move |conn: &Connection| {
                let inside: i64 = conn.query_row("SELECT count(*) FROM inbox", [], |row| row.get(0))?;
                Ok((inside, number(&home, "SELECT count(*) FROM inbox")))
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
    assert!(matches!(failing.await.unwrap(), Err(StoreError::Sql { .. })));
    assert!(after.await.unwrap().unwrap().is_some());
    assert_eq!(number(&home, "SELECT count(*) FROM inbox"), 2);
    assert_eq!(number(&home, "SELECT turns FROM session"), 0);
}

/// Returns how often operations run that share their commit with a failing one: one before it, and one after it.
async fn runs_beside(failing: impl Fn(&Connection) -> Result<(), Fault> + Send + 'static) -> (usize, usize) {
    let home = home();
    let store = open(&home);
    let (release, holding) = hold(&store).await;
    let spawn_counting = |name: &'static str| {
        let (store, runs) = (store.clone(), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&runs);
        let counting = move |conn: &Connection| {
            counted.fetch_add(1, Ordering::Relaxed);
            conn.execute("INSERT INTO told (listener, at) VALUES (?1, 0)", [name])?;
            Ok(())
        };
        (runs, tokio::spawn(async move { store.write(counting).await }))
    };
    let before = spawn_counting("before");
    settle().await;
    let failing = tokio::spawn({
        let store = store.clone();
        async move { store.write(failing).await }
    });
    settle().await;
    let after = spawn_counting("after");
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
async fn what_nobody_waits_for_fails_alone_too() {
    let home = home();
    let store = open(&home);
    store.write(|conn| Ok(conn.execute("INSERT INTO told (listener, at) VALUES ('U0', 0)", [])?)).await.unwrap();
    let tell = |store: &Store, listener: &'static str| {
        let store = store.clone();
        tokio::spawn(async move {
            let told = move |conn: &Connection| {
                let mut tell = conn.prepare_cached("INSERT INTO told (listener, at) VALUES (?1, 0)")?;
                Ok(tell.run([listener])?)
            };
            store.write(told).await
        })
    };
    // At first nothing waits for the failed statement, so the commit reports it; then a later read waits, and gets
    // the error.
    for (group, is_looked_at) in [(["U1", "U2"], false), (["U3", "U4"], true)] {
        let (release, holding) = hold(&store).await;
        let before = tell(&store, group[0]);
        settle().await;
        let again = tell(&store, "U0");
        settle().await;
        let after = tell(&store, group[1]);
        settle().await;
        let seen = is_looked_at.then(|| {
            let store = store.clone();
            tokio::spawn(async move {
                let count = |conn: &Connection| -> Result<i64, Fault> {
                    Ok(conn.query_row("SELECT count(*) FROM told", [], |row| row.get(0))?)
                };
                store.write(count).await
            })
        });
        settle().await;
        release.send(()).unwrap();
        holding.await.unwrap().unwrap();
        before.await.unwrap().unwrap();
        let refused = again.await.unwrap().unwrap_err();
        assert!(matches!(refused, StoreError::Sql { .. }), "{refused}");
        after.await.unwrap().unwrap();
        if let Some(seen) = seen {
            assert_eq!(seen.await.unwrap().unwrap(), 5);
        }
    }
    assert_eq!(number(&home, "SELECT count(*) FROM told"), 5);
}
