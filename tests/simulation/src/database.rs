//! The database of several hosts: a real PostgreSQL with a new database for each world, whose clock is the world's.

use std::{
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use pmk_host::{
    database::Database,
    store::{Place, Store},
};
use pmk_stand_ins::{
    patience::until,
    postgres::{self, Server},
};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use crate::wire::Wire;

/// Makes the schema's functions read the world's clock.
const CLOCK: &str = "CREATE SEQUENCE worlds_clock MINVALUE 0 START 0;
    CREATE OR REPLACE FUNCTION pmk_now() RETURNS BIGINT LANGUAGE sql VOLATILE AS 'SELECT last_value FROM worlds_clock'";

/// Removes the fence: a host that was taken for dead may still write, and renews its lease as any other.
const NO_FENCE: &str = "CREATE OR REPLACE FUNCTION pmk_host_writes(host_id BIGINT) RETURNS VOID LANGUAGE sql AS '
    UPDATE host SET until = pmk_now() + lease_ms,
                    heard_since = CASE WHEN until < pmk_now() THEN pmk_now() ELSE heard_since END
    WHERE id = host_id'";

const TEMPLATE: &str = "world_template";

/// The fence that keeps a host that was suspended from writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    Up,
    /// Removed, to test that its absence is detected.
    Down,
}

/// The database of one world.
pub struct WorldsDatabase {
    server: &'static Server,
    name: String,
    runtime: Runtime,
    client: Option<Client>,
}

impl WorldsDatabase {
    /// Creates a new database.
    ///
    /// # Panics
    /// If there is no PostgreSQL.
    pub fn new(fence: Fence) -> WorldsDatabase {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let server = template();
        let name = format!("world{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let runtime = runtime();
        let admin = connect(&runtime, server, "postgres");
        say(&runtime, &admin, &format!("CREATE DATABASE {name} TEMPLATE {TEMPLATE}"));
        let client = connect(&runtime, server, &name);
        if fence == Fence::Down {
            say(&runtime, &client, NO_FENCE);
        }
        WorldsDatabase { server, name, runtime, client: Some(client) }
    }

    /// The server's socket.
    pub fn socket(&self) -> PathBuf {
        self.server.socket()
    }

    /// The location of the store for a host with this home.
    pub fn place(&self, home: &Path) -> Place {
        place(home, &self.server.address(&self.name))
    }

    /// The same for a host that connects through a wire.
    pub fn place_by(&self, wire: &Wire, home: &Path) -> Place {
        let folder = wire.folder().display().to_string().replace('/', "%2F");
        place(home, &format!("postgres://pmk@/{}?host={folder}", self.name))
    }

    /// Sets the clock.
    pub fn set_clock(&self, now_ms: i64) {
        say(&self.runtime, self.client(), &format!("SELECT setval('worlds_clock', {now_ms})"));
    }

    /// Lines of the ledger that have not been written to a file yet.
    pub fn lines_to_come(&self) -> Vec<String> {
        self.rows("SELECT line FROM event ORDER BY id").into_iter().flatten().collect()
    }

    /// Calls `see` with every table and each of its values, and whether that is of a summary.
    pub fn all_values(&self, mut see: impl FnMut(&str, &str, bool)) {
        let names = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1";
        for name in self.rows(names).into_iter().flatten() {
            let is_of_summary = if name == "message" { "origin = 'summary'" } else { "false" };
            for of_summary in [false, true] {
                let rows = self.rows(&format!("SELECT * FROM {name} WHERE ({is_of_summary}) = {of_summary}"));
                rows.iter().flatten().for_each(|text| see(&name, text, of_summary));
            }
        }
    }

    fn client(&self) -> &Client {
        self.client.as_ref().expect("it is connected until it is dropped")
    }

    /// The non-null columns of each row.
    pub fn rows(&self, query: &str) -> Vec<Vec<String>> {
        rows(&self.runtime, self.client(), query)
    }
}

impl Drop for WorldsDatabase {
    fn drop(&mut self) {
        self.client = None;
        let admin = connect(&self.runtime, self.server, "postgres");
        say(&self.runtime, &admin, &format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}

/// The server, after creating the template of all worlds in it.
fn template() -> &'static Server {
    static SERVER: OnceLock<&'static Server> = OnceLock::new();
    let make = || {
        let server = postgres::server().expect("the simulation of several hosts needs PostgreSQL");
        let runtime = runtime();
        let admin = connect(&runtime, server, "postgres");
        say(&runtime, &admin, &format!("CREATE DATABASE {TEMPLATE}"));
        let home = tempfile::tempdir().expect("a folder");
        let place = place(home.path(), &server.address(TEMPLATE));
        drop(Store::open(place).expect("a store"));
        let client = connect(&runtime, server, TEMPLATE);
        say(&runtime, &client, CLOCK);
        drop(client);
        // A database with open connections cannot be used as a template.
        let others = format!("SELECT 1 FROM pg_stat_activity WHERE datname = '{TEMPLATE}'");
        until("nobody is connected to the template", || match rows(&runtime, &admin, &others).is_empty() {
            true => Some(()),
            false => None,
        });
        server
    };
    SERVER.get_or_init(make)
}

fn place(home: &Path, address: &str) -> Place {
    Place { home: home.to_owned(), database: Some(Database::parse(address).expect("an address")) }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn connect(runtime: &Runtime, server: &Server, name: &str) -> Client {
    runtime.block_on(async {
        let connected = tokio_postgres::connect(&server.address(name), NoTls).await;
        let (client, connection) = connected.expect("the server is there");
        tokio::spawn(connection);
        client
    })
}

fn say(runtime: &Runtime, client: &Client, words: &str) {
    runtime.block_on(client.batch_execute(words)).expect("it is done");
}

/// The non-null columns of each row, with bytes decoded as text.
fn rows(runtime: &Runtime, client: &Client, query: &str) -> Vec<Vec<String>> {
    let said = runtime.block_on(client.simple_query(query)).expect("readable");
    let row = |message| match message {
        SimpleQueryMessage::Row(row) => Some((0..row.len()).filter_map(|at| row.get(at).map(text)).collect()),
        _ => None,
    };
    said.into_iter().filter_map(row).collect()
}

/// Decodes bytes, which are returned as hexadecimal digits.
fn text(said: &str) -> String {
    let Some(digits) = said.strip_prefix("\\x").filter(|digits| digits.len() % 2 == 0) else { return said.to_owned() };
    let byte = |at: usize| digits.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    bytes.map_or_else(|| said.to_owned(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}
