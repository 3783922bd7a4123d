//! Copies a whole store to another database: row by row, in batches that are committed separately, so that an
//! interrupted copy continues where it stopped. At the end every row is read again on both sides and compared.
//!
//! An unfinished copy cannot be used for anything else. The full-text index is rebuilt from the messages. How far
//! the ledger's files are written is not copied: the lines are looked for in the files. Nor is what hosts have chosen
//! until all of them have ended: nobody works on a store that is copied.

mod mark;

use std::path::{Path, PathBuf};

use pmk_search::terms_of_message;
use pmk_system::{
    error::Failure,
    home::{self, HomeError, HomeLock, Purpose},
    threads::Threads,
};
use rusqlite::types::Value;
use thiserror::Error;

use super::{
    Place, Store, StoreError, archive, codec,
    connection::{self, Migrate},
    database::{self, OpenMode},
    error::Fault,
    hosts, run_is_alive,
    sql::{Connection, ToSql, ValueRef, params, without_nul},
};
pub(super) use mark::Mark;

use crate::ids::SessionId;

/// How many rows are read and committed at once.
const PIECE: usize = 500;

/// The same for tables whose rows may be megabytes.
const PIECE_OF_LARGE: usize = 16;
const LARGE: [&str; 2] = ["image", "atom_file"];

/// A table, with its key columns.
struct Table {
    name: &'static str,
    key: &'static [&'static str],
    /// Columns that refer to later rows; they are filled in once those exist.
    later: &'static [&'static str],
}

const fn table(name: &'static str, key: &'static [&'static str]) -> Table {
    Table { name, key, later: &[] }
}

/// Ordered so that each table comes after the ones it refers to.
const TABLES: &[Table] = &[
    table("seen", &["front", "key"]),
    table("session", &["id"]),
    Table { name: "inbox", key: &["id"], later: &["again_of"] },
    table("case_file", &["id"]),
    Table { name: "turn", key: &["id"], later: &["answered_with"] },
    table("message", &["id"]),
    table("live", &["session_id", "position"]),
    table("archive", &["session_id", "number"]),
    table("outbox", &["turn_id", "part"]),
    table("in_person", &["turn_id", "part", "channel"]),
    table("escalation", &["front", "channel", "thread_ts"]),
    table("calibration", &["provider", "model"]),
    table("model_tools", &["provider", "model"]),
    table("bound", &["provider", "model", "kind"]),
    table("experiment", &["name"]),
    table("arm", &["experiment", "session_id"]),
    table("stopped_arm", &["experiment", "arm"]),
    table("vote", &["turn_id", "user"]),
    table("asked", &["id"]),
    table("proposal", &["turn_id"]),
    table("case_message", &["message_id"]),
    table("case_note", &["id"]),
    table("asked_apart", &["turn_id", "part"]),
    table("atom_shown", &["atom", "turn_id"]),
    table("atom_doubt", &["atom", "source"]),
    table("outage", &["id"]),
    table("told", &["listener"]),
    table("event", &["id"]),
    table("text", &["sha256"]),
    table("receipt", &["session_id", "turn_id", "call"]),
    table("early_change", &["channel", "ts"]),
    table("press", &["number"]),
    table("image", &["inbox_id", "sha256"]),
    table("atom_file", &["path"]),
];

/// What hosts of a database go by. A file has none of it.
const OF_HOSTS: &[Table] = &[table("common_config", &["id"]), table("home_config", &["home"])];

/// Tables whose rows get ids from a sequence.
const NUMBERED: [&str; 8] = ["session", "inbox", "case_file", "message", "asked", "case_note", "event", "press"];

const COLUMNS: [&str; 2] = [
    "SELECT name FROM pragma_table_info(?1) ORDER BY cid",
    "SELECT CAST(attname AS TEXT) FROM pg_attribute
     WHERE attrelid = CAST(?1 AS regclass) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
];

/// What to do about a home that cannot be used.
const HINT: &str = "`--from` and `--to` name a home, `sqlite` or `postgres://USER@HOST/DATABASE`";

/// A column of events on PostgreSQL only: the home whose ledger files they go to.
const HOME: &str = "home";

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    pub tables: usize,
    pub rows: u64,
    /// How many of them an earlier attempt had copied.
    pub before: u64,
}

/// Why a store was not copied.
#[derive(Debug, Error)]
pub enum CopyError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A place is not usable.
    #[error("{0}")]
    Place(Failure),
    /// Source and target are the same.
    #[error("`{0}` cannot be copied to itself")]
    Itself(String),
    /// A `run` is using one of them.
    #[error("`{name}` is in use by {owner}")]
    InUse {
        name: String,
        owner: String,
        /// The home it runs in, unless it is another host of the database.
        home: Option<PathBuf>,
    },
    /// The target contains data that is not an unfinished copy of this store.
    #[error("`{name}` is not empty")]
    NotEmpty {
        name: String,
        /// The home whose file it is; `None` for a database.
        home: Option<PathBuf>,
    },
    /// Source and target differ after the copy.
    #[error(
        "a row of `{table}` differs after the copy, the one of {key}: one of the stores was changed in the meantime"
    )]
    Differs { table: &'static str, key: String },
}

impl From<CopyError> for Failure {
    fn from(error: CopyError) -> Failure {
        let hint = match &error {
            CopyError::Store(_) => None,
            CopyError::InUse { home: Some(home), .. } => {
                let hint = format!("stop it first: `{}`", home::command(home, "stop"));
                return Failure::new(error).hint(hint);
            }
            CopyError::Place(failure) => return failure.clone(),
            CopyError::Itself(_) => Some("specify another database or another home"),
            CopyError::InUse { .. } => Some("stop it first"),
            CopyError::NotEmpty { home: Some(home), .. } => {
                let renew = home::command(home, "--store sqlite store renew");
                return Failure::new(&error).hint(format!("`{renew}` moves it aside"));
            }
            CopyError::NotEmpty { home: None, .. } => {
                Some("a store can only be copied to an empty database, or to a home without a store")
            }
            CopyError::Differs { .. } => Some("stop all processes that use them, empty the target, and copy again"),
        };
        match (error, hint) {
            (CopyError::Store(error), _) => error.into(),
            (error, Some(hint)) => Failure::new(error).hint(hint),
            (error, None) => Failure::new(error),
        }
    }
}

/// The source or target of a copy, locked so that nobody works on it meanwhile.
struct Side {
    conn: Connection,
    name: String,
    /// Marks an unfinished copy to it.
    mark: Mark,
    /// The name of the home whose file it is; `None` for a database.
    home: Option<String>,
    /// The number that the last host of a database has got.
    hosts: i64,
    _lock: Option<HomeLock>,
}

impl Store {
    /// Copies the store at one place to another place that has none, or continues an interrupted copy of it. `tell`
    /// is called after each table. For threads that may block.
    ///
    /// # Errors
    /// One of them is in use or cannot be used, the target holds other data, or the copy differs. The source is not
    /// changed.
    pub fn copy(from: &Place, to: &Place, mut tell: impl FnMut(&str, u64)) -> Result<Copied, CopyError> {
        let (from_name, to_name) = (from.name(), to.name());
        if from_name == to_name {
            return Err(CopyError::Itself(from_name));
        }
        let of_hosts = if from.database.is_some() && to.database.is_some() { OF_HOSTS } else { &[] };
        let tables: Vec<&'static Table> = TABLES.iter().chain(of_hosts).collect();
        let source = Side::source(from, from_name)?;
        let target = Side::target(to, to_name, (&source.name, &tables))?;
        let mut copied = Copied::default();
        for &table in &tables {
            let (rows, before) = copy_table(&source, &target, table)?;
            copied.tables += 1;
            copied.rows += rows;
            copied.before += before;
            tell(table.name, rows);
        }
        for table in tables.iter().filter(|table| !table.later.is_empty()) {
            fill_in(&source, &target, table)?;
        }
        for table in NUMBERED {
            target.conn.follow_ids(table).map_err(|error| target.failed(error))?;
        }
        for table in tables {
            compare(&source, &target, table)?;
        }
        source.was_left_alone()?;
        target.was_left_alone()?;
        target.mark.clear(&target.conn).map_err(|fault| target.failed(fault))?;
        Ok(copied)
    }
}

impl Side {
    fn source(place: &Place, name: String) -> Result<Side, CopyError> {
        let side = Side::open(place, name, OpenMode::There)?;
        match side.mark.read(&side.conn).map_err(|fault| side.failed(fault))? {
            Some(_) => Err(StoreError::Unfinished { path: side.name.into() }.into()),
            None => Ok(side),
        }
    }

    fn target(place: &Place, name: String, (source, tables): (&str, &[&Table])) -> Result<Side, CopyError> {
        let not_empty = |side: Side| {
            let home = side.home.is_some().then(|| place.home.clone());
            CopyError::NotEmpty { name: side.name, home }
        };
        let side = Side::open(place, name, OpenMode::Made)?;
        match side.mark.read(&side.conn).map_err(|fault| side.failed(fault))? {
            Some(of) if of == source => {}
            Some(_) => return Err(not_empty(side)),
            None => {
                for table in tables {
                    let any = format!("SELECT 1 FROM {} LIMIT 1", table.name);
                    let found = side.conn.prepare_cached(&any).and_then(|mut any| any.exists([]));
                    if found.map_err(|error| side.failed(error))? {
                        return Err(not_empty(side));
                    }
                }
                side.mark.set(&side.conn, source).map_err(|fault| side.failed(fault))?;
            }
        }
        Ok(side)
    }

    /// The error of a fault on this side.
    fn failed(&self, fault: impl Into<Fault>) -> CopyError {
        CopyError::Store(fault.into().at(Path::new(&self.name)))
    }

    fn open(place: &Place, name: String, wanted: OpenMode) -> Result<Side, CopyError> {
        let Some(link) = place.link(Threads::Own)? else { return Side::open_file(&place.home, name, wanted) };
        let conn = database::writer(&link, wanted)?;
        let found = hosts::living(&conn).and_then(|owner| Ok((owner, hosts::last(&conn)?)));
        match found.map_err(|fault| fault.at(Path::new(&name)))? {
            (Some(owner), _) => Err(CopyError::InUse { name, owner, home: None }),
            (None, hosts) => Ok(Side { conn, name, mark: Mark::Comment, home: None, hosts, _lock: None }),
        }
    }

    /// Checks that no host has started on it meanwhile. A file is locked.
    fn was_left_alone(&self) -> Result<(), CopyError> {
        let is_file = self.home.is_some();
        if is_file || hosts::last(&self.conn).map_err(|fault| self.failed(fault))? == self.hosts {
            return Ok(());
        }
        let owner = hosts::living(&self.conn).map_err(|fault| self.failed(fault))?;
        let owner = owner.unwrap_or_else(|| "`pmk-host run`".to_owned());
        Err(CopyError::InUse { name: self.name.clone(), owner, home: None })
    }

    fn open_file(home: &Path, name: String, wanted: OpenMode) -> Result<Side, CopyError> {
        let path = Store::path(home);
        home::check_folder(home).map_err(|failure| CopyError::Place(failure.hint(HINT)))?;
        if wanted == OpenMode::Made {
            home::create_private_dir(home)
                .map_err(|error| StoreError::Io { path: path.clone(), message: error.to_string() })?;
        }
        let is_missing = matches!(home.try_exists(), Ok(false));
        home::check_exists(home)
            .map_err(|failure| if is_missing { failure.hint(HINT) } else { failure })
            .and_then(|()| home::check_trusted(home))
            .map_err(CopyError::Place)?;
        if run_is_alive(home) {
            return Err(match HomeLock::holder_of(home) {
                Ok(Some(holder)) if !holder.is_gateway() => {
                    let error = HomeError::InUse { home: home.to_owned(), holder: Some(holder) };
                    CopyError::Place(error.into())
                }
                _ => CopyError::InUse { name, owner: "`pmk-host run`".into(), home: Some(home.to_owned()) },
            });
        }
        let lock = HomeLock::take_for(home, Purpose::Copy).map_err(|error| CopyError::Place(error.into()))?;
        super::mark::refuse_loss(&path)?;
        if wanted == OpenMode::Made {
            connection::create(&path)?;
        } else if !path.exists() {
            return Err(StoreError::Missing { path }.into());
        }
        let conn = connection::writer(&path, Migrate::Yes)?;
        super::mark::set(&path)?;
        Ok(Side { conn, name, mark: Mark::File(path), home: Some(hosts::name(home)), hosts: 0, _lock: Some(lock) })
    }
}

type Values = Vec<Value>;

/// Reads a table in the order of its key.
struct Reading<'c> {
    conn: &'c Connection,
    columns: Vec<String>,
    /// The indexes of the key columns.
    key: Vec<usize>,
    first: String,
    next: String,
}

impl<'c> Reading<'c> {
    fn of(conn: &'c Connection, table: &Table, with_home: bool) -> Result<Reading<'c>, Fault> {
        let mut statement = conn.prepare_cached(conn.either(COLUMNS[0], COLUMNS[1]))?;
        let columns = statement.query_map([table.name], |row| row.get(0))?;
        let mut columns: Vec<String> = columns.collect::<Result<_, _>>()?;
        columns.retain(|column| with_home || !(table.name == "event" && column == HOME));
        let place = |name: &&str| columns.iter().position(|column| column == *name);
        let key: Vec<usize> = table.key.iter().filter_map(place).collect();
        let (list, of_key) = (quoted(columns.iter().map(String::as_str)), quoted(table.key.iter().copied()));
        let after = numbered(1, key.len());
        let piece = if LARGE.contains(&table.name) { PIECE_OF_LARGE } else { PIECE };
        let (select, order) =
            (format!("SELECT {list} FROM {}", table.name), format!("ORDER BY {of_key} LIMIT {piece}"));
        let first = format!("{select} {order}");
        let next = format!("{select} WHERE ({of_key}) > ({after}) {order}");
        Ok(Reading { conn, columns, key, first, next })
    }

    /// Returns the next rows after this key, or the first ones without a key.
    fn after(&self, last: Option<&Values>) -> Result<Vec<Values>, Fault> {
        let sql = if last.is_some() { &self.next } else { &self.first };
        let key: Vec<&dyn ToSql> = last.into_iter().flatten().map(|value| value as &dyn ToSql).collect();
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query(&*key)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let values = (0..self.columns.len()).map(|at| owned(row.get_ref(at)?));
            found.push(values.collect::<Result<Values, Fault>>()?);
        }
        Ok(found)
    }

    fn key_of(&self, row: &Values) -> Values {
        self.key.iter().map(|at| row[*at].clone()).collect()
    }
}

/// Whether events have their homes on both sides.
fn have_homes(from: &Side, to: &Side) -> bool {
    from.home.is_none() && to.home.is_none()
}

/// Copies a table; returns how many rows the source has, and how many of them the target already had.
fn copy_table(from: &Side, to: &Side, table: &Table) -> Result<(u64, u64), CopyError> {
    let source = Reading::of(&from.conn, table, have_homes(from, to)).map_err(|fault| from.failed(fault))?;
    let place = |name: &str| source.columns.iter().position(|column| column == name);
    let later: Vec<usize> = table.later.iter().filter_map(|name| place(name)).collect();
    let home = from.home.as_ref().filter(|_| table.name == "event" && to.home.is_none());
    let columns = source.columns.iter().map(String::as_str).chain(home.map(|_| HOME));
    let (list, count) = (quoted(columns), source.columns.len() + usize::from(home.is_some()));
    let insert = format!("INSERT INTO {} ({list}) VALUES ({})", table.name, numbered(1, count));
    let mut last = last_of(&to.conn, table).map_err(|fault| to.failed(fault))?;
    let before = count_of(&to.conn, table).map_err(|fault| to.failed(fault))?;
    let before = u64::try_from(before).unwrap_or(0);
    let mut rows = before;
    loop {
        let piece = source.after(last.as_ref()).map_err(|fault| from.failed(fault))?;
        let Some(end) = piece.last() else { return Ok((rows, before)) };
        let end = source.key_of(end);
        write(&to.conn, &source, table, &piece, (&insert, &later, home)).map_err(|fault| to.failed(fault))?;
        rows += piece.len() as u64;
        last = Some(end);
    }
}

/// Writes these rows in one transaction.
fn write(
    to: &Connection,
    source: &Reading<'_>,
    table: &Table,
    piece: &[Values],
    how: (&str, &[usize], Option<&String>),
) -> Result<(), Fault> {
    to.begin()?;
    match insert(to, source, table, piece, how) {
        Ok(()) => Ok(to.commit()?),
        Err(fault) => {
            to.roll_back()?;
            Err(fault)
        }
    }
}

fn insert(
    to: &Connection,
    source: &Reading<'_>,
    table: &Table,
    piece: &[Values],
    (insert, later, home): (&str, &[usize], Option<&String>),
) -> Result<(), Fault> {
    let nothing = Value::Null;
    let mut statement = to.prepare_cached(insert)?;
    for row in piece {
        let values = row.iter().enumerate().map(|(at, value)| if later.contains(&at) { &nothing } else { value });
        let mut values: Vec<&dyn ToSql> = values.map(|value| value as &dyn ToSql).collect();
        values.extend(home.map(|home| home as &dyn ToSql));
        statement.run(&*values)?;
    }
    if table.name == "archive" {
        index(to, source, piece)?;
    }
    Ok(())
}

/// Indexes the messages of these archive rows for search.
fn index(to: &Connection, source: &Reading<'_>, piece: &[Values]) -> Result<(), Fault> {
    let place = |name: &str| source.columns.iter().position(|column| column == name).unwrap_or(0);
    let (session, message) = (place("session_id"), place("message_id"));
    let mut statement = to.prepare_cached(
        "SELECT m.id, m.role, m.origin, m.blocks, NULL, m.tokens, m.chars FROM message m WHERE m.id = ?1",
    )?;
    for row in piece {
        let (Value::Integer(session), Value::Integer(message)) = (&row[session], &row[message]) else { continue };
        let mut rows = statement.query([*message])?;
        let Some(found) = rows.next()? else { continue };
        let terms = match codec::entry(found) {
            Ok(entry) => terms_of_message(&entry.message),
            // It is copied unchanged, and its readers get the error.
            Err(Fault::Damaged(_)) => vec![],
            Err(fault) => return Err(fault),
        };
        archive::index_again(to, SessionId(*session), *message, &terms)?;
    }
    Ok(())
}

/// Fills in the columns that refer to later rows.
fn fill_in(from: &Side, to: &Side, table: &Table) -> Result<(), CopyError> {
    for column in table.later {
        let references = references(&from.conn, table, column).map_err(|fault| from.failed(fault))?;
        refer(&to.conn, table, column, &references).map_err(|fault| to.failed(fault))?;
    }
    Ok(())
}

/// Returns the ids of the rows of which this column refers to another row, each with the other's.
fn references(from: &Connection, table: &Table, column: &str) -> Result<Vec<(i64, i64)>, Fault> {
    let read = format!("SELECT id, {column} FROM {} WHERE {column} IS NOT NULL ORDER BY id", table.name);
    let mut statement = from.prepare_cached(&read)?;
    let found = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(found.collect::<Result<_, _>>()?)
}

fn refer(to: &Connection, table: &Table, column: &str, references: &[(i64, i64)]) -> Result<(), Fault> {
    let mut set = to.prepare_cached(&format!("UPDATE {} SET {column} = ?2 WHERE id = ?1", table.name))?;
    to.begin()?;
    for (id, other) in references {
        set.run(params![*id, *other])?;
    }
    Ok(to.commit()?)
}

/// Reads a table on both sides, and compares the rows.
fn compare(from: &Side, to: &Side, table: &'static Table) -> Result<(), CopyError> {
    let source = Reading::of(&from.conn, table, have_homes(from, to)).map_err(|fault| from.failed(fault))?;
    let target = Reading::of(&to.conn, table, have_homes(from, to)).map_err(|fault| to.failed(fault))?;
    // The columns have the same names on both sides, but their order may differ.
    let place = |name: &String| target.columns.iter().position(|column| column == name);
    let places: Vec<Option<usize>> = source.columns.iter().map(place).collect();
    let (mut last, mut last_there) = (None, None);
    loop {
        let here = source.after(last.as_ref()).map_err(|fault| from.failed(fault))?;
        let there = target.after(last_there.as_ref()).map_err(|fault| to.failed(fault))?;
        let pairs = here
            .iter()
            .map(Some)
            .chain(std::iter::repeat(None))
            .zip(there.iter().map(Some).chain(std::iter::repeat(None)));
        for (one, other) in pairs.take(here.len().max(there.len())) {
            let same = match (one, other) {
                (Some(one), Some(other)) => {
                    one.iter().zip(&places).all(|(value, place)| place.is_some_and(|place| same(value, &other[place])))
                }
                _ => false,
            };
            if !same {
                let key = one.map(|row| source.key_of(row)).or(other.map(|row| target.key_of(row)));
                return Err(CopyError::Differs { table: table.name, key: shown(&key.unwrap_or_default()) });
            }
        }
        let Some(end) = here.last() else { return Ok(()) };
        (last, last_there) = (Some(source.key_of(end)), there.last().map(|row| target.key_of(row)));
    }
}

/// A text that PostgreSQL cannot hold unchanged counts as the same without its NUL characters.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Text(one), Value::Text(other)) => {
            one == other || without_nul(one.as_bytes()) == without_nul(other.as_bytes())
        }
        (Value::Real(one), Value::Real(other)) => one.to_bits() == other.to_bits(),
        (one, other) => one == other,
    }
}

fn shown(key: &[Value]) -> String {
    let shown = |value: &Value| match value {
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => pmk_core::text::shortened(text, 80).into_owned(),
        _ => "?".to_owned(),
    };
    key.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// Returns the key of the last row that is already there, if any.
fn last_of(conn: &Connection, table: &Table) -> Result<Option<Values>, Fault> {
    let list = quoted(table.key.iter().copied());
    let order = table.key.iter().map(|name| format!("\"{name}\" DESC")).collect::<Vec<_>>().join(", ");
    let mut statement = conn.prepare_cached(&format!("SELECT {list} FROM {} ORDER BY {order} LIMIT 1", table.name))?;
    let mut rows = statement.query([])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let values = (0..table.key.len()).map(|at| owned(row.get_ref(at)?));
    values.collect::<Result<Values, Fault>>().map(Some)
}

fn count_of(conn: &Connection, table: &Table) -> Result<i64, Fault> {
    Ok(conn.query_row(&format!("SELECT count(*) FROM {}", table.name), [], |row| row.get(0))?)
}

fn owned(value: ValueRef<'_>) -> Result<Value, Fault> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(text) => {
            Value::Text(String::from_utf8(text.to_vec()).map_err(|_| Fault::Damaged("a text is not UTF-8".into()))?)
        }
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    })
}

fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

fn numbered(from: usize, count: usize) -> String {
    (from..from + count).map(|number| format!("?{number}")).collect::<Vec<_>>().join(", ")
}
