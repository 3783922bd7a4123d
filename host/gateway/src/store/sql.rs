//! One interface to both databases: SQLite in the home, or PostgreSQL. Statements are written once, in the SQL that
//! both accept, with parameters as `?1`; for the few that only one of them accepts, [`Connection::either`] chooses.
//!
//! Values are SQLite's types, because PostgreSQL's columns hold no others: integers, reals, texts and bytes. All
//! access blocks, on the store's own threads.

mod link;
mod pooler;
mod postgres;
mod prefetch;
mod session;
mod tls;
mod translate;
mod values;

use std::{fmt, sync::Arc};

use rusqlite::types::{FromSqlError, ToSqlOutput, Value};
pub(super) use rusqlite::{
    ToSql, params,
    types::{FromSql, ValueRef},
};
use session::Asked;

pub(super) use link::{AWAY_AFTER, Link};
pub(super) use postgres::{NO_OPTIONS, Postgres, words};
pub(super) use prefetch::{Invalidation, Prefetched};
pub(super) use values::without_nul;

/// A connection to either database.
pub(super) enum Connection {
    Sqlite(rusqlite::Connection),
    Postgres(Box<Postgres>),
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.either("SQLite", "PostgreSQL"))
    }
}

/// Why a statement failed.
#[derive(Debug)]
pub(super) enum Error {
    Sqlite(rusqlite::Error),
    /// An error that PostgreSQL reports.
    Postgres(tokio_postgres::Error),
    /// PostgreSQL cannot be reached, or the connection was lost during a request.
    Away(String),
    /// What was to be committed was rolled back because one of its statements has failed: with this error, or with
    /// one that was already reported.
    Undone(Option<tokio_postgres::Error>),
    /// A row was expected, and there is none.
    NoRow,
    /// A column that holds another value than it should.
    Column {
        name: String,
        why: String,
    },
}

pub(super) type Result<T, E = Error> = std::result::Result<T, E>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Sqlite(error) => error.fmt(f),
            Error::Postgres(error) | Error::Undone(Some(error)) => f.write_str(&postgres::words(error)),
            Error::Away(why) => f.write_str(why),
            Error::Undone(None) => f.write_str("the commit was rolled back"),
            Error::NoRow => f.write_str("there is no row"),
            Error::Column { name, why } => write!(f, "column `{name}`: {why}"),
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match error {
            rusqlite::Error::QueryReturnedNoRows => Error::NoRow,
            error => Error::Sqlite(error),
        }
    }
}

/// Turns the absence of a row into `None`.
pub(super) trait OptionalExtension<T> {
    fn optional(self) -> Result<Option<T>>;
}

impl<T> OptionalExtension<T> for Result<T> {
    fn optional(self) -> Result<Option<T>> {
        match self {
            Ok(value) => Ok(Some(value)),
            Err(Error::NoRow) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Connection {
    /// Returns the one of two equivalent statements that this database accepts.
    pub(super) fn either<'a>(&self, sqlite: &'a str, postgres: &'a str) -> &'a str {
        match self {
            Connection::Sqlite(_) => sqlite,
            Connection::Postgres(_) => postgres,
        }
    }

    pub(super) fn prepare_cached<'c>(&'c self, sql: &str) -> Result<Statement<'c>> {
        Ok(match self {
            Connection::Sqlite(conn) => Statement::Sqlite(conn.prepare_cached(sql)?),
            Connection::Postgres(conn) => Statement::Postgres(conn, conn.translated(sql)),
        })
    }

    /// Requests rows that are needed later: their answer arrives with the next request that is waited for. They may
    /// show the state of now or of when they are read, so nothing may change them in between.
    pub(super) fn prefetch<'c>(&'c self, sql: &'c str, params: impl Params) -> Result<PrefetchedRows<'c>> {
        Ok(match self {
            Connection::Sqlite(conn) => {
                let values = params.with(|params| params.iter().map(|value| own(*value)).collect::<Result<_>>())?;
                PrefetchedRows::Sqlite { conn, sql, values, statement: None }
            }
            Connection::Postgres(conn) => {
                PrefetchedRows::Postgres(conn, params.with(|params| conn.prefetch(&conn.translated(sql), params))?)
            }
        })
    }

    /// Announces that so many rows will be [inserted](Statement::insert) into a table: their ids arrive with the
    /// next request that is waited for.
    pub(super) fn prefetch_ids(&self, table: &str, count: usize) -> Result<()> {
        match self {
            // SQLite assigns ids at the insert.
            Connection::Sqlite(_) => Ok(()),
            Connection::Postgres(conn) => conn.prefetch_ids(table, count),
        }
    }

    /// Marks rows that other operations of this transaction have [requested in advance](Connection::prefetch) as
    /// invalid.
    pub(super) fn moved(&self, what: impl FnOnce() -> Invalidation) {
        if let Connection::Postgres(conn) = self {
            conn.moved(what());
        }
    }

    /// Whether rows that this operation relies on, or would rely on, were marked so. What it requests in advance
    /// from here on is queried anew.
    pub(super) fn has_moved(&self, what: impl FnOnce() -> Invalidation) -> bool {
        match self {
            Connection::Sqlite(_) => false,
            Connection::Postgres(conn) => conn.has_moved(&what()),
        }
    }

    pub(super) fn execute(&self, sql: &str, params: impl Params) -> Result<usize> {
        match self {
            Connection::Sqlite(conn) => params.with(|params| Ok(conn.execute(sql, params)?)),
            Connection::Postgres(conn) => params.with(|params| conn.execute(&conn.translated(sql), params)),
        }
    }

    pub(super) fn query_row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(Row<'_>) -> Result<T>,
    ) -> Result<T> {
        self.prepare_cached(sql)?.query_row(params, read)
    }

    /// Runs several statements without parameters.
    pub(super) fn execute_batch(&self, sql: &str) -> Result<()> {
        match self {
            Connection::Sqlite(conn) => Ok(conn.execute_batch(sql)?),
            Connection::Postgres(conn) => conn.execute_batch(sql),
        }
    }

    /// Sets a table's id sequence after the ids of the rows that were inserted with ids.
    pub(super) fn follow_ids(&self, table: &str) -> Result<()> {
        match self {
            // SQLite continues after the highest id.
            Connection::Sqlite(_) => Ok(()),
            Connection::Postgres(conn) => conn.follow_ids(table),
        }
    }

    /// Begins a transaction that writes. Nobody else writes until it ends.
    pub(super) fn begin(&self) -> Result<()> {
        match self {
            Connection::Sqlite(conn) => Ok(conn.prepare_cached("BEGIN IMMEDIATE")?.execute([]).map(drop)?),
            Connection::Postgres(conn) => conn.begin(),
        }
    }

    pub(super) fn commit(&self) -> Result<()> {
        match self {
            Connection::Sqlite(conn) => Ok(conn.prepare_cached("COMMIT")?.execute([]).map(drop)?),
            Connection::Postgres(conn) => conn.commit(),
        }
    }

    pub(super) fn roll_back(&self) -> Result<()> {
        match self {
            Connection::Sqlite(conn) => Ok(conn.prepare_cached("ROLLBACK")?.execute([]).map(drop)?),
            Connection::Postgres(conn) => conn.roll_back(),
        }
    }

    /// Waits for statements that were only [sent](Statement::run).
    pub(super) fn settle(&self) -> Result<()> {
        match self {
            Connection::Sqlite(_) => Ok(()),
            Connection::Postgres(conn) => conn.settle(),
        }
    }

    /// Runs a statement about a savepoint.
    pub(super) fn savepoint(&self, word: &str) -> Result<()> {
        match self {
            Connection::Sqlite(conn) => Ok(conn.prepare_cached(word)?.execute([]).map(drop)?),
            Connection::Postgres(conn) => conn.savepoint(word),
        }
    }

    /// Whether no transaction is open.
    pub(super) fn is_autocommit(&self) -> bool {
        match self {
            Connection::Sqlite(conn) => conn.is_autocommit(),
            Connection::Postgres(conn) => !conn.is_in_transaction(),
        }
    }

    /// Returns the number of a transaction in which rows requested in advance may be older than later writes; it
    /// changes once a part was rolled back. `None` on SQLite.
    pub(super) fn transaction(&self) -> Option<u64> {
        match self {
            Connection::Sqlite(_) => None,
            Connection::Postgres(conn) => Some(conn.transaction()),
        }
    }

    /// Counts what was written or has to be rolled back: the same number means that nothing has to be.
    pub(super) fn changes(&self) -> u64 {
        match self {
            Connection::Sqlite(conn) => conn.total_changes(),
            Connection::Postgres(conn) => conn.changes(),
        }
    }

    /// Returns how often the database has come back. A file is never away.
    pub(super) fn returns(&self) -> u64 {
        match self {
            Connection::Sqlite(_) => 0,
            Connection::Postgres(conn) => conn.link().returns(),
        }
    }

    /// Reads one state of the database until it is dropped, whatever others commit.
    pub(super) fn snapshot(&self) -> Result<Snapshot<'_>> {
        match self {
            Connection::Sqlite(conn) => conn.execute_batch("BEGIN")?,
            Connection::Postgres(conn) => conn.begin_snapshot()?,
        }
        Ok(Snapshot(self))
    }
}

/// One state of a database.
pub(super) struct Snapshot<'c>(&'c Connection);

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        // Nothing was written. If this fails, the connection is unusable, and its next user finds that out.
        let _ = self.0.roll_back();
    }
}

/// A prepared statement.
pub(super) enum Statement<'c> {
    Sqlite(rusqlite::CachedStatement<'c>),
    Postgres(&'c Postgres, translate::Translated),
}

impl Statement<'_> {
    /// Runs it, and returns how many rows it has changed.
    pub(super) fn execute(&mut self, params: impl Params) -> Result<usize> {
        match self {
            Statement::Sqlite(statement) => params.with(|params| Ok(statement.execute(params)?)),
            Statement::Postgres(conn, sql) => params.with(|params| conn.execute(sql, params)),
        }
    }

    /// As [`execute`](Statement::execute), where the number is not needed. An error is reported by the next request
    /// that is waited for, at the latest by the commit, which then commits nothing.
    pub(super) fn run(&mut self, params: impl Params) -> Result<()> {
        match self {
            Statement::Sqlite(statement) => params.with(|params| Ok(statement.execute(params).map(drop)?)),
            Statement::Postgres(conn, sql) => params.with(|params| conn.run(sql, params).map(drop)),
        }
    }

    /// As [`run`](Statement::run), where the number is needed once they are committed: zero means that nothing was
    /// changed.
    pub(super) fn run_counting(&mut self, params: impl Params) -> Result<Changed> {
        match self {
            Statement::Sqlite(statement) => params.with(|params| Ok(Changed::Known(statement.execute(params)?))),
            Statement::Postgres(conn, sql) => params.with(|params| conn.run(sql, params).map(Changed::Asked)),
        }
    }

    /// Inserts a row by `INSERT INTO table (…) VALUES (…)`, and returns the `id` it gets. As after
    /// [`run`](Statement::run), the row exists only once a later request was waited for.
    pub(super) fn insert(&mut self, params: impl Params) -> Result<i64> {
        match self {
            Statement::Sqlite(statement) => params.with(|params| Ok(statement.insert(params)?)),
            Statement::Postgres(conn, sql) => params.with(|params| conn.insert(sql, params)),
        }
    }

    /// Whether it finds any row.
    pub(super) fn exists(&mut self, params: impl Params) -> Result<bool> {
        Ok(self.query(params)?.next()?.is_some())
    }

    pub(super) fn query(&mut self, params: impl Params) -> Result<Rows<'_>> {
        match self {
            Statement::Sqlite(statement) => params.with(|params| Ok(Rows::Sqlite(statement.query(params)?))),
            Statement::Postgres(conn, sql) => {
                let rows = params.with(|params| conn.query(sql, params))?;
                Ok(Rows::Postgres { rows: rows.into_iter(), current: None })
            }
        }
    }

    /// Reads the first row.
    ///
    /// # Errors
    /// [`Error::NoRow`] where it finds none.
    pub(super) fn query_row<T>(&mut self, params: impl Params, read: impl FnOnce(Row<'_>) -> Result<T>) -> Result<T> {
        match self.query(params)?.next()? {
            Some(row) => read(row),
            None => Err(Error::NoRow),
        }
    }

    pub(super) fn query_map<T, F>(&mut self, params: impl Params, read: F) -> Result<Mapped<'_, F>>
    where
        F: FnMut(Row<'_>) -> Result<T>,
    {
        Ok(Mapped { rows: self.query(params)?, read })
    }
}

/// How many rows a statement has changed, known once it is committed.
pub(super) enum Changed {
    Known(usize),
    Asked(Arc<Asked>),
}

impl Changed {
    pub(super) fn rows(&self) -> usize {
        match self {
            Changed::Known(rows) => *rows,
            Changed::Asked(asked) => asked.changed(),
        }
    }
}

/// Rows that were requested before they are needed.
pub(super) enum PrefetchedRows<'c> {
    /// On SQLite they are queried when they are read.
    Sqlite {
        conn: &'c rusqlite::Connection,
        sql: &'c str,
        values: Vec<Value>,
        statement: Option<rusqlite::CachedStatement<'c>>,
    },
    Postgres(&'c Postgres, Arc<Asked>),
}

impl PrefetchedRows<'_> {
    pub(super) fn query(&mut self) -> Result<Rows<'_>> {
        Ok(match self {
            PrefetchedRows::Sqlite { conn, sql, values, statement } => {
                let statement = statement.insert(conn.prepare_cached(sql)?);
                Rows::Sqlite(statement.query(rusqlite::params_from_iter(&*values))?)
            }
            PrefetchedRows::Postgres(conn, asked) => {
                Rows::Postgres { rows: conn.rows(asked)?.into_iter(), current: None }
            }
        })
    }

    /// Whether there is any row.
    pub(super) fn exists(&mut self) -> Result<bool> {
        Ok(self.query()?.next()?.is_some())
    }

    /// Reads the first row.
    ///
    /// # Errors
    /// [`Error::NoRow`] where there is none.
    pub(super) fn query_row<T>(&mut self, read: impl FnOnce(Row<'_>) -> Result<T>) -> Result<T> {
        match self.query()?.next()? {
            Some(row) => read(row),
            None => Err(Error::NoRow),
        }
    }
}

impl PrefetchedRows<'_> {
    /// Returns all rows, for another thread to read; `None` where rows cannot leave their connection.
    pub(super) fn found(self) -> Result<Option<Found>> {
        match self {
            PrefetchedRows::Sqlite { .. } => Ok(None),
            PrefetchedRows::Postgres(conn, asked) => Ok(Some(Found(conn.rows(&asked)?))),
        }
    }
}

/// Rows that have arrived.
pub(super) struct Found(Vec<tokio_postgres::Row>);

impl Found {
    pub(super) fn rows(self) -> Rows<'static> {
        Rows::Postgres { rows: self.0.into_iter(), current: None }
    }
}

fn own(value: &dyn ToSql) -> Result<Value> {
    let owned = match value.to_sql()? {
        ToSqlOutput::Owned(value) => Ok(value),
        ToSqlOutput::Borrowed(value) => value.try_into(),
        // No statement gets other values.
        _ => Ok(Value::Null),
    };
    owned.map_err(|why: FromSqlError| rusqlite::Error::ToSqlConversionFailure(Box::new(why)).into())
}

/// Rows, one after the other.
pub(super) enum Rows<'s> {
    Sqlite(rusqlite::Rows<'s>),
    Postgres { rows: std::vec::IntoIter<tokio_postgres::Row>, current: Option<tokio_postgres::Row> },
}

impl Rows<'_> {
    pub(super) fn next(&mut self) -> Result<Option<Row<'_>>> {
        Ok(match self {
            Rows::Sqlite(rows) => rows.next()?.map(Row::Sqlite),
            Rows::Postgres { rows, current } => {
                *current = rows.next();
                current.as_ref().map(Row::Postgres)
            }
        })
    }
}

/// Rows that are each mapped to a value.
pub(super) struct Mapped<'s, F> {
    rows: Rows<'s>,
    read: F,
}

impl<T, F: FnMut(Row<'_>) -> Result<T>> Iterator for Mapped<'_, F> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        match self.rows.next() {
            Ok(row) => row.map(&mut self.read),
            Err(error) => Some(Err(error)),
        }
    }
}

/// A row that was found.
#[derive(Clone, Copy)]
pub(super) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r tokio_postgres::Row),
}

/// A column, by its index or its name.
pub(super) trait Index: rusqlite::RowIndex + fmt::Debug + Copy {
    fn place(self, columns: &[tokio_postgres::Column]) -> Option<usize>;
}

impl Index for usize {
    fn place(self, columns: &[tokio_postgres::Column]) -> Option<usize> {
        (self < columns.len()).then_some(self)
    }
}

impl Index for &str {
    fn place(self, columns: &[tokio_postgres::Column]) -> Option<usize> {
        columns.iter().position(|column| column.name() == self)
    }
}

impl<'r> Row<'r> {
    pub(super) fn get<I: Index, T: FromSql>(&self, column: I) -> Result<T> {
        match self {
            Row::Sqlite(row) => Ok(row.get(column)?),
            Row::Postgres(_) => T::column_result(self.get_ref(column)?).map_err(|why| no_value(column, &why)),
        }
    }

    /// Returns the column's value without copying it.
    pub(super) fn get_ref(&self, column: impl Index) -> Result<ValueRef<'r>> {
        match self {
            Row::Sqlite(row) => Ok(row.get_ref(column)?),
            Row::Postgres(row) => {
                let no_column = || Error::Column { name: format!("{column:?}"), why: "no such column".into() };
                values::column(row, column.place(row.columns()).ok_or_else(no_column)?)
            }
        }
    }
}

fn no_value(column: impl Index, why: &FromSqlError) -> Error {
    Error::Column { name: format!("{column:?}"), why: why.to_string() }
}

/// The values of a statement's parameters, `?1` and so on.
pub(super) trait Params {
    fn with<T>(self, run: impl FnOnce(&[&dyn ToSql]) -> T) -> T;
}

impl Params for &[&dyn ToSql] {
    fn with<T>(self, run: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
        run(self)
    }
}

impl<const N: usize> Params for &[&dyn ToSql; N] {
    fn with<T>(self, run: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
        run(self)
    }
}

impl Params for [&dyn ToSql; 0] {
    fn with<T>(self, run: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
        run(&[])
    }
}

macro_rules! params_of_arrays {
    ($($count:literal)*) => {$(
        impl<P: ToSql> Params for [P; $count] {
            fn with<T>(self, run: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
                run(&self.each_ref().map(|value| value as &dyn ToSql))
            }
        }
    )*};
}
params_of_arrays!(1 2 3 4);
