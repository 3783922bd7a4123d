//! A PostgreSQL for tests: a server of this process, in its own folder, reachable only from this machine. It ends with
//! the process, however that ends, and its folder is deleted.
//!
//! If PostgreSQL is not installed, a test fails; with `PMK_TEST_POSTGRES=none` tests are skipped with a message.

mod pooler;
mod standby;

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread,
};

use crate::{not_run, patience::until};

pub use pooler::Pooler;
pub use standby::{Pair, pair};

/// With the value `none`, tests run without PostgreSQL.
const VARIABLE: &str = "PMK_TEST_POSTGRES";

/// The server's certificate, valid for `localhost` only, and its key; they are valid for a hundred years.
const CERTIFICATE: &str = include_str!("../certificates/localhost.pem");
const KEY: &str = include_str!("../certificates/localhost.key");

/// The root certificate that has signed it.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("certificates/root.pem")
}

/// A running server.
pub struct Server {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
}

/// The durability of commits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Commits {
    /// None: tests do not crash the machine.
    Careless,
    /// PostgreSQL's default: a commit is on the disk before it is reported.
    Durable,
}

/// The server of this process; `None` if tests are to run without it, with one message.
///
/// # Panics
/// If PostgreSQL is not installed, and tests were not asked to run without it.
pub fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(|| start(Commits::Careless)).as_ref()
}

/// A second server with PostgreSQL's default settings, for benchmarks.
///
/// # Panics
/// As [`server`].
pub fn durable() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(|| start(Commits::Durable)).as_ref()
}

fn start(commits: Commits) -> Option<Server> {
    if asked_to_do_without(VARIABLE) {
        not_run::say(format_args!("{VARIABLE}=none, so nothing was tried on PostgreSQL"));
        return None;
    }
    let programs = programs_or_panic();
    let (told, hears) = mpsc::channel();
    // The server ends with the thread that started it, so that thread lives as long as the process.
    thread::spawn(move || {
        let (server, mut child) = Server::start(programs, commits);
        told.send(server).expect("somebody waits");
        child.wait().expect("the server");
    });
    Some(hears.recv().expect("the server starts"))
}

fn programs_or_panic() -> PathBuf {
    programs().unwrap_or_else(|| {
        panic!("no `initdb` on the PATH or below /usr/lib/postgresql: install PostgreSQL, or say {VARIABLE}=none")
    })
}

/// The folder of PostgreSQL's programs: in `PATH`, or where Debian installs them; the newest version.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // A link leads to the folder of the other programs.
    let named = std::env::split_paths(&path).find_map(|folder| fs::canonicalize(folder.join("initdb")).ok());
    let named = named.and_then(|initdb| Some(initdb.parent()?.to_owned()));
    let version = |folder: &Path| folder.parent()?.file_name()?.to_str()?.parse::<u32>().ok();
    named.or_else(|| {
        let kept = fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path().join("bin"));
        kept.filter(|folder| folder.join("initdb").exists()).max_by_key(|folder| version(folder))
    })
}

impl Server {
    fn start(programs: PathBuf, commits: Commits) -> (Server, Child) {
        let server = Server { programs, folder: own_folder(), port: free_port() };
        let data = server.folder.join("data");
        let made = server
            .command("initdb")
            .args(["--no-sync", "--auth=trust", "--username=pmk", "--encoding=UTF8", "--locale=C.UTF-8", "-D"])
            .arg(&data)
            .output()
            .expect("initdb runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        for (name, text) in [("localhost.pem", CERTIFICATE), ("localhost.key", KEY)] {
            let path = data.join(name);
            fs::write(&path, text).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a private file");
            given_to_nobody(&path);
        }
        let child = server.run(&data, commits);
        server.await_start();
        (server, child)
    }

    fn await_start(&self) {
        until("the server comes", || self.psql("postgres", "SELECT 1").ok());
    }

    /// Runs the server under a shell that ends it and deletes its folder.
    fn run(&self, data: &Path, commits: Commits) -> Child {
        let script = r#"trap 'kill -QUIT $server; wait $server; rm -rf "$folder"; exit 0' TERM
            programs=$1 folder=$2 data=$3 port=$4; shift 4
            "$programs/postgres" -D "$data" -p "$port" -k "$folder" -c max_connections=300 -c listen_addresses=127.0.0.1 \
                -c ssl=on -c ssl_cert_file=localhost.pem -c ssl_key_file=localhost.key "$@" &
            server=$!; wait $server; rm -rf "$folder""#;
        let mut shell = as_nobody(&["--pdeathsig", "TERM"], Path::new("sh"));
        shell.args(["-c", script, "sh"]).arg(&self.programs).arg(&self.folder).arg(data).arg(self.port.to_string());
        if commits == Commits::Careless {
            let set = [
                "fsync=off",
                "full_page_writes=off",
                "synchronous_commit=off",
                "shared_buffers=64MB",
                "autovacuum=off",
            ];
            shell.args(set.iter().flat_map(|setting| ["-c", *setting]));
        }
        let log = fs::File::create(self.folder.with_extension("log")).map_or(Stdio::null(), Stdio::from);
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("the server runs")
    }

    fn command(&self, program: &str) -> Command {
        as_nobody(&[], &self.programs.join(program))
    }

    /// Runs a statement and returns the output.
    ///
    /// # Errors
    /// If the server reports an error.
    pub fn psql(&self, database: &str, sql: &str) -> Result<String, String> {
        self.psql_at(&self.folder, self.port, database, sql)
    }

    /// The same for any server with a socket for this port in the folder.
    fn psql_at(&self, folder: &Path, port: u16, database: &str, sql: &str) -> Result<String, String> {
        let output = self
            .command("psql")
            .args(["-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-U", "pmk", "-p", &port.to_string(), "-h"])
            .arg(folder)
            .args(["-d", database, "-c", sql])
            .output()
            .expect("psql runs");
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        }
    }

    /// Creates a database and returns its address.
    pub fn database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("pmk{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.psql("postgres", &format!("CREATE DATABASE {name}")).expect("a database");
        self.address(&name)
    }

    /// Creates a schema in a database that all of them share, and returns its address: faster than creating a database.
    pub fn schema(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("s{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.psql("postgres", &format!("CREATE SCHEMA {name}")).expect("a schema");
        format!("{}?options=-csearch_path%3D{name}", self.address("postgres"))
    }

    /// The address of one of its databases.
    pub fn address(&self, database: &str) -> String {
        format!("postgres://pmk@127.0.0.1:{}/{database}", self.port)
    }

    /// The same address by way of its Unix socket, as used on the same machine.
    pub fn nearby(&self, address: &str) -> String {
        let (_, database) = address.rsplit_once('/').expect("an address of ours");
        let folder = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://pmk@{folder}:{}/{database}", self.port)
    }

    /// The path of its Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join(format!(".s.PGSQL.{}", self.port))
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// A command to run a program as a user other than root.
fn as_nobody(options: &[&str], program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(options);
    if nobody_is_needed() {
        command.args(["--reuid", &nobody("-u").to_string(), "--regid", &nobody("-g").to_string(), "--clear-groups"]);
    }
    command.arg(program).current_dir("/");
    command
}

fn asked_to_do_without(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|word| word == "none")
}

/// Servers refuse to run as root, and their files must belong to their user.
fn given_to_nobody(path: &Path) {
    if nobody_is_needed() {
        std::os::unix::fs::chown(path, Some(nobody("-u")), Some(nobody("-g"))).expect("a file of nobody's");
    }
}

fn nobody_is_needed() -> bool {
    fs::metadata("/proc/self").is_ok_and(|this| this.uid() == 0)
}

fn nobody(which: &str) -> u32 {
    let output = Command::new("id").args([which, "nobody"]).output().expect("id runs");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("nobody is somebody")
}

/// A folder for a server, which deletes it when it ends.
fn own_folder() -> PathBuf {
    let folder = tempfile::Builder::new().prefix("pmk-pg-").tempdir().expect("a folder").keep();
    given_to_nobody(&folder);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("a private folder");
    folder
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}
