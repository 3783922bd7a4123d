//! Two servers, one of which replicates the other synchronously: a commit is on both before it is reported.

use std::process::{Child, Command};

use super::{Commits, Server, VARIABLE, asked_to_do_without, free_port, own_folder, programs_or_panic};
use crate::{not_run, patience::until};

/// A server and its standby. Both end with the test.
pub struct Pair {
    pub primary: Server,
    pub standby: Server,
    primary_child: Child,
    standby_child: Child,
}

/// Starts a separate pair; `None`, with a message, if tests are to run without it.
///
/// # Panics
/// If PostgreSQL is not installed, and tests were not asked to run without it.
pub fn pair() -> Option<Pair> {
    if asked_to_do_without(VARIABLE) {
        not_run::say(format_args!("{VARIABLE}=none, so no standby took over"));
        return None;
    }
    let (primary, primary_child) = Server::start(programs_or_panic(), Commits::Careless);
    let (standby, standby_child) = Server::following(&primary);
    let pair = Pair { primary, standby, primary_child, standby_child };
    pair.say("ALTER ROLE pmk SET synchronous_commit = on");
    pair.say("ALTER SYSTEM SET synchronous_standby_names = '*'");
    pair.say("SELECT pg_reload_conf()");
    pair.await_on_primary("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'");
    Some(pair)
}

impl Pair {
    /// Creates a database on both, and returns its address, which leads to whichever of them accepts writes.
    pub fn database(&self) -> String {
        let first = self.primary.database();
        let (before, name) = first.rsplit_once('/').expect("an address");
        format!("{before},127.0.0.1:{}/{name}?target_session_attrs=read-write", self.standby.port)
    }

    /// Ends the primary like a crash, and promotes the standby.
    pub fn fail_over(&mut self) {
        end(&mut self.primary_child);
        self.standby.psql("postgres", "SELECT pg_promote()").expect("promoted");
        // It has no standby itself.
        self.standby.psql("postgres", "ALTER SYSTEM RESET synchronous_standby_names").expect("set");
        self.standby.psql("postgres", "SELECT pg_reload_conf()").expect("reloaded");
    }

    fn say(&self, sql: &str) {
        self.primary.psql("postgres", sql).expect(sql);
    }

    fn await_on_primary(&self, counts: &str) {
        until("the standby follows", || self.primary.psql("postgres", counts).ok().filter(|count| count == "1"));
    }
}

impl Server {
    /// Starts a server that follows another one.
    fn following(other: &Server) -> (Server, Child) {
        let server = Server { programs: other.programs.clone(), folder: own_folder(), port: free_port() };
        let data = server.folder.join("data");
        let copied = server
            .command("pg_basebackup")
            .args(["-R", "--checkpoint=fast", "--no-sync", "-U", "pmk", "-p", &other.port.to_string(), "-h"])
            .arg(&other.folder)
            .arg("-D")
            .arg(&data)
            .output()
            .expect("pg_basebackup runs");
        assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
        let child = server.run(&data, Commits::Careless);
        server.await_start();
        (server, child)
    }
}

/// The shell ends the server as well.
fn end(shell: &mut Child) {
    let told = Command::new("kill").args(["-TERM", &shell.id().to_string()]).status();
    assert!(told.is_ok_and(|status| status.success()), "it runs");
    shell.wait().expect("it is gone");
}

impl Drop for Pair {
    fn drop(&mut self) {
        for child in [&mut self.primary_child, &mut self.standby_child] {
            if matches!(child.try_wait(), Ok(None)) {
                end(child);
            }
        }
    }
}
