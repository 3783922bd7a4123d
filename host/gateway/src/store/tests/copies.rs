//! Copying a store to another database, and back.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pmk_core::Archive;
use pmk_stand_ins::postgres;
use rusqlite::types::Value;

use super::{
    on_postgres::{self, Home},
    *,
};
use crate::{
    database::Database,
    store::{CopyError, Place, archive},
};

const KEY: &str = "slack:channel:C1";

/// A home with data in nearly every table.
async fn used() -> TempDir {
    let home = home();
    let store = open(&home);
    let order = crate::case::Order {
        front: pmk_core::FrontName::Slack,
        channel: "C1".into(),
        user: "U1".into(),
        event_id: "Ev0".into(),
    };
    store.open_case(&order, "the margin is gone", NOW).await.unwrap();
    let learnt = ModelCalibration { provider: "openai".into(), model: "m".into(), ..ModelCalibration::default() };
    for n in 0..700 {
        let inbox = accept(&store, KEY, &format!("Ev1{n}")).await;
        let open = ask(&store, inbox).await;
        let answer = Recorded {
            calibration: Some(learnt.clone()),
            atoms: vec!["atom".into()],
            ..recorded(&format!("預算 question {n}"), "forty percent of the margin")
        };
        store.record(open.turn, answer, NOW).await.unwrap();
        store.finish(open.turn, vec![sent(0, Some(&format!("1.{n}")))], vec![], NOW).await.unwrap();
    }
    accept(&store, "slack:dm:U2", "Ev2").await;
    let again = store.again(("U1", false), &MessageRef::new("D1", ""), reaction("once"), NOW).await.unwrap();
    assert_eq!(again, RegenerateOutcome::Nothing);
    store.learn_tools("openai", "m", true).await.unwrap();
    store.claim_telling("U1", NOW, 0).await.unwrap();
    drop(store);
    // References to later rows, and bytes.
    let conn = sql(home.path());
    conn.execute("UPDATE turn SET answered_with = 7 WHERE id = 5", []).unwrap();
    conn.execute("UPDATE inbox SET again_of = 9 WHERE id = 2", []).unwrap();
    conn.execute("INSERT INTO atom_file VALUES ('erp/a.md', 3, 'ab', 'text'), ('erp/b.md', 2, 'cd', NULL)", [])
        .unwrap();
    conn.execute("INSERT INTO image VALUES (1, 'ab', x'00ff0010')", []).unwrap();
    conn.execute("INSERT INTO calibration VALUES ('sim', 'n', 0.1, 1e300, -0.0, 5e-324, 3)", []).unwrap();
    home
}

/// Every table with its content, except for what a copy rebuilds or leaves out.
fn content(home: &Path) -> Vec<(String, Vec<Vec<Value>>)> {
    let conn = sql(home);
    let tables =
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'said%' AND name NOT LIKE 'sqlite%'
                  AND name <> 'exported' ORDER BY name";
    let mut statement = conn.prepare(tables).unwrap();
    let tables: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    tables
        .into_iter()
        .map(|name| {
            let mut statement = conn.prepare(&format!("SELECT * FROM \"{name}\" ORDER BY 1, 2")).unwrap();
            let columns = statement.column_count();
            let rows = statement.query_map([], |row| (0..columns).map(|at| row.get(at)).collect()).unwrap();
            (name, rows.map(Result::unwrap).collect())
        })
        .collect()
}

async fn found(store: &Store, session: SessionId) -> Vec<u32> {
    let length = store.read(move |conn| archive::length(conn, session)).await.unwrap();
    let archive = store.archive_of(session, length);
    let search = move || {
        archive.search("which question 77 has 預算?", 9, &|_| true).into_iter().map(|found| found.number).collect()
    };
    tokio::task::spawn_blocking(search).await.unwrap()
}

fn copied(from: &Place, to: &Place) -> Result<Copied, CopyError> {
    std::thread::scope(|scope| scope.spawn(|| Store::copy(from, to, |_, _| ())).join().unwrap())
}

#[tokio::test]
async fn a_store_that_went_to_postgresql_and_came_back_is_the_same_row_by_row() {
    let home = used().await;
    let before = content(home.path());
    let there: Home = on_postgres::home();
    if there.database.is_none() {
        return;
    }
    let (from, to) = (Place::from(home.path()), Place::from(&there));
    let rows = copied(&from, &to).unwrap().rows;
    assert!(rows > 4_000, "{rows}");
    // In the copy, searches find the same, and new rows are numbered after the existing ones.
    let session = SessionId(1);
    let here = found(&open(&home), session).await;
    let store = on_postgres::open(&there);
    assert!(!here.is_empty());
    assert_eq!(found(&store, session).await, here);
    drop(store);
    let back = tempfile::tempdir().unwrap();
    assert_eq!(copied(&to, &Place::from(back.path())).unwrap().rows, rows);
    assert_eq!(content(back.path()), before);
    assert_eq!(found(&open(&back), session).await, here);
    let store = on_postgres::open(&there);
    turn(&store, KEY, "EvNew").await;
    assert_eq!(on_postgres::number(&there, "SELECT max(id) FROM inbox"), 702);
}

#[tokio::test]
async fn a_copy_that_was_cut_short_is_nobodys_store_and_goes_on_where_it_was() {
    let home = used().await;
    let there = on_postgres::home();
    if there.database.is_none() {
        return;
    }
    let (from, to) = (Place::from(home.path()), Place::from(&there));
    std::thread::scope(|scope| {
        let cut = scope.spawn(|| {
            let cut = |table: &str, _| assert_ne!(table, "message", "cut short");
            catch_unwind(AssertUnwindSafe(|| Store::copy(&from, &to, cut))).is_err()
        });
        assert!(cut.join().unwrap());
    });
    assert!(matches!(Store::open(&there).err(), Some(StoreError::Unfinished { .. })));
    // A copy of another store is not mixed with it.
    let other = tempfile::tempdir().unwrap();
    drop(open(&other));
    assert!(matches!(copied(&Place::from(other.path()), &to), Err(CopyError::NotEmpty { .. })));
    // A partly copied table, too.
    on_postgres::asked(&there, |conn| conn.execute_batch("DELETE FROM message WHERE id > 1000").unwrap());
    let done = copied(&from, &to).unwrap();
    assert!(done.before > 1_000 && done.before < done.rows, "{done:?}");
    assert_eq!(on_postgres::number(&there, "SELECT count(*) FROM message"), 1_400);
    drop(on_postgres::open(&there));
}

/// Once, lines for the ledger were given to the home in which the command ran, which has no gateway, and stayed there.
#[tokio::test]
async fn ledger_lines_that_wait_belong_to_the_home_that_is_copied() {
    let home = used().await;
    let (there, mut other) = (on_postgres::home(), on_postgres::home());
    let Some(server) = postgres::server() else { return };
    // A schema of the same database counts as the same place.
    other.database = Some(Database::parse(&server.database()).unwrap());
    copied(&Place::from(home.path()), &Place::from(&there)).unwrap();
    copied(&Place::from(&there), &Place::from(&other)).unwrap();
    let theirs = format!("SELECT count(*) FROM event WHERE home = '{}'", crate::store::hosts::name(home.path()));
    let all = on_postgres::number(&there, "SELECT count(*) FROM event");
    assert!(all > 0);
    assert_eq!([&there, &other].map(|place| on_postgres::number(place, &theirs)), [all, all]);
}

/// Once, who is who stayed behind, and an admin whom somebody had removed came back on all hosts with the file of the
/// first home that was started.
#[tokio::test]
async fn what_all_hosts_go_by_was_left_in_the_database_that_was_copied() {
    let (there, mut other) = (on_postgres::home(), on_postgres::home());
    let Some(server) = postgres::server() else { return };
    other.database = Some(Database::parse(&server.database()).unwrap());
    drop(on_postgres::open(&there));
    for row in [
        r#"INSERT INTO common_config (id, version, text) VALUES (1, 7, '{"admins":["U1"]}')"#,
        r#"INSERT INTO home_config (home, token, says, next) VALUES ('m:/one', 'ab', '{"admins":["U1","U2"]}', NULL)"#,
    ] {
        on_postgres::asked(&there, |conn| conn.execute_batch(row).unwrap());
    }
    let (from, to) = (Place::from(&there), Place::from(&other));
    let mut named = vec![];
    let tell = |table: &str, _| named.push(table.to_owned());
    std::thread::scope(|scope| scope.spawn(|| Store::copy(&from, &to, tell)).join().unwrap()).unwrap();
    for row in [
        r#"SELECT count(*) FROM common_config WHERE version = 7 AND text = '{"admins":["U1"]}'"#,
        r#"SELECT count(*) FROM home_config WHERE home = 'm:/one' AND token = 'ab' AND says LIKE '%"U2"%'"#,
    ] {
        assert_eq!(on_postgres::number(&other, row), 1, "{row}");
    }
    assert!(matches!(copied(&from, &to), Err(CopyError::NotEmpty { .. })));
    // Whatever a later schema adds is copied, or named here.
    let left: Vec<String> = on_postgres::asked(&other, |conn| {
        let tables = "SELECT CAST(relname AS TEXT) FROM pg_class
             WHERE relkind = 'r' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
             ORDER BY relname";
        let mut statement = conn.prepare_cached(tables).unwrap();
        let tables: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        tables.into_iter().filter(|table| !named.contains(table)).collect()
    });
    let rebuilt_or_until_all_have_ended =
        ["chosen_policies", "component", "exported", "host", "pmk_schema", "said", "sent_arms"];
    assert_eq!(left, rebuilt_or_until_all_have_ended);
}

/// Once, what such a host took in was acknowledged, and was in the old database alone.
#[tokio::test]
async fn a_host_that_starts_while_its_database_is_copied_was_not_noticed() {
    let home = used().await;
    let there = on_postgres::home();
    if there.database.is_none() {
        return;
    }
    copied(&Place::from(home.path()), &Place::from(&there)).unwrap();
    let starts = "INSERT INTO host (name, owner, version, schema, started_at, until, lease_ms)
         VALUES ('m:/home', 'pmk-host run on m', '0', 28, pmk_now(), pmk_now() + 4000, 4000)";
    let back = tempfile::tempdir().unwrap();
    let (from, to) = (Place::from(&there), Place::from(back.path()));
    let tell = |table: &str, _| {
        if table == "message" {
            on_postgres::asked(&there, |conn| conn.execute_batch(starts).unwrap());
        }
    };
    let told = std::thread::scope(|scope| scope.spawn(|| Store::copy(&from, &to, tell)).join().unwrap());
    assert!(matches!(told, Err(CopyError::InUse { .. })), "{told:?}");
    assert!(matches!(Store::open(back.path()).err(), Some(StoreError::Unfinished { .. })));
}

#[tokio::test]
async fn a_store_in_use_is_neither_copied_nor_copied_over_and_a_full_one_is_left_alone() {
    let (home, other) = (home(), home());
    turn(&open(&home), "slack:dm:U1", "Ev1").await;
    turn(&open(&other), "slack:dm:U1", "Ev1").await;
    let (from, to) = (Place::from(home.path()), Place::from(other.path()));
    assert!(matches!(copied(&from, &to), Err(CopyError::NotEmpty { .. })));
    assert!(matches!(copied(&from, &from), Err(CopyError::Itself(_))));
    let nowhere = tempfile::tempdir().unwrap();
    assert!(matches!(
        copied(&Place::from(nowhere.path()), &Place::from(tempfile::tempdir().unwrap().path())),
        Err(CopyError::Store(StoreError::Missing { .. }))
    ));
    let _lock = HomeLock::take(home.path()).unwrap();
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(copied(&from, &Place::from(empty.path())), Err(CopyError::InUse { .. })));
    let there = on_postgres::home();
    if there.database.is_none() {
        return;
    }
    let store = on_postgres::open(&there);
    let lock = HomeLock::take(there.path()).unwrap();
    store.take_over(&lock).await.unwrap();
    assert!(matches!(copied(&to, &Place::from(&there)), Err(CopyError::InUse { .. })));
}
