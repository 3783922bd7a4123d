//! The store in PostgreSQL: connections that end, certificates, schemas of other versions.

use std::time::Duration;

use pmk_stand_ins::patience::until;

use super::{
    hosts::{answer, at_work, nothing_is_heard, two},
    on_postgres::{
        Home, asked,
        events::{event, waiting},
        number, open,
    },
    *,
};
use crate::{
    ledger::{LedgerQueue, Line},
    store::{
        database::{OpenMode, bring_up_to_date},
        error::Fault,
        schema::{Known, OURS},
        sql::params,
    },
};

const KEY: &str = "slack:dm:U1";

/// The same home with its own application name, so that its connections can be told from those of other tests.
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
    // All readers, and the writer.
    let before = store.returns();
    end(3);
    assert_eq!(store.sessions().await.unwrap().len(), 1);
    accept(&store, KEY, "Ev2").await;
    assert_eq!(store.open_work().await.unwrap().pending.len(), 2);
    assert!(store.returns() > before, "it may be a server that has lost something");
    // Nor does the loss show where only the commit is waited for: everything is sent again then.
    end(3);
    let tell = |conn: &Connection| {
        let mut tell = conn.prepare_cached("INSERT INTO told (listener, at) VALUES (?1, 0)")?;
        ["U1", "U2"].into_iter().try_for_each(|listener| tell.run([listener]))?;
        Ok(())
    };
    store.write(tell).await.unwrap();
    assert_eq!(number(&one, "SELECT count(*) FROM told"), 2);
    // Nor where the ids of new rows are requested first, with no read before.
    end(1);
    let open_case = |conn: &Connection| {
        let sql = "INSERT INTO case_file (front, channel, title, opened_by, opened_at, opened_on) VALUES (?1, ?2, ?2, ?2, 0, ?2)";
        Ok(conn.prepare_cached(sql)?.insert(["slack", "C1"])?)
    };
    let case = store.write(open_case).await.unwrap();
    assert_eq!(number(&one, "SELECT id FROM case_file"), case);
}

#[tokio::test]
async fn a_standby_was_never_reached_where_the_network_dropped_what_was_sent_to_the_primary() {
    let Some([one, _]) = two() else { return };
    let gone = tokio::net::TcpSocket::new_v4().unwrap();
    gone.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let gone = gone.listen(0).unwrap();
    let primary = gone.local_addr().unwrap();
    // The kernel drops what comes once nobody accepts what waits.
    let mut waiting = Vec::new();
    while let Ok(connected) =
        tokio::time::timeout(Duration::from_millis(500), tokio::net::TcpStream::connect(primary)).await
    {
        waiting.push(connected.unwrap());
    }
    let server = pmk_stand_ins::postgres::server().unwrap().address("postgres");
    let both = server.replacen("@", &format!("@{primary},"), 1);
    let database = Some(crate::database::Database::parse(&both).unwrap());
    let home = Home { folder: one.folder, database };
    assert_eq!(number(&home, "SELECT CAST(1 AS BIGINT)"), 1);
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
    // No connection is tried for a moment.
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

/// Regression: an event whose commit was done, but lost its answer, was in the ledger twice.
#[tokio::test]
async fn an_event_whose_commit_lost_only_its_answer_was_stored_again() {
    let Some([one, _]) = two() else { return };
    let store = open(&one);
    store.note(event("x"));
    let stored = waiting(&store, |store| {
        store.note_again().unwrap();
        store.waiting(0, 10).unwrap().remove(0)
    });
    let stored = stored.await;
    let stored = Line { at_ms: number(&one, "SELECT at FROM event"), file: stored.file, text: stored.text };
    let later = Line { at_ms: stored.at_ms + 1, ..stored.clone() };
    store.shared.noting.unstored.lock().unwrap().extend([stored, later]);
    waiting(&store, |store| store.note_again().unwrap()).await;
    assert_eq!(number(&one, "SELECT count(*) FROM event"), 2);
    assert!(!store.has_unstored());
}

#[tokio::test]
async fn a_database_that_is_none_of_ours_or_newer_is_refused_and_stays_as_it_was() {
    let Some([one, other]) = two() else { return };
    asked(&one, |conn| conn.execute_batch("CREATE TABLE theirs (x BIGINT)").unwrap());
    assert!(matches!(Store::open(&one).err(), Some(StoreError::Foreign { .. })));
    asked(&one, |conn| conn.execute_batch("DROP TABLE theirs").unwrap());
    assert!(matches!(Store::open_existing(&one).err(), Some(StoreError::Missing { .. })));
    drop(open(&one));
    asked(&one, |conn| conn.execute("UPDATE pmk_schema SET version = 99, oldest = 99", []).unwrap());
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
    let BeginOutcome::Deliver(answered) = store.begin(inbox, None, Hold::Alone, NOW).await.unwrap() else {
        panic!("it is answered")
    };
    assert_eq!(answered.parts[0].outgoing.speech.text, "a\u{fffd}b");
    // The archive holds JSON, which can represent it.
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
    // As an import does, where the ids are free.
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

#[tokio::test]
async fn hosts_that_come_to_an_empty_database_at_once_all_work_on_it() {
    let Some([one, _]) = two() else { return };
    let homes: Vec<Home> =
        (0..4).map(|_| Home { folder: tempfile::tempdir().unwrap(), database: one.database.clone() }).collect();
    std::thread::scope(|scope| {
        let opened: Vec<_> = homes.iter().map(|home| scope.spawn(move || Store::open(home).map(drop))).collect();
        for store in opened {
            store.join().unwrap().unwrap();
        }
    });
}

#[tokio::test]
async fn a_host_does_not_work_on_a_schema_that_a_newer_program_has_changed_since_it_was_opened() {
    let Some([one, other]) = two() else { return };
    drop(open(&one));
    let (store, lock) = (open(&other), HomeLock::take(other.path()).unwrap());
    asked(&one, |conn| conn.execute("UPDATE pmk_schema SET version = 99, oldest = 99", []).unwrap());
    let refused = store.take_over(&lock).await.unwrap_err();
    assert!(matches!(refused, StoreError::Newer { found: 99, .. }), "{refused}");
    assert_eq!(number(&one, "SELECT count(*) FROM host"), 0);
}

#[tokio::test]
async fn hosts_go_on_beside_a_newer_program_whose_schema_only_adds() {
    let Some([one, other]) = two() else { return };
    let (store, _lock) = at_work(&one).await;
    let inbox = accept(&store, KEY, "Ev1").await;
    let mut schemas = OURS.schemas.to_vec();
    let next = 1 + schemas.last().unwrap().0;
    schemas.push((next, "ALTER TABLE session ADD COLUMN mood TEXT"));
    let upgraded = |oldest| {
        let (schemas, name) = (schemas.clone(), Path::new("pmk").to_owned());
        asked(&one, move |conn| {
            let known = Known { schemas: &schemas, oldest };
            bring_up_to_date(conn, &name, OpenMode::There, &known).map_err(|fault| fault.at(&name))
        })
    };
    assert!(matches!(upgraded(next), Err(StoreError::Outdated { .. })), "somebody works who could not go on");
    upgraded(next - 1).unwrap();
    assert_eq!(number(&one, "SELECT version FROM pmk_schema"), i64::from(next));
    answer(&store, inbox).await;
    // A host that starts again still has the older program.
    let (again, _other_lock) = at_work(&other).await;
    let later = accept(&again, KEY, "Ev2").await;
    answer(&again, later).await;
    assert_eq!(number(&one, "SELECT count(*) FROM message"), 4);
}

#[tokio::test]
async fn a_host_that_was_stopped_while_the_schema_changed_writes_nothing_in_the_new_one() {
    let Some([one, other]) = two() else { return };
    let (stopped, _lock) = at_work(&one).await;
    nothing_is_heard(&one);
    let back =
        "ALTER TABLE turn DROP COLUMN streamed_ts; ALTER TABLE turn DROP COLUMN skipped; DROP INDEX session_of_group; ALTER TABLE session DROP COLUMN is_group; ALTER TABLE inbox DROP COLUMN team; DROP INDEX live_by_message; ALTER TABLE inbox DROP COLUMN by_app; ALTER TABLE early_change DROP COLUMN stopped_by; ALTER TABLE inbox DROP COLUMN home; ALTER TABLE host DROP COLUMN heard_since; ALTER TABLE host DROP COLUMN leaving; DROP TABLE atom_file;
                DROP TABLE common_config; DROP TABLE home_config; DROP TABLE chosen_policies; DROP TABLE component; DROP TABLE sent_arms; DROP TABLE experiment; DROP TABLE in_person; ALTER TABLE inbox DROP COLUMN parked_maybe_told; ALTER TABLE session DROP COLUMN sizes; ALTER TABLE host DROP COLUMN deciding; ALTER TABLE host DROP COLUMN deaf;
                ALTER TABLE host DROP COLUMN schema; ALTER TABLE pmk_schema DROP COLUMN oldest;
                CREATE TABLE host_waiting (id BIGINT); UPDATE pmk_schema SET version = 21";
    asked(&one, |conn| conn.execute_batch(back).unwrap());
    drop(open(&other));
    assert_eq!(number(&one, "SELECT version FROM pmk_schema"), connection::MIGRATIONS.len() as i64, "another one");
    assert!(matches!(stopped.accept(&inbound(KEY, "Ev1"), NOW).await, Err(StoreError::TakenOver { .. })));
}
