//! One way to talk to a database, whichever it is: SQLite in the home, or PostgreSQL. Statements are written once, in the
//! SQL that both take, with parameters as `?1`; the few that only one of them takes are chosen between by
//! [`Connection::either`].
//!
//! Values are SQLite's, since PostgreSQL's columns hold no other: whole numbers, real ones, texts and bytes. Access waits for
//! the database, on the store's own threads.

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

pub(super) use link::Link;
pub(super) use postgres::{NO_OPTIONS, Postgres, words};
pub(super) use prefetch::{Invalidation, Prefetched};
pub(super) use values::without_nul;

/// A connection.
pub(super) enum Connection {
    Sqlite(rusqlite::Connection),
    Postgres(Box<Postgres>),
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.either("SQLite", "PostgreSQL"))
    }
}

/// Why a statement did not do what it should.
#[derive(Debug)]
pub(super) enum Error {
    Sqlite(rusqlite::Error),
    /// What PostgreSQL says.
    Postgres(tokio_postgres::Error),
    /// PostgreSQL cannot be reached, or was lost amid what was asked of it.
    Away(String),
    /// What was to be committed was undone, for a statement of it has failed: this way, or in one that was told of it.
    Undone(Option<tokio_postgres::Error>),
    /// A single row was asked for, and there is none.
    NoRow,
    /// A column that holds something else than it should.
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

/// Makes nothing of there being no row.
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
    /// Of two ways to say the same the one that this database takes.
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

    /// Asks for rows that are wanted in a while, for the answer comes with what is waited for before that. They may be as they
    /// are now, or as they are when they are looked at: nothing that changes them is to come between.
    pub(super) fn ahead<'c>(&'c self, sql: &'c str, params: impl Params) -> Result<PrefetchedRows<'c>> {
        Ok(match self {
            Connection::Sqlite(conn) => {
                let values = params.with(|params| params.iter().map(|value| own(*value)).collect::<Result<_>>())?;
                PrefetchedRows::Sqlite { conn, sql, values, statement: None }
            }
            Connection::Postgres(conn) => {
                PrefetchedRows::Postgres(conn, params.with(|params| conn.ahead(&conn.translated(sql), params))?)
            }
        })
    }

    /// So many rows will be [inserted](Statement::insert) into a table: their numbers come with what is waited for before that.
    pub(super) fn ids_ahead(&self, table: &str, count: usize) -> Result<()> {
        match self {
            // It gives numbers as they are wanted.
            Connection::Sqlite(_) => Ok(()),
            Connection::Postgres(conn) => conn.ids_ahead(table, count),
        }
    }

    /// What others of this transaction have [asked ahead](Connection::ahead) of it does not hold any more.
    pub(super) fn moved(&self, what: impl FnOnce() -> Invalidation) {
        if let Connection::Postgres(conn) = self {
            conn.moved(what());
        }
    }

    /// Whether that is so of something that this operation goes by, or would. What it asks ahead from here on is asked anew.
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

    /// Several statements, without parameters.
    pub(super) fn execute_batch(&self, sql: &str) -> Result<()> {
        match self {
            Connection::Sqlite(conn) => Ok(conn.execute_batch(sql)?),
            Connection::Postgres(conn) => conn.execute_batch(sql),
        }
    }

    /// Has the rows that a table gets numbered after those that it was given with their numbers.
    pub(super) fn follow_ids(&self, table: &str) -> Result<()> {
        match self {
            // It goes by what is there.
            Connection::Sqlite(_) => Ok(()),
            Connection::Postgres(conn) => conn.follow_ids(table),
        }
    }

    /// Begins what is to be written as a whole. Nobody else writes until it ends.
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

    /// Waits for what nobody has waited for yet: what was [run](Statement::run).
    pub(super) fn settle(&self) -> Result<()> {
        match self {
            Connection::Sqlite(_) => Ok(()),
            Connection::Postgres(conn) => conn.settle(),
        }
    }

    /// A word about a savepoint.
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

    /// The number of a transaction in which what was asked ahead may be from before what was written since; another once some of
    /// it was undone.
    pub(super) fn transaction(&self) -> Option<u64> {
        match self {
            Connection::Sqlite(_) => None,
            Connection::Postgres(conn) => Some(conn.transaction()),
        }
    }

    /// Counts what was written and what has to be undone: the same number means that nothing has to be.
    pub(super) fn changes(&self) -> u64 {
        match self {
            Connection::Sqlite(conn) => conn.total_changes(),
            Connection::Postgres(conn) => conn.changes(),
        }
    }

    /// Reads from one state of the database, whatever others commit, until it is dropped.
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
        // Nothing was written. Where this fails the connection is no good, and the next to use it finds that out.
        let _ = self.0.roll_back();
    }
}

/// A statement, as often as it is wanted.
pub(super) enum Statement<'c> {
    Sqlite(rusqlite::CachedStatement<'c>),
    Postgres(&'c Postgres, translate::Translated),
}

impl Statement<'_> {
    /// How many rows it has changed.
    pub(super) fn execute(&mut self, params: impl Params) -> Result<usize> {
        match self {
            Statement::Sqlite(statement) => params.with(|params| Ok(statement.execute(params)?)),
            Statement::Postgres(conn, sql) => params.with(|params| conn.execute(sql, params)),
        }
    }

    /// The same where nobody asks how many. What is wrong with it is said by what is waited for next, the commit at the latest,
    /// which has none of it then.
    pub(super) fn run(&mut self, params: impl Params) -> Result<()> {
        match self {
            Statement::Sqlite(statement) => params.with(|params| Ok(statement.execute(params).map(drop)?)),
            Statement::Postgres(conn, sql) => params.with(|params| conn.run(sql, params).map(drop)),
        }
    }

    /// The same where it is asked how many once they are committed: none means that nothing was.
    pub(super) fn run_counting(&mut self, params: impl Params) -> Result<Changed> {
        match self {
            Statement::Sqlite(statement) => params.with(|params| Ok(Changed::Known(statement.execute(params)?))),
            Statement::Postgres(conn, sql) => params.with(|params| conn.run(sql, params).map(Changed::Asked)),
        }
    }

    /// Inserts a row by `INSERT INTO table (…) VALUES (…)`, and says which `id` it gets. As after [`run`](Statement::run), it is
    /// there once something was waited for.
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

    /// The first row that it finds.
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

/// How many rows were changed by what is committed.
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

/// Rows that were asked for before they are wanted.
pub(super) enum PrefetchedRows<'c> {
    /// Here they are near.
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

    /// Whether there is any.
    pub(super) fn exists(&mut self) -> Result<bool> {
        Ok(self.query()?.next()?.is_some())
    }

    /// The first.
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
    /// All of them, for another thread to look at; nothing where rows stay with their connection.
    pub(super) fn found(self) -> Result<Option<Found>> {
        match self {
            PrefetchedRows::Sqlite { .. } => Ok(None),
            PrefetchedRows::Postgres(conn, asked) => Ok(Some(Found(conn.rows(&asked)?))),
        }
    }
}

/// Rows that have come.
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
        // No statement is given anything else.
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

/// Rows, each made something of.
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

/// Which column: by its place or its name.
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

    /// The column as it is, without a copy of it.
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

/// What goes into a statement in the place of its `?1` and so on.
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
