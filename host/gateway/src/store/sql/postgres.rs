//! A blocking connection to PostgreSQL. On a thread of an async runtime, which must not block, another thread waits
//! in its place while the runtime's thread stands still; that is meant for a single-threaded runtime in which
//! everything happens in one order.
//!
//! Nothing is left in a session that is shared with others, so that a pooler with transaction pooling may sit in
//! between. Requests whose results nobody needs, or not yet, are not waited for: they are pipelined with the next
//! request that is waited for, at the latest the `COMMIT`. A lost connection is made anew when it is needed and the
//! [link](Link) allows it.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, VecDeque},
    panic::resume_unwind,
    sync::Arc,
    thread,
    time::Duration,
};

use pmk_core::text::collapse_whitespace;
use rusqlite::ToSql;
use tokio::{
    runtime::{Handle, Runtime},
    task::yield_now,
    time::timeout,
};
use tokio_postgres::{
    NoTls, Row,
    error::{DbError, Severity, SqlState},
};

use super::{
    Error, Result,
    link::Link,
    prefetch::{Invalidation, Prefetch, Prefetched},
    session::{Asked, Misnamed, Outcome, Request, Sent, Session},
    translate::Translated,
    values::Given,
};

/// How long an answer may take before the database counts as unreachable.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);

/// How many row ids are fetched at once, where the number needed is not known.
const IDS_AT_ONCE: usize = 16;

/// How many requests, and how many bytes, are sent at most before the answers are waited for.
const MOST_SENT: usize = 128;
const MOST_BYTES: usize = 1 << 20;

/// Begins a transaction that writes: each of its statements sees what was committed before it. The session of a
/// host that is suspended in the middle of it times out, so that it blocks nobody for long.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '2s'";

/// The writer holds this advisory lock for its transaction: `pmkh`, and the schema of the store.
const WRITES_ALONE: &str = "SELECT pg_advisory_xact_lock(1886219112, hashtext(current_schema()))";

/// After the lock, because it sees what was committed before.
const HOST_WRITES: &str = "SELECT pmk_host_writes(?1)";

/// A connection to the database of a link.
pub(in crate::store) struct Postgres {
    link: Arc<Link>,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    session: RefCell<Option<Session>>,
    /// Requests that were sent and not waited for yet, in order; and their size in bytes.
    sent: RefCell<Vec<Sent>>,
    sent_bytes: Cell<usize>,
    /// Rows that were requested in advance.
    prefetch: RefCell<Prefetch>,
    /// Row ids for inserts of this transaction, by table: several are fetched at once. None is kept for the next
    /// transaction: others may use higher ids in between, and a server after a crash, or its replacement, may hand
    /// some out again.
    ids: RefCell<HashMap<Box<str>, Ids>>,
    translated: RefCell<HashMap<Box<str>, Translated>>,
    transaction: Cell<Transaction>,
    /// The transaction's number; it changes after each rollback.
    number: Cell<u64>,
    /// When the transaction began, where its commit counts as a sign of life of this host.
    tells_since: Cell<Option<Duration>>,
    /// How many requests have begun the transaction.
    opening: Cell<usize>,
    changes: Cell<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transaction {
    None,
    /// Nothing of it was answered yet: it may still be begun on another connection.
    Begun,
    Open,
    /// A statement has failed, and only its end is accepted any more.
    Failed,
}

/// Ids of rows to be inserted.
#[derive(Default)]
struct Ids {
    known: VecDeque<i64>,
    /// Requests for more ids, and how many each will return.
    asked: VecDeque<(Arc<Asked>, usize)>,
}

impl Ids {
    fn count(&self) -> usize {
        self.known.len() + self.asked.iter().map(|(_, count)| count).sum::<usize>()
    }
}

/// Whether requests may be repeated on a new connection, if the old one turns out to be lost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    /// They change nothing.
    Yes,
    /// They are part of a transaction of which nothing was answered yet.
    Within,
    /// They end a transaction, and whether that was done cannot be known.
    No,
}

impl Postgres {
    /// Connects.
    ///
    /// # Errors
    /// The database cannot be reached, or denies access.
    pub(in crate::store) fn connect(link: &Arc<Link>) -> Result<Postgres> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Error::Away(error.to_string()))?;
        let postgres = Postgres {
            link: Arc::clone(link),
            runtime: Some(runtime),
            session: RefCell::default(),
            sent: RefCell::default(),
            sent_bytes: Cell::new(0),
            prefetch: RefCell::default(),
            ids: RefCell::default(),
            translated: RefCell::default(),
            transaction: Cell::new(Transaction::None),
            tells_since: Cell::new(None),
            number: Cell::new(0),
            opening: Cell::new(0),
            changes: Cell::new(0),
        };
        let session = postgres.session()?;
        *postgres.session.borrow_mut() = Some(session);
        Ok(postgres)
    }

    pub(in crate::store) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Runs something on this connection's runtime, and waits for it.
    fn block_on<F>(&self, work: F) -> Result<F::Output>
    where
        F: Future<Output: Send> + Send,
    {
        let runtime = self.runtime.as_ref().ok_or_else(|| Error::Away("it was closed".into()))?;
        if Handle::try_current().is_err() {
            return Ok(runtime.block_on(work));
        }
        let done = thread::scope(|scope| scope.spawn(|| runtime.block_on(work)).join());
        Ok(done.unwrap_or_else(|panic| resume_unwind(panic)))
    }

    fn session(&self) -> Result<Session> {
        let link = &*self.link;
        link.is_worth_trying()?;
        let connecting = async {
            // Requests are processed only while the runtime is being waited on.
            let client = match &link.tls {
                Some(tls) => {
                    let (client, connection) = link.config.connect(tls.clone()).await?;
                    tokio::spawn(connection);
                    client
                }
                None => {
                    let (client, connection) = link.config.connect(NoTls).await?;
                    tokio::spawn(connection);
                    client
                }
            };
            Session::new(client, link.may_name()).await
        };
        let within = link.connected_within();
        match self.block_on(async { timeout(within, connecting).await })? {
            Ok(Ok(session)) => {
                link.is_there();
                Ok(session)
            }
            // The server is there and has refused.
            Ok(Err(error)) if error.as_db_error().is_some_and(|error| !is_passing(error)) => {
                Err(Error::Postgres(error))
            }
            Ok(Err(error)) => Err(link.is_away(&words(&error))),
            Err(_) => Err(link.is_away(&format!("no answer within {} s", within.as_secs()))),
        }
    }

    /// Sends a request, and waits for the answers to everything sent.
    fn ask(&self, request: Request, again: Again) -> Result<Outcome> {
        let asked = self.send(request)?;
        self.wait(again)?;
        Ok(asked.outcome().unwrap_or_default())
    }

    /// Waits for the answers to everything sent.
    fn wait(&self, again: Again) -> Result<()> {
        // A statement that failed because of its name has done nothing.
        let (mut where_lost, mut where_misnamed) = match self.transaction.get() {
            Transaction::None => (again == Again::Yes, true),
            Transaction::Begun => (again != Again::No, true),
            Transaction::Open | Transaction::Failed => (false, false),
        };
        loop {
            self.connected()?;
            let sent = self.unsent();
            let asked: Vec<Arc<Asked>> = sent.iter().map(|sent| Arc::clone(&sent.asked)).collect();
            let answers = async {
                for (place, sent) in sent.into_iter().enumerate() {
                    sent.answer.await.map_err(|error| (place, error))?;
                }
                Ok::<(), (usize, tokio_postgres::Error)>(())
            };
            let lost = match self.block_on(async { timeout(ANSWERED_WITHIN, answers).await })? {
                Ok(Ok(())) => {
                    if self.transaction.get() == Transaction::Begun {
                        self.transaction.set(Transaction::Open);
                    }
                    return Ok(());
                }
                Ok(Err((_, error))) if self.is_misnamed(&error) => None,
                Ok(Err((place, error))) if !is_end(&error) => {
                    self.failed(place, again);
                    return Err(Error::Postgres(error));
                }
                Ok(Err((_, error))) => Some(words(&error)),
                Err(_) => Some(format!("no answer within {} s", ANSWERED_WITHIN.as_secs())),
            };
            self.session.take();
            let again = if lost.is_some() { &mut where_lost } else { &mut where_misnamed };
            if !std::mem::take(again) {
                return Err(match lost {
                    Some(why) => self.lost(&why),
                    None => {
                        self.forget();
                        Error::Away("the server did not know a statement by its name".into())
                    }
                });
            }
            // Nothing of it is committed, and nobody has seen any result of it.
            *self.sent.borrow_mut() = asked.into_iter().map(Sent::in_vain).collect();
        }
    }

    /// Whether a statement has failed only because of its name.
    fn is_misnamed(&self, error: &tokio_postgres::Error) -> bool {
        let has_names = self.session.borrow().as_ref().is_some_and(Session::has_names);
        match Misnamed::of(error).filter(|_| has_names) {
            Some(Misnamed::Unknown) => {
                self.link.name_none(&words(error));
                true
            }
            Some(Misnamed::Outdated) => true,
            None => false,
        }
    }

    /// Sends a request without waiting for its answer.
    fn send(&self, request: Request) -> Result<Arc<Asked>> {
        self.connected()?;
        let asked = Asked::new(request);
        if let Some(session) = &*self.session.borrow() {
            self.sent_bytes.set(self.sent_bytes.get() + asked.bytes());
            self.sent.borrow_mut().push(session.send(Arc::clone(&asked), self.link.may_name()));
        }
        Ok(asked)
    }

    /// Takes the requests that were sent and not waited for.
    fn unsent(&self) -> Vec<Sent> {
        self.sent_bytes.set(0);
        self.sent.take()
    }

    /// Ensures a connection, and makes it anew where that loses nothing.
    fn connected(&self) -> Result<()> {
        let mut place = self.session.borrow_mut();
        if place.as_ref().is_some_and(|session| !session.is_closed()) {
            return Ok(());
        }
        if matches!(self.transaction.get(), Transaction::Open | Transaction::Failed) {
            *place = None;
            return Err(self.lost("the connection was lost"));
        }
        let session = self.session().inspect_err(|_| self.forget())?;
        // Another server may have taken over, however quickly.
        self.link.is_another();
        for sent in &mut *self.sent.borrow_mut() {
            *sent = session.send(Arc::clone(&sent.asked), self.link.may_name());
        }
        *place = Some(session);
        Ok(())
    }

    /// Processes what has arrived without being waited for: for example, that the server has closed the connection,
    /// which is then made anew.
    fn look(&self) -> Result<()> {
        self.block_on(async {
            // The first yield lets it be noticed, the second one lets it be processed.
            yield_now().await;
            yield_now().await;
        })
    }

    fn lost(&self, why: &str) -> Error {
        self.forget();
        self.link.is_away(why)
    }

    /// Resets the state after a lost connection: the server rolls the transaction back.
    fn forget(&self) {
        self.unsent();
        self.transaction.set(Transaction::None);
        self.changed();
    }

    /// Handles a failed request: an open transaction has to be rolled back. `place` is how many requests were
    /// answered before the failed one.
    fn failed(&self, place: usize, again: Again) {
        match self.transaction.get() {
            Transaction::None => return,
            // The transaction has not even begun.
            Transaction::Begun if place < self.opening.get() => {
                self.transaction.set(Transaction::None);
                if again != Again::No {
                    // If this fails, too, the next transaction meets what is left and rolls it back.
                    let _ = self.end("ROLLBACK");
                }
            }
            Transaction::Begun | Transaction::Open | Transaction::Failed => self.transaction.set(Transaction::Failed),
        }
        self.changed();
    }

    fn changed(&self) {
        self.changes.set(self.changes.get() + 1);
    }

    pub(super) fn translated(&self, sql: &str) -> Translated {
        let mut translated = self.translated.borrow_mut();
        if let Some(known) = translated.get(sql) {
            return known.clone();
        }
        let new = Translated::of(sql);
        translated.insert(sql.into(), new.clone());
        new
    }

    pub(super) fn execute(&self, sql: &Translated, params: &[&dyn ToSql]) -> Result<usize> {
        let changed = self.ask(statement(sql, params)?, Again::Within)?.changed;
        self.changes.set(self.changes.get() + changed);
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    /// As [`execute`](Postgres::execute), where the number of changed rows is not needed.
    pub(super) fn run(&self, sql: &Translated, params: &[&dyn ToSql]) -> Result<Arc<Asked>> {
        let request = statement(sql, params)?;
        self.changed();
        let asked = self.send(request)?;
        // An ordinary turn stays below this.
        let is_much = self.sent_bytes.get() > MOST_BYTES || self.sent.borrow().len() > MOST_SENT;
        if is_much || self.transaction.get() == Transaction::None {
            self.settle()?;
        }
        Ok(asked)
    }

    /// Waits for the answers to all requests that were not waited for.
    pub(super) fn settle(&self) -> Result<()> {
        if self.transaction.get() == Transaction::Failed {
            return Err(Error::Undone(None));
        }
        if self.sent.borrow().is_empty() {
            return Ok(());
        }
        self.wait(Again::Within)
    }

    pub(super) fn query(&self, sql: &Translated, params: &[&dyn ToSql]) -> Result<Vec<Row>> {
        let Outcome { rows, .. } = self.ask(statement(sql, params)?, Again::Yes)?;
        // A statement that changes rows returns them.
        if sql.is_returning() {
            self.changes.set(self.changes.get() + rows.len() as u64);
        }
        Ok(rows)
    }

    /// Requests rows that are needed later, unless they were prefetched. Changes nothing.
    pub(super) fn prefetch(&self, sql: &Translated, params: &[&dyn ToSql]) -> Result<Arc<Asked>> {
        let request = statement(sql, params)?;
        if let Some(asked) = self.prefetch.borrow_mut().take(&request) {
            return Ok(asked);
        }
        let asked = self.send(request)?;
        if self.transaction.get() == Transaction::None {
            self.wait(Again::Yes)?;
        }
        self.prefetch.borrow_mut().note(&asked);
        Ok(asked)
    }

    /// Collects what `ask` prefetches, for work that runs later [with it](Postgres::with_prefetched).
    pub(in crate::store) fn prefetching<T>(&self, ask: impl FnOnce() -> T) -> Prefetched {
        self.prefetch.borrow_mut().begin_noting();
        ask();
        self.prefetch.borrow_mut().noted()
    }

    /// Runs `work` with the rows that were prefetched for it.
    pub(in crate::store) fn with_prefetched<T>(&self, prefetched: Prefetched, work: impl FnOnce() -> T) -> T {
        self.prefetch.borrow_mut().is_for(prefetched);
        let done = work();
        self.prefetch.borrow_mut().forget();
        done
    }

    /// Marks prefetched rows as invalid.
    pub(super) fn moved(&self, what: Invalidation) {
        self.prefetch.borrow_mut().moved(what);
    }

    /// Whether the current work may rely on prefetched rows that are no longer valid. From then on it queries anew.
    pub(super) fn has_moved(&self, what: &Invalidation) -> bool {
        self.prefetch.borrow_mut().has_moved(what)
    }

    /// Returns the rows that were requested.
    pub(super) fn rows(&self, asked: &Asked) -> Result<Vec<Row>> {
        if let Some(outcome) = asked.outcome() {
            return Ok(outcome.rows);
        }
        self.settle()?;
        // A request that was rolled back meanwhile has no answer.
        asked.outcome().map(|outcome| outcome.rows).ok_or(Error::Undone(None))
    }

    pub(super) fn insert(&self, sql: &Translated, params: &[&dyn ToSql]) -> Result<i64> {
        let Some((table, with_id)) = sql.with_id(params.len()) else { return Err(Error::NoRow) };
        let id = self.next_id(table)?;
        self.run(&with_id, &[params, &[&id]].concat())?;
        Ok(id)
    }

    /// Requests ids for so many rows, which are inserted later.
    pub(super) fn prefetch_ids(&self, table: &str, count: usize) -> Result<()> {
        // While prefetching, ids on hand are not counted: they are for the work that runs now.
        let there = match self.prefetch.borrow().is_noting() {
            true => 0,
            false => self.ids.borrow().get(table).map_or(0, Ids::count),
        };
        let count = count.saturating_sub(there);
        if count > 0 {
            let asked = self.send(fetch_ids(table, count)?)?;
            self.ids.borrow_mut().entry(table.into()).or_default().asked.push_back((asked, count));
        }
        Ok(())
    }

    /// Returns the id for a row to be inserted into a table.
    pub(in crate::store) fn next_id(&self, table: &str) -> Result<i64> {
        let mut ids = self.ids.borrow_mut().remove(table).unwrap_or_default();
        while ids.known.is_empty() {
            let rows = match ids.asked.pop_front() {
                Some((asked, _)) => self.rows(&asked)?,
                None => self.ask(fetch_ids(table, IDS_AT_ONCE)?, Again::Yes)?.rows,
            };
            if rows.is_empty() {
                return Err(Error::NoRow);
            }
            ids.known.extend(ids_of(&rows)?);
        }
        let next = ids.known.pop_front().ok_or(Error::NoRow)?;
        self.ids.borrow_mut().insert(table.into(), ids);
        Ok(next)
    }

    pub(super) fn execute_batch(&self, sql: &str) -> Result<()> {
        self.ask(Request::Words(sql.into()), Again::Within).map(drop)
    }

    pub(super) fn follow_ids(&self, table: &str) -> Result<()> {
        let column = if table == "press" { "number" } else { "id" };
        let highest = format!("(SELECT max({column}) FROM {table})");
        let next = format!("(SELECT last_value FROM {table}_{column}_seq)");
        self.execute_batch(&format!("SELECT setval('{table}_{column}_seq', greatest({highest}, {next}))"))
    }

    /// Begins a transaction in which nobody else writes, and which fails if this host may not write.
    pub(super) fn begin(&self) -> Result<()> {
        let mut opening = vec![Request::Words(BEGIN.into()), statement(&self.translated(WRITES_ALONE), &[])?];
        let tells_since = match self.link.host() {
            0 => None,
            host => {
                opening.push(statement(&self.translated(HOST_WRITES), &[&host])?);
                Some(self.link.now())
            }
        };
        self.open(opening)?;
        self.tells_since.set(tells_since);
        Ok(())
    }

    pub(super) fn begin_snapshot(&self) -> Result<()> {
        self.open(vec![Request::Words("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY".into())])
    }

    fn open(&self, opening: Vec<Request>) -> Result<()> {
        self.has_no_past();
        self.prefetch.take();
        self.tells_since.take();
        self.look()?;
        self.opening.set(opening.len());
        for request in opening {
            self.send(request)?;
        }
        self.transaction.set(Transaction::Begun);
        Ok(())
    }

    /// Discards what was known of the previous transaction.
    fn has_no_past(&self) {
        self.ids.take();
        self.number.set(self.number.get() + 1);
    }

    pub(super) fn transaction(&self) -> u64 {
        self.number.get()
    }

    pub(super) fn commit(&self) -> Result<()> {
        match self.transaction.get() {
            // PostgreSQL treats a COMMIT of it as a ROLLBACK without reporting that.
            Transaction::Failed => {
                self.end("ROLLBACK")?;
                Err(Error::Undone(None))
            }
            // A transaction of which nothing was answered is sent together with its end: if the connection is lost
            // then, it cannot be known whether it was committed.
            Transaction::None | Transaction::Begun | Transaction::Open => {
                self.end("COMMIT")?;
                if let Some(begun) = self.tells_since.take() {
                    self.link.was_heard(begun);
                }
                Ok(())
            }
        }
    }

    pub(super) fn roll_back(&self) -> Result<()> {
        // Their results no longer matter.
        self.unsent();
        self.end("ROLLBACK")
    }

    fn end(&self, how: &str) -> Result<()> {
        let ended = self.ask(Request::Words(how.into()), Again::No);
        match (self.transaction.replace(Transaction::None), ended) {
            (_, Ok(_)) => Ok(()),
            // It was begun, and something in it has failed.
            (Transaction::Failed, Err(Error::Postgres(error))) => Err(Error::Undone(Some(error))),
            (_, Err(error)) => Err(error),
        }
    }

    pub(super) fn savepoint(&self, word: &str) -> Result<()> {
        if word.starts_with("ROLLBACK TO") {
            // It undoes these requests, whatever their results.
            self.unsent();
            self.has_no_past();
        }
        self.ask(Request::Words(word.into()), Again::Within)?;
        if word.starts_with("ROLLBACK TO") {
            self.transaction.set(Transaction::Open);
        }
        Ok(())
    }

    pub(super) fn is_in_transaction(&self) -> bool {
        self.transaction.get() != Transaction::None
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes.get()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.session.borrow_mut().take();
        if let Some(runtime) = self.runtime.take() {
            // The dropping thread may belong to another runtime.
            runtime.shutdown_background();
        }
    }
}

fn statement(sql: &Translated, params: &[&dyn ToSql]) -> Result<Request> {
    let given: Result<Vec<_>> = params.iter().map(|value| Given::of(*value)?.owned()).collect();
    Ok(Request::Statement(sql.clone(), given?))
}

fn fetch_ids(table: &str, count: usize) -> Result<Request> {
    let fetch = format!("SELECT nextval('{table}_id_seq') FROM generate_series(1, $1)");
    statement(&Translated::of(&fetch), &[&i64::try_from(count).unwrap_or(i64::MAX)])
}

fn ids_of(rows: &[Row]) -> Result<Vec<i64>> {
    rows.iter().map(|row| row.try_get(0).map_err(Error::Postgres)).collect()
}

/// Returns PostgreSQL's error message on one line.
pub(in crate::store) fn words(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    let said = match error.as_db_error() {
        Some(said) => said.message().to_owned(),
        None => match error.source() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    };
    collapse_whitespace(&said)
}

/// SQL states of a connection that the server or a pooler closes, and of a completion that is unknown.
const ENDS: [SqlState; 4] = [
    SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN,
    SqlState::ADMIN_SHUTDOWN,
    SqlState::CRASH_SHUTDOWN,
    SqlState::CANNOT_CONNECT_NOW,
];

/// Whether the connection is lost.
fn is_end(error: &tokio_postgres::Error) -> bool {
    match error.as_db_error() {
        // It cannot be known whether the statement was executed, or what has begun.
        Some(said) if said.code().code().starts_with("08") || ENDS.contains(said.code()) => true,
        // A pooler gives the severity only as an untranslated word.
        Some(said) => match said.parsed_severity() {
            Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
            None => said.severity() == "FATAL",
        },
        None => true,
    }
}

/// Whether a server that refuses a connection with this error may accept one later.
fn is_passing(error: &DbError) -> bool {
    let code = error.code();
    // A pooler uses this class when it cannot reach the server, but also for options that it does not support.
    (code.code().starts_with("08") && !error.message().starts_with(NO_OPTIONS))
        || *code == SqlState::CANNOT_CONNECT_NOW
        || *code == SqlState::TOO_MANY_CONNECTIONS
        || *code == SqlState::ADMIN_SHUTDOWN
        || *code == SqlState::CRASH_SHUTDOWN
}

/// A pooler's error message for an address with session options, because it shares sessions.
pub(in crate::store) const NO_OPTIONS: &str = "unsupported startup parameter";
