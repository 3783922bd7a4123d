//! A PgBouncer in front of the tests' PostgreSQL, with transaction pooling. It ends with the test.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

use super::{Server, as_nobody, asked_to_do_without, free_port, given_to_nobody};
use crate::{not_run, patience::until};

/// With the value `none`, tests run without PgBouncer.
const VARIABLE: &str = "PMK_TEST_PGBOUNCER";

/// Fewer than the connections of two hosts, so that they have to share them.
const POOL_SIZE: usize = 2;

/// A running pooler.
pub struct Pooler<'s> {
    server: &'s Server,
    program: PathBuf,
    folder: tempfile::TempDir,
    port: u16,
    child: Child,
}

impl Server {
    /// Starts a pooler for this server, with these additional settings; `None`, with a message, if tests are to run
    /// without it.
    ///
    /// # Panics
    /// If PgBouncer is not installed, and tests were not asked to run without it.
    pub fn pooler(&self, settings: &[&str]) -> Option<Pooler<'_>> {
        if asked_to_do_without(VARIABLE) {
            not_run::say(format_args!("{VARIABLE}=none, so nothing was tried through PgBouncer"));
            return None;
        }
        let program = program().unwrap_or_else(|| {
            panic!("no `pgbouncer` on the PATH or in /usr/sbin: install it, or say {VARIABLE}=none")
        });
        let folder = tempfile::Builder::new().prefix("pmk-pool-").tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("a private folder");
        given_to_nobody(folder.path());
        let port = free_port();
        write(folder.path(), "users.txt", "\"pmk\" \"\"\n");
        write(folder.path(), "pgbouncer.ini", &ini(folder.path(), port, self.port, settings));
        let child = run(&program, folder.path());
        let pooler = Pooler { server: self, program, folder, port, child };
        pooler.await_start();
        Some(pooler)
    }
}

impl Pooler<'_> {
    /// The address of the same database through the pooler.
    pub fn address(&self, address: &str) -> String {
        let (direct, pooled) = (format!(":{}/", self.server.port), format!(":{}/", self.port));
        assert!(address.contains(&direct), "{address} is none of this server's");
        address.replacen(&direct, &pooled, 1)
    }

    /// Runs a command in its console and returns the output.
    pub fn console(&self, command: &str) -> String {
        self.try_console(command).unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    fn try_console(&self, command: &str) -> Result<String, String> {
        self.server.psql_at(self.folder.path(), self.port, "pgbouncer", command)
    }

    /// Makes it look for the server at a port where nobody listens, or at the right port again.
    pub fn leads_to_the_server(&self, leads: bool) {
        let path = self.folder.path().join("pgbouncer.ini");
        let settings = fs::read_to_string(&path).expect("its settings");
        // Nobody listens on the lowest port.
        let (right, wrong) = (format!("port={}\n", self.server.port), "port=1\n".to_owned());
        let (from, to) = if leads { (wrong, right) } else { (right, wrong) };
        assert!(settings.contains(&from), "{settings}");
        fs::write(&path, settings.replace(&from, &to)).expect("its settings");
        self.console("RELOAD");
        if !leads {
            self.console("RECONNECT");
        }
    }

    /// Ends it like a crash, and starts it again: all clients are disconnected.
    pub fn restart(&mut self) {
        self.end();
        self.child = run(&self.program, self.folder.path());
        self.await_start();
    }

    fn await_start(&self) {
        until("the pooler comes", || self.try_console("SHOW VERSION").ok());
    }

    /// How often it has failed to connect to the server since its last start.
    pub fn failures(&self) -> usize {
        self.log().matches("connect failed").count()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn end(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        self.child.wait().expect("it is gone");
    }
}

impl Drop for Pooler<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// The path of the program: in `PATH`, or where Debian installs it.
fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    folders.map(|folder| folder.join("pgbouncer")).find(|program| program.exists())
}

fn ini(folder: &Path, port: u16, server: u16, settings: &[&str]) -> String {
    let folder = folder.display();
    format!(
        "[databases]\n* = host=127.0.0.1 port={server}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
         unix_socket_dir = {folder}\nauth_type = trust\nauth_file = {folder}/users.txt\nadmin_users = pmk\n\
         pool_mode = transaction\ndefault_pool_size = {POOL_SIZE}\nserver_login_retry = 1\n{}\n",
        settings.join("\n")
    )
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::write(&path, text).expect("a file");
    given_to_nobody(&path);
}

fn run(program: &Path, folder: &Path) -> Child {
    let log = fs::File::create(folder.join("log")).expect("a file");
    let mut command = as_nobody(&["--pdeathsig", "KILL"], program);
    command.arg(folder.join("pgbouncer.ini")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().expect("the pooler runs")
}
