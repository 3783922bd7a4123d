//! A database that is reached through PgBouncer with transaction pooling.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::Arc,
    time::{Duration, Instant},
};

use pmk_stand_ins::{
    patience::{PATIENCE, until, until_async},
    postgres::{self, Pooler, Server},
};

use super::{
    hosts::at_work,
    on_postgres::{Home, asked, number, open},
    *,
};
use crate::database::Database;

const KEY: &str = "slack:dm:U1";

/// The server, and a pooler in front of it with these additional settings; `None` where tests are to run without
/// either, which is printed.
fn behind(settings: &[&str]) -> Option<(&'static Server, Pooler<'static>)> {
    let server = postgres::server()?;
    Some((server, server.pooler(settings)?))
}

fn home(address: &str) -> Home {
    Home { folder: tempfile::tempdir().unwrap(), database: Some(Database::parse(address).unwrap()) }
}

/// Retries until it is no longer refused temporarily.
pub(super) async fn accepted(store: &Store, event_id: &str) {
    let started = Instant::now();
    while let Err(error) = store.accept(&inbound(KEY, event_id), NOW).await {
        assert!(matches!(error, StoreError::Away { .. }) && started.elapsed() < PATIENCE, "{error:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_pooler_that_lets_nobody_through_is_away_and_nothing_is_put_aside() {
    let Some((server, pooler)) = behind(&[]) else { return };
    let database = server.database();
    let name = database.rsplit('/').next().unwrap();
    let home = home(&pooler.address(&database));
    let store = open(&home);
    accepted(&store, "Ev1").await;
    pooler.console(&format!("DISABLE {name}"));
    pooler.console(&format!("KILL {name}"));
    let refused = store.accept(&inbound(KEY, "Ev2"), NOW).await.unwrap_err();
    assert!(matches!(refused, StoreError::Away { .. }), "{refused:?}");
    // A new client gets that error while it connects.
    let refused = Store::open(&home).err().unwrap();
    assert!(matches!(&refused, StoreError::Away { message, .. } if message.contains("is disabled")), "{refused:?}");
    pooler.console(&format!("ENABLE {name}"));
    pooler.console(&format!("RESUME {name}"));
    accepted(&store, "Ev2").await;
    assert_eq!(store.open_work().await.unwrap().pending.len(), 2);
}

#[tokio::test]
async fn a_pooler_that_takes_no_options_is_refused_with_what_to_do() {
    let Some((server, pooler)) = behind(&[]) else { return };
    let home = home(&pooler.address(&server.schema()));
    let refused = Store::open(&home).err().unwrap();
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused:?}");
    assert!(refused.to_string().contains("unsupported startup parameter: options"), "{refused}");
    assert!(refused.hint().unwrap().contains("ALTER ROLE"), "{refused:?}");
}

#[tokio::test]
async fn a_pooler_that_keeps_options_to_itself_leads_to_no_other_schema() {
    let Some((server, pooler)) = behind(&["ignore_startup_parameters = options"]) else { return };
    let database = server.database();
    let name = database.rsplit('/').next().unwrap();
    server.psql(name, "CREATE SCHEMA wanted").unwrap();
    let home = home(&format!("{}?options=-csearch_path%3Dwanted", pooler.address(&database)));
    let refused = Store::open(&home).err().unwrap();
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused:?}");
    assert!(refused.hint().unwrap().contains("ALTER ROLE"), "{refused:?}");
    let tables =
        server.psql(name, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace").unwrap();
    assert_eq!(tables, "0", "nothing was made in another schema");
}

#[tokio::test]
async fn nothing_that_a_transaction_sets_is_left_to_whoever_has_its_connection_next() {
    let Some((server, pooler)) = behind(&["default_pool_size = 1"]) else { return };
    let home = home(&pooler.address(&server.database()));
    let store = open(&home);
    accepted(&store, "Ev1").await;
    // All share the session that has just written.
    let bounds = "SELECT count(*) FROM pg_settings WHERE source = 'session'
         AND name IN ('lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_isolation')";
    assert_eq!(number(&home, bounds), 0);
    let prepared = "SELECT count(*) FROM pg_prepared_statements";
    assert_eq!(number(&home, prepared), 0);
    // Other databases of the same server are written meanwhile.
    let locks = "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
         WHERE l.locktype = 'advisory' AND d.datname = current_database()";
    assert_eq!(number(&home, locks), 0);
    for n in 2..6 {
        turn(&store, KEY, &format!("Ev{n}")).await;
    }
    assert_eq!(number(&home, prepared), 0, "what is shared out knows no names");
    let servers = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()";
    assert_eq!(number(&home, servers), 1);
}

#[tokio::test]
async fn connections_that_a_pooler_ends_for_they_are_idle_are_made_anew_when_they_are_wanted() {
    let settings = ["client_idle_timeout = 1", "server_idle_timeout = 1", "server_lifetime = 1"];
    let Some((server, pooler)) = behind(&settings) else { return };
    let database = server.database();
    let home = home(&pooler.address(&database));
    let store = open(&home);
    accepted(&store, "Ev1").await;
    let name = format!("|{}|", database.rsplit('/').next().unwrap());
    until_async("they are ended", || (!pooler.console("SHOW CLIENTS").contains(&name)).then_some(())).await;
    assert_eq!(store.sessions().await.unwrap().len(), 1, "read at once");
    store.accept(&inbound(KEY, "Ev2"), NOW).await.unwrap();
    assert_eq!(store.open_work().await.unwrap().pending.len(), 2);
}

#[tokio::test]
async fn a_transaction_that_a_pooler_cuts_off_is_refused_as_a_whole_and_can_come_again() {
    let Some((server, pooler)) = behind(&["idle_transaction_timeout = 1"]) else { return };
    let database = server.database();
    let home = home(&pooler.address(&database));
    let store = open(&home);
    let pooler = Arc::new(pooler);
    let before = Arc::clone(&pooler);
    let torn = store
        .write(move |conn| {
            conn.execute("INSERT INTO told (listener, at) VALUES ('U1', 0)", [])?;
            until("it is cut off", || (!before.console("SHOW SERVERS").contains("|active|")).then_some(()));
            conn.execute("INSERT INTO told (listener, at) VALUES ('U2', 0)", [])?;
            Ok(())
        })
        .await
        .unwrap_err();
    assert!(matches!(torn, StoreError::Away { .. }), "{torn:?}");
    accepted(&store, "Ev1").await;
    assert_eq!(number(&home, "SELECT count(*) FROM told"), 0);
}

#[tokio::test]
async fn whoever_waits_too_long_for_a_connection_of_a_pooler_can_come_again() {
    let Some((server, pooler)) = behind(&["default_pool_size = 1", "query_wait_timeout = 1"]) else { return };
    let home = home(&pooler.address(&server.database()));
    let store = open(&home);
    accepted(&store, "Ev1").await;
    let (has_it, is_had) = tokio::sync::oneshot::channel();
    let (let_go, is_let_go) = tokio::sync::oneshot::channel::<()>();
    let other = std::thread::spawn(move || {
        asked(&home, move |conn| {
            let _all = conn.snapshot().unwrap();
            conn.query_row("SELECT count(*) FROM told", [], |row| row.get::<_, i64>(0)).unwrap();
            has_it.send(()).unwrap();
            is_let_go.blocking_recv().unwrap();
        });
    });
    is_had.await.unwrap();
    let refused = store.accept(&inbound(KEY, "Ev2"), NOW).await.unwrap_err();
    assert!(matches!(&refused, StoreError::Away { message, .. } if message.contains("timeout")), "{refused:?}");
    let_go.send(()).unwrap();
    tokio::task::spawn_blocking(move || other.join().unwrap()).await.unwrap();
    accepted(&store, "Ev2").await;
}

#[tokio::test]
async fn a_host_that_a_pooler_keeps_from_the_database_for_longer_than_its_lease_writes_nothing_any_more() {
    let Some((server, pooler)) = behind(&[]) else { return };
    let database = server.database();
    let name = database.rsplit('/').next().unwrap();
    let (one, other) = (home(&database), home(&pooler.address(&database)));
    let (first, _lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    pooler.console(&format!("DISABLE {name}"));
    pooler.console(&format!("KILL {name}"));
    let started = Instant::now();
    while !first.look_after_hosts().await.unwrap() {
        assert!(started.elapsed() < PATIENCE, "its signs do not end");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    pooler.console(&format!("ENABLE {name}"));
    pooler.console(&format!("RESUME {name}"));
    assert!(matches!(second.lost().await, StoreError::TakenOver { .. }));
    accepted(&first, "Ev1").await;
}

/// A server that refuses every client with this error.
fn server_that_says(code: &str, words: &str) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = format!("postgres://pmk@{}/pmk?sslmode=disable", listener.local_addr().unwrap());
    let fields = format!("SFATAL\0VFATAL\0C{code}\0M{words}\0\0");
    std::thread::spawn(move || {
        for mut asked in listener.incoming().map_while(Result::ok) {
            let mut length = [0; 4];
            if asked.read_exact(&mut length).is_ok() {
                let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
                let _ = asked.read_exact(&mut startup);
            }
            let length = u32::try_from(fields.len() + 4).unwrap();
            let _ = asked.write_all(&[b"E", &length.to_be_bytes()[..], fields.as_bytes()].concat());
        }
    });
    address
}

#[test]
fn a_server_that_lets_nobody_in_is_waited_for_where_it_may_in_a_while() {
    for (code, is_away) in [
        ("57P01", true),  // it is being shut down
        ("57P02", true),  // it has crashed
        ("57P03", true),  // it is starting
        ("53300", true),  // it is full
        ("08006", true),  // a pooler does not reach it
        ("28P01", false), // a wrong password
        ("28000", false), // no such role
        ("3D000", false), // no such database
    ] {
        let error = Store::open(&home(&server_that_says(code, "these words"))).err().unwrap();
        assert!(error.to_string().contains("these words"), "{code}: {error}");
        assert_eq!(matches!(error, StoreError::Away { .. }), is_away, "{code}: {error:?}");
    }
}
