//! Prepared statements in sessions of our own.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pmk_stand_ins::patience::until;

use super::{
    database::named,
    hosts::two,
    on_postgres::{asked, number, open},
    poolers::accepted,
    *,
};
use crate::store::error::Fault;

const KEY: &str = "slack:dm:U1";

/// Enough turns for their statements to be prepared, and to have generic plans.
const TURNS: usize = 9;

async fn turns(store: &Store, from: usize) {
    for n in from..from + TURNS {
        turn(store, KEY, &format!("Ev{n}")).await;
    }
}

/// Returns how many statements the session of the writer has prepared, of those that meet a condition.
async fn known(store: &Store, what: &'static str) -> i64 {
    let sql = format!("SELECT count(*) FROM pg_prepared_statements WHERE {what} AND statement NOT LIKE '%prepared%'");
    store.write(move |conn| Ok(conn.query_row(&sql, [], |row| row.get(0))?)).await.unwrap()
}

#[tokio::test]
async fn statements_get_names_once_a_connection_and_again_on_the_next() {
    let Some([one, _]) = two() else { return };
    let store = open(&named(&one, "names"));
    turns(&store, 0).await;
    let before = known(&store, "true").await;
    assert!(before > 20, "{before}");
    assert!(known(&store, "generic_plans > 0").await > 20, "they are planned anew each time");
    turns(&store, TURNS).await;
    assert_eq!(known(&store, "true").await, before, "each has the one that it got");
    let theirs = "FROM pg_stat_activity WHERE application_name = 'names'";
    number(&one, &format!("SELECT count(pg_terminate_backend(pid)) {theirs}"));
    until("they are gone", || (number(&one, &format!("SELECT count(*) {theirs}")) == 0).then_some(()));
    turns(&store, 2 * TURNS).await;
    assert!(known(&store, "true").await > 20);
    assert_eq!(live_texts(&store, KEY).await.len(), 3 * 2 * TURNS);
}

#[tokio::test]
async fn a_statement_that_gives_something_else_since_another_has_changed_the_schema_is_named_anew() {
    let Some([one, _]) = two() else { return };
    let store = open(&one);
    let look = |conn: &Connection| -> Result<i64, Fault> {
        Ok(conn.prepare_cached("SELECT coalesce(max(at), 7) FROM told")?.query_row([], |row| row.get(0))?)
    };
    // On each connection.
    for _ in 0..12 {
        assert_eq!((store.write(look).await.unwrap(), store.read(look).await.unwrap()), (7, 7));
    }
    asked(&one, |conn| conn.execute_batch("ALTER TABLE told ALTER COLUMN at TYPE INTEGER").unwrap());
    for _ in 0..12 {
        assert_eq!((store.write(look).await.unwrap(), store.read(look).await.unwrap()), (7, 7));
    }
    assert_eq!(known(&store, "statement LIKE '%FROM told'").await, 1);
}

#[tokio::test]
async fn names_that_a_session_does_not_keep_are_done_without_and_nothing_is_lost() {
    let Some([one, _]) = two() else { return };
    let store = open(&one);
    turns(&store, 0).await;
    store.write(|conn| Ok(conn.execute_batch("DEALLOCATE ALL")?)).await.unwrap();
    // Nothing else changes.
    turns(&store, TURNS).await;
    assert_eq!(known(&store, "true").await, 0);
    assert_eq!(live_texts(&store, KEY).await.len(), 2 * 2 * TURNS);
}

#[tokio::test]
async fn a_name_that_is_unknown_amid_a_transaction_undoes_that_and_it_can_come_again() {
    let Some([one, _]) = two() else { return };
    let store = open(&one);
    let tell = |conn: &Connection| -> Result<(), Fault> {
        conn.prepare_cached("INSERT INTO told (listener, at) VALUES (?1, 0)")?.run(["U1"])?;
        Ok(conn.prepare_cached("DELETE FROM told WHERE listener = ?1")?.execute(["U2"]).map(drop)?)
    };
    for _ in 0..3 {
        store.write(tell).await.unwrap();
        asked(&one, |conn| conn.execute("DELETE FROM told", []).unwrap());
    }
    let times = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&times);
    let torn = store
        .write(move |conn| {
            counted.fetch_add(1, Ordering::SeqCst);
            conn.execute("INSERT INTO told (listener, at) VALUES ('U3', 0)", [])?;
            conn.execute_batch("DEALLOCATE ALL")?;
            tell(conn)
        })
        .await
        .unwrap_err();
    assert!(matches!(torn, StoreError::Away { .. }), "{torn:?}");
    assert_eq!((times.load(Ordering::SeqCst), number(&one, "SELECT count(*) FROM told")), (1, 0));
    store.write(tell).await.unwrap();
    assert_eq!(number(&one, "SELECT count(*) FROM told"), 1);
}

#[tokio::test]
async fn names_that_somebody_else_has_given_are_not_used() {
    let Some([one, _]) = two() else { return };
    let store = open(&one);
    // The connections of a process share a counter for names: this test takes the next names in advance.
    for n in 0..TURNS {
        let tell = move |conn: &Connection| {
            Ok(conn.prepare_cached("INSERT INTO told (listener, at) VALUES (?1, 0)")?.run([format!("U{n}")])?)
        };
        store.write(tell).await.unwrap();
    }
    assert!(known(&store, "name ~ '^s[0-9]+$'").await > 0);
    let all = "DO $$
        DECLARE stands_at INT := (SELECT max(substr(name, 2)::INT) FROM pg_prepared_statements WHERE name ~ '^s[0-9]+$');
        BEGIN FOR n IN stands_at + 1..stands_at + 3000 LOOP EXECUTE format('PREPARE s%s AS SELECT 1', n); END LOOP; END $$";
    store.write(move |conn| Ok(conn.execute_batch(all)?)).await.unwrap();
    for n in 0..TURNS {
        accepted(&store, &format!("Ev{n}")).await;
    }
    assert_eq!(number(&one, "SELECT count(*) FROM inbox"), TURNS as i64);
    assert_eq!(known(&store, "true").await, 0, "it is another connection, and has none");
}
