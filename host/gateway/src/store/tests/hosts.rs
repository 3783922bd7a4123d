//! Hosts that share a database: one works at a time, and whoever lost its turn writes nothing. And a database that goes away.

use std::time::Duration;

use pmk_stand_ins::patience::until;

use super::{
    on_postgres::{Home, asked, home, number, open},
    *,
};
use crate::store::{error::Fault, sql::params};

const KEY: &str = "slack:dm:U1";

/// Homes of two machines on one database; none where tests are to do without PostgreSQL, which the server says.
pub(super) fn two() -> Option<[Home; 2]> {
    let one = home();
    let database = one.database.clone()?;
    Some([one, Home { folder: tempfile::tempdir().unwrap(), database: Some(database) }])
}

pub(super) async fn at_work(home: &Home) -> (Store, HomeLock) {
    let (store, lock) = (open(home), HomeLock::take(home.path()).unwrap());
    store.take_over(&lock, |other| panic!("{other} is in the way")).await.unwrap();
    (store, lock)
}

/// As if nobody had heard of any host for longer than its lease.
pub(super) fn nothing_is_heard(home: &Home) {
    asked(home, |conn| conn.execute("UPDATE host SET until = 0", []).unwrap());
}

#[tokio::test]
async fn a_host_that_was_stopped_for_longer_than_its_lease_writes_nothing_once_another_has_taken_over() {
    let Some([one, other]) = two() else { return };
    let (stopped, _lock) = at_work(&one).await;
    let inbox = accept(&stopped, KEY, "Ev1").await;
    let turn = ask(&stopped, inbox).await.turn;
    nothing_is_heard(&one);
    let (host, _other_lock) = at_work(&other).await;
    let refused = stopped.record(turn, recorded("q", "the answer of somebody who sleeps"), NOW).await.unwrap_err();
    assert!(matches!(refused, StoreError::TakenOver { .. }), "{refused}");
    assert!(matches!(stopped.accept(&inbound(KEY, "Ev2"), NOW).await, Err(StoreError::TakenOver { .. })));
    assert!(matches!(stopped.lost().await, StoreError::TakenOver { .. }), "it has to end");
    // What it was at is the other's to answer.
    assert_eq!(host.open_work().await.unwrap().pending.len(), 1);
    let turn = ask(&host, inbox).await.turn;
    host.record(turn, recorded("q", "a"), NOW).await.unwrap();
    host.finish(turn, vec![(0, None)], vec![], NOW).await.unwrap();
    assert_eq!(number(&one, "SELECT count(*) FROM message"), 2);
}

#[tokio::test]
async fn a_host_that_nobody_has_taken_over_from_goes_on_after_its_lease() {
    let Some([one, _]) = two() else { return };
    let (host, _lock) = at_work(&one).await;
    nothing_is_heard(&one);
    accept(&host, KEY, "Ev1").await;
    assert_eq!(number(&one, "SELECT count(*) FROM host WHERE until > pmk_now()"), 1, "and has a new one");
}

#[tokio::test]
async fn a_second_host_waits_until_the_first_has_gone() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let (told, is_told) = tokio::sync::oneshot::channel();
    let second = tokio::spawn(async move {
        let (store, lock) = (open(&other), HomeLock::take(other.path()).unwrap());
        store.take_over(&lock, |who| told.send(who.to_owned()).unwrap()).await.unwrap();
        accept(&store, KEY, "Ev2").await
    });
    let who = is_told.await.unwrap();
    assert!(who.starts_with("`pmk-host run on ") && who.contains("(pid "), "{who}");
    accept(&first, KEY, "Ev1").await;
    assert_eq!(first.host_at_work().await.unwrap(), Some(who));
    assert!(!second.is_finished());
    tokio::task::spawn_blocking(move || drop(first)).await.unwrap();
    second.await.unwrap();
    assert_eq!(number(&one, "SELECT count(*) FROM inbox"), 2);
}

#[tokio::test]
async fn who_was_killed_is_followed_at_once_by_a_run_of_the_same_home() {
    let Some([one, _]) = two() else { return };
    let (killed, lock) = at_work(&one).await;
    let inbox = accept(&killed, KEY, "Ev1").await;
    ask(&killed, inbox).await;
    drop(lock);
    // It is there still, and its lease is fresh.
    let (next, _lock) = at_work(&one).await;
    ask(&next, inbox).await;
    assert!(matches!(killed.commit_nothing().await, Err(StoreError::TakenOver { .. })));
}

/// The same home by another name, so that its connections can be told from those of other tests.
pub(super) fn named(home: &Home, name: &str) -> Home {
    let address = asked(home, |conn| {
        let schema: String = conn.query_row("SELECT CAST(current_schema() AS TEXT)", [], |row| row.get(0)).unwrap();
        let server = pmk_stand_ins::postgres::server().unwrap();
        format!("{}?application_name={name}&options=-csearch_path%3D{schema}", server.address("postgres"))
    });
    let database = Some(crate::database::Database::parse(&address).unwrap());
    Home { folder: tempfile::tempdir().unwrap(), database }
}

#[tokio::test]
async fn connections_that_the_database_has_ended_are_made_anew_when_they_are_wanted() {
    let Some([one, _]) = two() else { return };
    let named = named(&one, "ended");
    let store = open(&named);
    accept(&store, KEY, "Ev1").await;
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'ended'";
    let gone = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ended'";
    let end = |count| {
        assert_eq!(number(&one, end), count);
        until("they are gone", || (number(&one, gone) == 0).then_some(()));
    };
    // All that read, and the one that writes.
    end(3);
    assert_eq!(store.sessions().await.unwrap().len(), 1);
    accept(&store, KEY, "Ev2").await;
    assert_eq!(store.open_work().await.unwrap().pending.len(), 2);
    // Nor is one noticed as long as nobody waits for anything but the commit: then it is all sent once more.
    end(3);
    let tell = |conn: &Connection| {
        let mut tell = conn.prepare_cached("INSERT INTO told (listener, at) VALUES (?1, 0)")?;
        ["U1", "U2"].into_iter().try_for_each(|listener| tell.run([listener]))?;
        Ok(())
    };
    store.write(tell).await.unwrap();
    assert_eq!(number(&one, "SELECT count(*) FROM told"), 2);
    // Nor before the numbers of new rows are asked for. Nothing was read since.
    end(1);
    let open_case = |conn: &Connection| {
        let sql = "INSERT INTO case_file (front, channel, title, opened_by, opened_at, opened_on) VALUES (?1, ?2, ?2, ?2, 0, ?2)";
        Ok(conn.prepare_cached(sql)?.insert(["slack", "C1"])?)
    };
    let case = store.write(open_case).await.unwrap();
    assert_eq!(number(&one, "SELECT id FROM case_file"), case);
}

#[tokio::test]
async fn what_the_database_goes_away_amid_is_refused_as_a_whole_and_can_come_again() {
    let Some([one, _]) = two() else { return };
    let store = open(&one);
    let torn = store
        .write(|conn| -> Result<(), Fault> {
            conn.execute("INSERT INTO told (listener, at) VALUES ('U1', 0)", [])?;
            conn.query_row("SELECT pg_terminate_backend(pg_backend_pid())", [], |_| Ok(()))?;
            Ok(())
        })
        .await
        .unwrap_err();
    assert!(matches!(torn, StoreError::Away { .. }) && torn.is_passing(), "{torn}");
    assert_eq!(number(&one, "SELECT count(*) FROM told"), 0);
    // Nobody tries for a moment.
    let started = std::time::Instant::now();
    while let Err(error) = store.accept(&inbound(KEY, "Ev1"), NOW).await {
        assert!(error.is_passing() && started.elapsed() < Duration::from_secs(20), "{error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(number(&one, "SELECT count(*) FROM inbox"), 1);
}

#[tokio::test]
async fn a_statement_that_fails_unseen_fails_the_commit() {
    let Some([one, _]) = two() else { return };
    let store = open(&one);
    let unseen = |conn: &Connection| {
        conn.execute("INSERT INTO told (listener, at) VALUES ('U1', 0)", [])?;
        let _ = conn.execute("INSERT INTO told (listener, at) VALUES ('U1', 0)", []);
        Ok(())
    };
    store.write(unseen).await.unwrap_err();
    assert_eq!(number(&one, "SELECT count(*) FROM told"), 0, "PostgreSQL says COMMIT to nothing");
}

#[tokio::test]
async fn a_database_that_is_none_of_ours_or_newer_is_refused_and_stays_as_it_was() {
    let Some([one, other]) = two() else { return };
    asked(&one, |conn| conn.execute_batch("CREATE TABLE theirs (x BIGINT)").unwrap());
    assert!(matches!(Store::open(&one).err(), Some(StoreError::Foreign { .. })));
    asked(&one, |conn| conn.execute_batch("DROP TABLE theirs").unwrap());
    assert!(matches!(Store::open_existing(&one).err(), Some(StoreError::Missing { .. })));
    drop(open(&one));
    asked(&one, |conn| conn.execute("UPDATE pmk_schema SET version = 99", []).unwrap());
    let refused = Store::open(&other).err().unwrap();
    assert!(matches!(refused, StoreError::Newer { found: 99, .. }), "{refused}");
    assert!(refused.to_string().contains("postgres://pmk@127.0.0.1:"), "{refused}");
}

#[tokio::test]
async fn certificates_are_checked_to_their_root_and_by_name() {
    let Some([one, _]) = two() else { return };
    let server = pmk_stand_ins::postgres::server().unwrap();
    let schema: String =
        asked(&one, |conn| conn.query_row("SELECT CAST(current_schema() AS TEXT)", [], |row| row.get(0)).unwrap());
    let opened = |host: &str, how: &str| {
        let address = server.address("postgres").replace("127.0.0.1", host);
        let address = format!("{address}?options=-csearch_path%3D{schema}&{how}");
        let database = Some(crate::database::Database::parse(&address).unwrap());
        let home = Home { folder: tempfile::tempdir().unwrap(), database };
        let is_safe = "SELECT count(*) FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl";
        Store::open(&home).map(|_| number(&home, is_safe) == 1).map_err(|error| error.to_string())
    };
    let root = format!("sslrootcert={}", pmk_stand_ins::postgres::root().display());
    assert_eq!(opened("localhost", &format!("sslmode=verify-full&{root}")), Ok(true));
    let other = opened("127.0.0.1", &format!("sslmode=verify-full&{root}")).unwrap_err();
    assert!(other.contains("certificate"), "by name: {other}");
    let unknown = opened("localhost", "sslmode=verify-full").unwrap_err();
    assert!(unknown.contains("certificate"), "by its root: {unknown}");
    assert_eq!(opened("127.0.0.1", "sslmode=require"), Ok(true));
    assert_eq!(opened("127.0.0.1", "sslmode=disable"), Ok(false));
}

#[tokio::test]
async fn what_only_a_file_can_do_is_refused_with_what_postgresql_has_for_it() {
    let Some([one, _]) = two() else { return };
    let store = open(&one);
    let refused = store.back_up(&one.path().join("copy.db")).await.unwrap_err();
    assert!(matches!(refused, BackupError::NoFile(_)), "{refused}");
    assert!(pmk_system::error::Failure::from(refused).advice().unwrap().contains("pg_dump"));
    assert!(matches!(store.check().await, Err(BackupError::NoFile(_))));
}

#[tokio::test]
async fn a_sign_that_postgresql_cannot_hold_in_a_text_is_shown_as_one_that_is_missing() {
    let Some([one, _]) = two() else { return };
    let store = open(&one);
    let inbox = accept(&store, KEY, "Ev1").await;
    let turn = ask(&store, inbox).await.turn;
    store.record(turn, recorded("q\0", "a\0b"), NOW).await.unwrap();
    let Begin::Deliver(answered) = store.begin(inbox, NOW).await.unwrap() else { panic!("it is answered") };
    assert_eq!(answered.parts[0].outgoing.speech.text, "a\u{fffd}b");
    // The archive holds JSON, which has a way to write it.
    assert_eq!(live_texts(&store, KEY).await, ["q\0", "a\0b"]);
}

#[tokio::test]
async fn rows_that_another_process_numbers_itself_are_in_nobodys_way() {
    let Some([one, _]) = two() else { return };
    let (host, other) = (open(&one), open(&one));
    let tell = |store: &Store, n: usize| {
        let (store, event) = (store.clone(), format!("Ev{n}"));
        async move { accept(&store, KEY, &event).await }
    };
    tell(&host, 0).await;
    // As an import does, where it finds them free.
    let number_them = |conn: &Connection| -> Result<(), Fault> {
        let sql =
            "INSERT INTO inbox (id, session_id, event_id, received_at, ts, message) VALUES (?1, 1, ?2, 0, '', NULL)";
        let mut add = conn.prepare_cached(sql)?;
        (5_i64..30).try_for_each(|id| add.run(params![id, format!("own{id}")]))?;
        Ok(conn.follow_ids("inbox")?)
    };
    other.write(number_them).await.unwrap();
    for n in 1..40 {
        tell(&host, n).await;
    }
    assert_eq!(number(&one, "SELECT count(*) FROM inbox"), 65);
    assert_eq!(number(&one, "SELECT count(*) FROM inbox WHERE id > 29"), 39, "they come after those");
}
