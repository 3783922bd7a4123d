//! What a service manager hears of a gateway: that it is ready, how it does, that it lives, and that it ends.

use std::{
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram},
    },
    time::Duration,
};

use pmk_stand_ins::{postgres, relay::Relay};
use serde_json::json;

use crate::support::{Home, PATIENCE, Running, question};

/// How often a watchdog of these tests wants to hear something, in microseconds.
const WATCH_US: &str = "200000";

/// A manager's socket.
struct Manager {
    socket: UnixDatagram,
    /// As `NOTIFY_SOCKET` names it.
    name: String,
}

impl Manager {
    fn at_a_path(home: &Home) -> Manager {
        let path = home.path().join("notify");
        Manager { socket: UnixDatagram::bind(&path).expect("a socket"), name: path.display().to_string() }
    }

    fn in_the_abstract(home: &Home) -> Manager {
        let name = home.path().display().to_string();
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        Manager { socket: UnixDatagram::bind_addr(&address).expect("a socket"), name: format!("@{name}") }
    }

    fn start(&self, home: &Home, variables: &[(&str, &str)]) -> Running {
        let mut command = home.command(&["run", "--model", "sim"]);
        command.env("NOTIFY_SOCKET", &self.name).envs(variables.iter().copied());
        Running::start(command)
    }

    /// The lines of the next message, unless none comes for so long.
    fn hear_within(&self, patience: Duration) -> Option<Vec<String>> {
        self.socket.set_read_timeout(Some(patience)).expect("a timeout");
        let mut message = [0; 4096];
        let bytes = self.socket.recv(&mut message).ok()?;
        Some(String::from_utf8_lossy(&message[..bytes]).lines().map(str::to_owned).collect())
    }

    /// All lines up to one that begins so.
    fn until(&self, line: &str) -> Vec<String> {
        let mut heard = vec![];
        while !heard.iter().any(|heard: &String| heard.starts_with(line)) {
            heard.extend(self.hear_within(PATIENCE).unwrap_or_else(|| panic!("no `{line}` after {heard:?}")));
        }
        heard
    }
}

#[test]
fn a_manager_hears_that_it_is_ready_lives_and_ends_by_a_path_and_by_an_abstract_name() {
    for socket in [Manager::at_a_path, Manager::in_the_abstract] {
        let home = Home::new();
        let manager = socket(&home);
        let mut gateway = manager.start(&home, &[("WATCHDOG_USEC", WATCH_US)]);
        assert_eq!(manager.until("READY"), ["READY=1", "STATUS=健康"]);
        for _ in 0..3 {
            assert_eq!(manager.until("WATCHDOG"), ["WATCHDOG=1"]);
        }
        gateway.say(&question("Ev1", "hello"));
        gateway.next_of("turn");
        let (status, _) = gateway.end();
        assert!(status.success());
        let last = manager.until("STOPPING");
        assert_eq!(last[last.len() - 2..], ["STOPPING=1", "STATUS=健康：正在結束"]);
    }
}

#[test]
fn a_watchdog_hears_nothing_while_nothing_can_be_stored() {
    let home = Home::new();
    let manager = Manager::at_a_path(&home);
    let _gateway = manager.start(&home, &[("WATCHDOG_USEC", WATCH_US)]);
    manager.until("WATCHDOG");
    let store = rusqlite::Connection::open(home.path().join("gateway/pmk-host.db")).expect("the store");
    store.busy_timeout(PATIENCE).expect("patience");
    store.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes now");
    // What was proved before may still be under way, and what was not read yet.
    let heard = std::iter::from_fn(|| manager.hear_within(Duration::from_secs(2))).take(100).count();
    assert!(heard < 100, "it goes on");
    store.execute_batch("ROLLBACK").expect("others write again");
    manager.until("WATCHDOG");
}

/// Regression: a database that was away for two minutes had each of its hosts killed by its service manager.
#[test]
fn a_watchdog_heard_nothing_while_a_database_was_away() {
    let Some(server) = postgres::server() else { return };
    let (home, store) = (Home::new(), server.database());
    let relay = Relay::start(([127, 0, 0, 1], server.port()).into());
    let store = store.replace(&server.port().to_string(), &relay.address().port().to_string());
    home.write("gateway.json", json!({"version": 1, "store": store}).to_string());
    let manager = Manager::at_a_path(&home);
    // Long enough for a connection to fail.
    let _gateway = manager.start(&home, &[("WATCHDOG_USEC", "12000000")]);
    manager.until("WATCHDOG");
    relay.cut();
    manager.until("STATUS=部分異常");
    // What was proved before may still be under way.
    for _ in 0..3 {
        manager.until("WATCHDOG");
    }
}

#[test]
fn a_watchdog_of_another_process_is_not_fed_and_how_it_does_is_told_once() {
    let home = Home::new();
    let manager = Manager::at_a_path(&home);
    let mut gateway = manager.start(&home, &[("WATCHDOG_USEC", WATCH_US), ("WATCHDOG_PID", "1")]);
    manager.until("READY");
    gateway.say(&question("Ev1", "hello"));
    gateway.next_of("turn");
    assert!(gateway.end().0.success());
    assert_eq!(manager.until("STOPPING"), ["STOPPING=1", "STATUS=健康：正在結束"]);
}

#[test]
fn a_manager_that_is_not_there_keeps_nobody_from_an_answer() {
    for name in ["/nowhere/notify", "@nobody-listens-here", "", "no-path-at-all"] {
        let home = Home::new();
        let mut command = home.command(&["run", "--model", "sim"]);
        command.env("NOTIFY_SOCKET", name).env("WATCHDOG_USEC", WATCH_US);
        let mut gateway = Running::start(command);
        gateway.say(&question("Ev1", "hello"));
        gateway.next_of("turn");
        assert!(gateway.end().0.success(), "{name}");
    }
}
